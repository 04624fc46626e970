"""The worker pool with real processes that are really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from pathlib import Path
from typing import Any

import psutil
import pytest

from models.errors import DamagedPage, InputFault, PageTimeout, WorkerDied
from tasks.pool import WorkerPool
from tests.tasks import jobs

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0
"""Seconds until a test gives up; nothing here should take more than a few."""


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(workers=2, memory_mb=512, jobs_per_worker=1000)
    yield pool
    closer = threading.Thread(target=pool.close, daemon=True)
    closer.start()
    closer.join(PATIENCE)
    assert not closer.is_alive(), "close() hangs"


@pytest.fixture
def single() -> Iterator[WorkerPool]:
    pool = WorkerPool(workers=1, memory_mb=512, jobs_per_worker=1000)
    yield pool
    pool.close()


def ask(pool: WorkerPool, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    options.setdefault("timeout_s", PATIENCE)
    return pool.submit(function, *args, **options).result(PATIENCE)


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.01)
    raise TimeoutError(condition)


def test_answers_come_to_their_own_questions(pool: WorkerPool) -> None:
    futures = [pool.submit(jobs.double, n, timeout_s=PATIENCE) for n in range(200)]
    assert [future.result(PATIENCE) for future in futures] == [2 * n for n in range(200)]
    assert pool.peak_worker_bytes > 10_000_000


def test_many_threads_may_submit(pool: WorkerPool) -> None:
    answers: dict[int, int] = {}

    def work(start: int) -> None:
        for number in range(start, start + 25):
            answers[number] = ask(pool, jobs.double, number)

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert answers == {n: 2 * n for start in range(0, 800, 100) for n in range(start, start + 25)}


@pytest.mark.parametrize(
    ("function", "args", "how"),
    [
        (jobs.kill_self, (), "SIGKILL"),
        (jobs.kill_self, (signal.SIGTERM,), "SIGTERM"),
        (jobs.kill_self, (signal.SIGRTMIN + 1,), "signal 35"),
        (jobs.segfault, (), "SIGSEGV"),
        (jobs.exit_quietly, (7,), "ended with 7"),
        (jobs.exit_quietly, (0,), "ended with 0"),
    ],
)
def test_a_worker_that_dies_loses_its_own_job_alone(
    pool: WorkerPool, function: Callable[..., None], args: tuple[Any, ...], how: str
) -> None:
    futures = []
    for n in range(30):
        if n in (3, 4, 17):
            futures.append(pool.submit(function, *args, timeout_s=PATIENCE))
        else:
            futures.append(pool.submit(jobs.double, n, timeout_s=PATIENCE))
    for n, future in enumerate(futures):
        if n in (3, 4, 17):
            with pytest.raises(WorkerDied, match=how):
                future.result(PATIENCE)
        else:
            assert future.result(PATIENCE) == 2 * n


@pytest.mark.parametrize(
    "function", [jobs.hang_in_c, jobs.loop_forever, jobs.ignore_signals_and_hang]
)
def test_a_job_that_hangs_is_killed_at_its_limit(
    pool: WorkerPool, function: Callable[[], None]
) -> None:
    begun = time.monotonic()
    hung = pool.submit(function, timeout_s=0.5)
    others = [pool.submit(jobs.double, n, timeout_s=PATIENCE) for n in range(20)]
    with pytest.raises(PageTimeout, match=r"longer than 0\.5 s"):
        hung.result(PATIENCE)
    assert time.monotonic() - begun >= 0.5
    assert [other.result(PATIENCE) for other in others] == [2 * n for n in range(20)]


def test_the_limit_of_a_waiting_job_begins_when_it_does(single: WorkerPool) -> None:
    first = single.submit(jobs.sleep_then, 1.2, "first", timeout_s=PATIENCE)
    second = single.submit(jobs.sleep_then, 0.0, "second", timeout_s=0.9)
    assert first.result(PATIENCE) == "first"
    assert second.result(PATIENCE) == "second"


def test_memory_is_capped(pool: WorkerPool) -> None:
    with pytest.raises(MemoryError):
        ask(pool, jobs.allocate, 2000)
    assert ask(pool, jobs.allocate, 100) == 100 << 20


def test_large_answers_and_questions_pass(pool: WorkerPool) -> None:
    assert len(ask(pool, jobs.blob, 5_000_000)) == 5_000_000
    assert ask(pool, jobs.count_bytes, bytes(5_000_000)) == 5_000_000


def test_large_questions_wait_for_their_worker(single: WorkerPool) -> None:
    """A question larger than the pipe, behind a job that answers at length or not at all."""
    answers = [single.submit(jobs.blob, 5_000_000, timeout_s=PATIENCE) for _ in range(3)]
    counts = [single.submit(jobs.count_bytes, bytes(5_000_000), timeout_s=PATIENCE)]
    assert [len(answer.result(PATIENCE)) for answer in answers] == [5_000_000] * 3
    assert counts[0].result(PATIENCE) == 5_000_000
    hung = single.submit(jobs.hang_in_c, timeout_s=0.5)
    count = single.submit(jobs.count_bytes, bytes(5_000_000), timeout_s=PATIENCE)
    with pytest.raises(PageTimeout):
        hung.result(10)
    assert count.result(PATIENCE) == 5_000_000


def test_errors_of_the_project_keep_their_cure(pool: WorkerPool) -> None:
    with pytest.raises(DamagedPage, match="page 7 is torn") as caught:
        ask(pool, jobs.damaged)
    assert caught.value.cure == "Glue it."


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (jobs.raise_picky, "Picky: one"),
        (jobs.raise_local, "Local: holds a lock"),
        (jobs.return_unpicklable, "pickle"),
        (jobs.return_bomb, "TypeError"),
        (jobs.leave, "SystemExit"),
    ],
)
def test_what_cannot_travel_fails_its_own_job_and_says_why(
    single: WorkerPool, function: Callable[[], Any], words: str
) -> None:
    before = ask(single, jobs.pid)
    with pytest.raises(InputFault, match=words) as caught:
        ask(single, function)
    assert not isinstance(caught.value, WorkerDied)
    assert ask(single, jobs.pid) == before, "the worker need not die of it"


def test_what_cannot_be_sent_is_the_callers_error(single: WorkerPool) -> None:
    for _ in range(20):  # more often than there is room in the queue
        with pytest.raises((TypeError, AttributeError)):
            single.submit(jobs.pid, threading.Lock(), timeout_s=PATIENCE)
    assert ask(single, jobs.double, 4) == 8


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_worker_killed_while_idle_fails_nothing(single: WorkerPool) -> None:
    for _ in range(5):
        worker = psutil.Process(ask(single, jobs.pid))
        worker.kill()
        until(lambda worker=worker: has_ended(worker))
        assert ask(single, jobs.double, 21) == 42


def test_a_worker_killed_from_outside_fails_the_job_it_was_at(
    single: WorkerPool, tmp_path: Path
) -> None:
    mark = tmp_path / "begun"
    first = single.submit(jobs.mark_then_sleep, str(mark), PATIENCE, timeout_s=PATIENCE)
    second = single.submit(jobs.pid, timeout_s=PATIENCE)
    third = single.submit(jobs.pid, timeout_s=PATIENCE)
    killed = int(until(lambda: mark.exists() and mark.read_text()))
    os.kill(killed, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        first.result(PATIENCE)
    assert second.result(PATIENCE) != killed
    assert third.result(PATIENCE) == second.result(PATIENCE)


def test_an_isolated_job_has_a_fresh_worker_for_itself(pool: WorkerPool) -> None:
    before = {ask(pool, jobs.pid) for _ in range(4)}
    futures: list[Future[int]] = [
        pool.submit(jobs.pid, n, timeout_s=PATIENCE, isolated=n % 3 == 0) for n in range(12)
    ]
    pids = [future.result(PATIENCE) for future in futures]
    alone = pids[::3]
    assert len(set(alone)) == len(alone)
    assert not set(alone) & before
    assert not set(alone) & {p for n, p in enumerate(pids) if n % 3}


def test_workers_are_replaced_after_their_share_of_jobs() -> None:
    pool = WorkerPool(workers=1, memory_mb=512, jobs_per_worker=5)
    try:
        # All at once, so that the worker always has a next job waiting.
        futures = []
        feeder = threading.Thread(
            target=lambda: futures.extend(
                pool.submit(jobs.pid, timeout_s=PATIENCE) for _ in range(23)
            )
        )
        feeder.start()
        feeder.join(PATIENCE)
        pids = [future.result(PATIENCE) for future in futures]
    finally:
        pool.close()
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [5, 5, 5, 5, 3]


def test_a_cancelled_job_is_not_done(single: WorkerPool, tmp_path: Path) -> None:
    busy = single.submit(jobs.sleep_then, 0.3, timeout_s=PATIENCE)
    waiting = [
        single.submit(jobs.mark_then_sleep, str(tmp_path / f"{n}"), 0.0, timeout_s=PATIENCE)
        for n in range(3)
    ]
    for future in waiting:
        future.cancel()
    busy.result(PATIENCE)
    assert ask(single, jobs.double, 1) == 2
    # One may have been in the worker's pipe already.
    assert len(list(tmp_path.iterdir())) <= 1


def test_closing_wakes_everybody() -> None:
    pool = WorkerPool(workers=1, memory_mb=512, jobs_per_worker=1000)
    ended: list[BaseException | object] = []

    def work() -> None:
        try:
            ended.append(ask(pool, jobs.sleep_then, PATIENCE))
        except BaseException as error:
            ended.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(16)]
    for thread in threads:
        thread.start()
    until(lambda: pool._crew and pool._crew[0].jobs)
    begun = time.monotonic()
    pool.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert time.monotonic() - begun < PATIENCE / 2
    assert len(ended) == 16 and {type(e) for e in ended} == {CancelledError}
    with pytest.raises(CancelledError):
        ask(pool, jobs.double, 1)
    pool.close()


def test_the_loss_of_the_process_that_starts_workers_is_survived(pool: WorkerPool) -> None:
    worker = psutil.Process(ask(pool, jobs.pid))
    worker.parent().kill()
    with pytest.raises(WorkerDied):
        ask(pool, jobs.kill_self)
    futures = [pool.submit(jobs.double, n, timeout_s=PATIENCE) for n in range(10)]
    assert [future.result(PATIENCE) for future in futures] == [2 * n for n in range(10)]
    assert ask(pool, jobs.pid, isolated=True)


def test_two_pools_leave_the_main_module_alone() -> None:
    main = sys.modules["__main__"]
    pools = [WorkerPool(workers=2, memory_mb=512, jobs_per_worker=1) for _ in range(3)]
    try:
        futures = [
            pool.submit(jobs.double, n, timeout_s=PATIENCE) for n in range(8) for pool in pools
        ]
        wait(futures, PATIENCE)
    finally:
        for pool in pools:
            pool.close()
    assert sys.modules["__main__"] is main


def test_workers_import_neither_prefect_nor_torch(pool: WorkerPool) -> None:
    loaded = {name.partition(".")[0] for name in ask(pool, jobs.modules)}
    assert not loaded & {"prefect", "torch", "fsspec", "pytest"}


MAIN = """
import sys
import prefect
from tasks.pool import WorkerPool
from tests.tasks import jobs

if __name__ == "__main__":
    pool = WorkerPool(2, 512, 100)
    loaded = pool.submit(jobs.modules, timeout_s=60).result()
    print("prefect" in loaded, pool.submit(jobs.main_module, timeout_s=60).result())
    print(pool.submit(jobs.pid, timeout_s=60).result(), flush=True)
    for _ in range(4):
        pool.submit(jobs.sleep_then, float(sys.argv[1]), timeout_s=60)
    sys.stdin.read()
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    """Start a program that imports Prefect and uses a pool, as ``python -m``."""
    (tmp_path / "program_with_pool.py").write_text(MAIN)
    started: list[subprocess.Popen[str]] = []

    def start(seconds: float) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "program_with_pool", str(seconds)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_main_module_is_not_imported_into_workers(
    parent: Callable[[float], subprocess.Popen[str]],
) -> None:
    process = parent(0)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("False (None, None)")


def test_no_process_outlives_a_killed_parent(
    parent: Callable[[float], subprocess.Popen[str]],
) -> None:
    process = parent(1.5)
    assert process.stdout is not None
    process.stdout.readline()
    int(process.stdout.readline())
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 2
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, PATIENCE)
    assert not alive
