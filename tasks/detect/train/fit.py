"""The training of the network of the maps."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children, resource_tracker

import cv2
import numpy as np
import torch
from numpy.random import default_rng
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

from tasks.detect.train.augment import draw_example
from tasks.detect.train.compose import Bank
from tasks.detect.train.net import LayoutNet

BATCH = 16
CHANNEL_WEIGHTS = (1.0, 1.0, 0.4, 0.3)
"""How much each map counts in the loss: pictures are what is asked for, text helps to learn."""
EDGE_WEIGHT = 2.5
"""How much cells at the edge of a picture count."""
ORNAMENT_WEIGHT = 2.0
"""How much cells of ornaments count on the map of pictures."""
PEAK_RATE = 4e-3
"""Highest learning rate of the one-cycle schedule (AdamW, weight decay 0.02)."""

Batch = tuple[Tensor, Tensor]
"""Images and the maps that are wanted of them."""


class _Batches(IterableDataset[Batch]):
    """Training batches, each a function of the seed and its number alone."""

    def __init__(self, bank: Bank, steps: int, seed: int) -> None:
        super().__init__()
        self.bank, self.steps, self.seed = bank, steps, seed

    def __iter__(self) -> Iterator[Batch]:
        cv2.setNumThreads(1)
        for step in range(self.steps):
            rng = default_rng((self.seed, step))
            wide = bool(rng.random() < 0.12)
            pairs = [draw_example(self.bank, wide, rng) for _ in range(BATCH)]
            images, targets = zip(*pairs, strict=True)
            yield torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(targets))


def fit_layout(bank: Bank, steps: int, seed: int, log: Callable[[str], None]) -> LayoutNet:
    """Train a network from scratch.

    Args:
        bank: What training scenes are made from.
        steps: Batches of `BATCH` images.
        seed: Fixes the initial weights and every training image.
        log: Told how far it has come.
    """
    torch.manual_seed(seed)
    net: LayoutNet = LayoutNet().train().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), PEAK_RATE, weight_decay=0.02)
    # It ends at a twelfth of the peak: the average over the last steps does the settling.
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_RATE, steps, pct_start=0.15, final_div_factor=0.5
    )
    decay = torch.optim.swa_utils.get_ema_multi_avg_fn(0.995)  # type: ignore[no-untyped-call]
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=decay, use_buffers=True)
    started, total = time.monotonic(), 0.0
    # Spawned, not forked: a fork in which OpenCV's threads have run already may hang.
    batches = DataLoader(
        _Batches(bank, steps, seed),
        batch_size=None,
        num_workers=1,
        prefetch_factor=6,
        multiprocessing_context="spawn",
    )
    with _ready(batches) as ready:
        for step, (images, targets) in enumerate(ready, 1):
            with torch.autocast("cpu", torch.bfloat16):
                logits = net(images.to(memory_format=torch.channels_last))
            value = loss(logits.float(), targets)
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            optimizer.step()
            schedule.step()
            average.update_parameters(net)
            total += float(value.detach())
            if step % 50 == 0:
                log(f"step {step}/{steps} loss {total / 50:.3f} {time.monotonic() - started:.0f} s")
                total = 0.0
    trained: LayoutNet = average.module  # type: ignore[assignment]
    return trained.eval()


@contextmanager
def _ready(batches: DataLoader[Batch]) -> Iterator[Iterator[Batch]]:
    """What a loader's worker makes; the worker ends with the block, and does so without a word.

    It does not hear Ctrl-C, which a terminal sends to all of a group: interrupted half-way it
    would complain. While it is started the parent does not hear it either, but right after.
    """
    others = set(active_children())
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    # A process inherits what is blocked. Starting the tracker would take the block away again.
    resource_tracker.ensure_running()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        try:
            made = iter(batches)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            signal.signal(signal.SIGINT, before)
        if heard and before is not signal.SIG_IGN:
            raise KeyboardInterrupt
        yield made
    finally:
        # Torch answers the death of a child with an error.
        answer = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for worker in set(active_children()) - others:
            worker.kill()
            worker.join()
        signal.signal(signal.SIGCHLD, answer)


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy on every map, and dice on the map of pictures.

    Cells within two of an edge of a picture count `EDGE_WEIGHT` times, for tight boxes and for
    gaps between neighbours.
    """
    pictures, ornaments = targets[:, :1], targets[:, 1:2]
    grown = functional.max_pool2d(pictures, 5, 1, 2)
    shrunk = 1 - functional.max_pool2d(1 - pictures, 5, 1, 2)
    edge = 1 + (EDGE_WEIGHT - 1) * (grown - shrunk)
    hard = 1 + (ORNAMENT_WEIGHT - 1) * ornaments
    weights = torch.tensor(CHANNEL_WEIGHTS).view(1, -1, 1, 1) * edge
    weights = torch.cat([weights[:, :1] * hard, weights[:, 1:]], dim=1)
    each = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    entropy = (each * weights).sum(1).mean()
    drawn, wanted = torch.sigmoid(logits[:, 0]), targets[:, 0]
    both = (drawn * wanted).sum((1, 2))
    dice = 1 - (2 * both + 20) / (drawn.sum((1, 2)) + wanted.sum((1, 2)) + 20)
    return entropy + 0.5 * dice.mean()
