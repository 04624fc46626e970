"""Setting the edges of a box to the ink."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.detect.page import Mask, PixelBox

REACH = 0.025
"""How far an edge may go outwards, as a fraction of the page's longer side; the maps are right
to about half of that."""
QUIET = 0.006
"""White space of this height (same unit) parts a picture from a caption or a rule."""
LEAST_INK = 0.015
"""A line across a region with less than this share of ink is white but for specks."""
MARGIN = 0.004
"""White space left around the ink (same unit): two pixels at 512."""


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
