"""From the network's maps to regions: fragments joined, neighbours apart, edges on the ink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import Detection, Region, RegionKind
from tasks.detect.boxes import merge_close, reading_order
from tasks.detect.kinds import picture_kind, ruled_kind
from tasks.detect.page import Gray, InkPage, Mask, PixelBox, area, read_ink, relative

PICTURE, ORNAMENT, RULED, TEXT = range(4)
"""The maps, in the order of the network's channels."""
LIKELY = 0.5
"""A cell at least this probable belongs to a region."""
POSSIBLE = 0.15
"""Ink in cells less probable than this belongs to no region."""
CERTAIN = 0.6
"""A region has at least one cell as probable as this."""
SMALLEST = 0.004
"""Regions under this fraction of the page are not reported: specks, stamps, small initials."""
REACH = 0.025
"""How far an edge may move to the ink, as a fraction of the page's longer side; the maps are
right to about half of that."""
QUIET = 0.010
"""White space of this height (same unit) parts a picture from a caption or a rule."""
SPECK = 7
"""Pieces of ink with fewer pixels than this, at 512 pixels a page, are grain."""
LEAST_INK = 0.015
"""A line across a region with less than this share of ink is white but for specks."""
MARGIN = 0.002
"""White space left around the ink (same unit): one pixel at 512."""


@dataclass(frozen=True)
class _Found:
    """A region before its edges are set, in cells of the maps."""

    box: PixelBox
    channel: int
    confidence: float


def measure(gray: Gray, maps: NDArray[np.float32]) -> Detection:
    """Everything about a page.

    Args:
        gray: (H, W) uint8, the page the maps were drawn from.
        maps: (4, h, w) probabilities, 0 to 1, covering the same page in coarser cells.
    """
    page = read_ink(gray)
    regions = [] if page.blank else find_regions(page, maps)
    areas = {"picture_area": 0.0, "ornament_area": 0.0, "ruled_area": 0.0}
    for region in regions:
        areas[_AREA_OF[region.kind]] += area(region.box)
    return Detection(
        score=areas["picture_area"],
        measures={
            **areas,
            "text_area": float((maps[TEXT] > LIKELY).mean()),
            "ink": page.ink_share,
        },
        regions=regions,
        blank=page.blank,
    )


_AREA_OF = {
    RegionKind.ENGRAVING: "picture_area",
    RegionKind.PHOTOGRAPH: "picture_area",
    RegionKind.ORNAMENT: "ornament_area",
    RegionKind.MUSIC: "ruled_area",
    RegionKind.TABLE: "ruled_area",
}


def find_regions(page: InkPage, maps: NDArray[np.float32]) -> list[Region]:
    """The regions of a page, in reading order."""
    height, width = page.gray.shape
    candidates = list(_candidates(maps))
    if not candidates:
        return []
    ink = _without_specks(page.ink & _mask_of_ours(maps, (height, width)))
    regions = []
    for found in candidates:
        box = snap(ink, _to_pixels(found.box, maps.shape[1:], (height, width)))
        if (box[2] - box[0]) * (box[3] - box[1]) < SMALLEST * height * width:
            continue
        if found.channel == PICTURE:
            kind = picture_kind(page.gray, box)
        elif found.channel == ORNAMENT:
            kind = RegionKind.ORNAMENT
        else:
            kind = ruled_kind(page.ink, box)
        regions.append(
            Region(box=relative(box, (height, width)), kind=kind, confidence=found.confidence)
        )
    return reading_order(regions)


def _candidates(maps: NDArray[np.float32]) -> Iterator[_Found]:
    """Connected likely cells, each given to the channel that is surest of it."""
    taken = np.argmax(maps[: RULED + 1], axis=0)
    for channel in (PICTURE, ORNAMENT, RULED):
        likely = ((maps[channel] >= LIKELY) & (taken == channel)).astype(np.uint8)
        likely = cv2.morphologyEx(likely, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
        count, labels, stats, _ = cv2.connectedComponentsWithStats(likely, connectivity=4)
        boxes: list[PixelBox] = []
        for number in range(1, count):
            x, y, w, h, cells = (int(v) for v in stats[number])
            part = labels[y : y + h, x : x + w] == number
            if cells >= 6 and maps[channel, y : y + h, x : x + w][part].max() >= CERTAIN:
                boxes.append(_dense((x, y, x + w, y + h), part))
        for box in merge_close(boxes, gap=0):
            x0, y0, x1, y1 = box
            confidence = float(maps[channel, y0:y1, x0:x1].mean())
            yield _Found(box, channel, min(1.0, max(0.0, confidence)))


def _dense(box: PixelBox, part: NDArray[np.bool_]) -> PixelBox:
    """The box without thin tongues: rows and columns that are filled a third as well as most."""
    rows, columns = part.sum(axis=1), part.sum(axis=0)
    y = np.flatnonzero(rows >= np.percentile(rows, 80) / 3)
    x = np.flatnonzero(columns >= np.percentile(columns, 80) / 3)
    return (
        box[0] + int(x[0]),
        box[1] + int(y[0]),
        box[0] + int(x[-1]) + 1,
        box[1] + int(y[-1]) + 1,
    )


def _mask_of_ours(maps: NDArray[np.float32], shape: tuple[int, int]) -> Mask:
    """(H, W) mask of where ink may belong to a region."""
    any_region = maps[:TEXT].max(axis=0)
    ours = (any_region > POSSIBLE) & (any_region >= maps[TEXT])
    ours_u8 = np.where(ours, 255, 0).astype(np.uint8)
    return cv2.resize(ours_u8, shape[::-1], interpolation=cv2.INTER_NEAREST).astype(np.uint8)


def _without_specks(ink: Mask) -> Mask:
    """The ink without pieces too small to be a stroke."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    keep = stats[:, cv2.CC_STAT_AREA] >= SPECK
    keep[0] = False
    return np.where(keep[labels], 255, 0).astype(np.uint8)


def _to_pixels(box: PixelBox, cells: tuple[int, ...], shape: tuple[int, int]) -> PixelBox:
    down, across = shape[0] / cells[0], shape[1] / cells[1]
    return (
        int(box[0] * across),
        int(box[1] * down),
        min(shape[1], round(box[2] * across)),
        min(shape[0], round(box[3] * down)),
    )


def snap(ink: Mask, box: PixelBox) -> PixelBox:
    """Move each edge of a box to the outermost ink that belongs to it.

    An edge in white space goes inwards to the first ink. An edge in ink goes outwards, over
    white gaps under `QUIET` and at most `REACH`, as long as there is ink of ours.

    ``ink`` is a (H, W) mask of the ink that may belong to regions: no specks, no text.
    """
    height, width = ink.shape
    side = max(height, width)
    margin = max(1, round(MARGIN * side))
    x0, y0, x1, y1 = box
    top, bottom = _edges(ink[:, x0:x1], y0, y1, side)
    left, right = _edges(ink[top:bottom, :].T, x0, x1, side)
    return (
        max(0, left - margin),
        max(0, top - margin),
        min(width, right + margin),
        min(height, bottom + margin),
    )


def _edges(ink: Mask, low: int, high: int, side: int) -> tuple[int, int]:
    """Both edges along the first axis of an array of ink, the second exclusive."""
    inked = np.count_nonzero(ink, axis=1) >= max(1, LEAST_INK * ink.shape[1])
    reach, quiet = max(2, round(REACH * side)), max(2, round(QUIET * side))
    deepest = (high - low) // 3
    start = low - _outward(inked[:low][::-1], inked[low : low + deepest], reach, quiet)
    end = high + _outward(inked[high:], inked[high - deepest : high][::-1], reach, quiet)
    return start, end


def _outward(outside: NDArray[np.bool_], inside: NDArray[np.bool_], reach: int, quiet: int) -> int:
    """How many lines an edge goes outwards; negative if it goes inwards.

    ``outside`` and ``inside`` say of each line on either side of the edge, nearest first,
    whether it is inked.
    """
    white = int(np.argmax(inside)) if inside.any() else 0
    if white >= quiet:
        return -white
    last = -white
    for position, line in enumerate(outside[:reach]):
        if line:
            last = position + 1
        elif position + 1 - last >= quiet:
            break
    return last
