"""Image-text pairs from prints: kinds in fixed shares, works before pictures, no two alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image

from tasks.finetune.degrade import Colour, scan, window
from tasks.finetune.kinds import KINDS, PrintKind, caption
from tasks.finetune.pairs import Pair
from tasks.finetune.prints import Print

WEIGHTS: dict[PrintKind, float] = {
    "wood engraving": 2.5,
    "line engraving": 1.5,
    "printed text": 2.5,
    "blank paper": 0.7,
    "handwriting": 0.7,
    "stamp": 0.7,
}
"""How often a kind is drawn; 1 if not named. What archives are made of comes more often."""


def sample_pairs(prints: Sequence[Print], count: int, seed: int) -> list[Pair]:
    """Draw pairs: a kind, then a work, then a picture of it, cut and scanned at chance.

    Works are drawn before pictures, so that long books do not count more.

    Args:
        prints: What there is.
        count: How many pairs.
        seed: The same seed draws the same pairs.
    """
    by_kind: dict[PrintKind, dict[str, list[Print]]] = {}
    for each in prints:
        by_kind.setdefault(each.kind, {}).setdefault(each.work, []).append(each)
    present = [kind for kind in KINDS if kind in by_kind]
    weights = np.array([WEIGHTS.get(kind, 1.0) for kind in present])
    pairs = []
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        works = by_kind[present[int(rng.choice(len(present), p=weights / weights.sum()))]]
        work = list(works)[int(rng.integers(len(works)))]
        chosen = works[work][int(rng.integers(len(works[work])))]
        text = caption(chosen.kind, rng)
        pairs.append(Pair(f"{chosen.kind} {index}", text, work, _scanned(chosen, seed, index)))
    return pairs


def _scanned(chosen: Print, seed: int, index: int) -> Callable[[], Image.Image]:
    return lambda: Image.fromarray(show(chosen, np.random.default_rng([seed, index, 1])))


def show(chosen: Print, rng: np.random.Generator) -> Colour:
    """A print as a crop of some scan might show it."""
    picture = chosen.gray
    draw = rng.random()
    if draw < 0.35 and not chosen.whole:
        picture = window(picture, rng, 0.5)
    elif draw < 0.6:
        picture = _with_margin(picture, rng)
    return scan(picture, rng)


def _with_margin(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some paper left around, as a crop has it."""
    top, bottom, left, right = (
        int(rng.uniform(0, 0.15) * side) for side in np.repeat(picture.shape, 2)
    )
    paper = int(np.percentile(np.r_[picture[0], picture[-1]], 75))
    return np.pad(picture, ((top, bottom), (left, right)), constant_values=paper)
