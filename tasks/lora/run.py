"""A training as a Prefect task: ours, or another project's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack

from prefect import task

from models.errors import StorageRefused
from models.handoff import Bundle, BundleSample
from models.train import Trained, TrainSettings
from tasks.captions.text import tidy
from tasks.handoff.bundle import SIDECARS, read_bundle
from tasks.lock import locked
from tasks.lora.launch import Launch
from tasks.lora.train import Training
from tasks.progress import Progress
from tasks.retry import RETRIED
from tasks.storage import Storage

SHORT = 16
"""Bytes of a caption's file below which it may be empty."""
logger = logging.getLogger("intaglio.train")


def begin(settings: TrainSettings) -> Training | Launch:
    """Everything that can be found wrong before anything is written.

    Raises:
        BadSettings: Bundle, base model or machine will not do.
        TrainerMissing: The trainer or a library is not installed.
    """
    return _begin(settings, *read_bundle(Storage(settings.bundle)))


def _begin(
    settings: TrainSettings, bundle: Bundle, samples: Sequence[BundleSample]
) -> Training | Launch:
    if settings.by == "launch":
        return Launch(settings, bundle)
    return Training(settings, bundle, samples, Progress())


def train(settings: TrainSettings) -> Trained | None:
    """Train; what another trainer made is not looked at, and None.

    Raises:
        StopRun: See :func:`begin`; or the training failed half-way and is resumable.
    """
    place = Storage(settings.bundle)
    bundle, samples = read_bundle(place)
    ready = _begin(settings, bundle, samples)
    _warn_of_empty(place, bundle, samples, settings.by)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(ready.output))
        except StorageRefused as error:
            raise StorageRefused(error.message, ready.elsewhere) from error
        if isinstance(ready, Training):
            return ready.run()
        logger.info("%s", ready.command)
        ready.run(logger.info)
        return None


def _warn_of_empty(
    place: Storage, bundle: Bundle, samples: Sequence[BundleSample], by: str
) -> None:
    """Say which captions somebody has emptied, and what is made of that."""
    if bundle.trainer not in SIDECARS:
        return
    sizes = place.names(bundle.images)
    names = [f"{bundle.images}/{sample.stem}.txt" for sample in samples]
    # A byte order mark and the end of a line are no caption.
    short = [name for name in names if sizes.get(name, SHORT) < SHORT]
    empty = [name for name in short if not tidy(place.read(name).decode("utf-8-sig", "replace"))]
    if empty:
        used = {
            "builtin": "the captions that the hand-off wrote are trained on",
            "launch": "the trainer trains without a caption there",
        }
        logger.warning(
            "%s captions are empty, %s for one: %s. Write them, or run flows.handoff again to have "
            "them written.",
            f"{len(empty):,}",
            place.path(empty[0]),
            used[by],
        )


@task(name="train", **RETRIED)
def train_task(settings: TrainSettings) -> Trained | None:
    """Train a LoRA; see :func:`train`."""
    return train(settings)
