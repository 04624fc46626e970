"""Triage: one look at low resolution at every page of a PDF, and what is left to cut from it."""

from __future__ import annotations

from collections.abc import Iterable

from prefect import task
from prefect.cache_policies import NO_CACHE

from models.errors import InputFault, StorageGone
from models.records import Cut, Fault, Look, Outcome, Pdf, Region
from models.settings import Settings
from tasks import session, work
from tasks.decide import decide
from tasks.session import Job, Session

SAVE_EVERY = 32
"""Looks in one ledger file; a killed run looks again at no more than these."""


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
    missing = [i for i in range(pdf.facts.page_count) if i not in looks]
    if missing:
        looks |= _look(run, pdf, missing)
    if run.looks.scattered(pdf.sha256):
        run.looks.replace(pdf.sha256, looks.values())
    return to_cut(run, pdf, [looks[i] for i in sorted(looks)])


def to_cut(run: Session, pdf: Pdf, looks: Iterable[Look]) -> list[PageToCut]:
    """The kept pages without a valid record; pages that need no more work count as finished.

    Records that no longer hold are removed here, before any of their files is overwritten.
    """
    assert pdf.sha256 is not None
    cuts = run.cuts.load(pdf.sha256)
    valid: list[Cut] = []
    pages: list[PageToCut] = []
    finished = kept = 0
    for look in looks:
        verdict = decide(look.detection, run.settings) if look.detection else None
        if verdict is None or verdict.outcome is not Outcome.KEPT:
            finished += 1
            continue
        key = run.keys.cut(pdf.volume, verdict.regions)
        cut = cuts.get(look.page_index)
        if cut and run.keys.valid(cut, key) and _files_there(run, cut):
            valid.append(cut)
            finished += 1
            kept += bool(cut.samples)
        else:
            pages.append(PageToCut(look, verdict.regions, key))
    if len(valid) < len(cuts):
        run.cuts.replace(pdf.sha256, valid)
    run.progress.advance(finished, kept)
    return pages


def valid_looks(run: Session, sha256: str) -> dict[int, Look]:
    """The looks at a PDF's pages that hold for this run, by page index; others are removed."""
    looks = run.looks.load(sha256)
    valid = {i: look for i, look in looks.items() if run.keys.valid(look, run.keys.look)}
    if len(valid) < len(looks):
        run.looks.replace(sha256, valid.values())
    return valid


def _look(run: Session, pdf: Pdf, pages: list[int]) -> dict[int, Look]:
    assert pdf.sha256 is not None
    try:
        path = run.staging.fetch(pdf)
    except FileNotFoundError as error:
        raise StorageGone(f"{pdf.path} vanished while the run was going on.") from error
    settings, key = run.settings, run.keys.look
    looks: dict[int, Look] = {}
    unsaved: list[Look] = []
    try:
        jobs = (
            Job(
                pdf,
                path,
                work.look,
                (path, run.passwords, i, settings.read, settings.triage.method, key),
                index=i,
            )
            for i in pages
        )
        for index, (_, seen) in zip(pages, run.map(jobs), strict=True):
            if isinstance(seen, InputFault):
                seen = Look(page_index=index, key=run.keys.fault(key), fault=Fault.of(seen))
            run.looked += 1
            looks[index] = seen
            unsaved.append(seen)
            if len(unsaved) >= SAVE_EVERY:
                run.check_space()
                run.looks.add(pdf.sha256, unsaved)
                unsaved = []
    finally:
        run.staging.release(pdf)
    if unsaved:
        run.looks.add(pdf.sha256, unsaved)
    return looks


def _files_there(run: Session, cut: Cut) -> bool:
    return all(run.images.get(sample.file_name) == sample.bytes for sample in cut.samples)


@task(name="triage", task_run_name="triage {pdf.name}", cache_policy=NO_CACHE, persist_result=False)
def triage_task(pdf: Pdf, settings: Settings) -> list[PageToCut]:
    """Look at all pages of a PDF; see :func:`triage`."""
    return triage(session.current(settings), pdf)
