"""Train an SDXL LoRA on a bundle, here or with the trainer the bundle was made for.

python -m flows.train --bundle dataset/bundles/kohya
python -m flows.train --bundle dataset/bundles/kohya --by launch --home ~/sd-scripts

builtin trains here, on any bundle with a folder of pictures. It writes lora-diffusers.safetensors
and lora-kohya.safetensors, sample images, training.json and TensorBoard's logs to --output, by
default a folder of its own in BUNDLE/output/, and to MLflow if there is one. Run again after an
interruption, it goes on from its last checkpoint, to the same weights. The defaults fit a GPU of
16 GB; docs/train.md explains them.

launch runs another project's trainer with the bundle, shows the command and what it prints, and
ends as it ends; the LoRA goes to BUNDLE/output/. Run again, it goes on from the trainer's own last
checkpoint.

Exit codes: 0 done, 2 bad usage or settings, a missing trainer, no GPU, 3 stopped and resumable (the
trainer failed, a loss that is no number, disk full, output in use), 130 interrupted and resumable.
"""

from __future__ import annotations

import sys

from prefect import flow, get_run_logger
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.command import CommandLine, parse_as, run_command, start_prefect, tree_of
from models.errors import ExitCode, StopRun
from models.train import Trained, TrainSettings
from tasks.lora.launch import Launch
from tasks.lora.run import begin, train_task


class Command(TrainSettings, CommandLine):
    """The settings of ``python -m flows.train``."""

    model_config = CommandLine.model_config


@flow(name="train", persist_result=False)
def train(settings: TrainSettings) -> Trained | None:
    """Train a LoRA; what another trainer made is not looked at, and None."""
    try:
        return train_task(settings)
    except StopRun as error:
        get_run_logger().error("%s %s", error.message, error.cure)
        raise


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.train``."""
    command = parse_as(Command, "python -m flows.train", __doc__ or "", arguments)
    settings = tree_of(command, TrainSettings)
    # What cannot work is said before Prefect starts.
    ready = begin(settings)
    start_prefect()
    trained = train(settings)
    if trained is None or isinstance(ready, Launch):
        return ExitCode.OK
    place = ready.output.url
    table = Table(show_header=False, box=None, padding=(0, 2))
    ends = {
        "steps": "all steps done",
        "epochs": "all epochs done",
        "flat": "validation loss no longer falls",
    }
    for name, value in (
        ("steps", f"{trained.steps:,} ({trained.epochs:g} epochs), {ends[trained.ended]}"),
        ("loss", f"{trained.loss_first:.4f} at first, {trained.loss_last:.4f} at last"),
        ("LoRA", f"{place}/{trained.diffusers}"),
        ("", f"{place}/{trained.kohya}"),
    ):
        table.add_row(f"[bold]{name}[/bold]", escape(value))
    Console().print(table)
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(run_command(main))
