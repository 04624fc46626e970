"""Triage: one look at low resolution at every page of a PDF, and what is left to cut from it."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from prefect import task

from models.errors import InputFault
from models.records import Cut, Fault, Look, Outcome, Pdf, Region
from tasks import session, work
from tasks.decide import decide
from tasks.retry import RETRIED
from tasks.session import Job, Session

SAVE_EVERY = 32
"""Looks in one ledger file; a killed run looks again at no more than these."""

SAVE_EVERY_S = 2.0
"""Seconds after which finished looks are written down, however few they are."""


class PageToCut:
    """A kept page that has no valid record yet.

    Not a dataclass on purpose: Prefect would search each one for futures.
    """

    def __init__(self, look: Look, regions: list[Region], key: str) -> None:
        self.look = look
        self.regions = regions
        self.key = key


def triage(run: Session, pdf: Pdf) -> list[PageToCut]:
    """Look at the pages nobody has looked at, and list the kept pages still to be cut.

    Args:
        run: The session.
        pdf: A PDF that opened.

    Returns:
        In page order.

    Raises:
        StopRun: The storage failed or is full.
    """
    assert pdf.sha256 is not None and pdf.facts is not None
    looks = valid_looks(run, pdf.sha256)
    earlier = set(looks)
    missing = [i for i in range(pdf.facts.page_count) if i not in looks]
    if missing:
        if len(looks) < len(run.looks.load(pdf.sha256)):
            run.looks.replace(pdf.sha256, looks.values())
        looks |= _look(run, pdf, missing)
    if run.looks.scattered(pdf.sha256):
        run.looks.replace(pdf.sha256, looks.values())
    pages, valid, finished = sort_out(run, pdf, [looks[i] for i in sorted(looks)])
    if len(valid) < len(run.cuts.load(pdf.sha256)):
        # Records that no longer hold go before any of their files is overwritten.
        run.cuts.replace(pdf.sha256, valid)
    kept = sum(bool(cut.samples) for cut in valid)
    run.count(kept=len(pages))
    run.progress.advance(len(finished), kept, resumed=len(finished & earlier))
    return pages


def standing(run: Session, pdf: Pdf) -> tuple[int, int]:
    """Pages of a PDF without a finished record, and pages with samples."""
    assert pdf.sha256 is not None and pdf.facts is not None
    looks = valid_looks(run, pdf.sha256)
    _, valid, finished = sort_out(run, pdf, looks.values())
    return pdf.facts.page_count - len(finished), sum(bool(cut.samples) for cut in valid)


def is_done(run: Session, pdf: Pdf) -> bool:
    """Whether every page of a PDF has its record; if so, its pages count as finished."""
    left, kept = standing(run, pdf)
    if not left and pdf.facts:
        run.progress.advance(pdf.facts.page_count, kept, resumed=pdf.facts.page_count)
    return not left


def sort_out(
    run: Session, pdf: Pdf, looks: Iterable[Look]
) -> tuple[list[PageToCut], list[Cut], set[int]]:
    """The pages to cut, the records that hold, and the pages that are finished; changes nothing."""
    assert pdf.sha256 is not None
    cuts = run.cuts.load(pdf.sha256)
    valid: list[Cut] = []
    pages: list[PageToCut] = []
    finished: set[int] = set()
    for look in looks:
        verdict = decide(look.detection, run.settings) if look.detection else None
        if verdict is None or verdict.outcome is not Outcome.KEPT:
            finished.add(look.page_index)
            continue
        key = run.keys.cut(pdf.volume, verdict.regions)
        cut = cuts.get(look.page_index)
        if cut and run.keys.valid(cut, key) and _files_there(run, cut):
            valid.append(cut)
            finished.add(look.page_index)
        else:
            pages.append(PageToCut(look, verdict.regions, key))
    return pages, valid, finished


def valid_looks(run: Session, sha256: str) -> dict[int, Look]:
    """The looks at a PDF's pages that hold for this run, by page index."""
    looks = run.looks.load(sha256)
    return {i: look for i, look in looks.items() if run.keys.valid(look, run.keys.look)}


def _look(run: Session, pdf: Pdf, pages: list[int]) -> dict[int, Look]:
    assert pdf.sha256 is not None
    key = run.keys.look
    try:
        path = run.staging.fetch(pdf)
    except InputFault as error:
        seen_none = [
            Look(page_index=i, key=run.keys.fault(key), fault=Fault.of(error)) for i in pages
        ]
        run.looks.add(pdf.sha256, seen_none)
        return dict(zip(pages, seen_none, strict=True))
    settings = run.settings
    looks: dict[int, Look] = {}
    unsaved: list[Look] = []
    saved = monotonic()
    try:
        jobs = (
            Job(
                pdf,
                path,
                work.look,
                (path, run.passwords(pdf), i, settings.read, settings.triage, key),
                index=i,
            )
            for i in pages
        )
        for index, (_, seen) in zip(pages, run.map(jobs), strict=True):
            if isinstance(seen, InputFault):
                seen = Look(page_index=index, key=run.keys.fault(key), fault=Fault.of(seen))
            run.count(looked=1)
            looks[index] = seen
            unsaved.append(seen)
            if len(unsaved) >= SAVE_EVERY or monotonic() - saved > SAVE_EVERY_S:
                run.check_space()
                run.looks.add(pdf.sha256, unsaved)
                unsaved, saved = [], monotonic()
    finally:
        run.staging.release(pdf)
    if unsaved:
        run.looks.add(pdf.sha256, unsaved)
    return looks


def _files_there(run: Session, cut: Cut) -> bool:
    return all(run.images.get(sample.file_name) == sample.bytes for sample in cut.samples)


@task(name="triage", task_run_name="triage {pdf.name}", **RETRIED)
def triage_task(pdf: Pdf) -> list[PageToCut]:
    """Look at all pages of a PDF; see :func:`triage`."""
    return triage(session.current(), pdf)
