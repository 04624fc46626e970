"""From embeddings to margins: how much better a sample fits what is wanted than anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.score.prompts import Prompts
from tasks.score.vectors import Vectors, blocks

NEAREST_EXAMPLES = 3
"""Examples a sample is compared with: the nearest ones, so that several kinds may be wanted."""
FEWEST_EXAMPLES = 3
"""Fewer examples say nothing of how unlike each other good samples may be."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Margins:
    """What a model thinks of samples.

    Attributes:
        margin: (n,) positive where a sample fits what is wanted better than anything else.
        wanted: (n) the positive class it fits best; empty where there are no classes.
        unwanted: (n) the negative class it fits best.
    """

    margin: Values
    wanted: list[str]
    unwanted: list[str]

    def scattered(self, places: Sequence[int], count: int) -> Margins:
        """The same among `count` samples, of which these stand at `places`."""
        margin = np.full(count, np.nan)
        wanted, unwanted = [""] * count, [""] * count
        for number, at in enumerate(places):
            margin[at] = self.margin[number]
            wanted[at], unwanted[at] = self.wanted[number], self.unwanted[number]
        return Margins(margin, wanted, unwanted)


def by_prompts(vectors: Vectors, classes: Vectors, prompts: Prompts, scale: float) -> Margins:
    """Compare samples with prompts.

    The margin is the log-odds of a positive against a negative class under the model's own softmax:
    the difference of the log-mean-exps of their logits, which are cosines times the model's scale
    (a bias, where a model has one, would cancel). Means, so that a side does not win by having more
    classes.

    Args:
        vectors: (n, dim) samples.
        classes: (classes, dim) in the order of :meth:`Prompts.ensembles`.
        prompts: The classes.
        scale: The model's ``logit_scale``.
    """
    positives, negatives = list(prompts.positive), list(prompts.negative)
    logits = (vectors @ classes.T).astype(np.float64) * scale
    good, bad = logits[:, : len(positives)], logits[:, len(positives) :]
    return Margins(
        margin=_log_mean(good) - _log_mean(bad),
        wanted=[positives[i] for i in good.argmax(axis=1)],
        unwanted=[negatives[i] for i in bad.argmax(axis=1)],
    )


def by_examples(vectors: Vectors, examples: Vectors) -> Margins:
    """Compare samples with pictures of what is wanted.

    A sample's figure is its mean cosine with its nearest examples; the examples' own, each
    compared with the others, say what is near enough. The margin is 0 at the lowest of these and
    1 at their median.

    Args:
        vectors: (n, dim) samples.
        examples: (m, dim), m at least `FEWEST_EXAMPLES`.
    """
    among = examples @ examples.T
    np.fill_diagonal(among, -1)
    own = _mean_of_nearest(among, min(NEAREST_EXAMPLES, len(examples) - 1))
    low, middle = float(own.min()), float(np.median(own))
    step = max(middle - low, 0.01)
    near = [_mean_of_nearest(rows @ examples.T, NEAREST_EXAMPLES) for _, rows in blocks(vectors)]
    figures = np.concatenate(near) if near else np.empty(0)
    nothing = [""] * len(vectors)
    return Margins((figures - low) / step, nothing, nothing)


def _mean_of_nearest(cosines: NDArray[np.float32], count: int) -> Values:
    nearest = np.partition(cosines, -count, axis=1)[:, -count:]
    return np.asarray(nearest.mean(axis=1), np.float64)


def _log_mean(logits: Values) -> Values:
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).mean(axis=1)))
