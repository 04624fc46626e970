"""The second look: what a region shows, judged by a small network from a crop of it.

The network of the maps sees the whole page and texture near at hand; whether a figure is a picture
or an ornament is a matter of all of it, at a size that does not depend on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.detect.network import OLDER, read_added
from tasks.detect.page import PixelBox
from tasks.detect.window import SIDE, square, window

JUDGE = "regions.onnx"
TIMES = 1.2
"""A window is this many times as large as the box's longer side."""
KINDS = 4
"""What the judge and the maps tell apart: picture, ornament or initial, ruled matter, text."""


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
        self._net = read_added(file, example)
        answer = self._net.shape
        if answer == (1, KINDS):
            raise ValueError(f"{file} is a single judge, no ensemble; {OLDER}")
        if len(answer) != 3 or (answer[0], answer[2]) != (1, KINDS):
            raise ValueError(f"{file} is no judge of regions: it answers in the shape {answer}.")
        self.digest = self._net.digest

    def __call__(self, page: NDArray[np.float32], boxes: Sequence[PixelBox]) -> NDArray[np.float32]:
        """Judge regions of a page, all of them in one go.

        Args:
            page: (H, W), normalised grey.
            boxes: The regions, in pixels of it.

        Returns:
            (boxes, 4) probabilities that sum to 1, in the order of the maps: picture, ornament or
            initial, ruled matter, text.
        """
        if not boxes:
            return np.zeros((0, 4), np.float32)
        logits = self._net(np.stack([window(page, box, square(box, TIMES)) for box in boxes]))
        odds = np.exp(logits - logits.max(axis=2, keepdims=True))
        opinions = odds / odds.sum(axis=2, keepdims=True)
        kinds: NDArray[np.float32] = opinions.mean(axis=1)
        return kinds
