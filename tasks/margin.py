"""The paper left around an illustration ends before captions and letters that stand close by."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.detect.page import DARKEST_INK, PixelBox, fit, flatten

LONG_SIDE = 1200
"""Pixels of the longer side at which the margin is looked at: small type still shows."""
GAP = 0.004
"""White of this height, as a fraction of the crop's longer side, parts the illustration from what
is not its own; finer gaps lie between its strokes."""
LEAST_INK = 0.004
"""A line with less than this share of ink is white but for specks."""


def trim(pixels: NDArray[np.uint8], inner: PixelBox) -> PixelBox:
    """What to keep of a crop: on each side the margin up to the first ink of something else.

    From the edge of the illustration outwards comes ink of its own, which ran over the edge, then
    white, and what comes after that is a caption, a letter or a rule. Where there is no such white,
    the margin stays whole.

    Args:
        pixels: (H, W) grey or (H, W, 3) RGB, the illustration with its margin.
        inner: The illustration, in pixels of the crop.

    Returns:
        The part to keep, in pixels of the crop; it holds ``inner`` whole.
    """
    if inner == (0, 0, pixels.shape[1], pixels.shape[0]):
        return inner
    gray = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    small = fit(gray.astype(np.uint8, copy=False), LONG_SIDE)
    ink = flatten(small) < 255 * (1 - DARKEST_INK)
    scale = gray.shape[0] / small.shape[0], gray.shape[1] / small.shape[1]
    x0, y0, x1, y1 = (round(inner[i] / scale[1 - i % 2]) for i in range(4))
    gap = max(2, round(GAP * max(ink.shape)))
    top, bottom = _ends(ink[:, x0:x1], y0, y1, gap)
    left, right = _ends(ink[top:bottom].T, x0, x1, gap)
    # Corners belong to neither side until the sides are known.
    top, bottom = _ends(ink[:, left:right], y0, y1, gap)
    return (
        min(inner[0], round(left * scale[1])),
        min(inner[1], round(top * scale[0])),
        max(inner[2], round(right * scale[1])),
        max(inner[3], round(bottom * scale[0])),
    )


def _ends(ink: NDArray[np.bool_], low: int, high: int, gap: int) -> tuple[int, int]:
    """First and last line to keep (the second exclusive) along the first axis."""
    inked = np.count_nonzero(ink, axis=1) >= max(2, LEAST_INK * ink.shape[1])
    return low - _depth(inked[:low][::-1], gap), high + _depth(inked[high:], gap)


def _depth(outside: NDArray[np.bool_], gap: int) -> int:
    """How many lines of a margin to keep; ``outside`` says of each, from within, if it is inked."""
    white = 0
    for position, inked in enumerate(outside.tolist()):
        if inked and white >= gap:
            # The softened edge of the ink lies in the line before it.
            return position - 1
        white = 0 if inked else white + 1
    return len(outside)
