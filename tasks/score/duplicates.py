"""Finding the same picture twice: candidates by hash and by CLIP, verified by their pixels.

A perceptual hash finds pictures that may be the same, and misses few; laying the two upon each
other says whether they are. A plate reprinted in another volume, or scanned twice, counts; two
pictures of the same style or subject do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.score.vectors import Vectors, blocks

SIDE = 128
"""Pixels of the square in which two pictures are laid upon each other."""
BLUR = 1.5
"""In pixels, for laying them upon each other: hatching does not have to meet line by line."""
FINE, COARSE = 1.0, 3.0
"""In pixels: what lies between is compared."""
RIM = 4
"""Pixels at the edges that do not count."""
NEAR = 20
"""Bits of 64 that perceptual hashes of one picture may differ in."""
NEAR_IF_ALIKE = 28
"""The same for pictures that CLIP takes for each other's nearest."""
PAIRS_EACH, ALIKE_EACH = 8, 3
"""Candidates for each sample at most: by hash alone, and by CLIP."""
HOPELESS = 0.1
"""Pictures that correlate less as they are will not do so by shifting them a little."""
LARGEST_SCALING = 0.35
"""How far the areas of two pictures may differ when one is laid upon the other."""

Picture = NDArray[np.float32]
Pair = tuple[int, int]


def candidates(
    pixels: Sequence[str], hashes: Sequence[str], vectors: Vectors
) -> tuple[set[Pair], set[Pair]]:
    """Pairs of samples that are the same picture, and pairs that may be.

    Args:
        pixels: (n) hashes of the decoded pixels.
        hashes: (n) perceptual hashes of 64 bits, in hexadecimal.
        vectors: (n, dim) unit vectors.

    Returns:
        Pairs (i, j), i < j: with equal pixels, and to be verified.
    """
    equal: set[Pair] = set()
    first: dict[str, int] = {}
    for number, key in enumerate(pixels):
        if (other := first.setdefault(key, number)) != number:
            equal.add((other, number))
    bits = np.array([int(key, 16) for key in hashes], np.uint64)
    maybe: set[Pair] = set()
    for start, rows in blocks(vectors):
        here = np.arange(start, start + len(rows))
        distance = np.bitwise_count(bits[here, None] ^ bits[None, :])
        distance[np.arange(len(here)), here] = 255
        alike = rows @ vectors.T
        alike[np.arange(len(here)), here] = -1
        maybe.update(_nearest(start, distance, distance, PAIRS_EACH, NEAR))
        maybe.update(_nearest(start, -alike, distance, ALIKE_EACH, NEAR_IF_ALIKE))
    return equal, maybe - equal


def _nearest(
    start: int, order: NDArray[np.generic], distance: NDArray[np.uint8], most: int, near: int
) -> Iterator[Pair]:
    count = min(most, order.shape[1])
    for row, nearest in enumerate(np.argpartition(order, count - 1, axis=1)[:, :count]):
        for other in nearest[distance[row, nearest] <= near].tolist():
            yield min(start + row, other), max(start + row, other)


def likeness(one: Picture, other: Picture) -> float:
    """Correlation of the lines of two pictures, laid upon each other as well as they go.

    Shifted, turned, stretched and sheared a little by enhanced correlation (Evangelidis and
    Psarakis, IEEE Trans. PAMI 30, 2008, 1858-1865, as OpenCV has it). Compared is then what is
    finer than `COARSE`: two ladies in the same pose have the same outline, and other dresses.

    Args:
        one: (side, side), as :func:`tasks.score.measure.square` makes it.
        other: The same.

    Returns:
        -1 to 1.
    """
    soft, soft_other = (
        np.asarray(cv2.GaussianBlur(each, (0, 0), BLUR), np.float32) for each in (one, other)
    )
    plain = correlation(soft, soft_other)
    if plain < HOPELESS:
        return plain
    warp = np.eye(2, 3, dtype=np.float32)
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 40, 1e-4)
    try:
        _, found = cv2.findTransformECC(soft, soft_other, warp, cv2.MOTION_AFFINE, stop)
    except cv2.error:
        # It did not converge.
        return correlation(_lines(one), _lines(other))
    if abs(float(np.linalg.det(np.asarray(found)[:, :2])) - 1) > LARGEST_SCALING:
        return correlation(_lines(one), _lines(other))
    how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    size = one.shape[1], one.shape[0]
    laid = cv2.warpAffine(other, found, size, flags=how, borderMode=cv2.BORDER_REPLICATE)
    return correlation(_lines(one), _lines(np.asarray(laid, np.float32)))


def _lines(picture: Picture) -> Picture:
    """What is finer than `COARSE`, without the rim."""
    fine, coarse = (cv2.GaussianBlur(picture, (0, 0), sigma) for sigma in (FINE, COARSE))
    return np.asarray(fine - coarse, np.float32)[RIM:-RIM, RIM:-RIM]


def correlation(one: Picture, other: Picture) -> float:
    """Pearson's correlation of two pictures, pixel by pixel; 0 where one is all of one tone."""
    one, other = one - one.mean(), other - other.mean()
    norm = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return float((one * other).sum()) / norm if norm > 1e-6 else 0.0


def verified(
    pairs: Iterable[Pair], picture: Callable[[int], Picture], threshold: float
) -> Iterator[Pair]:
    """The pairs whose pictures are the same.

    Args:
        pairs: To be verified.
        picture: Gives a sample's picture.
        threshold: Likeness from which on two are one.
    """
    return (pair for pair in pairs if likeness(picture(pair[0]), picture(pair[1])) >= threshold)


def groups(pairs: Iterable[Pair]) -> list[list[int]]:
    """Samples that hang together by pairs, each group and all of them in order."""
    root: dict[int, int] = {}

    def find(sample: int) -> int:
        while root.setdefault(sample, sample) != sample:
            root[sample] = sample = root[root[sample]]
        return sample

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    found: dict[int, list[int]] = {}
    for sample in sorted(root):
        found.setdefault(find(sample), []).append(sample)
    return list(found.values())
