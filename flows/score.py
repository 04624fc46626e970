"""Judge how pure and how representative a dataset is, and drop what does not belong.

python -m flows.score --dataset dataset/
python -m flows.score --dataset dataset/ --clip.model print
python -m flows.score --dataset dataset/ --labels labels.csv --purity.threshold 0.7
python -m flows.score --dataset dataset/ --like examples/ --select 1000

The dataset is the --output of flows.extract. It gets report/index.html (open it in a browser),
verdict.json, scores.parquet (a row a sample), embeddings.npy with embeddings.txt (a file name a
row), and dropped.jsonl: samples that are no illustrations, mostly lettering, copies of others or
not selected move from images/ to dropped/, and come back when the settings change. dataset.zip is
packed again.

Running again scores only what is new or changed. Every setting can also stand in a YAML file
(--config) or in the environment (INTAGLIO_PURITY__THRESHOLD=0.7).

Exit codes: 0 done, 2 bad usage, settings or labels, or no finished dataset, 3 stopped and resumable
(disk low, storage gone, output in use, weights unreachable), 130 interrupted and resumable.
"""

from __future__ import annotations

import sys

from prefect import flow, get_run_logger
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.command import CommandLine, parse_as, run_command, start_prefect, tree_of
from models.clip.profile import check_place
from models.errors import BadSettings, ExitCode, StopRun
from models.score import ScoreSettings, Verdict
from models.settings import Settings
from tasks import session
from tasks.package import package_task
from tasks.score.look import REPORT
from tasks.score.run import (
    Scoring,
    check_libraries,
    embed_task,
    judge_task,
    look_task,
    report_task,
    write_task,
)
from tasks.score.words import rows
from tasks.session import Session
from tasks.storage import Storage
from tasks.verify import settings_of_last_run


class Command(ScoreSettings, CommandLine):
    """The settings of ``python -m flows.score``."""

    model_config = CommandLine.model_config


@flow(name="score", persist_result=False)
def score(settings: ScoreSettings) -> Verdict:
    """Judge with CLIP how pure and how representative a dataset is."""
    try:
        return run_score(Scoring(open_dataset(settings.dataset), settings))
    except StopRun as error:
        get_run_logger().error("%s %s", error.message, error.cure)
        raise
    finally:
        session.end()


def run_score(scoring: Scoring) -> Verdict:
    """The stages in their order."""
    look_task(scoring)
    embed_task(scoring)
    judge_task(scoring)
    write_task(scoring)
    package_task()
    return report_task(scoring)


def open_dataset(dataset: str) -> Session:
    """The session of a finished dataset, with the settings it was made with.

    Raises:
        BadSettings: There is no finished dataset.
        OutputInUse: Another run holds it.
    """
    try:
        last = settings_of_last_run(Storage(dataset))
    except (FileNotFoundError, ValueError) as error:
        raise BadSettings(
            f"dataset: {dataset} holds no finished dataset.",
            "Let python -m flows.extract end first.",
        ) from error
    return session.begin(Settings.model_validate({**last, "output": dataset}))


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.score``."""
    command = parse_as(Command, "python -m flows.score", __doc__ or "", arguments)
    settings = tree_of(command, ScoreSettings)
    check_libraries()
    if settings.clip.profile:
        check_place(settings.clip.profile)
    try:
        # The output is held from here to the end of the flow, which takes this session over; bad
        # prompts and labels are said before Prefect starts.
        run = open_dataset(settings.dataset)
        Scoring(run, settings)
        sheet = run.output.path(f"{REPORT}/index.html")
        start_prefect()
        verdict = score(settings)
    finally:
        session.end()
    print_verdict(verdict, sheet)
    return ExitCode.OK


def print_verdict(verdict: Verdict, sheet: str) -> None:
    """Print the end of a run."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, value in [*rows(verdict), ("look at", sheet)]:
        table.add_row(f"[bold]{name}[/bold]", escape(value))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(run_command(main))
