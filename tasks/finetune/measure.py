"""How well a model tells the kinds of print apart, on works it has not seen."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image

from models.clip.engine import ClipEngine
from models.errors import InputFault
from models.finetune import Judged, KindFigures, PrintFigures
from tasks.finetune.kinds import ILLUSTRATIONS, KINDS, NOT_PICTURES, prompts
from tasks.finetune.prints import Print

ROUNDS = 1000
"""Of the bootstrap."""


def judge(engine: ClipEngine, prints: Sequence[Print]) -> list[Judged]:
    """Let a model look at prints of works that it has not seen."""
    classes = engine.embed_prompts({kind: prompts(kind) for kind in KINDS})
    images = ((str(index), _png(each)) for index, each in enumerate(prints))
    judged = []
    for (_, vector), each in zip(engine.embed_images(images), prints, strict=True):
        assert not isinstance(vector, InputFault), vector
        logits = (engine.logit_scale * (classes @ vector)).tolist()
        judged.append(Judged(kind=each.kind, work=each.work, drawn=each.drawn, logits=logits))
    return judged


def measure(judged: Sequence[Judged], seed: int = 0) -> PrintFigures:
    """The figures of a cross-validation, real prints apart from drawn ones.

    The interval is that of a bootstrap over works, 2.5 to 97.5 %.
    """
    kinds = []
    for drawn in (False, True):
        for kind in KINDS:
            own = [each for each in judged if each.kind == kind and each.drawn == drawn]
            if own:
                right = sum(KINDS[int(np.argmax(each.logits))] == kind for each in own)
                side = sum((_margin(each) > 0) == (kind in ILLUSTRATIONS) for each in own)
                kinds.append(
                    KindFigures(
                        kind=kind,
                        drawn=drawn,
                        prints=len(own),
                        works=len({each.work for each in own}),
                        right=right / len(own),
                        right_side=side / len(own),
                    )
                )
    against = [
        each
        for each in judged
        if (each.kind in ILLUSTRATIONS and not each.drawn)
        or (each.kind in NOT_PICTURES and (not each.drawn or each.kind == "cover or binding"))
    ]
    low, high = _interval(against, np.random.default_rng(seed))
    return PrintFigures(
        auc=_auc(against),
        auc_by_work=_auc(against, by_work=True),
        auc_low=low,
        auc_high=high,
        prints=len(against),
        works=len({each.work for each in against}),
        kinds=kinds,
    )


def _auc(judged: Sequence[Judged], by_work: bool = False) -> float:
    """Area under the ROC curve; of prints, or with the prints of a work sharing one weight."""
    from sklearn.metrics import roc_auc_score

    truth = [each.kind in ILLUSTRATIONS for each in judged]
    shares = Counter((each.work, side) for each, side in zip(judged, truth, strict=True))
    weights = [
        1 / shares[each.work, side] if by_work else 1.0
        for each, side in zip(judged, truth, strict=True)
    ]
    return float(roc_auc_score(truth, [_margin(each) for each in judged], sample_weight=weights))


def _margin(judged: Judged) -> float:
    """Log-odds of any kind of illustration against anything else, as scoring has it."""
    count = len(ILLUSTRATIONS)
    wanted, other = judged.logits[:count], judged.logits[count:]
    return float(np.logaddexp.reduce(wanted) - np.logaddexp.reduce(other))


def _interval(judged: Sequence[Judged], rng: np.random.Generator) -> tuple[float, float]:
    by_work: dict[str, list[Judged]] = {}
    for each in judged:
        by_work.setdefault(each.work, []).append(each)
    groups = list(by_work.values())
    found = []
    for _ in range(ROUNDS):
        drawn = [
            each for index in rng.integers(0, len(groups), len(groups)) for each in groups[index]
        ]
        if len({each.kind in ILLUSTRATIONS for each in drawn}) == 2:
            found.append(_auc(drawn))
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def _png(each: Print) -> Callable[[], bytes]:
    def data() -> bytes:
        stream = io.BytesIO()
        Image.fromarray(each.gray).save(stream, "PNG", compress_level=1)
        return stream.getvalue()

    return data
