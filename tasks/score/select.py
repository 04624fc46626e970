"""Choosing the N samples that stand best for all: facility location, lazily greedy."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.score import Selection
from tasks.score.vectors import Vectors, blocks

Values = NDArray[np.float64]


def choose(
    vectors: Vectors, weights: Values, eligible: Sequence[int], count: int
) -> tuple[list[int], Selection]:
    """Choose samples one after the other, each time the one that adds most.

    The value of a choice is the weighted sum over all illustrations of their likeness to the
    nearest chosen one (facility location); it rises ever more slowly, so that what a sample would
    add can only shrink and most need not be asked again (Minoux 1978). A greedy choice reaches at
    least 1 - 1/e of the best there is (Nemhauser et al. 1978); `bound` is what this very choice
    proves.

    Args:
        vectors: (n, dim) unit vectors of all illustrations, centred.
        weights: (n,) probability that each is one.
        eligible: Those that may be chosen.
        count: How many at most.

    Returns:
        The chosen, in the order chosen, and the account of it.
    """
    best = np.zeros(len(vectors), np.float32)
    every = np.zeros(len(vectors), np.float32)
    first = np.zeros(len(eligible))
    eligible = list(eligible)
    for start, rows in blocks(vectors[eligible]):
        alike = np.clip(vectors @ rows.T, 0, None)
        first[start : start + len(rows)] = weights @ alike
        every = np.maximum(every, alike.max(axis=1, initial=0))
    whole = max(float(weights @ every), 1e-9)
    heap = [(-gain, sample) for gain, sample in zip(first.tolist(), eligible, strict=True)]
    heapq.heapify(heap)
    chosen: list[int] = []
    values = [0.0]
    while heap and len(chosen) < count:
        _, sample = heapq.heappop(heap)
        alike = np.clip(vectors @ vectors[sample], 0, None)
        gain = float(weights @ np.maximum(alike - best, 0))
        if heap and gain < -heap[0][0] - 1e-9:
            heapq.heappush(heap, (-gain, sample))
            continue
        best = np.maximum(best, alike)
        chosen.append(sample)
        values.append(values[-1] + gain)
    # What the others might add was an upper bound when it was written down, and still is.
    more = sum(heapq.nlargest(len(chosen), (-gain for gain, _ in heap)))
    shares = [value / whole for value in values]
    return chosen, Selection(
        chosen=len(chosen),
        value=round(shares[-1], 4),
        bound=round(min(1.0, (values[-1] + more) / whole), 4),
        curve=[(n, round(shares[n], 4)) for n in _steps(len(chosen))],
        knee=_knee(shares),
    )


def _steps(count: int) -> list[int]:
    """At most 60 places from 0 to count."""
    return sorted({round(place) for place in np.linspace(0, count, min(count + 1, 60))})


def _knee(values: Sequence[float]) -> int:
    """Where a rising curve lies highest above the straight line between its ends."""
    rise = np.asarray(values) - np.linspace(values[0], values[-1], len(values))
    return int(np.argmax(rise))
