"""The training of the judge of regions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.random import default_rng
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.detect.train.crops import SHIFT, unpack
from tasks.detect.train.net import JudgeNet
from tasks.detect.train.window_fit import fit_windows
from tasks.detect.window import SIDE

EPOCHS = 10
KIND_WEIGHTS = (1.0, 1.2, 1.5, 1.0)
"""How much each kind counts in the loss; ruled matter is rare."""


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
    weights = torch.tensor(KIND_WEIGHTS)

    def loss_of(some: NDArray[np.int64]) -> Tensor:
        shown = torch.from_numpy(_shift(windows[some], rng))
        with torch.autocast("cpu", torch.bfloat16):
            logits = net(shown.to(memory_format=torch.channels_last))
        return functional.cross_entropy(
            logits.float(), torch.from_numpy(kinds[some]), weights, label_smoothing=0.05
        )

    fit_windows(net, len(kinds), EPOCHS, rng, loss_of, log)
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
