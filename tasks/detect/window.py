"""What the networks that look at single regions are shown: a square around a box."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.detect.page import PixelBox

SIDE = 96
"""Pixels on either side of a window as the networks read it."""
DARKEST, LIGHTEST = -0.1, 1.175
"""Bounds of the normalised grey in a window: a black border must not outweigh the rest."""


class Square(NamedTuple):
    """A part of a page, in its pixels; it may reach beyond the page."""

    left: int
    top: int
    size: int


def square(box: PixelBox, times: float) -> Square:
    """The square in whose middle a box lies, `times` as large as the box's longer side."""
    x0, y0, x1, y1 = box
    size = max(1, round(max(x1 - x0, y1 - y0) * times))
    return Square((x0 + x1 - size) // 2, (y0 + y1 - size) // 2, size)


def window(
    page: NDArray[np.float32], box: PixelBox, around: Square, side: int = SIDE
) -> NDArray[np.float32]:
    """A square of a page, brought to one size: (2, side, side) grey, and 1 inside the box.

    What lies beyond the page repeats its edge.

    Args:
        page: (H, W), normalised grey.
        box: In pixels of it, at least one each way.
        around: What is shown.
        side: Pixels on either side of the window.
    """
    left, top, size = around
    rows = np.clip(np.arange(top, top + size), 0, page.shape[0] - 1)
    columns = np.clip(np.arange(left, left + size), 0, page.shape[1] - 1)
    part = page.take(rows, axis=0).take(columns, axis=1)
    how = cv2.INTER_AREA if size > side else cv2.INTER_LINEAR
    grey = np.clip(cv2.resize(part, (side, side), interpolation=how), DARKEST, LIGHTEST)
    inside = np.zeros((side, side), np.float32)
    x0, y0, x1, y1 = box
    inside[_span(y0 - top, y1 - top, side / size), _span(x0 - left, x1 - left, side / size)] = 1.0
    return np.stack([grey, inside]).astype(np.float32, copy=False)


def _span(start: int, end: int, zoom: float) -> slice:
    first = int(start * zoom)
    return slice(first, max(first + 1, round(end * zoom)))
