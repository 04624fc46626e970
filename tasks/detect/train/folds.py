"""Dividing a corpus by work, so that no page is measured by a network that saw its book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.detect.corpus import by_work
from tasks.detect.table import LabelledPage


def assign_folds(pages: Sequence[LabelledPage], folds: int) -> dict[str, int]:
    """The fold of every work: the largest first, each to the fold with fewest such pages so far.

    Works with pictures and works without are dealt separately, so that every fold has both.
    """
    works = by_work(list(pages))
    ordered = sorted(works, key=lambda work: (-len(works[work]), work))
    assigned: dict[str, int] = {}
    for illustrated in (True, False):
        sizes = [0] * folds
        for work in ordered:
            if any(page.illustrated for page in works[work]) == illustrated:
                fold = sizes.index(min(sizes))
                assigned[work] = fold
                sizes[fold] += len(works[work])
    return assigned


def are_enough(pages: Sequence[LabelledPage], assigned: Mapping[str, int], folds: int) -> bool:
    """Whether every fold has a work, and the others pictures and pages of text to train on."""
    for fold in range(folds):
        rest = [page for page in pages if assigned[page.work] != fold]
        pictures = any(page.boxes for page in rest)
        text = any(not (page.boxes or page.ornaments or page.ruled) for page in rest)
        if len(rest) == len(pages) or not (pictures and text):
            return False
    return True
