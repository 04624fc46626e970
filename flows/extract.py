"""Turn an archive of scanned PDFs into an image dataset of its illustrations.

python -m flows.extract --source scans/ --output dataset/
python -m flows.extract --source 'scans/18*/*.pdf' --output dataset/ --dry-run
python -m flows.extract --config my.yaml --fit.side 768

OUT gets images/, manifest.jsonl (a line a sample), pages.jsonl (a line a page), quarantine.jsonl,
summary.json, contact-sheet.jpg and dataset.zip. Running the same command again resumes.

Every setting can also stand in a YAML file (--config) or in the environment
(INTAGLIO_FIT__SIDE=768); the command line wins over the environment, that over the file, that over
the preset.

Exit codes: 0 every page accounted for, 2 bad usage or settings, 3 stopped and resumable (disk low,
storage gone, output in use), 4 nothing usable in SRC, or anything quarantined under --strict,
130 interrupted and resumable.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from datetime import UTC, datetime
from typing import Any

from humanize import naturaldelta, naturalsize
from prefect import flow, get_run_logger
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from flows.command import (
    parse,
    printable,
    run_command,
    say,
    server_is_gone,
    settings_of,
    start_prefect,
)
from models.errors import DiskLow, ExitCode, NothingUsable, StopRun
from models.records import Pdf, Summary
from models.settings import Settings
from tasks import session
from tasks.cluster import work_on_dask
from tasks.discover import discover, discover_task, share
from tasks.extract import Group, extract_task, group_size
from tasks.orphans import succeed_flow_run
from tasks.package import package_task
from tasks.plan import count_left, estimate, finished, remember_published
from tasks.publish import SUMMARY, publish_faults, publish_task
from tasks.report import print_table, report_task, write_sheet
from tasks.session import Session
from tasks.triage import PageToCut, is_done, triage_task
from tasks.worker import peak_bytes

AHEAD = 3
"""PDFs looked at while the pages of earlier ones are still being cut."""


THREADS: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=8)
"""Threads only wait for the workers; enough of them that a slow PDF holds nobody up."""


@flow(name="extract", task_runner=THREADS, persist_result=False)  # type: ignore[arg-type]
def extract(settings: Settings) -> Summary | None:
    """Turn an archive of scanned periodicals into an image dataset of its illustrations.

    Returns:
        The sums; None from a shard, which publishes nothing.
    """
    try:
        run = session.begin(settings)
        succeed_flow_run(run.output, settings.shard)
        try:
            return run_extract(run)
        except DiskLow as error:
            raise DiskLow(error.message + run.outlook()) from error
    except StopRun as error:
        get_run_logger().error("%s %s", error.message, error.cure)
        raise
    finally:
        session.end()


def run_extract(run: Session) -> Summary | None:
    """The stages in their order; a shard ends when its pages are worked."""
    started, clock = datetime.now(UTC), time.monotonic()
    settings = run.settings
    run.check_space()
    archive = discover_task()
    total = count_or_explain(run, archive)
    todo = share(archive, settings.shard)
    run.progress.start(sum(pdf.facts.page_count for pdf in todo if pdf.facts))
    if settings.run.runner == "dask":
        work_on_dask(run, todo)
    else:
        work_pdfs(run, todo, group_size(settings, total))
    run.progress.stop()
    if settings.shard:
        return None
    summary = publish_task(archive)
    zip_bytes = package_task()
    summary = summary.model_copy(
        update={
            "zip_bytes": zip_bytes,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - clock, 3),
            "pages_worked": max(run.looked, run.cut),
            "peak_parent_bytes": peak_bytes(),
            "peak_worker_bytes": run.pool.peak_worker_bytes,
        }
    )
    run.output.write(SUMMARY, summary.model_dump_json(indent=2).encode())
    write_sheet(run.output)
    remember_published(run, archive)
    report_task(summary)
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


def count_or_explain(run: Session, archive: list[Pdf]) -> int:
    """Pages of the archive; if there are none, the quarantine says why."""
    try:
        return count_pages(run.settings, archive)
    except NothingUsable:
        publish_faults(run, archive)
        raise


def work_pdfs(run: Session, pdfs: list[Pdf], pages_per_task: int) -> None:
    """Look at PDFs and cut their kept pages.

    Triage runs a few PDFs ahead, so that the workers never wait and few pages wait to be cut.
    """
    todo = deque(pdfs)
    triaged: deque[tuple[Pdf, PrefectFuture[list[PageToCut]]]] = deque()
    cutting: deque[list[PrefectFuture[int]]] = deque()
    while todo or triaged:
        while todo and len(triaged) < AHEAD:
            pdf = todo.popleft()
            if not is_done(run, pdf):
                triaged.append((pdf, triage_task.submit(pdf)))
        if not triaged:
            break
        pdf, looked = triaged.popleft()
        pages = looked.result()
        starts = range(0, len(pages), pages_per_task)
        groups = [Group(pdf, pages[i : i + pages_per_task]) for i in starts]
        if groups:
            cutting.append(extract_task.map(groups))
        while len(cutting) > AHEAD:
            wait_for(cutting.popleft())
    for futures in cutting:
        wait_for(futures)


def wait_for(futures: list[PrefectFuture[int]]) -> None:
    """Wait until a PDF's groups are cut.

    Raises:
        StopRun: One of them failed.
    """
    for future in futures:
        future.result()


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.extract``."""
    command = parse("python -m flows.extract", __doc__ or "", arguments)
    settings = settings_of(command)
    if command.dry_run:
        return dry_run(settings)
    try:
        # The output is held from here to the end of the flow, which takes this session over.
        run = session.begin(settings)
        archive = discover(run)
        count_or_explain(run, archive)
        mine = share(archive, settings.shard)
        summary = finished(run, archive)
        if summary:
            print("Nothing to do: every page is finished and packed.")
            summary = summary.model_copy(update={"pages_worked": 0})
        elif not settings.shard or any(count_left(run, pdf) for pdf in mine):
            start_prefect()
            summary = extract_in_prefect(settings)
    finally:
        session.end()
    if summary is None:
        print(f"Shard {settings.shard} is worked: {len(mine)} of {len(archive)} PDFs.")
        print("When all shards are, the same command without --shard publishes the dataset.")
        return ExitCode.OK
    print_table(summary, settings.output)
    quarantined = summary.pages.quarantined + summary.pdfs.quarantined
    return ExitCode.UNUSABLE if settings.strict and quarantined else ExitCode.OK


def extract_in_prefect(settings: Settings) -> Summary | None:
    """Run the flow. A server that goes away in the middle stops the telling, but not the work."""
    try:
        return extract(settings)
    except Exception as error:
        if not server_is_gone(error):
            raise
        run = session.begin(settings)
        archive = discover(run)
        summary = finished(run, archive)
        mine = share(archive, settings.shard)
        if summary is None and (not settings.shard or any(count_left(run, pdf) for pdf in mine)):
            raise
        say("Prefect's server went away during the run, which ended well without it.")
        return summary


def dry_run(settings: Settings) -> ExitCode:
    """Say what a run would do, from a few pages really worked."""
    try:
        run = session.begin(settings, lock=False)
        archive = discover(run, remember=False)
        guess = estimate(run, archive)
    finally:
        session.end()
    faults = [pdf for pdf in archive if pdf.fault]
    size = naturalsize(sum(pdf.size for pdf in archive))
    print(f"PDFs            {len(archive):,} with {size}")
    for pdf in faults:
        print(printable(f"  quarantined   {pdf.name}: {pdf.fault.kind}"))  # type: ignore[union-attr]
    print(f"pages           {guess.pages:,}, of which {guess.left:,} are not finished")
    print(f"estimated kept  {guess.kept:,} pages")
    print(f"estimated disk  {naturalsize(2 * guess.sample_bytes)} (samples, and the ZIP of them)")
    print(f"estimated time  {naturaldelta(guess.seconds)} and about 20 s for Prefect to start")
    return ExitCode.OK if guess.pages else ExitCode.UNUSABLE


if __name__ == "__main__":
    sys.exit(run_command(main))
