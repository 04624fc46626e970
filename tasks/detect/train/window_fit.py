"""The training that both networks of windows share."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

BATCH = 64
PEAK_RATE = 3e-3
"""Highest learning rate of the one-cycle schedule (AdamW, weight decay 0.05)."""


def fit_windows(
    net: nn.Module,
    count: int,
    epochs: int,
    rng: Generator,
    loss_of: Callable[[NDArray[np.int64]], Tensor],
    log: Callable[[str], None],
) -> None:
    """Train a network on windows that are in memory.

    Args:
        net: The network, which is changed.
        count: How many windows there are.
        epochs: How often each is shown.
        rng: Settles their order.
        loss_of: The loss for the windows of some numbers.
        log: Told how far it has come.
    """
    starts = range(0, count, BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), PEAK_RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_RATE, epochs * len(starts), pct_start=0.2
    )
    started = time.monotonic()
    for epoch in range(1, epochs + 1):
        order, total = rng.permutation(count), 0.0
        for start in starts:
            loss = loss_of(order[start : start + BATCH])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        spent = time.monotonic() - started
        log(f"epoch {epoch}/{epochs} loss {total / len(starts):.3f} {spent:.0f} s")
