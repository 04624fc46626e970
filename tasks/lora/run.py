"""A training as a Prefect task: ours, or another project's."""

from __future__ import annotations

import logging

from prefect import task

from models.train import Trained, TrainSettings
from tasks.handoff.bundle import read_bundle
from tasks.lock import locked
from tasks.lora.launch import Launch
from tasks.lora.train import Training
from tasks.progress import Progress
from tasks.retry import RETRIED
from tasks.storage import Storage

logger = logging.getLogger("intaglio.train")


def begin(settings: TrainSettings) -> Training | Launch:
    """Everything that can be found wrong before anything is written.

    Raises:
        BadSettings: Bundle, base model or machine will not do.
        TrainerMissing: The trainer or a library is not installed.
    """
    bundle, samples = read_bundle(Storage(settings.bundle))
    if settings.by == "launch":
        return Launch(settings, bundle)
    return Training(settings, bundle, samples, Progress())


def train(settings: TrainSettings) -> Trained | None:
    """Train; what another trainer made is not looked at, and None.

    Raises:
        StopRun: See :func:`begin`; or the training failed half-way and is resumable.
    """
    ready = begin(settings)
    if isinstance(ready, Launch):
        logger.info("%s", ready.command)
        ready.run(logger.info)
        return None
    with locked(ready.output):
        return ready.run()


@task(name="train", **RETRIED)
def train_task(settings: TrainSettings) -> Trained | None:
    """Train a LoRA; see :func:`train`."""
    return train(settings)
