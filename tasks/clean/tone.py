"""The paper of a crop: its colour field, and bringing it to white or to a set tone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]

CELLS = 24
"""Cells of the grid along the crop's longer side."""
SAMPLED_SIDE = 1024
"""Pixels of the longer side looked at; more are skipped, not averaged, which would mix ink in."""
BRIGHT = 95
"""Percentile of a cell's grey that stands for its paper: between the lines of an engraving, too,
and below the odd speck."""
DARKEST_PAPER = 110
"""Paper darker than this is none: a photograph or a cover fills the crop."""
BELOW, ABOVE = 0.05, 0.10
"""Cells count as paper up to these shares below and above the surface laid through them. The lights
of a photograph and the gaps of close lines lie below the paper, and nothing lies above it, so that
the surface climbs to the paper in a few rounds."""
ROUNDS = 6
FEWEST = 0.04
"""Share of the cells that must be paper; a margin of 1 % on each side already has that much."""
FLAT = 0.85
"""Cells whose median has at least this share of their bright end hold paper and no picture."""
RIM, RIM_PAPER, SIDES = 0.08, 0.70, 3
"""Paper must show along this many of the four sides of a crop: within `RIM` of the crop's size
from the edge some line must be paper for at least `RIM_PAPER` of its length. Crops have a margin,
a plate may run out of the page on one side, and scans of pages have dark borders."""
WHITE_POINT, KNEE = (0.88, 0.94), 0.75
"""Shares of the paper's brightness. What is above the first becomes white: where the paper's own
grain ends, but within these bounds. What is below the second the curve leaves alone. The palest
lines of a scan lie at about 0.85."""
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
        """The paper's colour along the crop's edges, one value a channel."""
        places = [_terms(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]
        edge = np.clip(np.array(places) @ self.coefficients, self.low, self.high)
        return tuple(round(float(value)) for value in edge.mean(axis=0))

    def rows(self, top: int, bottom: int, height: int, width: int) -> list[Floats]:
        """The paper in the rows from `top` to `bottom`: (rows, W) a channel, 1 to 255."""
        x = np.linspace(-1.0, 1.0, width, dtype=np.float32)[None, :]
        y = np.linspace(-1.0, 1.0, height, dtype=np.float32)[top:bottom, None]
        planes = []
        for c, low, high in zip(self.coefficients.T, self.low, self.high, strict=True):
            a, b, d, e, f, g = (np.float32(value) for value in c)
            surface = (f * y + b) * x
            surface += e * x * x + a
            surface += d * y + g * y * y
            planes.append(np.clip(surface, max(1.0, low), max(1.0, high)).astype(np.float32))
        return planes


def find_paper(pixels: Pixels) -> Paper | None:
    """Estimate the colour of the paper, (H, W) or (H, W, 3) uint8.

    Print is never lighter than its paper, so the bright end of each cell of a coarse grid is
    paper wherever paper shows. A quadratic surface is laid through the brightest cells; cells far
    below it are pictures and are left out, the rest lay it anew.

    Returns:
        The paper, or None where none is to be seen: a picture fills the crop, so that its lights
        might be taken for paper and burnt, or all is dark.
    """
    bright, medians, places = _cells(pixels)
    gray = bright.mean(axis=1)
    level = float(np.percentile(gray, 90))
    chosen = np.abs(gray - level) <= 2 * ABOVE * level
    enough = max(1, round(FEWEST * len(gray)))
    surface = np.zeros((6, bright.shape[1]))
    for _ in range(ROUNDS):
        if np.count_nonzero(chosen) < enough:
            return None
        surface = _lay(places[chosen], bright[chosen])
        expected = np.clip((places @ surface).mean(axis=1), 1.0, 255.0)
        chosen = (gray >= (1.0 - BELOW) * expected) & (gray <= (1.0 + ABOVE) * expected)
    if np.count_nonzero(chosen) < enough or np.median(gray[chosen]) < DARKEST_PAPER:
        return None
    flat = chosen & (medians >= FLAT * gray)
    expected = np.clip((places @ surface).mean(axis=1), 1.0, 255.0)
    paper = Paper(
        coefficients=surface,
        low=np.percentile(bright[chosen], 2, axis=0),
        high=np.percentile(bright[chosen], 98, axis=0),
        body=float(np.percentile((medians / expected)[flat], 25)) if flat.any() else 1.0,
    )
    return paper if _framed(pixels, paper) else None


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
    white = float(np.clip(paper.body, *WHITE_POINT))
    done = np.empty((height, width, channels), np.uint8)
    for top, bottom in _strips(height):
        part = pixels[top:bottom].reshape(bottom - top, width, -1)
        shares = [
            np.divide(part[..., i], plane, dtype=np.float32)
            for i, plane in enumerate(paper.rows(top, bottom, height, width))
        ]
        gain = _lift(reduce(np.minimum, shares), white)
        for i in range(channels):
            share = np.minimum(shares[min(i, len(shares) - 1)] * gain, 1.0)
            done[top:bottom, :, i] = share * wanted[i] + 0.5
    return done[..., 0] if channels == 1 else done


def _framed(pixels: Pixels, paper: Paper) -> bool:
    """Whether paper lies around the picture."""
    step = -(-max(pixels.shape[:2]) // SAMPLED_SIDE)
    seen = pixels[::step, ::step]
    height, width = seen.shape[:2]
    gray = seen if seen.ndim == 2 else seen.mean(axis=2, dtype=np.float32)
    light = gray >= FLAT * np.mean(paper.rows(0, height, height, width), axis=0)
    count = 0
    for quarter in range(4):
        side = np.rot90(light, quarter)
        line = max(1, round(0.01 * len(side)))
        lines = [
            side[top : top + line].mean() for top in range(0, round(RIM * len(side)) + 1, line)
        ]
        count += max(lines) >= RIM_PAPER
    return count >= SIDES


def _lift(share: Floats, white: float) -> Floats:
    """By how much to brighten a share of the paper's light: 1 below the knee, to 1 at `white`."""
    over = np.clip((share - KNEE) / (white - KNEE), 0.0, 1.0)
    return np.asarray(1.0 + over * over * (1.0 - white) / np.maximum(share, KNEE), np.float32)


def _cells(
    pixels: Pixels,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Of each cell its bright colour, (N, C), its median grey, (N,), and its terms, (N, 6)."""
    step = -(-max(pixels.shape[:2]) // SAMPLED_SIDE)
    seen = pixels[::step, ::step]
    seen = seen.reshape(*seen.shape[:2], -1)
    height, width, channels = seen.shape
    side = max(4, -(-max(height, width) // CELLS))
    colours, medians, places = [], [], []
    for top in range(0, height, side):
        for left in range(0, width, side):
            cell = seen[top : top + side, left : left + side].reshape(-1, channels)
            gray = cell.mean(axis=1, dtype=np.float32)
            middle, bright = np.percentile(gray, (50, BRIGHT))
            colours.append(cell[gray >= bright].mean(axis=0))
            medians.append(middle)
            # Where the cell's middle lies, from -1 to 1 across the crop.
            x = (left + min(left + side, width)) / width - 1
            y = (top + min(top + side, height)) / height - 1
            places.append(_terms(x, y))
    return np.array(colours, np.float64), np.array(medians), np.array(places)


def _terms(x: float, y: float) -> tuple[float, ...]:
    """The terms of the surface at a place, each from -1 to 1."""
    return (1.0, x, y, x * x, x * y, y * y)


def _lay(terms: NDArray[np.float64], colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """The surface through colours, (6, C), held flat by a little ridge where cells are few."""
    level = np.median(colours, axis=0)
    ridge = 0.01 * len(terms) * np.diag([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    found = np.linalg.solve(terms.T @ terms + ridge + 1e-9 * np.eye(6), terms.T @ (colours - level))
    found[0] += level
    return np.asarray(found, np.float64)


def _strips(height: int) -> Iterator[tuple[int, int]]:
    for top in range(0, height, STRIP):
        yield top, min(height, top + STRIP)
