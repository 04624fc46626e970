"""Datasets of drawn pictures, and a model to judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from flows.score import open_dataset
from models.score import ScoreSettings
from tasks import session
from tasks.score.run import Scoring
from tasks.storage import Storage
from tests.resources.make_dataset import jpeg
from tests.tasks.drawn_print import hatched, scene

Score = Callable[..., Scoring]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ``--clip.pretrained`` takes."""
    pytest.importorskip("open_clip")
    from tests.resources.tiny_clip import make_model

    return make_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def score(model: str) -> Iterator[Score]:
    """Score a dataset to its end, without Prefect."""

    def run(output: str, **settings: object) -> Scoring:
        settings.setdefault("purity", {"threshold": 0})
        settings.setdefault("clip", {"pretrained": model})
        chosen = ScoreSettings(dataset=output, **settings)
        scoring = Scoring(open_dataset(output), chosen)
        for stage in (scoring.look, scoring.embed, scoring.judge, scoring.write, scoring.report):
            stage()
        return scoring

    yield run
    session.end()


def drawing(seed: int) -> np.ndarray:
    """One of many pictures that are not alike: soft shapes, hatched."""
    lines = hatched((30.0 + 20 * (seed % 5),), 7.0)
    return np.minimum(scene(seed=seed), np.maximum(lines, scene(seed=seed + 1000) // 2))


def files(count: int) -> dict[str, bytes]:
    """Names and bytes of so many pictures, ten a volume."""
    return {
        f"paper-{1880 + n // 10}/p{n % 10 + 1:04d}-1.jpg": jpeg(drawing(n)) for n in range(count)
    }


def places(output: str) -> dict[str, list[str]]:
    """Names of the sample files that stay, and of those that lie aside."""
    storage = Storage(output)
    return {folder: sorted(storage.names(folder)) for folder in ("images", "dropped")}
