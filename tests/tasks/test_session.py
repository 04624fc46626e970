"""The session: jobs in order, a second try in isolation, faults in the user's words."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from models.errors import (
    BadSettings,
    DamagedPage,
    DiskLow,
    InputFault,
    OutOfMemory,
    PageTimeout,
    StopRun,
    StorageGone,
    UnreadableFile,
    WorkerDied,
    WorkerKilled,
    WorkersGone,
)
from models.records import Pdf
from models.settings import Settings
from tasks import session
from tasks.cluster import work_on_dask
from tasks.session import Job, Session
from tests.tasks import jobs
from tests.tasks.conftest import OpenSession

STAGED = "/scratch/0a1b2c.pdf"
PDF = Pdf(name="1887/a.pdf", path="memory://in/1887/a.pdf")


def job(function: Any, *args: Any, index: int | None = 6, pdf: Pdf = PDF) -> Job[Any]:
    return Job(pdf, STAGED, function, args, index)


@pytest.fixture
def run(open_session: OpenSession, tmp_path: Path) -> Session:
    settings = {"workers": 2, "disk_reserve_mb": 0, "worker_memory_mb": 512, "page_timeout_s": 1}
    return open_session(tmp_path, tmp_path / "out", run=settings)


def only(run: Session, *args: Any, **options: Any) -> Any:
    ((_, answer),) = run.map([job(*args, **options)])
    return answer


def test_answers_come_in_the_order_of_the_jobs(run: Session) -> None:
    asked = [job(jobs.sleep_then, 0.02 * (n % 3), n) for n in range(40)]
    answered = list(run.map(iter(asked)))
    assert [answer for _, answer in answered] == list(range(40))
    assert [one for one, _ in answered] == asked


def test_few_jobs_are_under_way_at_a_time(run: Session) -> None:
    asked = 0

    def endless() -> Any:
        nonlocal asked
        while True:
            asked += 1
            yield job(jobs.double, asked)

    answers = run.map(endless())
    assert [next(answers)[1] for _ in range(20)] == [2 * n for n in range(1, 21)]
    assert asked <= 20 + session.WINDOW * 2
    answers.close()


def test_a_job_that_costs_its_worker_is_tried_again_alone(run: Session, tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    asked = [job(jobs.double, n) for n in range(5)]
    asked.insert(2, job(jobs.kill_self_once, mark))
    assert [answer for _, answer in run.map(asked)] == [0, 2, "survived", 4, 6, 8]


@pytest.mark.parametrize(
    ("function", "args", "kind", "message"),
    [
        (
            jobs.kill_self,
            (),
            WorkerKilled,
            "1887/a.pdf, page 7: its worker process was killed by SIGKILL (tried twice)",
        ),
        (
            jobs.kill_self,
            (signal.SIGSEGV,),
            WorkerDied,
            "1887/a.pdf, page 7: its worker process was killed by SIGSEGV (tried twice)",
        ),
        (
            jobs.hang_in_c,
            (),
            PageTimeout,
            "1887/a.pdf, page 7: took longer than 1 s (tried twice)",
        ),
        (jobs.allocate, (2000,), OutOfMemory, "1887/a.pdf, page 7: not enough memory"),
        (jobs.damaged, (), DamagedPage, "1887/a.pdf, page 7: page 7 is torn"),
        (jobs.raise_picky, (), InputFault, "1887/a.pdf, page 7: Picky: one"),
        (int, ("x",), InputFault, "1887/a.pdf, page 7: ValueError: invalid literal"),
        (open, (STAGED,), UnreadableFile, "1887/a.pdf, page 7 cannot be read: No such file"),
        (jobs.blame, (STAGED,), DamagedPage, "1887/a.pdf, page 7 is torn"),
    ],
)
def test_a_fault_has_the_name_the_user_knows(
    run: Session, function: Any, args: tuple[Any, ...], kind: type, message: str
) -> None:
    answer = only(run, function, *args)
    assert type(answer) is kind
    assert str(answer).startswith(message)
    assert STAGED not in str(answer) and answer.cure
    assert only(run, jobs.double, 2) == 4


def test_a_machine_on_which_every_worker_dies_condemns_no_page(
    run: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.work.probe", jobs.kill_self_with)
    with pytest.raises(WorkersGone, match=r"page known to be good.*SIGABRT"):
        only(run, jobs.kill_self, signal.SIGSEGV)
    assert only(run, jobs.double, 2) == 4


def test_a_machine_on_which_everything_hangs_condemns_no_page(
    run: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.session.PROBE_S", 1.0)
    monkeypatch.setattr("tasks.work.probe", jobs.hang_in_c_with)
    with pytest.raises(WorkersGone, match=r"page 7 .*page known to be good.*stalled") as stopped:
        only(run, jobs.hang_in_c)
    assert "network mount" in stopped.value.cure
    with pytest.raises(WorkersGone, match="stalled"):
        only(run, jobs.kill_self, signal.SIGSEGV)
    assert only(run, jobs.double, 2) == 4


def test_a_storage_that_hangs_condemns_no_page(
    run: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The renderer is well, and the PDF cannot be read to see whether the page is at fault."""
    monkeypatch.setattr("tasks.session.PROBE_S", 5.0)
    os.mkfifo(tmp_path / "a.pdf")  # opening it waits for ever, as a dead mount makes one wait
    stuck = Job(PDF, str(tmp_path / "a.pdf"), jobs.hang_in_c, (), 6)
    with pytest.raises(WorkersGone, match="stalled"):
        list(run.map([stuck]))


def test_a_page_that_met_a_stall_is_not_condemned_once_it_passed(
    run: Session, tmp_path: Path
) -> None:
    mark = str(tmp_path / "mark")
    assert only(run, jobs.hang_once, mark) == "survived"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOTCONN, errno.ESTALE])
def test_a_storage_that_cannot_be_read_condemns_no_pdf(run: Session, code: int) -> None:
    with pytest.raises(StorageGone, match=r"1887/a\.pdf: ") as stopped:
        only(run, jobs.fail_to_read, code, index=None)
    assert "mount" in stopped.value.cure


def test_workers_killed_page_after_page_stop_the_run(run: Session) -> None:
    row = session.MOST_KILLED
    few = [job(jobs.be_killed) for _ in range(row - 1)]
    answers = [answer for _, answer in run.map([*few, job(jobs.double, 2), *few])]
    assert answers.pop(row - 1) == 4
    assert {type(answer) for answer in answers} == {WorkerKilled}
    with pytest.raises(WorkersGone, match=f"workers of {row} pages in a row were killed"):
        list(run.map([job(jobs.be_killed)]))


def test_a_pdf_s_own_password_is_tried_first(open_session: OpenSession, tmp_path: Path) -> None:
    read = {"passwords": ["all"], "password_of": {"1887/*": "year", "1887/[1].pdf": "one"}}
    run = open_session(tmp_path, tmp_path / "out", read=read)

    def tried(name: str) -> tuple[str, ...]:
        return run.passwords(Pdf(name=name, path=name))

    assert tried("1887/a.pdf") == ("year", "all")
    assert tried("1887/[1].pdf") == ("year", "one", "all"), "a name is no pattern"
    assert tried("a.pdf") == ("all",)


def test_a_fault_of_a_whole_pdf_names_no_page(run: Session) -> None:
    answer = only(run, jobs.kill_self, index=None)
    assert str(answer).startswith("1887/a.pdf: its worker")


def test_nothing_seen_of_a_file_that_changed_is_believed(run: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"one")
    status = path.stat()
    stamp = str(status.st_mtime_ns)
    pdf = Pdf(name="a.pdf", path=str(path), size=3, stamp=stamp)
    assert only(run, jobs.double, 2, pdf=pdf) == 4
    os.utime(path, ns=(0, 0))
    answer = only(run, jobs.double, 2, pdf=pdf)
    assert isinstance(answer, UnreadableFile) and "changed while" in str(answer)
    path.unlink()
    assert isinstance(only(run, jobs.damaged, pdf=pdf), UnreadableFile)


def test_what_nobody_waits_for_any_more_is_not_done(run: Session, tmp_path: Path) -> None:
    marks = [tmp_path / f"mark-{n}" for n in range(8)]
    asked = [job(jobs.mark_then_sleep, str(mark), 0.2) for mark in marks]
    answers = run.map(asked)
    next(answers)
    answers.close()  # as a storage that fails makes it
    assert only(run, jobs.double, 2) == 4
    assert sum(mark.exists() for mark in marks) < 7


def test_low_disk_stops_the_run(open_session: OpenSession, tmp_path: Path) -> None:
    run = open_session(tmp_path, tmp_path / "out", run={"disk_reserve_mb": 10_000_000})
    with pytest.raises(DiskLow, match=f"free at {tmp_path}/out; 10000000 MB are reserved") as low:
        run.check_space()
    assert "--run.disk-reserve-mb" in low.value.cure
    run = open_session(tmp_path, tmp_path / "out", run={"disk_reserve_mb": 0})
    run.check_space()
    with pytest.raises(DiskLow, match=r"1000000000\.0 MB are needed"):
        run.check_space(10**9 << 20)


@pytest.mark.parametrize("resumed", [False, True])
def test_the_room_the_rest_needs_is_told_from_what_is_written(
    resumed: bool, open_session: OpenSession, tmp_path: Path
) -> None:
    run = open_session(tmp_path, tmp_path / "out")
    if resumed:
        run.output.write("images/v/p0001-1.jpg", bytes(600))
        assert run.images
    else:
        run.count(cut=1)
        run.output.write("images/v/p0001-1.jpg", bytes(600))
    run.output.write("images/v/p0002-1.jpg", bytes(400))
    run.progress.start(10)
    assert run.outlook() == ""
    run.progress.advance(2, kept=2)
    # 5 kB of samples, of which 1 is there, and as much for the ZIP.
    assert "About 9.0 kB more are needed" in run.outlook()
    assert "2 of 10 pages are done" in run.outlook()
    # Triage dropped two more, and found four that wait to be cut: 6 kept pages of 8.
    run.progress.advance(2)
    run.count(kept=4 + run.cut)
    assert "About 6.5 kB more are needed" in run.outlook()


def test_a_run_that_ended_does_not_come_back(tmp_path: Path) -> None:
    settings = Settings(source="a", output=str(tmp_path), run={"workers": 1})
    try:
        run = session.begin(settings)
        assert session.begin(settings.model_copy(deep=True)) is run is session.current()
        pool = run.pool
        other = session.begin(settings.model_copy(update={"strict": True}))
        assert other is session.current() and other is not run
        assert not pool._thread.is_alive(), "the first is closed"
    finally:
        session.end()
    session.end()
    caught: list[BaseException] = []

    def late_task() -> None:
        try:
            session.current()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=late_task)
    thread.start()
    thread.join()
    assert isinstance(caught[0], StopRun)


def test_a_probe_killed_from_outside_is_no_broken_installation(
    run: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.work.probe", jobs.be_killed)
    answer = only(run, jobs.kill_self, signal.SIGSEGV)
    assert type(answer) is WorkerDied


def test_scratch_too_has_a_reserve_where_files_go_through_it(
    open_session: OpenSession, tmp_path: Path, memory: Any
) -> None:
    scratch = {"disk_reserve_mb": 10_000_000, "scratch": str(tmp_path / "scratch")}
    run = open_session(tmp_path, "memory://out", run=scratch)
    with pytest.raises(DiskLow, match=f"free at {tmp_path}/scratch"):
        run.check_space()


def test_the_output_is_given_back_whatever_closing_meets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(source="a", output=str(tmp_path), run={"workers": 1})
    run = session.begin(settings)
    real = run.close

    def broken() -> None:
        real()
        raise OSError("no")

    monkeypatch.setattr(run, "close", broken)
    with pytest.raises(OSError, match="no"):
        session.end()
    session.begin(settings)
    session.end()


def test_a_cluster_is_not_sent_what_only_this_machine_has(
    open_session: OpenSession, tmp_path: Path
) -> None:
    dask = {"runner": "dask", "dask_address": "tcp://127.0.0.1:9"}
    for output, path in ((tmp_path, "s3://bucket/a.pdf"), ("s3://bucket/out", "/in/a.pdf")):
        run = open_session(tmp_path, tmp_path / "out", run={"workers": 1, **dask})
        run.settings = run.settings.model_copy(update={"output": str(output)})
        with pytest.raises(BadSettings, match="is not on S3"):
            work_on_dask(run, [Pdf(name="a.pdf", path=path)])
