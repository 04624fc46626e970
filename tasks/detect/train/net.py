"""The network: fully convolutional, small enough for one CPU thread."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = ("picture", "ornament", "ruled", "text")
"""The maps the network draws, in the order of its output channels."""
STRIDE = 4
"""Pixels of the page for one cell of a map."""


def _block(inputs: int, outputs: int, size: int = 3, stride: int = 1, dilation: int = 1) -> nn.Module:
    padding = 2 if size == 8 else dilation * (size // 2)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding, dilation, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class _Residual(nn.Module):
    def __init__(self, width: int, dilation: int = 1) -> None:
        super().__init__()
        self.first = _block(width, width, dilation=dilation)
        self.second = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        )

    def forward(self, page: Tensor) -> Tensor:
        return functional.relu(page + self.second(self.first(page)))


class LayoutNet(nn.Module):
    """An encoder to a sixteenth with dilated blocks and a gate from the whole page, and back.

    Input: (N, 1, H, W), normalised grey (see ``tasks.detect.layout.normalise``), H and W
    multiples of 16. Output: (N, 4, H/4, W/4) logits of `CHANNELS`. The first layer reads patches
    of 8 x 8 pixels at stride 4: most of the cost of a page lies in the first layers, and line
    art is told from letters by texture, not by single pixels.
    """

    def __init__(self, quarter: int = 16, eighth: int = 32, sixteenth: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(_block(1, quarter, 8, STRIDE), _block(quarter, quarter))
        self.eighth = nn.Sequential(_block(quarter, eighth, stride=2), _Residual(eighth))
        self.sixteenth = nn.Sequential(
            _block(eighth, sixteenth, stride=2),
            *(_Residual(sixteenth, dilation) for dilation in (1, 2, 4, 8)),
        )
        self.gate = nn.Conv2d(sixteenth, sixteenth, 1)
        self.up_eighth = _block(sixteenth, eighth, 1)
        self.merge_eighth = _block(eighth, eighth)
        self.up_quarter = _block(eighth, quarter, 1)
        self.merge_quarter = _block(quarter, quarter)
        self.head = nn.Conv2d(quarter, len(CHANNELS), 1)

    def forward(self, page: Tensor) -> Tensor:
        """Logits for a batch of pages."""
        quarter = self.stem(page)
        eighth = self.eighth(quarter)
        deep = self.sixteenth(eighth)
        deep = deep * torch.sigmoid(self.gate(functional.adaptive_avg_pool2d(deep, 1)))
        up = functional.interpolate(self.up_eighth(deep), scale_factor=2.0, mode="nearest")
        up = self.merge_eighth(up + eighth)
        up = functional.interpolate(self.up_quarter(up), scale_factor=2.0, mode="nearest")
        logits: Tensor = self.head(self.merge_quarter(up + quarter))
        return logits
