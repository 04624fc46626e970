"""Worker processes that may be killed: each owns one pipe, so that none can take others along.

MuPDF is not thread-safe, can hang in C code and can be made to crash by a bad page. Ready-made
pools share one channel among their workers: a worker killed while it holds the channel's lock
stops them all. Here a worker that dies or overruns its time loses its own job and nothing else.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import ForkingPickler
from tempfile import gettempdir
from time import monotonic
from types import ModuleType
from typing import Any, TypeVar

from models.errors import (
    BadSettings,
    InputFault,
    PageTimeout,
    WorkerDied,
    WorkerKilled,
    WorkersGone,
)
from tasks.worker import serve

T = TypeVar("T")


PRELOADED = ["tasks.work", "tasks.mupdf_open"]
"""Imported once, in the process that workers are forked from; the renderer alone takes seconds."""
AHEAD = 2
"""Jobs in a worker's pipe: the one it works on and the next, so that it never waits for us."""
LARGEST_AHEAD = 32_768
"""Bytes of a call that may wait in a pipe; a larger one might fill it, and we would wait."""
STUCK_S = 5.0
"""Seconds to wait for the end of a killed process; one that hangs in the kernel (a dead network
mount) ends later or never."""


@dataclass
class _Job:
    call: bytes
    timeout_s: float
    isolated: bool
    future: Future[Any] = field(default_factory=Future)

    def settle(self, value: Any, error: BaseException | None) -> None:
        """Give the answer to whoever waits for it, if anybody still does."""
        if not self.future.set_running_or_notify_cancel():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


@dataclass
class _Worker:
    process: ForkServerProcess
    pipe: Connection
    done: int = 0
    jobs: deque[_Job] = field(default_factory=deque)
    deadline: float = float("inf")

    def restart_clock(self) -> None:
        """Begin the time limit of the job that is now first."""
        self.deadline = monotonic() + self.jobs[0].timeout_s if self.jobs else float("inf")


class WorkerPool:
    """A fixed number of worker processes with a bounded queue before them.

    Args:
        workers: Number of processes.
        memory_mb: Address space each worker may take beyond what it starts with, in MB.
        jobs_per_worker: A worker is replaced by a fresh one after this many jobs.

    Attributes:
        peak_worker_bytes: Largest resident size any worker has reported so far.
    """

    def __init__(self, workers: int, memory_mb: int, jobs_per_worker: int) -> None:
        self.workers = workers
        self.peak_worker_bytes = 0
        self._memory_mb = memory_mb
        self._jobs_per_worker = jobs_per_worker
        self._context = multiprocessing.get_context("forkserver")
        _start_fork_server()
        self._crew: list[_Worker] = []
        self._queue: deque[_Job] = deque()
        self._room = threading.Semaphore((AHEAD + 2) * workers)
        self._lock = threading.Lock()
        self._closed = False
        self._failure: WorkersGone | None = None
        self._ear, self._bell = self._context.Pipe(duplex=False)
        self._thread = threading.Thread(target=self._run, name="worker-pool", daemon=True)
        self._thread.start()

    def submit(
        self, function: Callable[..., T], *args: Any, timeout_s: float, isolated: bool = False
    ) -> Future[T]:
        """Queue a call; waits while the queue is full.

        Args:
            function: A function of a module that imports neither Prefect nor torch.
            *args: Picklable arguments.
            timeout_s: Seconds after which its worker is killed.
            isolated: Run in a fresh worker that does nothing else before or after.

        Returns:
            A future. It raises :class:`PageTimeout` if the time ran out, :class:`WorkerDied` if
            the process ended, ``CancelledError`` if the pool was closed before,
            :class:`WorkersGone` if no process can be started, and otherwise what the function
            raised.
        """
        call = bytes(ForkingPickler.dumps((function, args, timeout_s)))
        self._room.acquire()
        job = _Job(call, timeout_s, isolated)
        job.future.add_done_callback(lambda _: self._room.release())
        with self._lock:
            if self._failure is not None:
                job.settle(None, self._failure)
            elif self._closed:
                job.future.cancel()
            else:
                self._queue.append(job)
                self._bell.send_bytes(b"!")
        return job.future

    def close(self) -> None:
        """Kill all workers and cancel what is queued."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._bell.send_bytes(b"!")
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed:
                self._turn()
        except Exception as error:
            why = f"The worker processes cannot go on: {error or type(error)}."
            self._failure = WorkersGone(why)
            self._failure.__cause__ = error
        with self._lock:
            self._closed = True
        for worker in list(self._crew):
            self._queue.extend(worker.jobs)
            self._retire(worker)
        for job in self._queue:
            if self._failure is None:
                job.future.cancel()
            job.settle(None, self._failure)

    def _turn(self) -> None:
        """Hand out jobs, wait until something happens, and see to it."""
        self._hand_out()
        crew = {worker.pipe: worker for worker in self._crew}
        soonest = min((worker.deadline for worker in self._crew), default=float("inf"))
        patience = None if soonest == float("inf") else max(0.0, soonest - monotonic())
        for ready in wait([self._ear, *crew], timeout=patience):
            if ready is self._ear:
                self._ear.recv_bytes()
            else:
                self._collect(crew[ready])  # type: ignore[index]
        for worker in [w for w in self._crew if w.deadline <= monotonic()]:
            limit = worker.jobs[0].timeout_s
            self._lose(worker, PageTimeout(f"took longer than {limit:g} s"))

    def _hand_out(self) -> None:
        """Give queued jobs to workers with room, in the order they came."""
        while self._queue:
            job = self._queue[0]
            if job.future.cancelled():
                self._queue.popleft().settle(None, None)
                continue
            worker = self._find_worker(job)
            if worker is None:
                return
            self._queue.popleft()
            worker.jobs.append(job)
            try:
                worker.pipe.send_bytes(job.call)
            except OSError:
                self._mourn(worker)
                continue
            if len(worker.jobs) == 1:
                worker.restart_clock()

    def _find_worker(self, job: _Job) -> _Worker | None:
        free = [
            w
            for w in self._crew
            if len(w.jobs) < (AHEAD if len(job.call) <= LARGEST_AHEAD else 1)
            and w.done + len(w.jobs) < self._jobs_per_worker
            and not any(j.isolated for j in w.jobs)
        ]
        idle = [worker for worker in free if not worker.jobs]
        if job.isolated and idle and len(self._crew) >= self.workers:
            self._retire(idle[0])
        if (job.isolated or not idle) and len(self._crew) < self.workers:
            return self._hire()
        return None if job.isolated else min(free, key=lambda w: len(w.jobs), default=None)

    def _collect(self, worker: _Worker) -> None:
        try:
            answer = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            self._mourn(worker)
            return
        try:
            value, error, peak_bytes = ForkingPickler.loads(answer)
        except Exception as reason:
            value, peak_bytes = None, 0
            error = InputFault(f"its answer cannot be read: {type(reason).__name__}: {reason}")
        job = worker.jobs.popleft()
        worker.restart_clock()
        worker.done += 1
        self.peak_worker_bytes = max(self.peak_worker_bytes, peak_bytes)
        if job.isolated or (worker.done >= self._jobs_per_worker and not worker.jobs):
            self._retire(worker)
        job.settle(value, error)

    def _mourn(self, worker: _Worker) -> None:
        """See to a worker that died by itself. If it was idle before, nobody's job is lost."""
        at_work = worker.deadline < float("inf") or not worker.done
        if not at_work:
            self._queue.extendleft(worker.jobs)
            self._retire(worker)
        else:
            self._lose(worker, _died(worker))

    def _lose(self, worker: _Worker, error: Exception) -> None:
        """Fail the job a worker was at; the one behind it goes back to the head of the queue."""
        job = worker.jobs.popleft()
        self._queue.extendleft(reversed(worker.jobs))
        self._retire(worker)
        job.settle(None, error)

    def _hire(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._memory_mb), daemon=True)
        with _HiddenMain():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._crew.append(worker)
        return worker

    def _retire(self, worker: _Worker) -> None:
        self._crew.remove(worker)
        worker.jobs.clear()
        worker.process.kill()
        worker.pipe.close()
        worker.process.join(STUCK_S)


def _died(worker: _Worker) -> WorkerDied:
    worker.process.join(STUCK_S)
    code = worker.process.exitcode
    if code is None or code >= 0:
        return WorkerDied(f"its worker process ended with {code}")
    known = {int(number): number.name for number in signal.Signals}
    how = f"its worker process was killed by {known.get(-code, f'signal {-code}')}"
    # A page can make its worker crash, but not send it these.
    from_outside = -code in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
    return WorkerKilled(how) if from_outside else WorkerDied(how)


def _start_fork_server() -> None:
    """Start the process that workers are forked from, deaf to the Ctrl-C that ends the run.

    Raises:
        BadSettings: Temporary files lie too deep for its socket.
    """
    forkserver.set_forkserver_preload(PRELOADED)
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        forkserver.ensure_running()
    except OSError as error:
        if "AF_UNIX" not in str(error):
            raise
        raise BadSettings(
            f"The folder for temporary files has too long a path for a socket: {gettempdir()}.",
            "Name a shorter one (TMPDIR=folder, some 70 characters at most).",
        ) from error
    finally:
        if main:
            signal.signal(signal.SIGINT, before)


class _HiddenMain:
    """Keeps ``multiprocessing`` from importing the main module into the workers.

    Under ``python -m flows.extract`` that module imports Prefect: two seconds and 80 MB for each
    worker.
    """

    _lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._main: ModuleType = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")

    def __exit__(self, *_: object) -> None:
        sys.modules["__main__"] = self._main
        self._lock.release()
