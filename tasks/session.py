"""What a process holds while it works: storage, ledgers, workers, progress.

Prefect tasks ask here for everything but the PDF or pages they work on; the run opens the session
and closes it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from humanize import naturalsize

from models.errors import (
    DiskLow,
    InputFault,
    OutOfMemory,
    PageTimeout,
    StopRun,
    WorkerDied,
    WorkerKilled,
    WorkersGone,
)
from models.records import Cut, Look, Pdf
from models.settings import Settings
from tasks import work
from tasks.budget import PixelBudget, affordable_pixels
from tasks.dataset import sample_files
from tasks.keys import Keys
from tasks.ledger import Ledger
from tasks.lock import locked
from tasks.pool import WorkerPool
from tasks.progress import Progress
from tasks.read import unreadable
from tasks.staging import MB, Staging
from tasks.storage import Storage

T = TypeVar("T")
WINDOW = 4
"""Jobs of one task under way at a time, for each worker."""
PROBE_S = 10.0
"""Seconds that a page known to be good has at the least; it takes a fraction of one."""
MOST_KILLED = 10
"""Pages in a row whose workers are killed from outside, each twice, before the run stops."""


@dataclass(frozen=True)
class Job(Generic[T]):
    """A call for a worker, about a PDF or a page.

    Attributes:
        pdf: What it is about.
        path: Where the PDF lies on the local disk.
        function: Importable without Prefect and torch.
        args: Picklable.
        index: 0-based page; None if it is about the whole PDF.
        extra_s: Seconds it may take beyond the time limit of a page.
        pixels: What it may hold in memory.
    """

    pdf: Pdf
    path: str
    function: Callable[..., T]
    args: tuple[Any, ...]
    index: int | None = None
    extra_s: float = 0.0
    pixels: int = 0

    @property
    def where(self) -> str:
        """The PDF or the page, for messages."""
        return self.pdf.name if self.index is None else f"{self.pdf.name}, page {self.index + 1}"

    def fault(self, error: InputFault, note: str = "") -> InputFault:
        """The error with the PDF called what the user calls it, wherever it was staged."""
        message = error.message.replace(self.path, self.pdf.name)
        if self.pdf.name not in message:
            message = f"{self.where}: {message}"
        return type(error)(f"{message}{note}", error.cure)


class Session:
    """The state of one run in one process.

    Args:
        settings: The run's settings.
        progress: Where progress is told.

    Attributes:
        looked: Pages triage has looked at in this run.
        cut: Pages extraction has worked in this run.
    """

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self.settings = settings
        self.progress = progress
        self.output = Storage(settings.output, settings.run.scratch)
        self.looks = Ledger(self.output, "looks", Look)
        self.cuts = Ledger(self.output, "cuts", Cut)
        # Before the pool: what is wrong with a setting must leave no workers behind.
        self.keys = Keys(settings)
        run = settings.run
        self.pool = WorkerPool(
            run.workers or usable_processors(), run.worker_memory_mb, run.pages_per_worker
        )
        self._budget = PixelBudget(affordable_pixels())
        self._counts = threading.Lock()
        self.looked = self.cut = self._kept = self._killed = 0
        place = hashlib.sha256(self.output.url.encode()).hexdigest()[:12]
        self._scratch = Path(run.scratch or tempfile.gettempdir())
        self.staging = Staging(
            self._scratch,
            f"intaglio-{place}",
            run.scratch_budget_mb,
            lambda size: self._check_free(Storage(str(self._scratch)), size),
        )

    def reread(self) -> None:
        """Look again at what is done, after other processes worked for this run."""
        self.looks = Ledger(self.output, "looks", Look)
        self.cuts = Ledger(self.output, "cuts", Cut)
        self.__dict__.pop("images", None)

    def close(self) -> None:
        """Kill the workers and remove what lies in scratch."""
        self.progress.stop()
        self.pool.close()
        self.staging.close()

    def passwords(self, pdf: Pdf) -> tuple[str, ...]:
        """What to try if a PDF is locked: its own password first."""
        read = self.settings.read
        own = [
            word
            for name, word in read.password_of.items()
            if name == pdf.name or fnmatchcase(pdf.name, name)
        ]
        return tuple(word.get_secret_value() for word in (*own, *read.passwords))

    def count(self, looked: int = 0, kept: int = 0, cut: int = 0) -> None:
        """Count pages looked at, found to be kept, and cut in this run."""
        with self._counts:
            self.looked += looked
            self._kept += kept
            self.cut += cut

    def map(self, jobs: Iterable[Job[T]]) -> Iterator[tuple[Job[T], T | InputFault]]:
        """Have the workers do jobs; a few are under way at a time.

        A job that costs its worker (crash, time, memory) is tried once more, alone in a fresh
        worker.

        Yields:
            Each job, in the order given, with its result or with the fault that condemns it.
        """
        window: deque[tuple[Job[T], Future[T]]] = deque()
        try:
            for job in jobs:
                window.append((job, self.submit(job)))
                if len(window) >= WINDOW * self.pool.workers:
                    yield self._finish(*window.popleft())
            while window:
                yield self._finish(*window.popleft())
        finally:
            for _, future in window:
                future.cancel()

    def submit(self, job: Job[T], isolated: bool = False) -> Future[T]:
        """Queue a job for the workers; waits while the queue or their memory is full."""
        timeout_s = self.settings.run.page_timeout_s + job.extra_s
        self._budget.take(job.pixels)
        try:
            future = self.pool.submit(
                job.function, *job.args, timeout_s=timeout_s, isolated=isolated
            )
        except BaseException:
            self._budget.give(job.pixels)
            raise
        future.add_done_callback(lambda _: self._budget.give(job.pixels))
        return future

    def _finish(self, job: Job[T], future: Future[T]) -> tuple[Job[T], T | InputFault]:
        result: T | InputFault
        try:
            try:
                result = future.result()
            except (PageTimeout, WorkerDied, OutOfMemory, MemoryError) as error:
                if isinstance(error, PageTimeout):
                    # Not into the same stall of the storage again, where it would fail twice.
                    self._doubt(job, error)
                result = self.submit(job, isolated=True).result()
        except (StopRun, CancelledError):
            raise
        except (PageTimeout, WorkerDied) as error:
            self._doubt(job, error)
            result = job.fault(error, " (tried twice)")
        except InputFault as error:
            result = job.fault(error)
        except MemoryError:
            result = job.fault(OutOfMemory("not enough memory"))
        except OSError as error:
            result = job.fault(unreadable(job.where, error))
        except Exception as error:
            result = job.fault(InputFault(f"{type(error).__name__}: {error}"))
        if not isinstance(result, WorkerKilled):
            self._killed = 0
        # Nothing that was seen of a file that changes meanwhile can be believed.
        return job, self.staging.changed(job.pdf) or result

    def _doubt(self, job: Job[Any], error: InputFault) -> None:
        """Make sure that it is the page which costs its workers, before it is condemned.

        Raises:
            WorkersGone: It is not: an archive must not be quarantined for a broken machine.
        """
        if isinstance(error, WorkerKilled):
            self._killed += 1
            if self._killed >= MOST_KILLED:
                raise WorkersGone(
                    f"The workers of {MOST_KILLED} pages in a row were killed from outside."
                )
            return
        triage, limit = self.settings.triage, max(PROBE_S, self.settings.run.page_timeout_s)
        try:
            self.pool.submit(work.probe, triage, job.path, timeout_s=limit, isolated=True).result()
        except WorkerKilled:
            return
        except WorkerDied as worse:
            raise WorkersGone(
                f"Worker processes die of a page known to be good, too: {worse.message}.",
                "Install the project anew (its libraries may not fit this machine), "
                "and run the same command again.",
            ) from worse
        except PageTimeout as worse:
            raise WorkersGone(
                f"{job.where} was not done in time, and a page known to be good "
                f"{worse.message}, too: the storage or the machine is stalled.",
                "Wait until the storage (a network mount, perhaps) and the machine answer again, "
                "and run the same command again.",
            ) from worse
        except InputFault:
            return
        except OSError as worse:
            unreadable(job.where, worse)

    def outlook(self) -> str:
        """How much room the rest is likely to take, as a sentence; empty if there is no telling."""
        done, total, cut = self.progress.done, self.progress.total, self.progress.kept
        samples = sum(sample_files(self.output).values())
        if not (cut and samples) or self.progress.stage != "pages":
            return ""
        # Triage runs ahead: the pages it dropped are done, those it kept wait to be cut.
        waiting = self._kept - self.cut
        whole = samples * (cut + waiting) * total // (cut * (done + waiting))
        return (
            f" About {naturalsize(2 * whole - samples)} more are needed at {self.output.url}: "
            f"{done:,} of {total:,} pages are done, and the ZIP takes as much as the samples."
        )

    @cached_property
    def images(self) -> dict[str, int]:
        """The sample files that lay in the output when first asked: names and sizes in bytes.

        Those of dropped samples lie aside, and are there all the same.
        """
        return sample_files(self.output)

    def check_space(self, needed: int = 0) -> None:
        """Stop while there is still room to stop cleanly; staging does so for scratch.

        Args:
            needed: Bytes about to be written.

        Raises:
            DiskLow: Free space is, or would be, below the reserve.
        """
        self._check_free(self.output, needed)
        if not self.output.local:
            # What goes there is gathered in scratch first.
            self._check_free(Storage(str(self._scratch)), needed)

    def _check_free(self, place: Storage, needed: int) -> None:
        reserve = self.settings.run.disk_reserve_mb
        free = place.free_bytes()
        if free is not None and free - needed < reserve * MB:
            wanted = f", {needed / MB:.1f} MB are needed" if needed else ""
            lower = ", or lower --run.disk-reserve-mb," if reserve else ""
            raise DiskLow(
                f"Only {free / MB:.1f} MB are free at {place.url}{wanted}; "
                f"{reserve} MB are reserved.",
                f"Free some space{lower} and run the same command again.",
            )


def usable_processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_current: Session | None = None
_current_lock = threading.RLock()
_held = ExitStack()


def begin(settings: Settings, lock: bool = True) -> Session:
    """Open this process's session for a run, or return it if it is open already.

    Args:
        settings: The run's settings.
        lock: Whether the run writes: its output is then held until :func:`end`.

    Raises:
        OutputInUse: Another run holds the output.
    """
    global _current
    with _current_lock:
        if _current is None or _current.settings != settings:
            end()
            still_ours = None
            if lock:
                output = Storage(settings.output)
                still_ours = _held.enter_context(locked(output, settings.shard))
            try:
                # Only now: what the ledger holds must not change any more.
                _current = Session(settings, Progress())
                if still_ours:
                    _current.output.fence = still_ours
            except BaseException:
                _held.close()
                raise
        return _current


def current() -> Session:
    """This process's open session.

    Raises:
        StopRun: There is none: the run was stopped, and what it had queued must not go on.
    """
    session = _current
    if session is None:
        raise StopRun("The run was stopped.", "Run the same command again; it goes on from here.")
    return session


def end() -> None:
    """Close the session and give back what it holds."""
    global _current
    with _current_lock:
        session, _current = _current, None
        try:
            if session is not None:
                session.close()
        finally:
            _held.close()
