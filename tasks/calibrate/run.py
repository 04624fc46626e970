"""The stages of a calibration: draw the pages, look at them, write the sheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import groupby

from prefect import task
from prefect.artifacts import create_markdown_artifact

from models.calibrate import CalibrateSettings, Calibration, Label, SampledPage, SeenPage
from models.errors import BadSettings, InputFault
from models.records import Fault, Pdf
from tasks import session
from tasks.calibrate import page, sheet, training, words
from tasks.calibrate.judge import judge
from tasks.calibrate.labels import CURE, format_labels, parse_labels
from tasks.calibrate.sample import PageKey, draw
from tasks.detect.table import Row
from tasks.places import filesystem
from tasks.retry import RETRIED
from tasks.session import Job, Session
from tasks.storage import Storage, named_errors

FOLDER = "calibration"
LABELS = f"{FOLDER}/labels.csv"
TRAINING = f"{FOLDER}/training/labels.csv"
PICTURES = re.compile(rf"{FOLDER}/(pages|thumbnails)/[^/]+/\.?p\d{{4,}}\.jpg(\.partial)?")
"""Names of the sheet's pictures, and of what a killed run leaves of them."""


def read_labels(
    settings: CalibrateSettings, output: Storage, archive: list[Pdf]
) -> dict[PageKey, Label]:
    """All labels there are: those given, and those in the output's own ``labels.csv``.

    The latter count too, so that a form filled in where it lies is never overwritten by an empty
    one. Where both speak of a page, the file given wins.

    Raises:
        BadSettings: A file is missing or wrong; names line and cause.
    """
    labels: dict[PageKey, Label] = {}
    with suppress(FileNotFoundError):
        labels |= parse_labels(output.read(LABELS), output.path(LABELS), archive)
    if settings.labels:
        fs, path = filesystem(settings.labels)
        with named_errors(f"reading {settings.labels}"):
            if not fs.isfile(path):
                raise BadSettings(f"labels: there is no file {settings.labels}.")
            given = parse_labels(fs.cat_file(path), settings.labels, archive)
        if not given:
            raise BadSettings(f"labels: {settings.labels} has no label filled in.", CURE)
        labels |= given
    return labels


def read_training(output: Storage) -> list[Row]:
    """The rows of the output's table to train on; none if there is no table yet.

    Raises:
        BadSettings: The table is damaged; names line and cause.
    """
    try:
        return training.parse_training(output.read(TRAINING), output.path(TRAINING))
    except FileNotFoundError:
        return []


def look(run: Session, archive: list[Pdf], pages: Sequence[SampledPage]) -> list[SeenPage]:
    """Look at the pages, several PDFs at a time, and write their pictures.

    Returns:
        In the order given; pages that cannot be worked have a fault.
    """
    pdfs = {pdf.name: pdf for pdf in archive}
    by_pdf = [(pdfs[name], list(group)) for name, group in groupby(pages, lambda page: page.pdf)]
    run.progress.start(len(pages), "looking at pages")
    threads = ThreadPoolExecutor(run.pool.workers)
    try:
        seen = list(threads.map(partial(_look_pdf, run), *zip(*by_pdf, strict=True)))
    finally:
        # After an interruption nobody waits: the end of the session ends what is under way.
        threads.shutdown(wait=False, cancel_futures=True)
    run.progress.stop()
    return [page for group in seen for page in group]


def _look_pdf(run: Session, pdf: Pdf, pages: list[SampledPage]) -> list[SeenPage]:
    try:
        path = run.staging.fetch(pdf)
    except InputFault as error:
        return [SeenPage(page=page, fault=Fault.of(error)) for page in pages]
    settings = run.settings
    try:
        jobs = (
            Job(
                pdf,
                path,
                page.view,
                (path, run.passwords(pdf), wanted.page_index, settings.read, settings.triage),
                index=wanted.page_index,
            )
            for wanted in pages
        )
        return [
            _record(run, wanted, views)
            for wanted, (_, views) in zip(pages, run.map(jobs), strict=True)
        ]
    finally:
        run.staging.release(pdf)


def _record(run: Session, wanted: SampledPage, views: page.Views | InputFault) -> SeenPage:
    run.progress.advance()
    if isinstance(views, InputFault):
        return SeenPage(page=wanted, fault=Fault.of(views))
    run.check_space(len(views.picture) + len(views.thumbnail))
    run.output.write(f"{FOLDER}/{wanted.picture}", views.picture)
    run.output.write(f"{FOLDER}/{wanted.thumbnail}", views.thumbnail)
    return SeenPage(page=wanted, facts=views.facts, detections=views.detections, size=views.size)


def write(
    run: Session, settings: CalibrateSettings, archive: list[Pdf], seen: Sequence[SeenPage]
) -> Calibration:
    """Write the sheet and its tables; remove pictures that none of them needs any more."""
    result = judge(settings, archive, seen)
    output = run.output
    there = read_training(output)
    rows = training.add_pages(settings, there, seen)
    if rows != there:
        if there:
            output.write(f"{TRAINING}.bak", training.format_training(there))
        output.write(TRAINING, training.format_training(rows))
    output.write(f"{FOLDER}/calibration.json", result.model_dump_json(indent=1).encode())
    output.write(LABELS, format_labels(result.pages))
    output.write(f"{FOLDER}/index.html", sheet.render(settings, result, seen).encode())
    own = {page.page.picture for page in seen} | {page.page.thumbnail for page in seen}
    own |= training.pictures(rows)
    for name in output.names(FOLDER):
        if PICTURES.fullmatch(name) and name.removeprefix(f"{FOLDER}/") not in own:
            output.remove(name)
    return result


@task(name="draw", **RETRIED)
def draw_task(archive: list[Pdf], settings: CalibrateSettings) -> list[SampledPage]:
    """Draw the pages; see :func:`tasks.calibrate.sample.draw`."""
    labels = read_labels(settings, session.current().output, archive)
    return draw(archive, settings.sample, labels)


@task(name="look", **RETRIED)
def look_task(archive: list[Pdf], pages: list[SampledPage]) -> list[SeenPage]:
    """Look at the pages; see :func:`look`."""
    return look(session.current(), archive, pages)


@task(name="write", **RETRIED)
def write_task(
    archive: list[Pdf], settings: CalibrateSettings, seen: list[SeenPage]
) -> Calibration:
    """Write the sheet; see :func:`write`."""
    result = write(session.current(), settings, archive, seen)
    lines = ["| | |", "|---|---|", *(f"| {a} | {b} |" for a, b in words.rows(result))]
    create_markdown_artifact("\n".join(lines), key="calibration", description="Calibration")
    return result
