"""The networks: convolutional, small enough for one CPU thread."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = ("picture", "ornament", "ruled", "text")
"""The maps the network draws, in the order of its output channels."""
STRIDE = 4
"""Pixels of the page for one cell of a map."""


def _block(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Module:
    padding = 2 if size == 8 else size // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = _block(width, width)
        self.second = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        )

    def forward(self, page: Tensor) -> Tensor:
        return functional.relu(page + self.second(self.first(page)))


class LayoutNet(nn.Module):
    """Down to a thirty-second of the page, a gate from the whole page, and back to a quarter.

    Input: (N, 1, H, W), normalised grey (see ``tasks.detect.page.normalise``), H and W
    multiples of 32. Output: (N, 4, H/4, W/4) logits of `CHANNELS`.

    Made for one CPU thread: the first layer reads patches of 8 x 8 pixels at stride
    4, since the cost lies in the first layers and line art is told from letters by texture, not
    by single pixels; and the view is widened by going down, not by dilated convolutions, which
    are slow on processors.
    """

    def __init__(self, quarter: int = 16, eighth: int = 32, deep: int = 64) -> None:
        super().__init__()
        self.quarter = nn.Sequential(_block(1, quarter, 8, STRIDE), _block(quarter, quarter))
        self.eighth = nn.Sequential(_block(quarter, eighth, stride=2), _Residual(eighth))
        self.sixteenth = nn.Sequential(
            _block(eighth, deep, stride=2), _Residual(deep), _Residual(deep)
        )
        self.bottom = nn.Sequential(_block(deep, deep, stride=2), _Residual(deep), _Residual(deep))
        self.gate = nn.Conv2d(deep, deep, 1)
        self.up = nn.ModuleList(
            [_block(deep, deep, 1), _block(deep, eighth, 1), _block(eighth, quarter, 1)]
        )
        self.merge = nn.ModuleList(
            [_block(deep, deep), _block(eighth, eighth), _block(quarter, quarter)]
        )
        self.head = nn.Conv2d(quarter, len(CHANNELS), 1)

    def forward(self, page: Tensor) -> Tensor:
        """Logits for a batch of pages."""
        quarter = self.quarter(page)
        eighth = self.eighth(quarter)
        sixteenth = self.sixteenth(eighth)
        maps = self.bottom(sixteenth)
        maps = maps * torch.sigmoid(self.gate(functional.adaptive_avg_pool2d(maps, 1)))
        levels = (sixteenth, eighth, quarter)
        for up, merge, level in zip(self.up, self.merge, levels, strict=True):
            maps = functional.interpolate(up(maps), scale_factor=2.0, mode="nearest")
            maps = merge(maps + level)
        logits: Tensor = self.head(maps)
        return logits


class JudgeNet(nn.Module):
    """Says what a window shows: see ``tasks.detect.window``.

    Input: (N, 2, 96, 96), grey and the inside of the box. Output: (N, 4) logits of `CHANNELS`, as
    odds of one against the others.

    What is seen anywhere (a face, a letter) tells as much as what is seen everywhere, so that the
    last layer reads both the greatest and the mean of every channel.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            _block(2, 16, stride=2),
            _block(16, 24),
            _block(24, 32, stride=2),
            _Residual(32),
            _block(32, 64, stride=2),
            _Residual(64),
            _block(64, 96, stride=2),
            _Residual(96),
        )
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(2 * 96, len(CHANNELS)))

    def forward(self, windows: Tensor) -> Tensor:
        """Logits for a batch of windows."""
        seen = self.trunk(windows)
        logits: Tensor = self.head(torch.cat([seen.mean((2, 3)), seen.amax((2, 3))], dim=1))
        return logits


class JudgeEnsemble(nn.Module):
    """Several judges in one network, each with an answer of its own.

    Input: as of `JudgeNet`. Output: (N, members, 4) logits.
    """

    def __init__(self, members: Iterable[JudgeNet]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, windows: Tensor) -> Tensor:
        """Logits of every member for a batch of windows."""
        return torch.stack([member(windows) for member in self.members], dim=1)


class RefineNet(nn.Module):
    """Says where in a window the picture ends: see ``tasks.detect.window``.

    Input: (N, 2, 96, 96), grey and the inside of the box. Output: (N, 2, 24) logits of whether the
    picture covers each of 24 rows, and each of 24 columns, four pixels each.

    Down to a sixteenth and back to a quarter, as `LayoutNet`; then the greatest and the mean of
    every row, and of every column, tell whether it belongs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.quarter = nn.Sequential(
            _block(2, 16, stride=2), _block(16, 24), _block(24, 32, stride=2), _Residual(32)
        )
        self.eighth = nn.Sequential(_block(32, 64, stride=2), _Residual(64))
        self.sixteenth = nn.Sequential(_block(64, 96, stride=2), _Residual(96))
        self.up = nn.ModuleList([_block(96, 64, 1), _block(64, 32, 1)])
        self.merge = nn.ModuleList([_block(64, 64), _block(32, 32)])
        self.rows, self.columns = _profile(64), _profile(64)

    def forward(self, windows: Tensor) -> Tensor:
        """Logits for a batch of windows."""
        quarter = self.quarter(windows)
        eighth = self.eighth(quarter)
        seen = self.sixteenth(eighth)
        seen = seen * torch.sigmoid(functional.adaptive_avg_pool2d(seen, 1))
        for up, merge, level in zip(self.up, self.merge, (eighth, quarter), strict=True):
            seen = merge(functional.interpolate(up(seen), scale_factor=2.0, mode="nearest") + level)
        rows, columns = (torch.cat([seen.mean(axis), seen.amax(axis)], dim=1) for axis in (3, 2))
        return torch.cat([self.rows(rows), self.columns(columns)], dim=1)


def _profile(width: int) -> nn.Module:
    return nn.Sequential(nn.Conv1d(width, 32, 3, 1, 1), nn.ReLU(), nn.Conv1d(32, 1, 3, 1, 1))
