"""Representativeness: how well the kept samples stand for all illustrations of the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.records import Sample
from models.score import Balance
from tasks.captions.template import year_of
from tasks.score.vectors import Vectors, blocks

UNKNOWN = "unknown"
FEWEST_CLUSTERS, MOST_CLUSTERS = 4, 24


def coverage(vectors: Vectors, kept: NDArray[np.bool_], neighbours: int) -> float | None:
    """The share of illustrations that are kept, or have a kept one among their nearest.

    Coverage of Naeem et al. (ICML 2020, "Reliable fidelity and diversity metrics"), with the
    archive as the real set and the kept samples as the other.

    Args:
        vectors: (n, dim) unit vectors of all illustrations.
        kept: (n,) which of them are kept.
        neighbours: How many are nearest.

    Returns:
        0 to 1; None without illustrations.
    """
    if not len(vectors):
        return None
    if not kept.any():
        return 0.0
    covered = 0
    for start, rows in blocks(vectors):
        alike = rows @ vectors.T
        here = np.arange(len(rows))
        alike[here, start + here] = -np.inf
        count = min(neighbours, len(vectors) - 1)
        reach = np.partition(alike, -count, axis=1)[:, -count] if count else np.full(len(rows), 2)
        nearest = alike[:, kept].max(axis=1)
        covered += int(np.sum(kept[start : start + len(rows)] | (nearest >= reach)))
    return covered / len(vectors)


def vendi(vectors: Vectors) -> float:
    """The effective number of distinct samples, 1 to n.

    The exponential of the entropy of the eigenvalues of the matrix of similarities over n
    (Friedman and Dieng, TMLR 2023, "The Vendi score"), taken from the covariance matrix, which has
    the same eigenvalues: dim² instead of n². Of centred vectors it is one less for wholly distinct
    samples, whose directions then sum to nothing.

    Args:
        vectors: (n, dim) unit vectors.
    """
    if not len(vectors):
        return 0.0
    dim = vectors.shape[1]
    total = np.zeros((dim, dim))
    for _, rows in blocks(vectors):
        total += rows.T.astype(np.float64) @ rows
    values = np.linalg.eigvalsh(total / len(vectors))
    values = values[values > 1e-12]
    return float(np.exp(-np.sum(values * np.log(values))))


def balance(groups: Sequence[str], kept: Sequence[bool]) -> Balance:
    """How evenly the kept samples are spread over groups, against all.

    Args:
        groups: The group of each illustration.
        kept: Whether it is kept.
    """
    every = Counter(groups)
    left = Counter(group for group, stays in zip(groups, kept, strict=True) if stays)
    shares = np.array([left[group] for group in every], np.float64)
    whole = np.array([every[group] for group in every], np.float64)
    if not shares.sum():
        return Balance(groups={g: (0, n) for g, n in sorted(every.items())}, evenness=0, drift=0)
    shares, whole = shares / shares.sum(), whole / whole.sum()
    there = shares > 0
    entropy = -float(np.sum(shares[there] * np.log(shares[there])))
    drift = float(np.sum(shares[there] * np.log2(shares[there] / whole[there])))
    return Balance(
        groups={group: (left[group], count) for group, count in sorted(every.items())},
        evenness=round(entropy / np.log(len(every)), 4) if len(every) > 1 else 1.0,
        drift=round(max(0.0, drift), 4),
    )


def clusters(vectors: Vectors, wanted: int | str) -> NDArray[np.int32]:
    """Groups of like pictures, by k-means on unit vectors; the largest is 0.

    Args:
        vectors: (n, dim).
        wanted: How many, or ``auto``.

    Returns:
        (n,) group numbers.
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    auto = int(np.clip(np.sqrt(len(vectors) / 8), FEWEST_CLUSTERS, MOST_CLUSTERS))
    count = min(len(vectors), auto if wanted == "auto" else int(wanted))
    if count < 2:
        return np.zeros(len(vectors), np.int32)
    with threadpool_limits(1):
        found = MiniBatchKMeans(count, random_state=0, n_init=4).fit_predict(vectors)
    names, sizes = np.unique(found, return_counts=True)
    rank = {int(name): place for place, name in enumerate(names[np.argsort(-sizes, kind="stable")])}
    return np.array([rank[int(number)] for number in found], np.int32)


def year(sample: Sample) -> str:
    """The year of the print as its caption has it; see :func:`year_of`."""
    return str(year_of(sample) or UNKNOWN)
