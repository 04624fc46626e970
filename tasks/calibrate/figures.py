"""How good a threshold is: rates with intervals against labels, and confusion counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from models.calibrate import Measured, Rate

Z95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""
UNKNOWN = Rate(value=None, low=None, high=None)


def keeps(method: str, figures: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Which pages a threshold keeps, just as :func:`tasks.decide.decide` does.

    Args:
        method: Name of the method.
        figures: (pages,) what the method compares with its threshold.
        threshold: The threshold.

    Returns:
        (pages,) bool.
    """
    if method == "sigma":
        return np.asarray(figures > threshold)
    return np.asarray((figures >= threshold) & (figures > 0))


def measure(
    method: str, figures: NDArray[np.float64], truth: NDArray[np.bool_], threshold: float
) -> Measured:
    """A threshold against labels.

    Args:
        method: Name of the method.
        figures: (pages,) of the labelled pages.
        truth: (pages,) whether a page should be kept.
        threshold: The threshold.
    """
    kept = keeps(method, figures, threshold)
    right, wrong = int((kept & truth).sum()), int((kept & ~truth).sum())
    missed, dropped = int((~kept & truth).sum()), int((~kept & ~truth).sum())
    return Measured(
        threshold=threshold,
        kept_right=right,
        kept_wrong=wrong,
        missed=missed,
        dropped_right=dropped,
        precision=wilson(right, right + wrong),
        recall=wilson(right, right + missed),
        f1=f1(right, wrong, missed),
    )


def wilson(hits: int, of: int) -> Rate:
    """A share with its 95 % score interval (Wilson, J. Am. Stat. Assoc. 22, 1927, 209-212)."""
    if not of:
        return UNKNOWN
    share = hits / of
    middle = (share + Z95**2 / (2 * of)) / (1 + Z95**2 / of)
    half = Z95 / (1 + Z95**2 / of) * sqrt(share * (1 - share) / of + Z95**2 / (4 * of**2))
    return Rate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half))


def f1(right: int, wrong: int, missed: int) -> Rate:
    """F1 with an interval.

    F1 = 2 J / (1 + J), where J is the share of the pages kept or missed that were rightly kept. J
    is a plain share, and the relation only rises: the Wilson interval of J gives that of F1.
    """
    share = wilson(right, right + wrong + missed)
    if share.value is None or share.low is None or share.high is None:
        return UNKNOWN
    value, low, high = (2 * j / (1 + j) for j in (share.value, share.low, share.high))
    return Rate(value=value, low=low, high=high)


def f1_value(kept: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """F1 of verdicts; 0 where nothing is kept."""
    either = int(kept.sum()) + int(truth.sum())
    return 2 * int((kept & truth).sum()) / either if either else 0.0


def as_array(values: Sequence[float]) -> NDArray[np.float64]:
    """(n,) float64."""
    return np.array(values, np.float64)
