"""The main job: an archive of scanned PDFs becomes a dataset of its illustrations.

python -m flows.extract --source SRC --output OUT
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter, deque
from datetime import UTC, datetime
from typing import Any

from humanize import naturaldelta, naturalsize
from prefect import flow, unmapped
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from flows.command import parse, run_command, settings_of
from models.errors import ExitCode, NothingUsable
from models.records import Pdf, Summary
from models.settings import Settings
from tasks import session
from tasks.discover import discover, discover_task
from tasks.extract import Group, extract_task, group_size
from tasks.lock import locked
from tasks.package import package_task
from tasks.plan import estimate, finished, remember_published
from tasks.publish import SUMMARY, publish_task
from tasks.report import print_table, report_task
from tasks.session import Session
from tasks.triage import PageToCut, triage_task

AHEAD = 3
"""PDFs looked at while the pages of earlier ones are still being cut."""


THREADS: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=8)
"""Threads only wait for the workers; enough of them that a slow PDF holds nobody up."""


@flow(name="extract", task_runner=THREADS, persist_result=False)  # type: ignore[arg-type]
def extract(settings: Settings) -> Summary:
    """Turn an archive of scanned periodicals into an image dataset of its illustrations."""
    try:
        run = session.current(settings)
        with locked(run.output):
            return run_extract(run)
    finally:
        session.close_current()


def run_extract(run: Session) -> Summary:
    """The stages in their order."""
    started, clock = datetime.now(UTC), time.monotonic()
    settings = run.settings
    run.check_space()
    archive = discover_task(settings)
    total = count_pages(settings, archive)
    run.progress.start(total)
    work_pdfs(settings, archive, group_size(settings, total))
    run.progress.stop()
    summary = publish_task(archive, settings)
    zip_bytes = package_task(settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    summary = summary.model_copy(
        update={
            "zip_bytes": zip_bytes,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - clock, 3),
            "pages_worked": run.looked or run.cut,
            "peak_parent_bytes": peak * 1024,
            "peak_worker_bytes": run.pool.peak_worker_bytes,
        }
    )
    run.output.write(SUMMARY, summary.model_dump_json(indent=2).encode())
    report_task(summary, settings)
    remember_published(run, archive)
    return summary


def count_pages(settings: Settings, archive: list[Pdf]) -> int:
    """Pages of the archive.

    Raises:
        NothingUsable: There are none.
    """
    total = sum(pdf.facts.page_count for pdf in archive if pdf.facts)
    if total == 0:
        kinds = Counter(pdf.fault.kind for pdf in archive if pdf.fault)
        why = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        raise NothingUsable(
            f"{settings.source} holds no PDF with a readable page ({why or 'no PDF at all'})."
        )
    return total


def work_pdfs(settings: Settings, archive: list[Pdf], pages_per_task: int) -> None:
    """Look at all PDFs and cut their kept pages.

    Triage runs a few PDFs ahead, so that the workers never wait and few pages wait to be cut.
    """
    todo = deque(pdf for pdf in archive if not pdf.fault and not pdf.duplicate_of)
    triaged: deque[tuple[Pdf, PrefectFuture[list[PageToCut]]]] = deque()
    cutting: deque[list[PrefectFuture[int]]] = deque()
    while todo or triaged:
        while todo and len(triaged) < AHEAD:
            pdf = todo.popleft()
            triaged.append((pdf, triage_task.submit(pdf, settings)))
        pdf, looked = triaged.popleft()
        pages = looked.result()
        starts = range(0, len(pages), pages_per_task)
        groups = [Group(pdf, pages[i : i + pages_per_task]) for i in starts]
        if groups:
            cutting.append(extract_task.map(groups, settings=unmapped(settings)))
        while len(cutting) > AHEAD or (cutting and not (todo or triaged)):
            for future in cutting.popleft():
                future.result()


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.extract``."""
    command = parse("python -m flows.extract", __doc__ or "", arguments)
    settings = settings_of(command)
    if command.dry_run:
        return dry_run(settings)
    try:
        run = session.current(settings)
        with locked(run.output):
            archive = discover(run)
            count_pages(settings, archive)
            done = finished(run, archive)
    except BaseException:
        session.close_current()
        raise
    if done:
        summary = Summary.model_validate_json(run.output.read(SUMMARY))
        print("Nothing to do: every page is finished and packed.")
        session.close_current()
    else:
        print("Starting Prefect ...", file=sys.stderr)
        summary = extract(settings)
    print_table(summary, settings.output)
    quarantined = summary.pages.quarantined + summary.pdfs.quarantined
    return ExitCode.UNUSABLE if settings.strict and quarantined else ExitCode.OK


def dry_run(settings: Settings) -> ExitCode:
    """Say what a run would do, from a few pages really worked."""
    try:
        run = session.current(settings)
        archive = discover(run, remember=False)
        guess = estimate(run, archive)
    finally:
        session.close_current()
    faults = [pdf for pdf in archive if pdf.fault]
    size = naturalsize(sum(pdf.size for pdf in archive))
    print(f"PDFs            {len(archive):,} with {size}")
    for pdf in faults:
        print(f"  quarantined   {pdf.name}: {pdf.fault.kind}")  # type: ignore[union-attr]
    print(f"pages           {guess.pages:,}, of which {guess.left:,} are not finished")
    print(f"estimated kept  {guess.kept:,} pages")
    print(f"estimated disk  {naturalsize(2 * guess.sample_bytes)} (samples, and the ZIP of them)")
    print(f"estimated time  {naturaldelta(guess.seconds)} and about 20 s for Prefect to start")
    return ExitCode.OK if guess.pages else ExitCode.UNUSABLE


if __name__ == "__main__":
    sys.exit(run_command(main))
