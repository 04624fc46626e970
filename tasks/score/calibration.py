"""From margins to probabilities, honestly: fitted on labels, with the error that is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST_LABELS, FEWEST_OF_A_SIDE = 20, 5
"""Labels below which nothing is fitted: they only measure."""
ENOUGH_FOR_ISOTONIC = 500
"""Labels from which on the curve need not be taken for a sigmoid."""
SHIPPED = {"print": (1.34, 3.69)}
"""Slope and intercept of the small model's probabilities, as benchmarks/purity.py fits them with
nine illustrations to one of anything else, which is about what extraction leaves."""
FOLDS = 5
BINS = 10

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Calibrated:
    """Probabilities and where they come from.

    Attributes:
        probability: (n,) that each sample is an illustration.
        without_own: (m,) the same of the labelled ones, their own label having had no say.
        by: ``labels``, ``model card`` or ``nothing``.
        method: ``platt``, ``isotonic`` or ``none``.
        ece: Expected calibration error on labels that had no say; None if none is left over.
        contrary: Whether there were labels enough, and they say the opposite of the scores.
    """

    probability: Values
    without_own: Values
    by: str
    method: str
    ece: float | None = None
    contrary: bool = False


def calibrate(
    margins: Values, labelled: NDArray[np.int64], truth: Flags, shipped: tuple[float, float] | None
) -> Calibrated:
    """Probabilities of margins, which rise with them.

    Labels whose illustrations have no higher mean margin than the others would turn the ranking
    over (it is where Platt's slope changes its sign); nothing is fitted on them.

    Args:
        margins: (n,) of all samples.
        labelled: (m,) which of them have a label.
        truth: (m,) whether they are illustrations.
        shipped: Slope and intercept that the model card gives, used without enough labels.
    """
    own = margins[labelled]
    positive = int(truth.sum())
    enough = (
        len(truth) >= FEWEST_LABELS and min(positive, len(truth) - positive) >= FEWEST_OF_A_SIDE
    )
    contrary = enough and bool(own[truth].mean() <= own[~truth].mean())
    if enough and not contrary:
        method = "isotonic" if len(truth) >= ENOUGH_FOR_ISOTONIC else "platt"
        held_out = _held_out(method, own, truth)
        predict = _fit(method, own, truth)
        error = expected_calibration_error(held_out, truth)
        return Calibrated(predict(margins), held_out, "labels", method, error)
    slope, intercept = shipped or (1.0, 0.0)
    probability = sigmoid(slope * margins + intercept)
    stated = probability[labelled]
    ece = expected_calibration_error(stated, truth) if len(truth) else None
    by, method = ("model card", "platt") if shipped else ("nothing", "none")
    return Calibrated(probability, stated, by, method, ece, contrary)


def sigmoid(values: Values) -> Values:
    """1 / (1 + exp(-values))."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


def expected_calibration_error(probability: Values, truth: Flags) -> float:
    """Mean distance of stated from true shares, over ten bins of equally many samples.

    (Naeini et al., AAAI 2015, with bins of equal mass.)

    Args:
        probability: (n,) stated.
        truth: (n,) what holds.
    """
    order = np.argsort(probability, kind="stable")
    bins = [part for part in np.array_split(order, min(BINS, len(order))) if len(part)]
    gaps = [abs(probability[part].mean() - truth[part].mean()) * len(part) for part in bins]
    return float(sum(gaps) / len(order))


def auc(margins: Values, truth: Flags) -> float | None:
    """Area under the ROC curve; None where one side is missing."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, margins)) if 0 < truth.sum() < len(truth) else None


def _fit(method: str, margins: Values, truth: Flags) -> Any:
    """A function from margins to probabilities."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if method == "isotonic":
        model = IsotonicRegression(y_min=0.001, y_max=0.999, increasing=True, out_of_bounds="clip")
        return model.fit(margins, truth.astype(float)).predict
    # Platt's own targets, pulled in from 0 and 1 (1999), so that a clean split stays finite.
    yes, no = int(truth.sum()), int((~truth).sum())
    high, low = (yes + 1) / (yes + 2), 1 / (no + 2)
    twice = np.concatenate([margins, margins])[:, None]
    target = np.repeat([1, 0], len(margins))
    share = np.where(truth, high, low)
    line = LogisticRegression(C=1e6).fit(twice, target, np.concatenate([share, 1 - share]))
    slope, intercept = float(line.coef_[0, 0]), float(line.intercept_[0])
    return lambda values: sigmoid(slope * values + intercept)


def _held_out(method: str, margins: Values, truth: Flags) -> Values:
    """Each labelled sample's probability, from a fit in which it had no say."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    held_out = np.empty(len(margins))
    for fit, test in folds.split(margins[:, None], truth):
        held_out[test] = _fit(method, margins[fit], truth[fit])(margins[test])
    return held_out
