"""What the tests of reading and of rendering share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.read import Raster, Reader

COLOR = ((20, 20, 20), (220, 40, 40), (250, 250, 250), (40, 200, 40))
GRAY = tuple((v, v, v) for v in (20, 100, 250, 180))
BILEVEL = tuple((v, v, v) for v in (0, 255, 255, 128))
INKS = ((58, 58, 58), (213, 97, 72), (250, 250, 250), (75, 158, 112))
"""The colour mark in CMYK, which reaches neither full black nor full red. By the renderer's own
profile; PDFium gives the same within 3."""
IN_LAB = ((20, 20, 20), (220, 37, 40), (249, 250, 250), (26, 200, 39))
"""The colour mark in Lab with eight bits, by the renderer's own profile."""
BUDGET = 1_000_000


def quadrants(raster: Raster) -> NDArray[np.float64]:
    """(4, 3) mean colours: top left, top right, bottom left, bottom right."""
    pixels = raster.pixels
    high, wide = pixels.shape[0] // 2, pixels.shape[1] // 2
    parts = (
        pixels[:high, :wide],
        pixels[:high, wide:],
        pixels[high:, :wide],
        pixels[high:, wide:],
    )
    return np.array([np.broadcast_to(part.mean(axis=(0, 1)), 3) for part in parts])


def show(reader: Reader, index: int = 0, gray: bool = False) -> Raster:
    """A page at 72 dpi."""
    return reader.render(index, 72, gray=gray, max_pixels=BUDGET)
