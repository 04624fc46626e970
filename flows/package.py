"""Pack a dataset again: the samples that were not dropped, and the manifest of just them.

python -m flows.package --dataset dataset/

Writes dataset.zip, the same bytes every time for the same samples; where it is packed already,
nothing is done. flows.extract and flows.score pack by themselves: this is for afterwards, say when
dropped.jsonl was edited by hand (a line removed brings its sample back).

Exit codes: 0 packed, 2 bad usage or no finished dataset, 3 stopped (disk low, storage gone, dataset
in use), 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys

from humanize import naturalsize

from flows.command import run_command
from flows.score import open_dataset
from models.errors import ExitCode
from tasks import session
from tasks.package import DATASET, package


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.package``."""
    parser = argparse.ArgumentParser(
        "python -m flows.package",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dataset", required=True, help="folder or fsspec URL of the dataset")
    given = parser.parse_args(arguments)
    try:
        run = open_dataset(given.dataset)
        size = package(run)
        print(f"{run.output.path(DATASET)}: {naturalsize(size)}")
    finally:
        session.end()
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(run_command(main))
