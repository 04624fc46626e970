"""A network as workers run it: ONNX Runtime, one thread."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

OLDER = (
    "these weights are of an older version. Train them again: python -m tasks.detect.train --help."
)


class Network:
    """A network with one input and one output, read from a file.

    Args:
        file: The network.
        example: Something it reads, on which it is tried.

    Attributes:
        digest: SHA-256 of the file, in hex.
        shape: Of what it makes of the example.

    Raises:
        OSError: The file is not there.
        ValueError: It is something else.
    """

    def __init__(self, file: Path, example: NDArray[np.float32]) -> None:
        data = file.read_bytes()
        self.digest = hashlib.sha256(data).hexdigest()
        options = onnxruntime.SessionOptions()
        # A worker has one processor to itself, and a fork must find no threads.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(
                data, options, providers=["CPUExecutionProvider"]
            )
            self._input = self._session.get_inputs()[0].name
            self.shape = self(example).shape
        except Exception as error:
            # ONNX Runtime has many kinds of errors, and no common one.
            raise ValueError(f"{file} is no network of layout: {error}") from error

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the network makes of its input."""
        (output,) = self._session.run(None, {self._input: values})
        result: NDArray[np.float32] = output
        return result


def read_added(file: Path, example: NDArray[np.float32]) -> Network:
    """A network that folders of weights made by older versions may lack; see `Network`.

    Raises:
        ValueError: The file is not there, or is something else.
    """
    if not file.exists():
        raise ValueError(f"{file} is missing: either its training has not ended, or {OLDER}")
    return Network(file, example)
