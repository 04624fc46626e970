"""The training of the judge of regions."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.random import default_rng
from numpy.typing import NDArray
from torch.nn import functional

from tasks.detect.judge import SIDE
from tasks.detect.train.crops import SHIFT, unpack
from tasks.detect.train.net import JudgeNet

BATCH = 64
EPOCHS = 10
KIND_WEIGHTS = (1.0, 1.2, 1.5, 1.0)
"""How much each kind counts in the loss; ruled matter is rare."""
PEAK_RATE = 3e-3
"""Highest learning rate of the one-cycle schedule (AdamW, weight decay 0.05)."""


def fit_judge(
    windows: NDArray[np.uint8], kinds: NDArray[np.int64], seed: int, log: Callable[[str], None]
) -> JudgeNet:
    """Train a judge from scratch.

    Args:
        windows: (N, 2, SIDE + SHIFT, SIDE + SHIFT), see `tasks.detect.train.crops`.
        kinds: (N,) what each shows.
        seed: Fixes the initial weights and the order and shifts of windows.
        log: Told how far it has come.
    """
    torch.manual_seed(seed)
    rng = default_rng(seed)
    net: JudgeNet = JudgeNet().train().to(memory_format=torch.channels_last)
    starts = range(0, len(kinds), BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), PEAK_RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_RATE, EPOCHS * len(starts), pct_start=0.2
    )
    weights = torch.tensor(KIND_WEIGHTS)
    started = time.monotonic()
    for epoch in range(1, EPOCHS + 1):
        order, total = rng.permutation(len(kinds)), 0.0
        for start in starts:
            some = order[start : start + BATCH]
            shown = torch.from_numpy(_shift(windows[some], rng))
            with torch.autocast("cpu", torch.bfloat16):
                logits = net(shown.to(memory_format=torch.channels_last))
            loss = functional.cross_entropy(
                logits.float(), torch.from_numpy(kinds[some]), weights, label_smoothing=0.05
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        spent = time.monotonic() - started
        log(f"judge, epoch {epoch}/{EPOCHS} loss {total / len(starts):.3f} {spent:.0f} s")
    return net.eval()


def as_read(windows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The middle of stored windows, as the network reads them."""
    margin = SHIFT // 2
    return unpack(windows[:, :, margin : margin + SIDE, margin : margin + SIDE])


def _shift(windows: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float32]:
    """A part of each at random, the size of what is read, and some mirrored, all in one way."""
    down, across = rng.integers(0, SHIFT + 1, 2)
    part = windows[:, :, down : down + SIDE, across : across + SIDE]
    return unpack(np.ascontiguousarray(part[..., ::-1] if rng.random() < 0.5 else part))
