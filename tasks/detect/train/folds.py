"""Dividing a corpus by work, so that no page is measured by a network that saw its book."""

from __future__ import annotations

from collections.abc import Sequence

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


def most_folds(pages: Sequence[LabelledPage]) -> int:
    """The folds there may be if each is to have a work with pictures and one without."""
    illustrated = {page.work for page in pages if page.illustrated}
    return min(len(illustrated), len({page.work for page in pages} - illustrated))
