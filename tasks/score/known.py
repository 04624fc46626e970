"""What is known of samples already: records and embeddings kept by the hash of the file.

A file a batch, written when the batch is done; a killed run loses one batch. Files are named after
what is in them, so that writing one twice is harmless, and a damaged one is seen: it is thrown away
and what was in it done again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TypeVar

import numpy as np

from models.score import Measure
from tasks.ledger import STATE
from tasks.score.vectors import Vectors
from tasks.storage import Storage

FOLDER = f"{STATE}/score"
T = TypeVar("T")
logger = logging.getLogger("intaglio.score")


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
        return _load(self._output, self._folder, _measures)

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
        return _load(self._output, self._folder, _vectors)

    def add(self, vectors: Mapping[str, Vectors]) -> None:
        """Write down some more."""
        stream = BytesIO()
        rows = np.stack(list(vectors.values()))
        np.savez(stream, sha256=np.array(list(vectors)), vectors=rows)
        self._output.write(f"{self._folder}/{_digest(rows.tobytes())}.npz", stream.getvalue())


def _load(
    output: Storage, folder: str, parse: Callable[[str, bytes], dict[str, T]]
) -> dict[str, T]:
    """All batches of a folder; damaged ones go."""
    known: dict[str, T] = {}
    for name in output.names(folder):
        data = output.read(name)
        try:
            known |= parse(name, data)
        # numpy and zipfile raise half a dozen kinds, depending on the byte that is wrong.
        except Exception:
            logger.warning(
                "%s is damaged and was thrown away; what it held is made anew.", output.path(name)
            )
            output.remove(name)
    return known


def _measures(name: str, data: bytes) -> dict[str, Measure]:
    if _digest(data) not in name:
        raise ValueError(name)
    measures = map(Measure.model_validate_json, data.splitlines())
    return {measure.sha256: measure for measure in measures}


def _vectors(name: str, data: bytes) -> dict[str, Vectors]:
    with np.load(BytesIO(data), allow_pickle=False) as batch:
        hashes, rows = batch["sha256"].tolist(), batch["vectors"]
    if _digest(rows.tobytes()) not in name:
        raise ValueError(name)
    return dict(zip(hashes, rows, strict=True))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
