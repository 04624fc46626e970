"""Pictures of pages for the report: those samples were cut from, and examples of dropped ones."""

from __future__ import annotations

from collections.abc import Iterable

from models.errors import InputFault
from models.records import Outcome, PageLine, Pdf
from tasks.dataset import read_records
from tasks.discover import last_time
from tasks.publish import PAGES
from tasks.score.picture import page_picture
from tasks.session import Job, Session

FOLDER = "report/pages"
EXAMPLES = 12
"""Dropped pages shown for each reason."""

PageKey = tuple[str, int]
"""Name of a PDF and 0-based page."""


def dropped_pages(run: Session) -> dict[str, tuple[int, list[PageKey]]]:
    """Pages that extraction dropped: by reason how many, and some spread over all of them."""
    found: dict[str, list[PageKey]] = {}
    for _, page in read_records(run.output, PAGES, PageLine):
        if page.outcome is Outcome.DROPPED:
            found.setdefault(page.reason, []).append((page.pdf, page.page_index))
    return {
        reason: (
            len(pages),
            [pages[i * len(pages) // EXAMPLES] for i in range(EXAMPLES)]
            if len(pages) > EXAMPLES
            else pages,
        )
        for reason, pages in sorted(found.items(), key=lambda item: -len(item[1]))
    }


def draw_pages(run: Session, wanted: Iterable[PageKey]) -> dict[PageKey, str]:
    """Draw pages that are not drawn yet, and remove pictures nobody wants any more.

    Args:
        run: The session.
        wanted: The pages.

    Returns:
        Names of the pictures relative to the report; pages whose PDF cannot be reached, or that
        cannot be drawn, have none.

    Raises:
        StopRun: The storage failed or is full.
    """
    pdfs = {pdf.name: pdf for pdf in last_time(run.output) if pdf.facts and pdf.sha256}
    by_pdf: dict[str, set[int]] = {}
    for name, index in wanted:
        if name in pdfs:
            by_pdf.setdefault(name, set()).add(index)
    there = run.output.names(FOLDER)
    run.progress.start(sum(map(len, by_pdf.values())), "drawing pages")
    drawn: dict[PageKey, str] = {}
    for name, indices in sorted(by_pdf.items()):
        pdf = pdfs[name]
        names = {index: _name(pdf, index) for index in sorted(indices)}
        missing = [index for index, picture in names.items() if picture not in there]
        made = _draw(run, pdf, missing) if missing else set()
        drawn |= {
            (name, index): picture.removeprefix("report/")
            for index, picture in names.items()
            if picture in there or index in made
        }
        run.progress.advance(len(names))
    run.progress.stop()
    own = {f"report/{picture}" for picture in drawn.values()}
    for old in there.keys() - own:
        run.output.remove(old)
    return drawn


def _draw(run: Session, pdf: Pdf, indices: list[int]) -> set[int]:
    """Draw pages of a PDF; says which of them could be."""
    made: set[int] = set()
    # A local file that is gone, or is another by now, is not opened at all.
    if run.staging.changed(pdf):
        return made
    try:
        path = run.staging.fetch(pdf)
    except (InputFault, FileNotFoundError):
        return made
    try:
        budget = round(run.settings.read.max_megapixels * 1e6)
        jobs = (
            Job(pdf, path, page_picture, (path, run.passwords(pdf), index, budget), index=index)
            for index in indices
        )
        for job, picture in run.map(jobs):
            if not isinstance(picture, InputFault) and job.index is not None:
                run.check_space(len(picture))
                run.output.write(_name(pdf, job.index), picture)
                made.add(job.index)
    finally:
        run.staging.release(pdf)
    return made


def _name(pdf: Pdf, index: int) -> str:
    assert pdf.sha256 is not None
    return f"{FOLDER}/{pdf.sha256[:16]}-p{index + 1:04d}.jpg"
