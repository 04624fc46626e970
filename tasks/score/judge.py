"""From what was measured to what becomes of each sample, and the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from models.records import Fault, Sample
from models.score import (
    Measure,
    PurityVerdict,
    ScoreSettings,
    Selection,
    SpreadVerdict,
)
from tasks.calibrate.figures import wilson
from tasks.score import duplicates, spread
from tasks.score.calibration import auc, calibrate
from tasks.score.purity import Margins
from tasks.score.select import choose
from tasks.score.vectors import Vectors, centred

CAUSES = {
    "unreadable": "cannot be looked at",
    "impure": "no illustration",
    "text": "mostly lettering",
    "duplicate": "a copy of another",
    "not_selected": "not among the best",
}
"""Why samples are dropped, in the order in which it is asked, and what it is called."""
STEP = log(1.1)
"""Copies whose pixels differ by less than a tenth count as equally large."""


@dataclass
class Scores:
    """Every sample with everything that is known of it; all lists are in the manifest's order.

    Attributes:
        samples: All of the manifest.
        measures: Of their pixels.
        faults: Why some cannot be judged.
        vectors: (n, dim) unit vectors; zeros for those with a fault.
        margins: What the model thinks.
        labels: What a person said, by file name.
        probability: (n,) that it is an illustration; 0 for those with a fault.
        reasons: Why samples are dropped, by place; the others stay.
        groups: Places of samples that show the same picture, the best copy first.
        cluster: (n,) group of like pictures; -1 for those with a fault.
        place: (n, 2) on the map, 0 to 1.
        rank: Order in which samples were selected, by place.
    """

    samples: list[Sample]
    measures: list[Measure]
    faults: dict[int, Fault]
    vectors: Vectors
    margins: Margins
    labels: Mapping[str, bool]
    probability: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    reasons: dict[int, str] = field(default_factory=dict)
    groups: list[list[int]] = field(default_factory=list)
    cluster: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    place: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 2), np.float32))
    rank: dict[int, int] = field(default_factory=dict)

    @property
    def good(self) -> NDArray[np.int64]:
        """Places of the samples that could be looked at."""
        broken = self.faults.keys()
        return np.array([i for i in range(len(self.samples)) if i not in broken], np.int64)

    def illustrations(self) -> list[int]:
        """Places of the samples that are illustrations, kept or not."""
        others = ("unreadable", "impure", "text")
        return [i for i in range(len(self.samples)) if self.reasons.get(i) not in others]

    def kept(self) -> list[int]:
        """Places of the samples that stay."""
        return [i for i in range(len(self.samples)) if i not in self.reasons]

    def dropped(self) -> dict[str, int]:
        """Dropped samples by reason."""
        counts = Counter(self.reasons.values())
        return {reason: counts[reason] for reason in CAUSES if counts[reason]}


def judge_purity(
    scores: Scores, settings: ScoreSettings, shipped: tuple[float, float] | None
) -> PurityVerdict:
    """Say what is no illustration, and how pure the rest is; where a person said it, that holds.

    Args:
        scores: Gets its probabilities and the first reasons.
        settings: The run's settings.
        shipped: Slope and intercept of the model card, if there is one.
    """
    good = scores.good
    names = [scores.samples[i].file_name for i in good]
    labelled, truth = with_labels(names, scores.labels)
    margins = scores.margins.margin[good]
    result = calibrate(margins, labelled, truth, shipped)
    scores.probability = np.zeros(len(scores.samples))
    scores.probability[good] = result.probability
    scores.reasons = dict.fromkeys(scores.faults, "unreadable")
    for i in good.tolist():
        if reason := _against(scores.probability[i], scores.measures[i], settings):
            scores.reasons[i] = reason
    # By what the scores alone would keep: labels would prove themselves right.
    pairs = zip(result.without_own, good[labelled].tolist(), strict=True)
    kept = np.array([not _against(odds, scores.measures[i], settings) for odds, i in pairs], bool)
    for i, is_illustration in zip(good[labelled].tolist(), truth.tolist(), strict=True):
        if is_illustration:
            scores.reasons.pop(i, None)
        else:
            scores.reasons.setdefault(i, "impure")
    return PurityVerdict(
        estimate=None,  # of what is kept in the end: see estimate()
        estimate_before=_mean(result.probability),
        measured=wilson(int(truth[kept].sum()), int(kept.sum())),
        labelled=len(truth),
        calibrated_by=result.by,
        method=result.method,
        contrary=result.contrary,
        ece=None if result.ece is None else round(result.ece, 4),
        auc=auc(margins[labelled], truth),
    )


def _against(probability: float, measure: Measure, settings: ScoreSettings) -> str:
    """Why the scores alone would drop a sample; empty if they would keep it."""
    if probability < settings.purity.threshold:
        return "impure"
    return "text" if measure.text_area > settings.purity.most_text else ""


def estimate(scores: Scores) -> float | None:
    """The mean probability of what stays."""
    return _mean(scores.probability[scores.kept()])


def with_labels(
    names: Sequence[str], labels: Mapping[str, bool]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which of the samples a person labelled, (m,), and whether they are illustrations, (m,)."""
    labelled = np.array([i for i, name in enumerate(names) if name in labels], np.int64)
    return labelled, np.array([labels[names[i]] for i in labelled], bool)


def judge_duplicates(
    scores: Scores, settings: ScoreSettings, picture: Callable[[int], duplicates.Picture]
) -> None:
    """Find illustrations that are there more than once, and drop all copies but the best.

    Args:
        scores: Gets its groups.
        settings: The run's settings.
        picture: Gives a sample's picture by its place.
    """
    pure = scores.illustrations()
    equal, maybe = duplicates.candidates(
        [scores.measures[i].pixels_sha256 for i in pure],
        [scores.measures[i].phash for i in pure],
        scores.vectors[pure],
    )
    same = duplicates.verified(
        sorted(maybe), lambda at: picture(pure[at]), settings.duplicates.likeness
    )
    found = duplicates.groups([*sorted(equal), *same])
    scores.groups = [sorted((pure[at] for at in group), key=_quality(scores)) for group in found]
    if settings.duplicates.drop:
        scores.reasons |= dict.fromkeys(
            (copy for group in scores.groups for copy in group[1:]), "duplicate"
        )


def _quality(scores: Scores) -> Callable[[int], tuple[int, float, int]]:
    """Sorts copies of one picture: the largest first, the purest of those."""

    def key(at: int) -> tuple[int, float, int]:
        sample = scores.samples[at]
        size = int(log(sample.width * sample.height) / STEP)
        return -size, -round(float(scores.probability[at]), 3), at

    return key


def judge_selection(scores: Scores, count: int) -> Selection | None:
    """Choose the samples that stand best for all, and drop the others.

    Args:
        scores: Gets ranks and reasons.
        count: How many to choose; 0 keeps all.
    """
    eligible = scores.kept()
    if not count or not eligible:
        return None
    pure = scores.illustrations()
    position = {at: number for number, at in enumerate(pure)}
    chosen, account = choose(
        centred(scores.vectors[pure]),
        scores.probability[pure],
        [position[at] for at in eligible],
        count,
    )
    scores.rank = {pure[number]: rank for rank, number in enumerate(chosen, start=1)}
    scores.reasons |= dict.fromkeys(
        (at for at in eligible if at not in scores.rank), "not_selected"
    )
    return account


def judge_spread(scores: Scores, settings: ScoreSettings) -> SpreadVerdict:
    """How well the kept samples stand for all illustrations; finds the clusters."""
    good = scores.good
    scores.cluster = np.full(len(scores.samples), -1, np.int32)
    scores.cluster[good] = spread.clusters(centred(scores.vectors[good]), settings.spread.clusters)
    pure = scores.illustrations()
    stays = np.array([at not in scores.reasons for at in pure], bool)
    vectors = centred(scores.vectors[pure]) if pure else scores.vectors[:0]
    groups = {
        "volumes": [volume(scores.samples[at]) for at in pure],
        "years": [spread.year(scores.samples[at]) for at in pure],
        "clusters": [f"{scores.cluster[at] + 1:02d}" for at in pure],
    }
    share = spread.coverage(vectors, stays, settings.spread.neighbours)
    return SpreadVerdict(
        coverage=None if share is None else round(share, 4),
        vendi_kept=round(spread.vendi(vectors[stays]), 2),
        vendi_all=round(spread.vendi(vectors), 2),
        balance={name: spread.balance(of, stays.tolist()) for name, of in groups.items()},
    )


def volume(sample: Sample) -> str:
    """The folder of a sample's volume."""
    return sample.file_name.split("/")[1]


def _mean(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    return float(np.mean(values)) if len(values) else None
