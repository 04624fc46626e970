"""Check that a dataset is what its records say, and mend it where it is not.

python -m flows.verify --output dataset/
python -m flows.verify --output dataset/ --repair

Reads every sample and compares it with its hash in the manifest; checks that every page of the
archive has its line in pages.jsonl, that the lists are those that were written, that dataset.zip
holds just these files, and that the contact sheet is there. --repair makes again what is missing or
wrong, with the settings of the last run; the source must be where it was, and passwords, which are
written nowhere, must be given once more (--password). If a PDF is missing,
it says which, and nothing is changed.

Exit codes: 0 all is well (or was mended), 1 something is wrong, 2 bad usage, no finished dataset or
(--repair) a PDF that is missing, 3 the storage cannot be read.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.markup import escape

from flows.command import run_command, start_prefect
from flows.extract import extract
from models.errors import BadSettings, ExitCode
from models.settings import Settings
from tasks import session
from tasks.progress import Progress
from tasks.repair import check_sources, not_made_again, repair
from tasks.storage import Storage
from tasks.verify import Problem, settings_of_last_run, verify

WRONG = 1
SHOWN = 20
"""Problems listed one by one; of more, the number is said."""


def main(arguments: list[str]) -> int:
    """The command ``python -m flows.verify``."""
    parser = argparse.ArgumentParser(
        "python -m flows.verify",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", required=True, help="folder or fsspec URL of the dataset")
    parser.add_argument("--repair", action="store_true", help="make again what is wrong")
    parser.add_argument(
        "--password",
        action="append",
        default=[],
        metavar="WORD",
        help="with --repair: to try on encrypted PDFs; may be repeated",
    )
    given = parser.parse_args(arguments)
    output = Storage(given.output)
    problems = check(output)
    show(problems)
    if not problems:
        return ExitCode.OK
    if not given.repair:
        print("Run again with --repair to make this again.", file=sys.stderr)
        return WRONG
    made_with = settings_of_last_run(output, given.password)
    settings = Settings.model_validate({**made_with, "output": given.output})
    try:
        run = session.begin(settings)
        check_sources(run, problems)
        repair(run.output, problems)
    finally:
        session.end()
    start_prefect()
    extract(settings)
    show(left := [*not_made_again(output, problems), *check(output)])
    return WRONG if left else ExitCode.OK


def check(output: Storage) -> list[Problem]:
    """What is wrong with a dataset.

    Raises:
        BadSettings: There is no finished dataset.
    """
    try:
        return verify(output, Progress())
    except FileNotFoundError as error:
        raise BadSettings(
            f"output: {output.url} holds no finished dataset.",
            "Let python -m flows.extract end first.",
        ) from error


def show(problems: list[Problem]) -> None:
    """Print what is wrong, or that nothing is."""
    console = Console()
    for problem in problems[:SHOWN]:
        console.print(f"[bold]{escape(problem.file_name)}[/bold] {escape(problem.what)}")
    if len(problems) > SHOWN:
        console.print(f"... and {len(problems) - SHOWN:,} more")
    if not problems:
        console.print("All is as the records say.")


if __name__ == "__main__":
    sys.exit(run_command(main))
