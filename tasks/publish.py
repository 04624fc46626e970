"""Publishing: the ledger's records become manifest, page list, quarantine and sums.

PDFs are taken one at a time in the order of their names, so that memory does not grow with the
archive and the same records give the same bytes, in whatever order the work was done.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from typing import IO, Any, TypeVar

import cv2
import numpy as np
import PIL
from prefect import task

from models.errors import IntaglioError, StorageRefused
from models.records import (
    Counts,
    Fault,
    Outcome,
    PageLine,
    PageRecord,
    Pdf,
    QuarantineLine,
    Record,
    Sample,
    Summary,
)
from tasks import session
from tasks.dataset import ASIDE, IMAGES, MANIFEST, image_name
from tasks.decide import decide
from tasks.ledger import STATE
from tasks.retry import RETRIED
from tasks.session import Session

R = TypeVar("R", bound=PageRecord)

PAGES = "pages.jsonl"
QUARANTINE = "quarantine.jsonl"
SUMMARY = "summary.json"
PUBLISHED = f"{STATE}/published.json"
"""Of which archive and settings the published files are; absent while they are being written."""
OURS = re.compile(r"images/[^/]+/\.?p\d{4,}-\d+\.(jpg|png|webp)(\.partial)?")
"""Names of sample files, and of what a killed run leaves of them."""


def publish(run: Session, archive: list[Pdf]) -> Summary:
    """Write ``manifest.jsonl``, ``pages.jsonl`` and ``quarantine.jsonl``, and add up.

    Sample files that no record vouches for (of other settings, or of a killed run) are removed;
    files that no run can have written stay.

    Args:
        run: The session; every page must have its records.
        archive: All PDFs, sorted by name.

    Returns:
        The sums, without times.

    Raises:
        StopRun: The storage failed or is full.
    """
    run.output.remove(PUBLISHED)
    outcomes: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    vouched: set[str] = set()
    sample_bytes = 0
    with ExitStack() as stack:
        lists = {
            name: _List(stack.enter_context(run.output.writer(name)))
            for name in (MANIFEST, PAGES, QUARANTINE)
        }
        manifest, pages, quarantine = lists.values()
        for pdf in archive:
            if pdf.fault:
                faults[pdf.fault.kind] += 1
                quarantine.add(_quarantine(pdf, None, pdf.fault))
            for line, samples, fault in page_lines(run, pdf):
                outcomes[line.outcome] += 1
                pages.add(line)
                if line.outcome is Outcome.DROPPED:
                    dropped[line.reason] += 1
                if fault:
                    faults[fault.kind] += 1
                    quarantine.add(_quarantine(pdf, line.page_index, fault))
                for sample in samples:
                    manifest.add(sample)
                    vouched.add(sample.file_name)
                    sample_bytes += sample.bytes
    for folder in (IMAGES, ASIDE):
        for name in run.output.names(folder):
            image = image_name(name)
            if image not in vouched and OURS.fullmatch(image):
                run.output.remove(name)
        run.output.remove_empty(folder)
    total = sum(pdf.facts.page_count for pdf in archive if pdf.facts)
    if sum(outcomes.values()) != total:
        raise IntaglioError(f"{total} pages, but {sum(outcomes.values())} outcomes: {outcomes}.")
    return Summary(
        pages=Counts(
            total=total,
            kept=outcomes[Outcome.KEPT],
            dropped=outcomes[Outcome.DROPPED],
            quarantined=outcomes[Outcome.QUARANTINED],
        ),
        pdfs=Counts(
            total=len(archive),
            kept=sum(pdf.is_worked for pdf in archive),
            dropped=sum(bool(pdf.duplicate_of) for pdf in archive),
            quarantined=sum(bool(pdf.fault) for pdf in archive),
        ),
        dropped=dict(sorted(dropped.items())),
        quarantined=dict(sorted(faults.items())),
        samples=len(vouched),
        sample_bytes=sample_bytes,
        lists={name: each.sha256.hexdigest() for name, each in lists.items()},
        settings=run.settings.model_dump(mode="json"),
        versions=versions(),
    )


def publish_faults(run: Session, archive: list[Pdf]) -> None:
    """Write ``quarantine.jsonl`` alone, where no PDF can be read; a dataset made before stays."""
    run.output.remove(PUBLISHED)
    with run.output.writer(QUARANTINE) as stream:
        quarantine = _List(stream)
        for pdf in archive:
            if pdf.fault:
                quarantine.add(_quarantine(pdf, None, pdf.fault))


def page_lines(run: Session, pdf: Pdf) -> Iterator[tuple[PageLine, list[Sample], Fault | None]]:
    """Where each page of a PDF ended, its samples, and its fault if it has one."""
    if pdf.fault or pdf.sha256 is None or pdf.facts is None:
        return
    if pdf.duplicate_of is not None:
        same = {"duplicate_of": pdf.duplicate_of}
        for index in range(pdf.facts.page_count):
            yield _line(pdf, index, Outcome.DROPPED, "duplicate", same), [], None
        return
    looks, cuts = run.looks.load(pdf.sha256), run.cuts.load(pdf.sha256)
    if run.cuts.scattered(pdf.sha256):
        run.cuts.replace(pdf.sha256, cuts.values())
    for index in range(pdf.facts.page_count):
        look = _standing(run, looks, index)
        if look.detection is None:
            fault = look.fault
            yield _line(pdf, index, Outcome.QUARANTINED, fault.kind if fault else "", {}), [], fault
            continue
        figures = {"score": look.detection.score, **look.detection.measures}
        measures = {name: round(value, 5) for name, value in figures.items()}
        verdict = decide(look.detection, run.settings)
        if verdict.outcome is not Outcome.KEPT:
            yield _line(pdf, index, verdict.outcome, verdict.reason, measures), [], None
            continue
        cut = _standing(run, cuts, index)
        if cut.fault:
            line = _line(pdf, index, Outcome.QUARANTINED, cut.fault.kind, measures)
        elif cut.samples:
            line = _line(pdf, index, Outcome.KEPT, verdict.reason, measures)
        else:
            line = _line(pdf, index, Outcome.DROPPED, cut.reason, measures)
        # A PDF may have been renamed since: the manifest says what it is called today.
        samples = [sample.model_copy(update={"pdf": pdf.name}) for sample in cut.samples]
        names = [sample.file_name for sample in samples]
        yield line.model_copy(update={"samples": names}), samples, cut.fault


def _standing(run: Session, records: Mapping[int, R], index: int) -> R:
    """The record of a page; every page has one, unless somebody took it away."""
    if index not in records:
        raise StorageRefused(
            f"Records of finished pages in {run.output.path(STATE)} vanished.",
            "Keep this folder while a run is going on, and run the same command again.",
        )
    return records[index]


def versions() -> dict[str, str]:
    """Versions of what decides pixels."""
    return {
        "intaglio": version("intaglio"),
        "python": platform.python_version(),
        "pymupdf": version("pymupdf"),
        "opencv": cv2.__version__,
        "pillow": PIL.__version__,
        "numpy": np.__version__,
    }


def _line(
    pdf: Pdf, index: int, outcome: Outcome, reason: str, measures: dict[str, Any]
) -> PageLine:
    return PageLine(
        pdf=pdf.name,
        page_index=index,
        outcome=outcome,
        reason=reason,
        measures=measures,
        repaired=pdf.facts is not None and pdf.facts.repaired,
    )


def _quarantine(pdf: Pdf, index: int | None, fault: Fault) -> QuarantineLine:
    return QuarantineLine(pdf=pdf.name, page_index=index, **fault.model_dump())


class _List:
    """A list that is being written, and its SHA-256."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def add(self, record: Record) -> None:
        """Write a line."""
        line = record.model_dump_json().encode() + b"\n"
        self._stream.write(line)
        self.sha256.update(line)


@task(name="publish", **RETRIED)
def publish_task(archive: list[Pdf]) -> Summary:
    """Write manifest, page list and quarantine; see :func:`publish`."""
    return publish(session.current(), archive)
