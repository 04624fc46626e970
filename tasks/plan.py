"""Before a run: is there anything to do, and how long and how large would it be?"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from models.errors import DamagedDataset, InputFault
from models.records import Pdf, Summary
from models.settings import fingerprint
from tasks import work
from tasks.dataset import MANIFEST
from tasks.decide import decide
from tasks.package import packed_size
from tasks.publish import PAGES, PUBLISHED, QUARANTINE, SUMMARY
from tasks.report import SHEET
from tasks.session import Job, Session
from tasks.triage import standing

PROBE_PAGES = 48
"""Pages, spread over the archive, that an estimate really works."""


@dataclass(frozen=True)
class Estimate:
    """What a run would do.

    Attributes:
        pages: Of the whole archive.
        left: Pages without a finished record.
        seconds: Time the work on those would take, without start-up.
        kept: Pages that would be kept, of the whole archive.
        sample_bytes: Size of their samples. The ZIP takes as much again.
    """

    pages: int
    left: int
    seconds: float
    kept: int
    sample_bytes: int


def finished(run: Session, archive: list[Pdf]) -> Summary | None:
    """The summary of the run that made the output, if there is nothing left to do."""
    try:
        state = json.loads(run.output.read(PUBLISHED))["state"]
        summary = Summary.model_validate_json(run.output.read(SUMMARY))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    try:
        if state != _state(run, archive) or packed_size(run.output) is None:
            return None
    except DamagedDataset:
        return None  # published and packed anew, as the records say
    return None if any(count_left(run, pdf) for pdf in archive) else summary


def remember_published(run: Session, archive: list[Pdf]) -> None:
    """Note down what the published files were made of, and how large they are.

    The settings stand in the summary, too; a repair needs them if that is damaged.
    """
    settings = run.settings.model_dump(mode="json")
    published = {"state": _state(run, archive), "settings": settings}
    run.output.write(PUBLISHED, json.dumps(published).encode())


def estimate(run: Session, archive: list[Pdf]) -> Estimate:
    """Work a few pages, without writing anything, and extrapolate."""
    pdfs = [pdf for pdf in archive if pdf.is_worked]
    pages = [(pdf, i) for pdf in pdfs for i in range(pdf.facts.page_count)]  # type: ignore[union-attr]
    left = sum(count_left(run, pdf) for pdf in pdfs)
    probe = pages[:: max(1, len(pages) // PROBE_PAGES)]
    run.progress.start(len(probe), "probing")
    begun = time.monotonic()
    kept = cut = sample_bytes = 0
    for pdf, index in probe:
        size = _probe(run, pdf, index)
        kept += size is not None
        cut += bool(size)
        sample_bytes += size or 0
        run.progress.advance()
    seconds = (time.monotonic() - begun) / run.pool.workers
    run.progress.stop()
    scale = len(pages) / max(1, len(probe))
    return Estimate(
        pages=sum(pdf.facts.page_count for pdf in archive if pdf.facts),
        left=left,
        seconds=seconds / max(1, len(probe)) * left,
        kept=round(kept * scale),
        sample_bytes=round(sample_bytes * scale),
    )


def _probe(run: Session, pdf: Pdf, index: int) -> int | None:
    """Bytes of the samples of a page; None if it is not kept."""
    settings = run.settings
    try:
        path = run.staging.fetch(pdf)
    except InputFault:
        return None
    try:
        args = (path, run.passwords(pdf), index, settings.read, settings.triage, "")
        ((_, look),) = run.map([Job(pdf, path, work.look, args, index)])
        if isinstance(look, InputFault) or look.detection is None:
            return None
        regions = decide(look.detection, settings).regions
        if not regions:
            return None
        cutting = (path, run.passwords(pdf), pdf, look, regions, run.keys.recipe, "")
        ((_, made),) = run.map([Job(pdf, path, work.cut, cutting, index)])
        return 0 if isinstance(made, InputFault) else sum(map(len, made[1]))
    finally:
        run.staging.release(pdf)


def count_left(run: Session, pdf: Pdf) -> int:
    """Pages of a PDF without a finished record."""
    return standing(run, pdf)[0] if pdf.is_worked else 0


def _state(run: Session, archive: list[Pdf]) -> dict[str, object]:
    settings = run.settings
    groups = (settings.read, settings.triage, settings.regions, settings.clean, settings.fit)
    pdfs = [pdf.model_copy(update={"path": ""}) for pdf in archive]
    files = (MANIFEST, PAGES, QUARANTINE, SUMMARY, SHEET)
    return {
        "of": fingerprint(*groups, settings.encode, *pdfs),
        "bytes": {name: run.output.size(name) for name in files},
    }
