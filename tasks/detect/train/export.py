"""Writing a trained network in the form the workers read: ONNX, in whole numbers of 8 bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

Inputs = Iterable[NDArray[np.float32]]
FREE_PAGE = {"page": {2: "height", 3: "width"}, "maps": {2: "rows", 3: "columns"}}
"""Names and free sizes of what the network of the maps reads and writes."""
FREE_WINDOWS = {"windows": {0: "regions"}, "kinds": {0: "regions"}}
"""The same of the judge."""
FREE_BOXES = {"windows": {0: "regions"}, "covered": {0: "regions"}}
"""The same of the refiner."""


def export(
    net: nn.Module, free: Mapping[str, Mapping[int, str]], inputs: Inputs, output: Path
) -> None:
    """Write a network; the file is there whole or not at all.

    Args:
        net: The trained network.
        free: `FREE_PAGE`, `FREE_WINDOWS` or `FREE_BOXES`.
        inputs: What it reads, to measure the range of activations on.
        output: The file.
    """
    examples = list(inputs)
    reads, writes = free
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        torch.onnx.export(
            net.eval(),
            (torch.from_numpy(examples[0]),),
            str(whole),
            input_names=[reads],
            output_names=[writes],
            opset_version=17,
            dynamo=False,
            dynamic_axes=free,
        )
        _quantise(whole, reads, examples, output)


def _quantise(whole: Path, reads: str, inputs: Inputs, output: Path) -> None:
    """Bring a network in float32 to 8 bits, which halves the time of a look.

    Weights keep to 7 of them: processors without VNNI add pairs of products in 16 bits, where whole
    weights would overflow, and a page would look otherwise than on another machine.
    """
    partial = output.with_suffix(".partial")
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(whole, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            partial,
            _Inputs(reads, inputs),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )
    partial.replace(output)


class _Inputs(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, name: str, inputs: Inputs) -> None:
        self._name, self._inputs = name, iter(inputs)

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        one = next(self._inputs, None)
        return None if one is None else {self._name: one}
