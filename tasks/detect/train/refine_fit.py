"""The training of the refiner of boxes: what it learns from, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.detect.page import PixelBox
from tasks.detect.refine import CELLS, TIMES
from tasks.detect.regions import ORNAMENT, PICTURE
from tasks.detect.train.augment import draw_example
from tasks.detect.train.compose import Bank
from tasks.detect.train.crops import WIDE, figures, pack, slip, unpack
from tasks.detect.train.net import RefineNet
from tasks.detect.train.window_fit import fit_windows
from tasks.detect.window import SIDE, square, window

EPOCHS = 12
PICTURE_VIEWS = 2
"""How often a picture is shown, each time with other edges; ornaments are shown once."""
LOOSE = 0.04
"""Standard deviation of the edges of boxes, as a share of their sides."""
WRONG_BOX, WRONG_EDGE, WRONG_BY = 0.6, 0.35, 0.3
"""Share of boxes with wrong edges, share of edges that are wrong there, and the most by which, as a
share of the box's side."""


def make_boxes(
    bank: Bank, count: int, seed: int, log: Callable[[str], None]
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Windows around boxes with wrong edges, (count, 2, SIDE, SIDE), and where the true ones are.

    The latter, (count, 4): x0, y0, x1, y1 as fractions of the window.

    Args:
        bank: What pages are made from.
        count: How many.
        seed: Fixes every one of them.
        log: Told how far it has come.
    """
    windows = np.empty((count, 2, SIDE, SIDE), np.uint8)
    truths = np.empty((count, 4), np.float32)
    for number, (one, truth) in zip(range(count), _windows(bank, seed), strict=False):
        windows[number], truths[number] = pack(one), truth
        if (number + 1) % 1000 == 0:
            log(f"box {number + 1}/{count}")
    return windows, truths


def _windows(bank: Bank, seed: int) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Windows without end, each page a function of the seed and its number alone."""
    number = 0
    while True:
        rng = default_rng((seed, number))
        image, target = draw_example(bank, bool(rng.random() < WIDE), rng)
        page = image[0]
        for truth, kind in figures(target, (PICTURE, ORNAMENT), page.shape):
            for _ in range(PICTURE_VIEWS if kind == PICTURE else 1):
                box = slip(truth, _wrong(rng), page.shape)
                if box is not None:
                    yield window(page, box, square(box, TIMES)), _within(truth, box)
        number += 1


def _wrong(rng: Generator) -> NDArray[np.float64]:
    """By how much edges are moved, as shares of the box's sides: seldom by much."""
    by = rng.normal(0, LOOSE, 4)
    if rng.random() < WRONG_BOX:
        by = np.where(rng.random(4) < WRONG_EDGE, rng.uniform(-WRONG_BY, WRONG_BY, 4), by)
    return by


def _within(truth: PixelBox, box: PixelBox) -> NDArray[np.float32]:
    left, top, size = square(box, TIMES)
    return (np.array(truth, np.float32) - (left, top, left, top)) / np.float32(size)


def fit_refiner(
    windows: NDArray[np.uint8],
    truths: NDArray[np.float32],
    seed: int,
    log: Callable[[str], None],
) -> RefineNet:
    """Train a refiner from scratch.

    Args:
        windows: (N, 2, SIDE, SIDE), and
        truths: (N, 4), see `make_boxes`.
        seed: Fixes the initial weights and the order and turns of windows.
        log: Told how far it has come.
    """
    torch.manual_seed(seed)
    rng = default_rng(seed)
    net: RefineNet = RefineNet().train().to(memory_format=torch.channels_last)

    def loss_of(some: NDArray[np.int64]) -> Tensor:
        shown, wanted = turn(unpack(windows[some]), truths[some], rng)
        with torch.autocast("cpu", torch.bfloat16):
            logits = net(torch.from_numpy(shown).to(memory_format=torch.channels_last))
        return loss(logits.float(), covered(torch.from_numpy(wanted)))

    fit_windows(net, len(truths), EPOCHS, rng, loss_of, log)
    return net.eval()


def covered(truths: Tensor) -> Tensor:
    """How far boxes, (N, 4) fractions of a window, cover its rows and columns: (N, 2, CELLS)."""
    starts = torch.arange(CELLS) / CELLS
    low, high = truths[:, [1, 0], None], truths[:, [3, 2], None]
    shared = torch.minimum(high, starts + 1 / CELLS) - torch.maximum(low, starts)
    return (shared * CELLS).clamp(0, 1)


def loss(logits: Tensor, wanted: Tensor) -> Tensor:
    """Binary cross-entropy of every row and column, and dice of all rows and of all columns."""
    seen = torch.sigmoid(logits)
    both = (seen * wanted).sum(2)
    dice = 1 - (2 * both + 0.5) / (seen.sum(2) + wanted.sum(2) + 0.5)
    entropy = functional.binary_cross_entropy_with_logits(logits, wanted)
    return entropy + 0.5 * dice.mean()


def turn(
    windows: NDArray[np.float32], truths: NDArray[np.float32], rng: Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Windows and their truths mirrored, upended or put on their side at random, all alike."""
    x0, y0, x1, y1 = truths.T
    if rng.random() < 0.5:
        windows, x0, x1 = windows[..., ::-1], 1 - x1, 1 - x0
    if rng.random() < 0.5:
        windows, y0, y1 = windows[..., ::-1, :], 1 - y1, 1 - y0
    if rng.random() < 0.3:
        windows = windows.swapaxes(2, 3)
        x0, y0, x1, y1 = y0, x0, y1, x1
    return np.ascontiguousarray(windows), np.stack([x0, y0, x1, y1], axis=1)
