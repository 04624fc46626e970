"""Embeddings a few rows at a time, so that no table of all pairs is ever in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""(n, dim), each row of length 1."""
ROWS = 512
"""Rows at a time: against 10,000 samples, 20 MB of similarities."""
ROUNDING = 1e-5
"""One picture's figures differ by less, whichever others are embedded with it."""


def blocks(vectors: Vectors) -> Iterator[tuple[int, Vectors]]:
    """The rows a few at a time, each time with the number of the first."""
    for start in range(0, len(vectors), ROWS):
        yield start, vectors[start : start + ROWS]


def are_one(vectors: Vectors) -> bool:
    """Whether nothing but rounding tells the vectors apart; so for one or none."""
    return bool((np.abs(vectors - vectors[:1]) < ROUNDING).all())


def centred(vectors: Vectors) -> Vectors:
    """The vectors seen from their mean, of length 1 again.

    All print looks alike to CLIP: cosines of unlike pictures lie around 0.7, and only what
    differs from the mean tells pictures apart. Where nothing does, they come back as they are.
    """
    if are_one(vectors):
        return vectors
    away = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return np.asarray(
        away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-6), np.float32
    )
