"""Writing a trained network in the form the workers read: ONNX, in whole numbers of 8 bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from tasks.detect.layout import LONG_SIDE, as_input
from tasks.detect.page import Gray, fit
from tasks.detect.train.augment import PORTRAIT
from tasks.detect.train.net import LayoutNet


def export(net: LayoutNet, pages: Sequence[Gray], output: Path) -> None:
    """Write a network with free page height and width; the file is there whole or not at all.

    Args:
        net: The trained network.
        pages: (H, W) uint8, pages to measure the range of activations on.
        output: The file.
    """
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        torch.onnx.export(
            net.eval(),
            (torch.zeros(1, 1, *PORTRAIT),),
            str(whole),
            input_names=["page"],
            output_names=["maps"],
            opset_version=17,
            dynamo=False,
            dynamic_axes={"page": {2: "height", 3: "width"}, "maps": {2: "rows", 3: "columns"}},
        )
        quantise(whole, pages, output)


def quantise(whole: Path, pages: Sequence[Gray], output: Path) -> None:
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
            _Pages(pages),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )
    partial.replace(output)


class _Pages(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, pages: Sequence[Gray]) -> None:
        self._inputs: Iterator[NDArray[np.float32]] = (
            as_input(fit(page, LONG_SIDE)) for page in pages
        )

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        page = next(self._inputs, None)
        return None if page is None else {"page": page}
