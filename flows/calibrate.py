"""Look at a sample of your own pages: what would be kept, and which threshold suits them.

python -m flows.calibrate --source scans/ --output dataset/
python -m flows.calibrate --source scans/ --output dataset/ --sample 400
python -m flows.calibrate --source scans/ --output dataset/ --labels labels.csv

OUT gets calibration/index.html (open it in a browser: pages with their boxes, uncertain ones first,
a histogram and a suggested threshold for each method), calibration.json (the same as data) and
labels.csv. Say in its column "label" what you see on the pages (text, mixed, illustration, blank or
other), by hand or with the keys in the sheet, and give it back with --labels: then precision and
recall are measured, and calibration/training/ is a folder that tasks.detect.train takes, with the
boxes that were found: correct them there, later runs do not change them. Nothing else in OUT is
touched, and a run of flows.extract with the same output need not read the PDFs again.

All settings of flows.extract can be given; those of read, triage, regions and run matter.

Exit codes: 0 done, 2 bad usage, settings or labels, 3 stopped (disk low, storage gone, output in
use), 4 nothing usable in SRC, 130 interrupted.
"""

from __future__ import annotations

import sys

from prefect import flow
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.command import ExtractionLine, parse_as, run_command, start_prefect, tree_of
from flows.extract import count_pages
from models.calibrate import CalibrateSettings, Calibration
from models.errors import ExitCode
from tasks import session
from tasks.calibrate.run import (
    FOLDER,
    draw_task,
    look_task,
    read_labels,
    read_training,
    write_task,
)
from tasks.calibrate.words import rows
from tasks.discover import discover, discover_task


class Command(CalibrateSettings, ExtractionLine):
    """The settings of ``python -m flows.calibrate``."""

    model_config = ExtractionLine.model_config


@flow(name="calibrate", persist_result=False)
def calibrate(settings: CalibrateSettings) -> Calibration:
    """Show on a sample of an archive's pages what would be kept."""
    try:
        run = session.begin(settings)
        run.check_space()
        archive = discover_task()
        count_pages(settings, archive)
        pages = draw_task(archive, settings)
        seen = look_task(archive, pages)
        return write_task(archive, settings, seen)
    finally:
        session.end()


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.calibrate``."""
    command = parse_as(Command, "python -m flows.calibrate", __doc__ or "", arguments)
    settings = tree_of(command, CalibrateSettings)
    try:
        # The output is held from here to the end of the flow, which takes this session over.
        run = session.begin(settings)
        # Bad labels and tables are said before Prefect starts.
        archive = discover(run)
        count_pages(settings, archive)
        read_labels(settings, run.output, archive)
        read_training(run.output)
        sheet = run.output.path(f"{FOLDER}/index.html")
        start_prefect()
        result = calibrate(settings)
    finally:
        session.end()
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, value in [*rows(result), ("look at", sheet)]:
        table.add_row(f"[bold]{name}[/bold]", escape(value))
    Console().print(table)
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(run_command(main))
