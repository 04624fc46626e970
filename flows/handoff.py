"""Hand a dataset over to LoRA trainers: captions, buckets, and a bundle for each trainer.

python -m flows.handoff --dataset dataset/ --dry-run
python -m flows.handoff --dataset dataset/ --captions.trigger intaglio --zip
python -m flows.handoff --dataset dataset/ --captions.by template --captions.by page

DATASET gets captions.csv (edit it, and run again: what you edited stays) and bundles/ with a
folder for each trainer that it takes as it is: run train.sh in it, or python -m flows.train
--bundle FOLDER. Pictures are linked where that serves. bundles/preflight.json, .csv and .png say
which buckets each trainer makes of the dataset, what it would enlarge or cut off, and how many
steps an epoch has; --dry-run shows that and writes nothing.

Exit codes: 0 done, 2 bad usage or settings, or no finished dataset, 3 stopped (disk low, storage
gone, dataset in use), 4 the dataset is empty, 130 interrupted.
"""

from __future__ import annotations

import sys

from prefect import flow, get_run_logger
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.command import CommandLine, parse_as, printable, run_command, start_prefect, tree_of
from models.errors import ExitCode, StopRun
from models.handoff import Bundle, HandoffSettings, Preflight
from tasks.dataset import settle
from tasks.handoff.preflight import preflight
from tasks.handoff.run import (
    bundle_task,
    captions_task,
    open_dataset,
    preflight_task,
    write_all_captions,
)
from tasks.handoff.words import rows
from tasks.lock import locked
from tasks.progress import Progress
from tasks.storage import Storage

SHOWN = 5
"""Captions shown by --dry-run."""


class Command(HandoffSettings, CommandLine):
    """The settings of ``python -m flows.handoff``."""

    model_config = CommandLine.model_config


@flow(name="handoff", persist_result=False)
def handoff(settings: HandoffSettings) -> list[Bundle]:
    """Make a bundle for each trainer."""
    try:
        dataset = Storage(settings.dataset)
        with locked(dataset):
            # A scoring may have been killed while it moved files.
            settle(dataset)
            _, samples = open_dataset(settings)
            captions = captions_task(settings, samples)
            preflight_task(settings, dataset, samples, captions)
            return [
                bundle_task(settings, dataset, samples, captions, name)
                for name in settings.trainers
            ]
    except StopRun as error:
        get_run_logger().error("%s %s", error.message, error.cure)
        raise


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.handoff``."""
    command = parse_as(Command, "python -m flows.handoff", __doc__ or "", arguments)
    settings = tree_of(command, HandoffSettings)
    # No dataset is said before Prefect starts.
    dataset, samples = open_dataset(settings)
    if settings.dry_run:
        captions = write_all_captions(settings, dataset, samples, Progress())
        found = preflight(settings.plan, settings.trainers, samples, captions)
        show(found)
        for name, caption in list(captions.items())[:SHOWN]:
            print(printable(f"{name}: {caption.text} ({caption.tokens} tokens, {caption.source})"))
        return ExitCode.OK
    start_prefect()
    bundles = handoff(settings)
    found = Preflight.model_validate_json(Storage(settings.place).read("preflight.json"))
    show(found)
    print(f"{len(bundles)} bundles in {settings.place}; on a machine with a GPU:")
    print(f"  python -m flows.train --bundle {settings.place}/{bundles[0].trainer}")
    return ExitCode.OK


def show(found: Preflight) -> None:
    """Print the buckets as a table, and what to think about."""
    head, *lines = rows(found)
    table = Table(*head, box=None, padding=(0, 1))
    for line in lines:
        table.add_row(*line)
    console = Console()
    console.print(f"{found.samples:,} samples, {found.batch_size} a batch")
    console.print(table)
    for warning in found.warnings:
        console.print(escape(warning))


if __name__ == "__main__":
    sys.exit(run_command(main))
