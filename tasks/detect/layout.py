"""The default method: a small network that draws maps of pictures, ornaments and text."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import Detection, PageFacts
from tasks.detect.page import Gray, fit, to_gray8
from tasks.detect.regions import find_regions, measure

LONG_SIDE = 512
"""Pixels on the longer side of the page as the network reads it."""
STRIDE = 4
"""Pixels of that page for one cell of the network's maps."""
MULTIPLE = 16
"""The network halves the page four times: sides are filled up to a multiple of this."""
WEIGHTS = Path(__file__).resolve().parents[2] / "models" / "weights" / "layout.onnx"
CODE_VERSION = "1"
"""To be raised whenever the way from maps to regions changes."""


class LayoutDetector:
    """Finds pictures with the network whose weights come with the project.

    ``score`` is the summed area of the picture regions (engravings and photographs) as a
    fraction of the page; regions of other kinds are reported and not counted.
    """

    name = "layout"

    def __init__(self, weights: Path = WEIGHTS) -> None:
        data = weights.read_bytes()
        self.version = f"{CODE_VERSION}-{hashlib.sha256(data).hexdigest()[:12]}"
        self._net = cv2.dnn.readNetFromONNX(np.frombuffer(data, np.uint8), cv2.dnn.ENGINE_CLASSIC)

    def render_dpi(self, page: PageFacts) -> float:
        """What gives `LONG_SIDE` pixels on the longer side."""
        return LONG_SIDE * 72.0 / max(page.width, page.height)

    def __call__(self, gray: NDArray[np.uint8]) -> Detection:
        """Measure a page, (H, W) uint8, and find its regions."""
        page = fit(to_gray8(gray), LONG_SIDE)
        return measure(page, self.maps(page))

    def maps(self, page: Gray) -> NDArray[np.float32]:
        """(4, H/4, W/4) probabilities of picture, ornament, ruled matter and text, 0 to 1."""
        height, width = page.shape
        filled = cv2.copyMakeBorder(
            normalise(page), 0, -height % MULTIPLE, 0, -width % MULTIPLE, cv2.BORDER_REPLICATE
        )
        self._net.setInput(filled[None, None])
        logits = self._net.forward()[0]
        rows, columns = -(-height // STRIDE), -(-width // STRIDE)
        return (1.0 / (1.0 + np.exp(-logits[:, :rows, :columns]))).astype(np.float32)


def normalise(gray: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
    """Grey 0 to 255 brought to about 0 for the page's ink and 1 for its paper.

    The 1st and 95th percentiles stand for ink and paper; at least 48 grey levels are put between
    them, so that the grain of a blank page is not blown up to ink.
    """
    low, high = np.percentile(gray[::2, ::2], (1, 95))
    return ((gray - np.float32(low)) / np.float32(max(48.0, high - low))).astype(np.float32)
