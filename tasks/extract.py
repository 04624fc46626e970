"""Extraction: the illustrations of kept pages, cut at full resolution and written."""

from __future__ import annotations

from time import monotonic

from prefect import task

from models.errors import InputFault
from models.records import Cut, Fault, Pdf
from models.settings import Settings
from tasks import session, work
from tasks.retry import RETRIED
from tasks.session import Job, Session
from tasks.triage import PageToCut

MOST_TASK_RUNS = 800
"""Task runs of extraction in one run, at most, under ``pages_per_task: auto``: Prefect's UI and
database take about a thousand well."""
SMALL_ARCHIVE = 200
"""Pages up to which every kept page has a task run of its own under ``auto``."""
SAVE_EVERY = 16
"""Pages in one ledger file; a killed run cuts again no more than these of each group."""
SMALLEST_GROUP = 32
"""Pages that pay for a task run: of its 50 ms of processor time (15 here, the rest in Prefect's
server) each bears less than 2, against 100 for its own work."""


SAVE_EVERY_S = 2.0
"""Seconds after which finished pages are written down, however few they are."""


class Group:
    """Kept pages of one PDF that are cut in one task run.

    Not a dataclass on purpose: Prefect would search each one for futures.
    """

    def __init__(self, pdf: Pdf, pages: list[PageToCut]) -> None:
        self.pdf = pdf
        self.pages = pages
        self.name = f"{pdf.name} p{pages[0].look.page_index + 1}"
        if len(pages) > 1:
            self.name += f"-{pages[-1].look.page_index + 1}"


def group_size(settings: Settings, archive_pages: int) -> int:
    """Kept pages in one task run.

    Args:
        settings: ``run.pages_per_task`` matters.
        archive_pages: Pages of the whole archive.
    """
    if settings.run.pages_per_task != "auto":
        return settings.run.pages_per_task
    if archive_pages <= SMALL_ARCHIVE:
        return 1
    return max(SMALLEST_GROUP, -(-archive_pages // MOST_TASK_RUNS))


def extract_pages(run: Session, group: Group) -> int:
    """Cut a group of pages: write the samples, then the record that vouches for them.

    Returns:
        Number of samples written.

    Raises:
        StopRun: The storage failed or is full.
    """
    pdf = group.pdf
    assert pdf.sha256 is not None
    try:
        path = run.staging.fetch(pdf)
    except InputFault as error:
        run.cuts.add(pdf.sha256, [_failed(run, page, error) for page in group.pages])
        run.progress.advance(len(group.pages))
        return 0
    samples = 0
    unsaved: list[Cut] = []
    saved = monotonic()
    try:
        jobs = (
            Job(
                pdf,
                path,
                work.cut,
                (path, run.passwords(pdf), pdf, page.look, page.regions, run.keys.recipe, page.key),
                index=page.look.page_index,
                pixels=work.pixels_of(page.look, run.keys.recipe),
            )
            for page in group.pages
        )
        for page, (_, made) in zip(group.pages, run.map(jobs), strict=True):
            if isinstance(made, InputFault):
                cut = _failed(run, page, made)
            else:
                cut, files = made
                run.check_space()
                for sample, data in zip(cut.samples, files, strict=True):
                    run.output.write(sample.file_name, data)
            unsaved.append(cut)
            samples += len(cut.samples)
            if len(unsaved) >= SAVE_EVERY or monotonic() - saved > SAVE_EVERY_S:
                run.cuts.add(pdf.sha256, unsaved)
                unsaved, saved = [], monotonic()
            run.count(cut=1)
            run.progress.advance(1, kept=bool(cut.samples))
    finally:
        run.staging.release(pdf)
    if unsaved:
        run.cuts.add(pdf.sha256, unsaved)
    return samples


def _failed(run: Session, page: PageToCut, error: InputFault) -> Cut:
    key = run.keys.fault(page.key)
    return Cut(page_index=page.look.page_index, key=key, fault=Fault.of(error))


@task(name="extract", task_run_name="extract {group.name}", **RETRIED)
def extract_task(group: Group) -> int:
    """Cut a group of kept pages; see :func:`extract_pages`."""
    return extract_pages(session.current(), group)
