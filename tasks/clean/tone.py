"""The paper of a crop: its colour field, and bringing it to white or to a set tone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]

CELLS = 24
"""Cells of the grid along the crop's longer side."""
SAMPLED_SIDE = 1536
"""Pixels of the longer side looked at; more are skipped, not averaged, which would mix ink in."""
BRIGHT = 95
"""Percentile of a cell's grey that stands for its paper: between the lines of an engraving, too,
and below the odd speck."""
DARKEST_PAPER = 110
"""Paper darker than this is none: a photograph or a cover fills the crop."""
NEAR = 0.10
"""Cells within this share of the surface laid through them count as paper."""
FEWEST = 0.04
"""Share of the cells that must be paper; a margin of 1 % on each side already has that much."""
FLAT = 0.85
"""Cells whose median has at least this share of their bright end hold paper and no picture."""
WHITEST_INK, KNEE = 0.88, 0.75
"""Above the first, as a share of the paper's brightness, everything may become paper; below the
second the curve lightens nothing. The palest lines of a scan lie at about 0.85."""
STRIP = 256
"""Rows worked at a time, so that a large crop needs no second copy in floating point."""


@dataclass(frozen=True)
class Paper:
    """The paper's colour over a crop.

    Attributes:
        coefficients: (6, C) of 1, x, y, x², xy, y², with x and y from -1 to 1 across the crop.
        low: (C,) darkest paper seen, 0 to 255; the surface is held between this and `high`.
        high: (C,) lightest paper seen.
        body: Brightness of the paper with its grain, as a share of the surface, which is laid
            through its brightest parts.
    """

    coefficients: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    body: float

    @property
    def tone(self) -> tuple[int, ...]:
        """The paper's colour in the middle of the crop, one value a channel."""
        middle = np.clip(self.coefficients[0], self.low, self.high)
        return tuple(int(round(value)) for value in middle)

    def rows(self, top: int, bottom: int, height: int, width: int) -> Floats:
        """The paper's colour in the rows from `top` to `bottom`: (rows, W, C), 0 to 255."""
        x = np.linspace(-1.0, 1.0, width)[None, :]
        y = (np.linspace(-1.0, 1.0, height) if height > 1 else np.zeros(1))[top:bottom, None]
        channels = []
        for c, low, high in zip(self.coefficients.T, self.low, self.high, strict=True):
            surface = (c[0] + c[2] * y + c[5] * y * y) + (c[1] + c[4] * y) * x + c[3] * x * x
            channels.append(np.clip(surface, low, high).astype(np.float32))
        return np.stack(channels, axis=-1)


def find_paper(pixels: Pixels) -> Paper | None:
    """Estimate the colour of the paper, (H, W) or (H, W, 3) uint8.

    Print is never lighter than its paper, so the bright end of each cell of a coarse grid is
    paper wherever paper shows. A quadratic surface is laid through the brightest cells; cells far
    below it are pictures and are left out, the rest lay it anew.

    Returns:
        The paper, or None where none is to be seen: a picture fills the crop, or all is dark.
    """
    bright, medians, places = _cells(pixels)
    gray = bright.mean(axis=1)
    level = float(np.percentile(gray, 90))
    chosen = np.abs(gray - level) <= 2 * NEAR * level
    enough = max(1, round(FEWEST * len(gray)))
    surface = np.zeros((6, bright.shape[1]))
    for _ in range(4):
        if np.count_nonzero(chosen) < enough:
            return None
        surface = _lay(places[chosen], bright[chosen])
        expected = np.clip((places @ surface).mean(axis=1), 1.0, 255.0)
        chosen = np.abs(gray / expected - 1.0) <= NEAR
    if np.count_nonzero(chosen) < enough or np.median(gray[chosen]) < DARKEST_PAPER:
        return None
    flat = chosen & (medians >= FLAT * gray)
    expected = np.clip((places @ surface).mean(axis=1), 1.0, 255.0)
    return Paper(
        coefficients=surface,
        low=np.percentile(bright[chosen], 2, axis=0),
        high=np.percentile(bright[chosen], 98, axis=0),
        body=float(np.percentile((medians / expected)[flat], 25)) if flat.any() else 1.0,
    )


def set_paper(pixels: Pixels, paper: Paper, tone: tuple[int, int, int]) -> Pixels:
    """Bring the paper to a tone.

    Every channel is divided by the paper's, as light is by what it falls on: black stays black,
    colours keep their relation to the paper, and ink is only ever lightened in the proportion in
    which the paper is. A curve then takes what is left of grain and show-through to white; it
    leaves everything alone that is darker than `KNEE` of the paper.

    Args:
        pixels: (H, W) or (H, W, 3) uint8.
        paper: What :func:`find_paper` found on these pixels.
        tone: The wanted colour of the paper: red, green, blue.

    Returns:
        The same shape, except that a grey picture on a coloured tone becomes (H, W, 3).
    """
    height, width = pixels.shape[:2]
    gray_tone = len(set(tone)) == 1
    channels = 1 if pixels.ndim == 2 and gray_tone else 3
    wanted = np.array(tone[:1] if channels == 1 else tone, np.float32)
    white = min(max(paper.body, WHITEST_INK), 1.0)
    done = np.empty((height, width, channels), np.uint8)
    for top, bottom in _strips(height):
        part = pixels[top:bottom].reshape(bottom - top, width, -1)
        ratio = part / np.maximum(paper.rows(top, bottom, height, width), 1.0)
        darkest = ratio.min(axis=-1, keepdims=True)
        ratio *= _lift(darkest, white)
        done[top:bottom] = np.rint(np.minimum(ratio, 1.0) * wanted)
    return done[..., 0] if channels == 1 else done


def _lift(share: Floats, white: float) -> Floats:
    """By how much to brighten a share of the paper's light: 1 below the knee, to 1 at `white`."""
    over = np.clip((share - KNEE) / (white - KNEE), 0.0, 1.0)
    curved = share + over * over * (1.0 - white)
    return np.asarray(curved / np.maximum(share, 1e-3), np.float32)


def _cells(
    pixels: Pixels,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Of each cell its bright colour, (N, C), its median grey, (N,), and its terms, (N, 6)."""
    step = max(1, max(pixels.shape[:2]) // SAMPLED_SIDE)
    seen = pixels[::step, ::step]
    seen = seen.reshape(*seen.shape[:2], -1)
    height, width, channels = seen.shape
    side = max(4, -(-max(height, width) // CELLS))
    colours, medians, places = [], [], []
    for top in range(0, height, side):
        for left in range(0, width, side):
            cell = seen[top : top + side, left : left + side].reshape(-1, channels)
            gray = cell.mean(axis=1)
            middle, bright = np.percentile(gray, (50, BRIGHT))
            colours.append(cell[gray >= bright].mean(axis=0))
            medians.append(middle)
            # Where the cell's middle lies, from -1 to 1 across the crop.
            x = (left + min(left + side, width)) / width - 1
            y = (top + min(top + side, height)) / height - 1
            places.append((1.0, x, y, x * x, x * y, y * y))
    return np.array(colours, np.float64), np.array(medians), np.array(places)


def _lay(terms: NDArray[np.float64], colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """The surface through colours, (6, C), held flat by a little ridge where cells are few."""
    level = np.median(colours, axis=0)
    ridge = 0.01 * len(terms) * np.diag([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    found = np.linalg.solve(
        terms.T @ terms + ridge + 1e-9 * np.eye(6), terms.T @ (colours - level)
    )
    found[0] += level
    return np.asarray(found, np.float64)


def _strips(height: int) -> Iterator[tuple[int, int]]:
    for top in range(0, height, STRIP):
        yield top, min(height, top + STRIP)
