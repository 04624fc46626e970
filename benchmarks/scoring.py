"""Time and memory of scoring a large dataset.

    python -m benchmarks.scoring [--samples 10000] [--clip.model print]

Draws a dataset (engravings in some variation, one in twenty a copy of another, one in ten a page
of text), scores it in a process of its own as flows.score does but without Prefect, and prints
for each stage its seconds and the largest memory of the process (resident size) beside that of the
model alone, and the size of the report. Everything after --samples is taken for settings.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from flows.command import CommandLine, parse_as, tree_of
from flows.score import open_dataset
from models.clip.engine import ClipEngine
from models.score import ScoreSettings
from tasks import session
from tasks.package import package
from tasks.score.run import Scoring
from tasks.storage import Storage
from tests.resources.make_dataset import jpeg, make_dataset
from tests.resources.scan_subjects import Studio
from tests.tasks.detect.drawn import text_page

SHAPES = ("tall", "square", "wide")
VARIANTS = 12
"""Pictures drawn of each subject; all others are cut from these, turned and flipped."""
PAGES = 200
"""Samples of a volume."""


class Command(ScoreSettings, CommandLine):
    """The settings to measure."""

    model_config = CommandLine.model_config


def main() -> None:
    """Draw the dataset, then measure in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments, rest = parser.parse_known_args()
    if arguments.measure:
        measure(["--dataset", arguments.measure, *rest])
        return
    with tempfile.TemporaryDirectory() as folder:
        make_dataset(Storage(folder), pictures(arguments.samples))
        command = [sys.executable, "-m", "benchmarks.scoring", "--measure", folder, *rest]
        subprocess.run(command, check=True)


def pictures(count: int) -> Iterator[tuple[str, bytes]]:
    """Names and files of the samples."""
    rng = np.random.default_rng(1885)
    studio = Studio(1885, VARIANTS)
    last = b""
    for number in range(count):
        name = f"volume-{1850 + number // PAGES}/p{number % PAGES + 1:04d}-1.jpg"
        if number % 20 != 19:
            last = jpeg(vary(255 - studio.picture(SHAPES[number % 3], 1885).ink, rng))
        if number % 10 == 5:
            last = jpeg(text_page(number))
        yield name, last


def vary(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Another picture of the same make: a part, turned and flipped."""
    height, width = picture.shape
    part = rng.uniform(0.5, 0.9, 2)
    top, left = (rng.uniform(0, 1 - part) * (height, width)).astype(int)
    cut = picture[top : top + int(part[0] * height), left : left + int(part[1] * width)]
    cut = np.rot90(cut, int(rng.integers(4)))[:: rng.choice([1, -1])]
    scale = 900 / max(cut.shape)
    return cv2.resize(np.ascontiguousarray(cut), None, fx=scale, fy=scale)


def measure(arguments: list[str]) -> None:
    """Score a dataset and print what each stage takes."""
    settings = tree_of(parse_as(Command, "benchmarks.scoring", "", arguments), ScoreSettings)
    begun = time.perf_counter()
    with ClipEngine(settings.clip) as clip:
        clip.embed_texts(["an engraving"])
        blank = jpeg(np.full((64, 64), 255, np.uint8))
        list(clip.embed_images([(str(i), lambda: blank) for i in range(2 * clip.batch_size)]))
        tell(f"the model alone ({clip.name})", begun)
    run = open_dataset(settings.dataset)
    scoring = Scoring(run, settings)
    stages = {
        "measure": scoring.look,
        "embed": scoring.embed,
        "judge": scoring.judge,
        "write": scoring.write,
        "package": lambda: package(run),
        "report": scoring.report,
    }
    for name, stage in stages.items():
        begun = time.perf_counter()
        stage()
        tell(name, begun)
    workers = run.pool.peak_worker_bytes
    session.end()
    report = Path(settings.dataset) / "report"
    sizes = {path: path.stat().st_size for path in report.rglob("*") if path.is_file()}
    print(f"a worker at most     {workers / 1e6:8.0f} MB")
    print(f"report: {sum(sizes.values()) / 1e6:.0f} MB, data.js "
          f"{sizes[report / 'data.js'] / 1e6:.1f} MB")  # fmt: skip
    verdict = scoring.verdict
    print(f"{verdict.samples} samples, {verdict.kept} kept, dropped {verdict.dropped}")


def tell(stage: str, begun: float) -> None:
    """Print a line of the table."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{stage:20s} {time.perf_counter() - begun:8.1f} s  {peak:8.0f} MB", flush=True)


if __name__ == "__main__":
    main()
