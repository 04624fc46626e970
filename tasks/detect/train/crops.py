"""What the judge of regions learns from: windows cut from pages made up, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from tasks.detect.judge import TIMES
from tasks.detect.layout import STRIDE
from tasks.detect.page import PixelBox, components
from tasks.detect.regions import LIKELY, SMALLEST, TEXT
from tasks.detect.train.augment import draw_example
from tasks.detect.train.compose import Bank
from tasks.detect.window import DARKEST, LIGHTEST, SIDE, square, window

SHIFT = 8
"""Pixels by which windows are kept larger than the network reads them, to shift about in."""
WIDE = 0.1
"""Share of pages that lie on their side."""
LOOSE = 0.05
"""Standard deviation of a box's edges, as a share of its sides: found boxes are not exact."""
NARROWEST = 12
"""Fewest pixels on a box's shorter side: narrower ones are cut off, or rules."""
WITH_TEXT = 0.35
"""Share of pages from which a piece of text is tried for."""
LETTERED = 0.25
"""Least share of text in a piece of text; the rest is the white around it."""

Window = tuple[NDArray[np.float32], int]
"""(2, SIDE + SHIFT, SIDE + SHIFT) and which map's matter it shows."""


def make_crops(
    bank: Bank, count: int, seed: int, log: Callable[[str], None]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Windows to train on, (count, 2, SIDE + SHIFT, SIDE + SHIFT), and their kinds, (count,).

    Args:
        bank: What pages are made from.
        count: How many.
        seed: Fixes every one of them.
        log: Told how far it has come.
    """
    windows = np.empty((count, 2, SIDE + SHIFT, SIDE + SHIFT), np.uint8)
    kinds = np.empty(count, np.int64)
    for number, (one, kind) in zip(range(count), _windows(bank, seed), strict=False):
        windows[number], kinds[number] = pack(one), kind
        if (number + 1) % 1000 == 0:
            log(f"crop {number + 1}/{count}")
    return windows, kinds


def pack(windows: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Windows in bytes, a quarter of the memory."""
    return np.rint((windows - DARKEST) * (255 / (LIGHTEST - DARKEST))).astype(np.uint8)


def unpack(windows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The opposite of `pack`, to within half a level of grey."""
    return windows * np.float32((LIGHTEST - DARKEST) / 255) + np.float32(DARKEST)


def _windows(bank: Bank, seed: int) -> Iterator[Window]:
    """Windows without end, each page a function of the seed and its number alone."""
    number = 0
    while True:
        rng = default_rng((seed, number))
        image, target = draw_example(bank, bool(rng.random() < WIDE), rng)
        for box, kind in _boxes(target, image.shape[1:], rng):
            around = square(box, TIMES * (SIDE + SHIFT) / SIDE)
            yield window(image[0], box, around, SIDE + SHIFT), kind
        number += 1


def _boxes(
    target: NDArray[np.float32], shape: tuple[int, ...], rng: Generator
) -> Iterator[tuple[PixelBox, int]]:
    """Boxes of an example in pixels, about as loose as those that are found, with their kinds."""
    height, width = shape
    for box, kind in figures(target, range(TEXT), shape):
        moved = slip(box, rng.normal(0, LOOSE, 4), shape)
        if moved is not None:
            yield moved, kind
    if rng.random() < WITH_TEXT:
        w, h = (
            int(np.exp(rng.uniform(np.log(40), np.log(0.8 * side)))) for side in (width, height)
        )
        x, y = int(rng.integers(0, width - w)), int(rng.integers(0, height - h))
        part = target[:, y // STRIDE : (y + h) // STRIDE + 1, x // STRIDE : (x + w) // STRIDE + 1]
        if part[:TEXT].max() < LIKELY and part[TEXT].mean() > LETTERED:
            yield (x, y, x + w, y + h), TEXT


def figures(
    target: NDArray[np.float32], kinds: Iterable[int], shape: tuple[int, ...]
) -> Iterator[tuple[PixelBox, int]]:
    """The boxes of some kinds in an example, in pixels of an image of `shape`, with their kinds.

    What is cut off to a sliver, and rules, are left out.
    """
    height, width = shape
    for kind in kinds:
        _, stats = components((target[kind] > LIKELY).astype(np.uint8), connectivity=4)
        for x, y, w, h, _ in (stats[1:] * STRIDE).tolist():
            if w * h >= SMALLEST * height * width and min(w, h) >= NARROWEST:
                yield (x, y, x + w, y + h), kind


def slip(box: PixelBox, by: NDArray[np.float64], shape: tuple[int, ...]) -> PixelBox | None:
    """The box with its edges moved by shares of its sides; None if nothing to speak of is left."""
    height, width = shape
    x0, y0, x1, y1 = box
    w, h = x1 - x0, y1 - y0
    moved = np.rint(by * (w, h, w, h)).astype(int).tolist()
    x0, y0 = max(0, x0 + moved[0]), max(0, y0 + moved[1])
    x1, y1 = min(width, x1 + moved[2]), min(height, y1 + moved[3])
    return (x0, y0, x1, y1) if min(x1 - x0, y1 - y0) >= NARROWEST else None
