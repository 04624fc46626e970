"""The stages of a hand-off: captions, buckets, a bundle for each trainer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from prefect import task
from prefect.artifacts import create_markdown_artifact

from models.errors import BadSettings, DiskLow, NothingUsable
from models.handoff import Bundle, Caption, HandoffSettings, Preflight, TrainerName
from models.records import Sample
from tasks.captions.show import show_captions
from tasks.captions.table import write_captions
from tasks.captions.write import write_all
from tasks.dataset import MANIFEST, read_samples
from tasks.handoff.bundle import (
    FOLDERS,
    adopt_edits,
    check,
    make_bundle,
    read_edits,
    stale_bundles,
    while_ours,
)
from tasks.handoff.place import name_samples, one_filesystem
from tasks.handoff.plot import plot
from tasks.handoff.preflight import preflight
from tasks.handoff.words import pictures, rows
from tasks.progress import Progress
from tasks.retry import RETRIED
from tasks.score.look import REPORT
from tasks.storage import Storage

logger = logging.getLogger("intaglio.handoff")
PREFLIGHT, PICTURES, PLOT = "preflight.json", "preflight.csv", "preflight.png"
COPIES: Mapping[TrainerName, int] = {"diffusers": 2}
"""Times the pictures are in a bundle, if more than once."""
SPARE = 100 * 1024 * 1024
"""Free bytes left over when all is written."""


def open_dataset(settings: HandoffSettings) -> tuple[Storage, list[Sample]]:
    """The dataset and its samples.

    Raises:
        BadSettings: There is no finished dataset.
        NothingUsable: It is empty.
    """
    dataset = Storage(settings.dataset)
    if dataset.size(MANIFEST) is None:
        raise BadSettings(
            f"dataset: {dataset.url} holds no finished dataset.",
            "Let python -m flows.extract end first.",
        )
    samples = list(read_samples(dataset))
    if not samples:
        raise NothingUsable(
            f"{dataset.url} has no samples.",
            "Look at pages.jsonl for why its pages were dropped, and at dropped.jsonl for what "
            "scoring took out.",
        )
    return dataset, samples


def write_all_captions(
    settings: HandoffSettings, dataset: Storage, samples: Sequence[Sample], progress: Progress
) -> dict[str, Caption]:
    """The captions as they are to be, edits taken over; nothing is written yet."""
    return write_all(settings, dataset, samples, read_edits(settings), progress)


def hand_over(
    settings: HandoffSettings,
    dataset: Storage,
    samples: Sequence[Sample],
    captions: Mapping[str, Caption],
    found: Preflight,
) -> None:
    """Write what all bundles share: the captions, also for the report, and the buckets.

    A warning names bundles that keep earlier captions, as they are not made anew.

    Raises:
        StopRun: A trainer cannot read a sample, or there is no room.
    """
    named = name_samples(samples, captions)
    check(settings.trainers, named)
    place = while_ours(Storage(settings.place), dataset)
    _check_space(settings, dataset, place, sum(sample.bytes for sample in samples))
    write_captions(dataset, captions)
    adopt_edits(settings, dataset)
    if stale := stale_bundles(settings, [sample.caption for sample in named]):
        logger.warning(
            "Bundles that were not asked for keep other captions than captions.csv has: %s. Name "
            "them in --trainers, too, to have them made anew.",
            ", ".join(stale),
        )
    if dataset.size(f"{REPORT}/index.html"):
        show_captions(dataset, captions)
    place.write(PREFLIGHT, found.model_dump_json(indent=1).encode())
    place.write(PICTURES, pictures(found).encode())
    place.write(PLOT, plot(found))


def _check_space(settings: HandoffSettings, dataset: Storage, place: Storage, size: int) -> None:
    free = place.free_bytes()
    linked = one_filesystem(dataset, place)
    copies = sum(
        COPIES.get(name, 1) * ((not linked or name == "webdataset") + settings.zip)
        for name in settings.trainers
    )
    needed = size * copies + SPARE
    if not linked and free is not None:
        ours = tuple(f"{name}/{folder}/" for name in settings.trainers for folder in FOLDERS)
        needed -= sum(n for name, n in place.names("").items() if name.startswith(ours))
    if free is not None and free < needed:
        raise DiskLow(
            f"Only {free >> 20} MB are free at {place.url}; {needed >> 20} MB are needed.",
            "Free some space, or name fewer --trainers.",
        )


@task(name="captions", **RETRIED)
def captions_task(settings: HandoffSettings, samples: list[Sample]) -> dict[str, Caption]:
    """Write the captions; see :func:`write_all_captions`."""
    return write_all_captions(settings, Storage(settings.dataset), samples, Progress())


@task(name="preflight", **RETRIED)
def preflight_task(
    settings: HandoffSettings,
    dataset: Storage,
    samples: list[Sample],
    captions: dict[str, Caption],
) -> Preflight:
    """Fill the buckets, and write them down with the captions; see :func:`hand_over`."""
    found = preflight(settings.plan, settings.trainers, samples, captions)
    hand_over(settings, dataset, samples, captions, found)
    head, *lines = rows(found)
    table = [head, ["---"] * len(head), *lines]
    text = "\n".join(f"| {' | '.join(row)} |" for row in table)
    text += "".join(f"\n\n{warning}" for warning in found.warnings)
    create_markdown_artifact(text, key="preflight", description="Buckets")
    return found


@task(name="bundle", task_run_name="bundle-{trainer}", **RETRIED)
def bundle_task(
    settings: HandoffSettings,
    dataset: Storage,
    samples: list[Sample],
    captions: dict[str, Caption],
    trainer: TrainerName,
) -> Bundle:
    """Make a trainer's bundle; see :func:`tasks.handoff.bundle.make_bundle`."""
    progress = Progress()
    named = name_samples(samples, captions)
    progress.start(len(named), trainer)
    bundle = make_bundle(settings, dataset, named, trainer, progress)
    progress.stop()
    return bundle
