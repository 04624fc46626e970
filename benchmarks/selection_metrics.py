"""The figures of the selection benchmark: pages right and wrong, and boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.records import RelativeBox
from tasks.detect.boxes import overlap

Interval = tuple[float, float]
LARGE = 0.15
"""Pages with at least this share of pictures must never be missed."""


@dataclass(frozen=True)
class Outcome:
    """One page, one method.

    Attributes:
        key: Path and page.
        illustrated: Whether a person would keep it.
        kept: Whether the method keeps it.
        score: What the method decided by.
        truth: The pictures a person drew.
        boxes: The pictures the method found, with their confidences.
        boxes_source: How the person drew them: gt (ground truth) or eye (to within 2 %).
        scan: bilevel, grey or colour.
        seconds: CPU time for the page on one thread, rendering not counted.
        shrunk: For every drawn box its overlap with itself shrunk to the ink in it, which is all
            that a method can reach whose boxes end at the ink.
    """

    key: str
    work: str
    label: str
    note: str
    illustrated: bool
    kept: bool
    score: float
    truth: tuple[RelativeBox, ...]
    boxes: tuple[tuple[RelativeBox, float], ...]
    boxes_source: str
    scan: str
    seconds: float
    shrunk: tuple[float, ...] = ()

    @property
    def large(self) -> bool:
        """Whether it is a plate, or pictures take a good part of it."""
        share = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in self.truth)
        return self.illustrated and (self.label == "illustration" or share >= LARGE)

    @property
    def ornamental(self) -> bool:
        """Whether its note speaks of an ornament or an initial."""
        return "ornament" in self.note or "initial" in self.note


def page_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Precision, recall, F1 and AUC of the page verdicts; nan where undefined."""
    truth = np.array([outcome.illustrated for outcome in outcomes], bool)
    kept = np.array([outcome.kept for outcome in outcomes], bool)
    hits, found, wanted = int((truth & kept).sum()), int(kept.sum()), int(truth.sum())
    return {
        "precision": hits / found if found else float("nan"),
        "recall": hits / wanted if wanted else float("nan"),
        "f1": 2 * hits / (found + wanted) if found + wanted else float("nan"),
        "auc": auc(np.array([outcome.score for outcome in outcomes]), truth),
    }


def auc(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """The chance that a page to keep scores above a page to drop, ties counting half."""
    keep, drop = scores[truth][:, None], scores[~truth][None, :]
    if not keep.size or not drop.size:
        return float("nan")
    return float(((keep > drop) + 0.5 * (keep == drop)).mean())


def average_precision(outcomes: Sequence[Outcome], least_overlap: float) -> float:
    """Area under precision over recall of the boxes, as COCO counts it at one overlap."""
    hits: list[tuple[float, bool]] = []
    wanted = sum(len(outcome.truth) for outcome in outcomes)
    for outcome in outcomes:
        hits += match(outcome, least_overlap)
    if not wanted or not hits:
        return float("nan") if not wanted else 0.0
    hits.sort(key=lambda hit: -hit[0])
    true = np.cumsum([hit for _, hit in hits])
    precision = np.maximum.accumulate((true / np.arange(1, len(hits) + 1))[::-1])[::-1]
    steps = np.diff(np.concatenate([[0], true])) / wanted
    return float((precision * steps).sum())


def match(outcome: Outcome, least_overlap: float) -> list[tuple[float, bool]]:
    """Confidence of each found box and whether it is right; each drawn box is found once."""
    left = list(outcome.truth)
    matched = []
    for box, confidence in sorted(outcome.boxes, key=lambda found: -found[1]):
        best = max(left, key=lambda drawn: overlap(box, drawn), default=None)
        right = best is not None and overlap(box, best) >= least_overlap
        if right and best is not None:
            left.remove(best)
        matched.append((confidence, right))
    return matched


def box_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """How well the boxes fit; nan where nothing was drawn."""
    overlaps = np.array(best_overlaps(outcomes))
    shrunk = [value for outcome in outcomes for value in outcome.shrunk]
    return {
        "ap50": average_precision(outcomes, 0.5),
        "ap75": average_precision(outcomes, 0.75),
        "mean_iou": float(overlaps.mean()) if overlaps.size else float("nan"),
        "shrunk_iou": float(np.mean(shrunk)) if shrunk else float("nan"),
        "found_at_50": float((overlaps >= 0.5).mean()) if overlaps.size else float("nan"),
        "found_at_75": float((overlaps >= 0.75).mean()) if overlaps.size else float("nan"),
        "drawn": overlaps.size,
    }


def best_overlaps(outcomes: Sequence[Outcome]) -> list[float]:
    """For every drawn box the overlap of the best found one, 0 if there is none."""
    return [
        max((overlap(drawn, box) for box, _ in outcome.boxes), default=0.0)
        for outcome in outcomes
        for drawn in outcome.truth
    ]


def false_boxes(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """On pages to drop: boxes that touch no drawn box, and pages that have such a box."""
    counts = [
        sum(all(overlap(box, drawn) < 0.1 for drawn in outcome.truth) for box, _ in outcome.boxes)
        for outcome in outcomes
        if not outcome.illustrated
    ]
    return sum(counts), sum(count > 0 for count in counts)


def bootstrap(
    outcomes: Sequence[Outcome],
    figure: Callable[[Sequence[Outcome]], float],
    rounds: int = 1000,
) -> Interval:
    """A 95 % interval, by drawing works (not pages) with replacement."""
    works: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        works.setdefault(outcome.work, []).append(outcome)
    groups = list(works.values())
    rng = np.random.default_rng(0)
    values = []
    for _ in range(rounds):
        drawn = rng.integers(0, len(groups), len(groups))
        values.append(figure([outcome for i in drawn for outcome in groups[i]]))
    low, high = np.nanpercentile(values, (2.5, 97.5))
    return float(low), float(high)
