"""The classical method: what is much larger than a letter and not made of letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import Detection, PageFacts, Region, RegionKind
from tasks.detect.boxes import merge_close, reading_order, size, touch
from tasks.detect.lines import scan_lines
from tasks.detect.page import (
    Gray,
    InkPage,
    PixelBox,
    area,
    components,
    fit,
    read_ink,
    relative,
    to_gray8,
)

LONG_SIDE = 640
"""Pixels on the page's longer side: letters stay separate, and a page costs about 8 ms."""
LETTER_BOUNDS = (0.006, 0.03)
"""Smallest and largest height taken for a letter's, as a fraction of the page's height."""
MOST_TEXT = 0.5
"""A region with more than this share of its ink in letter-sized pieces is text."""
SMALLEST = 0.01
"""Regions under this fraction of the page are not reported."""
LARGEST_FREED = 0.3
"""Nothing larger, as a fraction of the page, is freed from the lines of a scan's border."""


@dataclass(frozen=True)
class Pieces:
    """The connected pieces of a page's ink.

    Attributes:
        labels: (H, W) piece numbers; 0 is paper.
        stats: (pieces, 5) left, top, width, height and pixels of every piece.
        small: (pieces,) bool, whether a piece is letter-sized.
        letter: Height of a letter in pixels.
    """

    labels: NDArray[Any]
    stats: NDArray[np.int32]
    small: NDArray[np.bool_]
    letter: float

    def text_share(self, window: tuple[slice, slice], part: Gray | None = None) -> float:
        """The share of ink in a window (within `part`, if given) that is letter-sized."""
        labels = self.labels[window]
        if part is not None:
            labels = labels[part > 0]
        ink = np.count_nonzero(labels)
        return np.count_nonzero(self.small[labels]) / ink if ink else 1.0


class BlobsDetector:
    """Finds pictures without a model, by the size and the make-up of connected ink.

    ``score`` is the summed area of the regions as a fraction of the page. It cannot tell a
    picture from an ornament or from sheet music; every region is reported as an engraving.
    """

    name = "blobs"
    version = "3"

    def render_dpi(self, page: PageFacts) -> float:
        """What gives `LONG_SIDE` pixels on the longer side."""
        return LONG_SIDE * 72.0 / max(page.width, page.height)

    def __call__(self, gray: NDArray[np.uint8]) -> Detection:
        """Measure a page, (H, W) uint8, and find its pictures."""
        page = read_ink(fit(to_gray8(gray), LONG_SIDE))
        regions = [] if page.blank else find_blobs(page)
        picture_area = sum(area(region.box) for region in regions)
        return Detection(
            score=picture_area,
            measures={"picture_area": picture_area, "ink": page.ink_share},
            regions=regions,
            blank=page.blank,
        )


def find_blobs(page: InkPage) -> list[Region]:
    """The pictures of a page, in reading order."""
    pieces = read_pieces(page.ink)
    certain = blob_boxes(page.ink, pieces)
    regions = [
        Region(box=relative(box, page.ink.shape), kind=RegionKind.ENGRAVING, confidence=1.0 - text)
        for box, text in (*certain, *freed_boxes(page.ink, pieces, certain))
    ]
    return reading_order(regions)


def blob_boxes(ink: Gray, pieces: Pieces) -> list[tuple[PixelBox, float]]:
    """Boxes of what is not text, each with the share of its ink that is letter-sized."""
    found = []
    for box in merge_close(_seeds(ink, pieces), gap=round(pieces.letter)):
        x0, y0, x1, y1 = box
        if min(x1 - x0, y1 - y0) < 4 * pieces.letter or size(box) < SMALLEST * ink.size:
            continue
        text = pieces.text_share((slice(y0, y1), slice(x0, x1)))
        if text <= MOST_TEXT:
            found.append((box, text))
    return found


def freed_boxes(
    ink: Gray, pieces: Pieces, boxes: Sequence[tuple[PixelBox, float]]
) -> list[tuple[PixelBox, float]]:
    """More boxes, of what touches the lines of a scan's border, and was taken for a part of it.

    They touch none of the `boxes` found with these lines, and are no plates: the frame of a page,
    freed of one line, would be one.
    """
    lines = scan_lines(ink)
    if not lines.any():
        return []
    return [
        (box, text)
        for box, text in blob_boxes(np.where(lines > 0, 0, ink).astype(np.uint8), pieces)
        if size(box) <= LARGEST_FREED * ink.size
        and not any(touch(box, other) for other, _ in boxes)
    ]


def read_pieces(ink: Gray) -> Pieces:
    """Label the ink and measure its letters: the ink-weighted median height of small pieces."""
    page_height, page_width = ink.shape
    labels, stats = components(ink)
    width, height, pixels = stats[:, 2], stats[:, 3], stats[:, 4]
    letters = (pixels >= 4) & (height >= 4)
    letters &= (height < 0.06 * page_height) & (width < 0.3 * page_width)
    letters[0] = False
    letter = 0.012 * page_height
    if np.count_nonzero(letters) >= 20:
        order = np.argsort(height[letters])
        weight = np.cumsum(pixels[letters][order])
        letter = float(height[letters][order][np.searchsorted(weight, weight[-1] / 2)])
    low, high = LETTER_BOUNDS
    letter = max(1.0, float(np.clip(letter, low * page_height, high * page_height)))
    small = (height < 2.6 * letter) & (width < 8 * letter)
    small[0] = False
    return Pieces(
        labels=labels,
        stats=stats,
        small=small,
        letter=letter,
    )


def _seeds(ink: Gray, pieces: Pieces) -> list[PixelBox]:
    """Boxes of closed ink that is several letters high and wide and not made of letters."""
    page_height, page_width = ink.shape
    letter = pieces.letter
    gap = max(2, round(0.45 * letter))
    closed = cv2.morphologyEx(ink, cv2.MORPH_CLOSE, np.ones((gap, gap), np.uint8))
    labels, stats = components(closed.astype(np.uint8, copy=False))
    width, height, pixels = stats[:, 2], stats[:, 3], stats[:, 4]
    large = (np.minimum(width, height) >= 3 * letter) & (width * height >= 36 * letter * letter)
    large &= pixels >= 0.04 * width * height
    large[0] = False
    seeds: list[PixelBox] = []
    for number in np.flatnonzero(large):
        x, y, w, h = (int(v) for v in stats[number, :4])
        fill = pixels[number] / (w * h)
        window = (slice(y, y + h), slice(x, x + w))
        part = (labels[window] == number).astype(np.uint8)
        if pieces.text_share(window, part) > MOST_TEXT:
            continue
        at_edge = x <= 2 or y <= 2 or x + w >= page_width - 2 or y + h >= page_height - 2
        sliver = min(w / page_width, h / page_height) < 0.12
        if at_edge and (fill < 0.3 or sliver):
            continue
        # Thin outlines are the edge of the paper or a frame around text, unless they are small
        # and hold no letters.
        frame = w * h > 0.3 * page_width * page_height or pieces.text_share(window) > 0.2
        if fill < 0.3 and frame:
            continue
        seeds.append((x, y, x + w, y + h))
    return seeds
