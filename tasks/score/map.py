"""A map of the samples: like pictures lie near each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.score.vectors import Vectors, are_one, blocks, centred

LANDMARKS = 2000
"""Samples laid out by t-SNE, which takes a minute for 10,000; others go to the nearest of these."""
FEWEST = 8
NEAREST = 3


def lay_out(vectors: Vectors) -> NDArray[np.float32]:
    """Places in a unit square, by t-SNE (van der Maaten and Hinton, JMLR 2008).

    Args:
        vectors: (n, dim) unit vectors.

    Returns:
        (n, 2) from 0 to 1, the same every time; in a row where they are few, or all the same.
    """
    count = len(vectors)
    marks = np.linspace(0, count - 1, min(count, LANDMARKS)).astype(int)
    # t-SNE divides by the spread of what it begins with.
    if count < FEWEST or are_one(vectors[marks]):
        return np.stack([np.linspace(0.1, 0.9, count), np.full(count, 0.5)], 1).astype(np.float32)
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    away = centred(vectors)
    parts = min(30, len(marks) - 1, away.shape[1])
    flat = PCA(parts, random_state=0).fit_transform(away[marks])
    perplexity = min(30.0, (len(marks) - 1) / 3)
    # torch has raised the number of OpenMP's threads, which on few points wait for each other.
    with threadpool_limits(1):
        spots = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(flat)
    spots = (spots - spots.min(axis=0)) / np.maximum(np.ptp(spots, axis=0), 1e-6)
    if len(marks) == count:
        return np.asarray(spots, np.float32)
    places = np.empty((count, 2), np.float32)
    for start, rows in blocks(away):
        alike = rows @ away[marks].T
        nearest = np.argpartition(alike, -NEAREST, axis=1)[:, -NEAREST:]
        # Close ones count for much more, so that a landmark lands on itself.
        weight = np.exp(40 * (np.take_along_axis(alike, nearest, 1) - 1))[:, :, None]
        places[start : start + len(rows)] = (spots[nearest] * weight).sum(1) / weight.sum(1)
    return places
