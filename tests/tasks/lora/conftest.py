"""A small bundle, and a training of a tiny SDXL on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.train import Trained, TrainSettings
from tasks.handoff.bundle import read_bundle
from tasks.lora.train import Training
from tasks.progress import Progress
from tasks.storage import Storage
from tests.tasks.handoff.conftest import hand_over_all, make_dataset

SIZES = ((64, 64), (96, 64), (64, 64), (64, 96), (64, 64), (100, 70), (64, 64))
PLAN = {
    "resolution": 64,
    "step": 32,
    "steps": 16,
    "batch_size": 2,
    "rank": 4,
    "alpha": 8,
    "learning_rate": 3e-3,
}
LORA = {
    "allow_cpu": True,
    "checkpoint_every": 4,
    "validate_every": 8,
    "validation_share": 0.2,
    "images_every": 0,
    "image_steps": 2,
}
Begin = Callable[..., Training]


@pytest.fixture(scope="session")
def bundle(tiny_sdxl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of 64-pixel pictures for the tiny SDXL."""
    dataset = make_dataset(tmp_path_factory.mktemp("small"), sizes=SIZES)
    plan = {**PLAN, "base_model": str(tiny_sdxl)}
    return hand_over_all(dataset, trainers=["kohya", "ai-toolkit", "webdataset"], plan=plan)


@pytest.fixture(scope="session")
def begin(bundle: Path) -> Begin:
    """Begin a training; it writes nothing before it is run."""

    def make(output: Path, trainer: str = "kohya", tracking_uri: str = "", **lora: Any) -> Training:
        settings = TrainSettings(
            bundle=str(bundle / trainer),
            output=str(output),
            lora={**LORA, **lora},
            tracking_uri=tracking_uri,
        )
        record, samples = read_bundle(Storage(settings.bundle))
        return Training(settings, record, samples, Progress())

    return make


@pytest.fixture(scope="session")
def trained(begin: Begin, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """An undisturbed training, read only: its output and what came of it."""
    output = tmp_path_factory.mktemp("undisturbed") / "lora"
    return output, begin(output).run()
