r"""Train a CLIP model on image-text pairs with open_clip's own trainer.

python -m flows.finetune --source pairs.tsv --output trained/ --model ViT-B-32-256 \
    --pretrained datacomp_s34b_b86k --training.learning-rate 1e-5
python -m flows.finetune --source 's3://bucket/train-{00000..00099}.tar' --train-samples 100000 \
    --validation 's3://bucket/val-{00000..00003}.tar' --output trained/
python -m flows.finetune --source labelled/ --output trained/ --prints.folds 4

OUT gets model/ (weights, configuration: use it with --clip.pretrained local-dir:OUT/model), pairs/,
logs/ and trainer.log; with folds, figures.json: what models like this found on works they had not
seen. After each epoch the model is validated; the best is kept, and five epochs without gain end
the training. Running the same command again goes on from the last epoch.

Exit codes: 0 done, 2 bad usage or settings, 3 stopped and resumable (disk low, output in use, the
trainer failed), 130 interrupted and resumable.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from prefect import flow, get_run_logger
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.command import CommandLine, parse_as, run_command, start_prefect, tree_of
from models.errors import ExitCode, StopRun
from models.finetune import FinetuneSettings, Outcome
from tasks.finetune.run import MODEL, cross_validate_task, fit_task, load_task, remember
from tasks.finetune.source import check, is_prints
from tasks.lock import locked
from tasks.storage import Storage


class Command(FinetuneSettings, CommandLine):
    """The settings of ``python -m flows.finetune``."""

    model_config = CommandLine.model_config


@flow(name="finetune", persist_result=False)
def finetune(settings: FinetuneSettings) -> Outcome:
    """Train a CLIP model on image-text pairs."""
    try:
        return run_finetune(settings)
    except StopRun as error:
        get_run_logger().error("%s %s", error.message, error.cure)
        raise


def run_finetune(settings: FinetuneSettings) -> Outcome:
    """The stages in their order."""
    check(settings)
    output = Storage(settings.output)
    with ExitStack() as stack:
        if not settings.cluster.node_rank:
            stack.enter_context(locked(output))
            remember(settings, output)
        prints = load_task(settings) if is_prints(settings.source) else None
        figures = None
        if prints is not None and settings.prints.folds:
            figures = cross_validate_task(settings, output, prints)
        pairs, trained = fit_task(settings, output, prints)
    return Outcome(pairs=pairs, trained=trained, figures=figures)


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.finetune``."""
    command = parse_as(Command, "python -m flows.finetune", __doc__ or "", arguments)
    settings = tree_of(command, FinetuneSettings)
    check(settings)
    start_prefect()
    outcome = finetune(settings)
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, value in rows(settings, outcome):
        table.add_row(f"[bold]{name}[/bold]", escape(value))
    Console().print(table)
    return ExitCode.OK


def rows(settings: FinetuneSettings, outcome: Outcome) -> list[tuple[str, str]]:
    """What a training came to, as names and words."""
    pairs, trained, figures = outcome.pairs, outcome.trained, outcome.figures
    found = [("pairs", f"{pairs.train_count:,} to train on, {pairs.val_count:,} to validate on")]
    if pairs.left_out:
        found.append(("left out", f"{pairs.left_out:,}: see pairs/left-out.txt"))
    if figures:
        interval = f"{figures.auc_low:.3f} to {figures.auc_high:.3f}"
        what = f"{figures.prints:,} prints of {figures.works} works"
        found.append(("AUC", f"{figures.auc:.3f} ({interval}): pictures against text, {what}"))
    if trained and trained.epochs:
        early = ", stopped for want of gain" if trained.stopped_early else ""
        found.append(("epochs", f"{trained.epochs}, best {trained.best_epoch}{early}"))
        found.append(("model", Storage(settings.output).path(MODEL)))
    return found


if __name__ == "__main__":
    sys.exit(run_command(main))
