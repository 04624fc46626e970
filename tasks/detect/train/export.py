"""Writing a trained network in the form the workers read."""

from __future__ import annotations

from pathlib import Path

import torch

from tasks.detect.train.augment import PORTRAIT
from tasks.detect.train.net import LayoutNet


def export(net: LayoutNet, output: Path) -> None:
    """Write ONNX with free page height and width; the file is there whole or not at all."""
    partial = output.with_suffix(".partial")
    torch.onnx.export(
        net.eval(),
        (torch.zeros(1, 1, *PORTRAIT),),
        str(partial),
        input_names=["page"],
        output_names=["maps"],
        opset_version=17,
        dynamo=False,
        dynamic_axes={"page": {2: "height", 3: "width"}, "maps": {2: "rows", 3: "columns"}},
    )
    partial.replace(output)
