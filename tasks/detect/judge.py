"""The second look: what a region shows, judged by a small network from a crop of it.

The network of the maps sees the whole page and texture near at hand; whether a figure is a picture
or an ornament is a matter of all of it, at a size that does not depend on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.detect.network import Network
from tasks.detect.page import Gray, PixelBox, normalise

JUDGE = "regions.onnx"
SIDE = 96
"""Pixels on either side of a window as the network reads it."""
MARGIN = 0.1
"""What a window shows around a box, as a fraction of the box's longer side."""
DARKEST, LIGHTEST = -0.1, 1.175
"""Bounds of the normalised grey in a window: a black border must not outweigh the rest."""
KINDS = 4
"""What both networks tell apart: picture, ornament or initial, ruled matter, text."""
OLDER = (
    "these weights are of an older version. Train them again: python -m tasks.detect.train --help."
)


class RegionJudge:
    """Says how likely each region of a page is a picture, an ornament, ruled matter or text.

    The network is an ensemble: several judges trained apart, of which the mean counts.

    Args:
        folder: Where the weights lie, called `JUDGE`.

    Attributes:
        digest: SHA-256 of the weights, in hex.

    Raises:
        ValueError: They are not there, or are something else.
    """

    def __init__(self, folder: Path) -> None:
        file, example = folder / JUDGE, np.zeros((1, 2, SIDE, SIDE), np.float32)
        if not file.exists():
            raise ValueError(f"{file} is missing: either its training has not ended, or {OLDER}")
        self._net = Network(file, example)
        answer = self._net.shape
        if answer == (1, KINDS):
            raise ValueError(f"{file} is a single judge, no ensemble; {OLDER}")
        if len(answer) != 3 or (answer[0], answer[2]) != (1, KINDS):
            raise ValueError(f"{file} is no judge of regions: it answers in the shape {answer}.")
        self.digest = self._net.digest

    def __call__(self, gray: Gray, boxes: Sequence[PixelBox]) -> NDArray[np.float32]:
        """Judge regions of a page, all of them in one go.

        Args:
            gray: (H, W) uint8, the page.
            boxes: The regions, in pixels of it.

        Returns:
            (boxes, 4) probabilities that sum to 1, in the order of the maps: picture, ornament or
            initial, ruled matter, text.
        """
        if not boxes:
            return np.zeros((0, 4), np.float32)
        page = normalise(gray)
        logits = self._net(np.stack([window(page, box) for box in boxes]))
        odds = np.exp(logits - logits.max(axis=2, keepdims=True))
        opinions = odds / odds.sum(axis=2, keepdims=True)
        kinds: NDArray[np.float32] = opinions.mean(axis=1)
        return kinds


def window(page: NDArray[np.float32], box: PixelBox, side: int = SIDE) -> NDArray[np.float32]:
    """A square around a box, brought to one size: (2, side, side) grey, and 1 inside the box.

    What lies beyond the page repeats its edge. A larger `side` shows more around the box at the
    same size, for training to shift about in.

    Args:
        page: (H, W), normalised grey.
        box: In pixels of it, at least one each way.
        side: Pixels on either side of the square.
    """
    x0, y0, x1, y1 = box
    size = max(1, round(max(x1 - x0, y1 - y0) * (1 + 2 * MARGIN) * side / SIDE))
    left, top = (x0 + x1 - size) // 2, (y0 + y1 - size) // 2
    rows = np.clip(np.arange(top, top + size), 0, page.shape[0] - 1)
    columns = np.clip(np.arange(left, left + size), 0, page.shape[1] - 1)
    part = page.take(rows, axis=0).take(columns, axis=1)
    how = cv2.INTER_AREA if size > side else cv2.INTER_LINEAR
    grey = np.clip(cv2.resize(part, (side, side), interpolation=how), DARKEST, LIGHTEST)
    inside = np.zeros((side, side), np.float32)
    inside[_span(y0 - top, y1 - top, side / size), _span(x0 - left, x1 - left, side / size)] = 1.0
    return np.stack([grey, inside]).astype(np.float32, copy=False)


def _span(start: int, end: int, zoom: float) -> slice:
    first = int(start * zoom)
    return slice(first, max(first + 1, round(end * zoom)))
