"""What the training set is made of: pages in memory with their boxes and their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from models.errors import BadSettings
from models.records import RelativeBox
from tasks.detect.blobs import read_pieces
from tasks.detect.corpus import UNREADABLE, read_labels, render_fit
from tasks.detect.page import Gray, Mask, read_ink
from tasks.detect.table import LabelledPage

LONG_SIDE = 768
"""Pages are kept half again as large as the network reads them, to scale and to binarise."""


@dataclass(frozen=True)
class Scene:
    """A page (or a page made up) with the truth about it.

    Attributes:
        gray: (H, W) uint8.
        text: (H, W) mask of running text.
        pictures: Boxes of pictures, fractions of the page; ornaments and ruled likewise.
    """

    gray: Gray
    text: Mask
    work: str
    pictures: tuple[RelativeBox, ...] = ()
    ornaments: tuple[RelativeBox, ...] = ()
    ruled: tuple[RelativeBox, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether there is nothing but text on the page."""
        return not (self.pictures or self.ornaments or self.ruled)


def load(corpus: Path, annotations: Path | None) -> tuple[list[LabelledPage], list[Scene]]:
    """Every page of a corpus whose pictures are known, as labelled and as a scene.

    Args:
        corpus: A folder in the corpus format.
        annotations: A second table, whose rows replace or join those of ``labels.csv``.

    Raises:
        BadSettings: A table or a page cannot be read, or none of the files is there.
    """
    pages = {(page.path, page.index): page for page in read_labels(corpus)}
    if annotations is not None:
        for page in read_labels(corpus, annotations):
            first = pages.get((page.path, page.index))
            boxes = page.boxes if first is None or page.boxes is not None else first.boxes
            label = page.label or (first.label if first else "")
            work = page.work or (first.work if first else "")
            pages[page.path, page.index] = replace(page, boxes=boxes, label=label, work=work)
    known = [page for page in pages.values() if page.boxes is not None and page.file.exists()]
    if not known:
        raise BadSettings(f"{corpus}: none of the labelled pages is there, or none has boxes.")
    return known, [_scene(page) for page in known]


def load_pictures(corpus: Path) -> list[tuple[str, Gray]]:
    """The loose illustrations of ``engravings/``, if the corpus has them, with their works."""
    table = corpus / "engravings" / "labels.csv"
    if not table.exists():
        return []
    lines = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    wanted = [(path, work) for path, kind, work in lines if kind not in ("music", "other")]
    return [(work, _render(corpus / path, 0)) for path, work in wanted]


def _render(file: Path, index: int) -> Gray:
    try:
        return render_fit(file, index, LONG_SIDE)
    except UNREADABLE as error:
        cure = "Correct the row that names it, or fetch the file again."
        raise BadSettings(f"{file}, page {index}: {error}.", cure) from error


def _scene(page: LabelledPage) -> Scene:
    gray = _render(page.file, page.index)
    pictures, ornaments, ruled = page.boxes or (), page.ornaments or (), page.ruled or ()
    text = _find_text(gray, (*pictures, *ornaments, *ruled))
    return Scene(gray, text, page.work, pictures, ornaments, ruled)


def _find_text(gray: Gray, others: Sequence[RelativeBox]) -> Mask:
    """A mask of what is made of letter-sized pieces and lies outside `others`."""
    ink = read_ink(gray).ink
    pieces = read_pieces(ink)
    text = (pieces.small * np.uint8(255))[pieces.labels]
    size = max(3, round(1.5 * pieces.letter))
    blocks = cv2.morphologyEx(text, cv2.MORPH_CLOSE, np.ones((size, size), np.uint8))
    blocks = cv2.morphologyEx(blocks, cv2.MORPH_OPEN, np.ones((3, size), np.uint8))
    height, width = gray.shape
    for x0, y0, x1, y1 in others:
        blocks[int(y0 * height) : int(y1 * height), int(x0 * width) : int(x1 * width)] = 0
    return blocks.astype(np.uint8, copy=False)
