"""The default method: a small network that draws maps of pictures, ornaments and text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LONG_SIDE = 512
"""Pixels on the longer side of the page as the network reads it."""
STRIDE = 4
"""Pixels of that page for one cell of the network's maps."""


def normalise(gray: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
    """Grey 0 to 255 brought to about 0 for the page's ink and 1 for its paper.

    The 1st and 95th percentiles stand for ink and paper; at least 48 grey levels are put between
    them, so that the grain of a blank page is not blown up to ink.
    """
    low, high = np.percentile(gray[::2, ::2], (1, 95))
    return ((gray - np.float32(low)) / np.float32(max(48.0, high - low))).astype(np.float32)
