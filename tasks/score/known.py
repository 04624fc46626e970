"""What is known of samples already: records and embeddings kept by the hash of the file.

A file a batch, written when the batch is done; a killed run loses one batch. Files are named after
what is in them, so that writing one twice is harmless.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from io import BytesIO

import numpy as np

from models.score import Measure
from tasks.ledger import STATE
from tasks.score.vectors import Vectors
from tasks.storage import Storage

FOLDER = f"{STATE}/score"


class KnownMeasures:
    """Measures by the hash of the file.

    Args:
        output: The dataset.
        version: Of how they are taken; others are not read.
    """

    def __init__(self, output: Storage, version: int) -> None:
        self._output = output
        self._folder = f"{FOLDER}/measures-{version}"

    def load(self) -> dict[str, Measure]:
        """All there are."""
        lines = (
            line for name in self._output.names(self._folder) for line in self._output.lines(name)
        )
        measures = map(Measure.model_validate_json, lines)
        return {measure.sha256: measure for measure in measures}

    def add(self, measures: list[Measure]) -> None:
        """Write down some more."""
        data = b"".join(measure.model_dump_json().encode() + b"\n" for measure in measures)
        self._output.write(f"{self._folder}/{_digest(data)}.jsonl", data)


class KnownVectors:
    """Embeddings by the hash of the file.

    Args:
        output: The dataset.
        model: What makes them, weights and all; others are not read.
    """

    def __init__(self, output: Storage, model: str) -> None:
        self._output = output
        self._folder = f"{FOLDER}/vectors-{_digest(model.encode())}"

    def load(self) -> dict[str, Vectors]:
        """All there are."""
        known: dict[str, Vectors] = {}
        for name in self._output.names(self._folder):
            with np.load(BytesIO(self._output.read(name)), allow_pickle=False) as batch:
                known.update(zip(batch["sha256"].tolist(), batch["vectors"], strict=True))
        return known

    def add(self, vectors: Mapping[str, Vectors]) -> None:
        """Write down some more."""
        stream = BytesIO()
        rows = np.stack(list(vectors.values()))
        np.savez(stream, sha256=np.array(list(vectors)), vectors=rows)
        self._output.write(f"{self._folder}/{_digest(rows.tobytes())}.npz", stream.getvalue())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
