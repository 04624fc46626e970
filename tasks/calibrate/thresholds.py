"""Suggesting a threshold: from the figures alone, or from labels.

Every suggestion comes with the reason in words, and none is made where the pages give none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.calibrate import Suggestion
from tasks.calibrate.figures import f1_value, keeps

AREA_BAND = 1.4
"""A page is uncertain where its picture area is within this factor of the threshold: on 62
labelled, illustrated scans 95 % of the areas found were 0.82 to 1.31 times those drawn by hand."""
SIGMA_BAND = 5.0
"""The same for sigma, in grey levels: less than what the resolution of a scan alone makes of it."""
REACH = 2.0
"""Without labels, picture areas suggest a threshold within this factor of the present one: how
large a picture must be is a wish, and only where exactly to draw the line shows in the pages."""
CLEARLY_FEWER = 5
"""Without labels, pages by which the uncertain ones must become fewer, to a third of them at most,
for another threshold to be suggested: less may be chance."""
FEWEST_PAGES = 20
"""Figures or labels of fewer pages suggest nothing."""
FEWEST_OF_A_SIDE = 5
"""Labels of fewer pages to keep, or to drop, suggest nothing."""
VALLEY = 0.05
"""Most pages, as a share, that may lie within a tenth of the distance between the two means
around Otsu's threshold; an even spread would put 10 % there."""

Figures = NDArray[np.float64]


def band(method: str, threshold: float) -> tuple[float, float]:
    """Lowest and highest figure at which a page counts as uncertain."""
    if method == "sigma":
        return max(0.0, threshold - SIGMA_BAND), threshold + SIGMA_BAND
    return threshold / AREA_BAND, threshold * AREA_BAND


def uncertain(method: str, figures: Figures, threshold: float) -> NDArray[np.bool_]:
    """Which pages lie so near the threshold that their verdict is uncertain, (pages,) bool."""
    low, high = band(method, threshold)
    return np.asarray((figures >= low) & (figures <= high) & (figures > 0))


def show(method: str, figure: float) -> str:
    """A figure as a person reads it: a percentage of the page, or grey levels."""
    return f"{figure:.1f}" if method == "sigma" else f"{100 * figure:.3g} %"


def suggest(method: str, figures: Figures, present: float) -> Suggestion:
    """A threshold from figures without labels.

    Args:
        method: Name of the method.
        figures: (pages,) of all pages that are not blank.
        present: The threshold now.
    """
    if len(figures) < FEWEST_PAGES:
        return Suggestion(threshold=None, reason=f"Only {len(figures)} pages: too few to say.")
    if method == "sigma":
        return _otsu(figures)
    return _fewest_uncertain(method, figures, present)


def _fewest_uncertain(method: str, figures: Figures, present: float) -> Suggestion:
    """The threshold with the fewest pages near it; the present one unless that is clearly worse."""
    if present == 0:
        return Suggestion(threshold=None, reason="Every page with a picture is kept.")
    grid = np.geomspace(present / REACH, min(1.0, present * REACH), 101)
    near = np.array([uncertain(method, figures, t).sum() for t in grid])
    now = int(uncertain(method, figures, present).sum())
    fewest = int(near.min())
    at = show(method, present)
    if fewest > now / 3 or now - fewest < CLEARLY_FEWER:
        return Suggestion(
            threshold=None,
            reason=f"Pages near {at}: {now}, hardly more than near any other threshold.",
        )
    first, last = _longest_run(near == fewest)
    best = round(float(np.sqrt(grid[first] * grid[last])), 3)
    return Suggestion(
        threshold=best,
        reason=f"Pages near {at}: {now}, near {show(method, best)}: {fewest}.",
    )


def _longest_run(wanted: NDArray[np.bool_]) -> tuple[int, int]:
    """First and last index of the longest stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(np.int8)))
    runs = edges.reshape(-1, 2)
    first, end = runs[np.argmax(runs[:, 1] - runs[:, 0])]
    return int(first), int(end) - 1


def _otsu(figures: Figures) -> Suggestion:
    """The split with the largest variance between its sides (Otsu, IEEE Trans. SMC 9, 1979)."""
    ordered = np.sort(figures)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)[:-1]
    low, high = sums / below, (ordered.sum() - sums) / (len(ordered) - below)
    between = below * (len(ordered) - below) * (high - low) ** 2
    between[ordered[1:] == ordered[:-1]] = -1.0
    at = int(np.argmax(between))
    if between[at] < 0:
        return Suggestion(threshold=None, reason="All pages have the same figure.")
    split = (ordered[at] + ordered[at + 1]) / 2
    in_valley = float(np.mean(np.abs(ordered - split) < (high[at] - low[at]) / 10))
    if in_valley > VALLEY:
        return Suggestion(
            threshold=None,
            reason=f"The figures form one heap: {100 * in_valley:.0f} % of the pages lie "
            f"around {split:.1f}, where they would best be split.",
        )
    return Suggestion(
        threshold=_plain(float(ordered[at]), float(ordered[at + 1]), 1),
        reason=f"The figures form two heaps, around {low[at]:.0f} and {high[at]:.0f}; whether "
        "they are text and pictures is to be seen below.",
    )


def suggest_from_labels(
    method: str,
    figures: Figures,
    truth: NDArray[np.bool_],
    groups: Sequence[str],
    present: float,
) -> Suggestion:
    """The threshold of best F1 on labelled pages.

    Args:
        method: Name of the method.
        figures: (pages,) of the labelled pages.
        truth: (pages,) whether a page should be kept.
        groups: The PDF of each page; F1 is also taken on PDFs left out when choosing.
        present: The threshold now.
    """
    best = best_threshold(method, figures, truth, present)
    held_out = _held_out(method, figures, truth, groups, present)
    if best == present:
        reason = "On these labels no other threshold does better."
        return Suggestion(threshold=None, reason=reason, held_out_f1=held_out)
    now, then = (keeps(method, figures, t) for t in (present, best))
    changes = [
        _count(then & ~now & truth, "finds {} more illustrated pages"),
        _count(now & ~then & ~truth, "drops {} more of the others"),
        _count(then & ~now & ~truth, "lets in {} of the others"),
        _count(now & ~then & truth, "loses {} illustrated pages"),
    ]
    reason = f"Best F1 on these labels: it {', '.join(filter(None, changes))}."
    present_f1 = f1_value(now, truth)
    if held_out is not None and held_out <= present_f1:
        reason += (
            f" Do not rely on it: on PDFs that had no say, such a threshold does no better "
            f"(F1 {100 * held_out:.0f} %) than the present one ({100 * present_f1:.0f} %)."
        )
    return Suggestion(threshold=best, reason=reason, held_out_f1=held_out)


def best_threshold(
    method: str, figures: Figures, truth: NDArray[np.bool_], present: float
) -> float:
    """The threshold of best F1: the present one if none is better, else in the widest gap."""
    values = np.unique(np.concatenate([[0.0], figures]))
    middles = (values[:-1] + values[1:]) / 2
    scores = [f1_value(keeps(method, figures, t), truth) for t in middles]
    if not scores or max(scores) <= f1_value(keeps(method, figures, present), truth) + 1e-9:
        return present
    ties = np.flatnonzero(np.array(scores) >= max(scores) - 1e-9)
    at = int(max(ties, key=lambda i: values[i + 1] - values[i]))
    digits = 1 if method == "sigma" else 3
    return _plain(float(values[at]), float(values[at + 1]), digits)


def _held_out(
    method: str,
    figures: Figures,
    truth: NDArray[np.bool_],
    groups: Sequence[str],
    present: float,
) -> float | None:
    """F1 when each PDF is judged by the threshold that the other PDFs' labels give."""
    names = np.array(groups)
    if len(set(groups)) < 3:
        return None
    kept = np.zeros(len(truth), bool)
    for name in sorted(set(groups)):
        own = names == name
        threshold = best_threshold(method, figures[~own], truth[~own], present)
        kept[own] = keeps(method, figures[own], threshold)
    return f1_value(kept, truth)


def _plain(low: float, high: float, digits: int) -> float:
    """The number with the fewest decimals, at least `digits`, at the middle of a gap."""
    middle = (low + high) / 2
    for places in range(digits, 12):
        if low < round(middle, places) < high:
            return round(middle, places)
    return middle


def _count(pages: NDArray[np.bool_], text: str) -> str:
    return text.format(int(pages.sum())) if pages.any() else ""
