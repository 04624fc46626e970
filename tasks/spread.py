"""Two-page spreads: finding the gutter, and keeping the two pages apart."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import Detection, Region, RelativeBox
from tasks.detect.boxes import reading_order
from tasks.detect.page import find_border, fit, flatten, to_gray8

Gray = NDArray[np.uint8]
Profile = NDArray[np.float64]

GUTTER = "gutter"
"""Name of the measure that :func:`split` writes: the gutter's place, as a fraction of the width."""
WIDEST, NARROWEST = 2.2, 1.15
"""Width over height of a spread: pages are between 1.1 and 1.7 times as high as wide."""
LONG_SIDE = 640
"""Pixels of the longer side on which the gutter is looked for."""
MIDDLE = (0.40, 0.60)
"""Where a gutter may lie, as fractions of the width."""
SHADOW = 0.10
"""By how much the paper darkens into a gutter, at least, as a share of its brightness."""
SHADOW_WIDTH = 0.05
"""How far from the gutter, as a share of the width, the paper has its own brightness again."""
PAPER = 0.7
"""What lies beside a gutter is paper: at least this share of the page's brightness."""
BANDS = 16
"""Bands of rows in which the gutter is looked for one by one."""
TALL = 0.8
"""Share of the height along which a gutter must be seen."""
WHITE_WIDTH = 0.045
"""Narrowest white gutter, as a share of the width: two inner margins. Gaps between columns have
half of that."""
INK = 0.008
"""Share of the text area of either page that must be ink: a page beside the scanner's lid or
beside an empty one need not be parted."""
TEXT_BY_SHADOW, TEXT_BY_WHITE = 0.30, 0.42
"""How regular the lines of text on one of the pages must be (autocorrelation, 0 to 1). Nine text
pages in ten reach 0.42, and one engraving in twenty; a shadow says more than a gap does."""
CELL = (24, 0.22)
"""Width in pixels and height as a share of the page of the pieces in which lines of text are
looked for: narrow, so that a slanting page does no harm."""
SLIVER = 0.1
"""Parts of a box narrower than this share of it are dropped when it is cut at the gutter."""
ACROSS = 0.30
"""A picture runs across when this share of its height is inked on both sides of the gutter,
close by."""


def find_gutter(gray: Gray) -> float | None:
    """The gutter of a two-page spread, (H, W) uint8 as displayed.

    It is a line of shadow (or the binding) from top to bottom, or a white gap as wide as two inner
    margins, in the middle of a landscape picture with something printed on both sides of it, and
    lines of text on one of them at least: two figures side by side on a plate are no spread.

    Returns:
        Where it is, as a fraction of the width; None for anything but a spread.
    """
    if gray.shape[0] < 64 or not NARROWEST <= gray.shape[1] / gray.shape[0] <= WIDEST:
        return None
    page = fit(to_gray8(gray), LONG_SIDE)
    ink = _ink(page)
    for at, text in ((_shadow(page), TEXT_BY_SHADOW), (_white(ink), TEXT_BY_WHITE)):
        if at is None:
            continue
        halves = ink[:, :at], ink[:, at:]
        if all(map(_printed, halves)) and max(map(_text, halves)) >= text:
            return round((at + 0.5) / float(page.shape[1]), 4)
    return None


def split(detection: Detection, gray: Gray) -> Detection:
    """Part a detection's regions at the gutter, if the page is a spread, and write it down.

    A picture that really runs across the gutter stays whole; boxes that only reach over it are
    cut there, and slivers dropped.

    Args:
        detection: What a triage method saw.
        gray: The image it saw it on, (H, W) uint8.
    """
    gutter = find_gutter(gray) if detection.regions else None
    if gutter is None:
        return detection
    ink = _ink(fit(to_gray8(gray), LONG_SIDE))
    regions: list[Region] = []
    for region in detection.regions:
        x0, y0, x1, y1 = region.box
        if x1 <= gutter or x0 >= gutter or _runs_across(ink, region.box, gutter):
            regions.append(region)
            continue
        parts = ((x0, y0, gutter, y1), (gutter, y0, x1, y1))
        regions += [
            region.model_copy(update={"box": part})
            for part in parts
            if part[2] - part[0] >= SLIVER * (x1 - x0)
        ]
    left = [region for region in regions if center(region.box) < gutter]
    right = [region for region in regions if center(region.box) >= gutter]
    return detection.model_copy(
        update={
            "measures": {**detection.measures, GUTTER: gutter},
            "regions": reading_order(left) + reading_order(right),
        }
    )


def pages(detection: Detection) -> list[RelativeBox]:
    """The pages on a scan: the two of a spread, left before right, or the one."""
    gutter = detection.measures.get(GUTTER)
    if gutter is None:
        return [(0.0, 0.0, 1.0, 1.0)]
    return [(0.0, 0.0, gutter, 1.0), (gutter, 0.0, 1.0, 1.0)]


def limits(box: RelativeBox, detection: Detection | None) -> RelativeBox:
    """How far a box may grow: the page it lies on, or the whole scan if it runs across."""
    for page in pages(detection) if detection else []:
        if page[0] <= box[0] and box[2] <= page[2]:
            return page
    return (0.0, 0.0, 1.0, 1.0)


def crosses(box: RelativeBox, detection: Detection) -> bool:
    """Whether a box lies on both pages of a spread."""
    gutter = detection.measures.get(GUTTER)
    return gutter is not None and box[0] < gutter < box[2]


def area(box: RelativeBox, detection: Detection) -> float:
    """The area of a box as a fraction of the page it lies on, which may be half of the scan."""
    page = limits(box, detection)
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1]) / (page[2] - page[0])


def center(box: RelativeBox) -> float:
    """The middle of a box from left to right."""
    return (box[0] + box[2]) / 2


def _ink(page: Gray) -> NDArray[np.bool_]:
    """What is printed: darker than its surroundings' paper, scan borders left out."""
    return np.asarray((flatten(page) < 170) & (find_border(page) == 0))


def _shadow(page: Gray) -> int | None:
    """The column of a dark gutter: paper that darkens towards one line, from top to bottom.

    Nothing else on the page may do so half as much, for that would be a picture.
    """
    height, width = page.shape
    reach = max(2, round(SHADOW_WIDTH * width))
    left, right = (round(side * width) for side in MIDDLE)
    # The paper of a column is the bright end of its pixels, in each of sixteen bands of rows.
    bands = np.array_split(page[round(0.05 * height) : round(0.95 * height)], BANDS)
    columns = np.stack([np.percentile(band, 85, axis=0) for band in bands])
    paper = cv2.blur(columns, (3, 1)).astype(np.float64)
    beside = np.minimum(_window_max(paper, -reach), _window_max(paper, reach))
    depth = 1.0 - paper / np.maximum(beside, 1.0)
    depth[beside < PAPER * np.percentile(page, 95)] = 0.0
    best, at, straight = 0.0, 0, depth
    for slant in range(-2, 3):
        # The gutter of a book laid askew, by up to two columns a band (some three degrees).
        moved = np.stack([np.roll(row, -slant * (i - BANDS // 2)) for i, row in enumerate(depth)])
        middle = np.median(moved[:, left:right], axis=0)
        if middle.max() > best:
            best, at, straight = float(middle.max()), left + int(middle.argmax()), moved
    if best < SHADOW:
        return None
    near = straight[:, max(0, at - 3) : at + 4].max(axis=1)
    others = np.median(straight, axis=0)
    others[max(0, at - reach) : at + reach + 1] = 0.0
    edge = round(0.08 * width)
    alone = np.percentile(others[edge : width - edge], 98) < best / 2
    return at if alone and np.mean(near >= SHADOW / 2) >= TALL else None


def _window_max(paper: Profile, reach: int) -> Profile:
    """The brightest paper within `reach` columns to the right of each, or to its left if < 0."""
    width = paper.shape[1]
    padded = np.pad(paper, ((0, 0), (abs(reach), abs(reach))), mode="edge")
    start = abs(reach) if reach > 0 else 0
    steps = [padded[:, start + i : start + i + width] for i in range(abs(reach) + 1)]
    return np.asarray(np.max(steps, axis=0), np.float64)


def _white(ink: NDArray[np.bool_]) -> int | None:
    """The middle of a white gutter: the widest run of columns without ink in the middle."""
    height, width = ink.shape
    left, right = (round(side * width) for side in MIDDLE)
    text = ink[round(0.06 * height) : round(0.94 * height)]
    empty = text.mean(axis=0) < 0.004
    best, at, run = 0, None, 0
    for column in range(width + 1):
        if column < width and empty[column]:
            run += 1
            continue
        middle = column - run // 2 - 1
        if run > best and left <= middle <= right:
            best, at = run, middle
        run = 0
    return at if best >= WHITE_WIDTH * width else None


def _printed(half: NDArray[np.bool_]) -> bool:
    """Whether something is printed on a page, away from its edges and the gutter's shadow."""
    height, width = half.shape
    inner = half[round(0.1 * height) : round(0.9 * height), round(0.12 * width) : -width // 8 or 1]
    return bool(inner.size and inner.mean() >= INK)


def _text(half: NDArray[np.bool_]) -> float:
    """How regularly ink and gaps follow each other down a page, 0 to 1, where it is clearest."""
    height, width = half.shape
    tall = max(1, round(CELL[1] * height))
    found = [0.0]
    for top in np.linspace(0.06 * height, 0.94 * height - tall, 4).astype(int):
        for left in range(round(0.1 * width), round(0.9 * width) - CELL[0], CELL[0]):
            rows = half[top : top + tall, left : left + CELL[0]].mean(axis=1)
            rows = rows - cv2.blur(rows[:, None], (1, 25))[:, 0]
            power = float((rows * rows).sum())
            if len(rows) < 24 or power < 0.002 * len(rows):
                found.append(0.0)
                continue
            same = [float((rows[:-lag] * rows[lag:]).sum()) / power for lag in range(2, 22)]
            # The next line, after the gap in which nothing is alike.
            found.append(max(same[int(np.argmin(same)) :]))
    return float(np.percentile(found, 85))


def _runs_across(ink: NDArray[np.bool_], box: RelativeBox, gutter: float) -> bool:
    """Whether a picture has ink hard by the gutter on both sides of it, along its height."""
    height, width = ink.shape
    top, bottom = round(box[1] * height), max(round(box[1] * height) + 1, round(box[3] * height))
    at = round(gutter * width)
    gap, reach = max(2, round(0.008 * width)), max(3, round(0.02 * width))
    sides = (
        ink[top:bottom, at - gap - reach : at - gap],
        ink[top:bottom, at + gap : at + gap + reach],
    )
    return all(side.any(axis=1).mean() >= ACROSS for side in sides if side.size)
