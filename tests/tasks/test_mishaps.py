"""What goes wrong in the middle of the stages: nothing is lost, nothing false stays behind."""

from __future__ import annotations

import random
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from models.errors import DiskLow, StorageRefused
from models.records import Cut, Look
from tasks import extract, triage
from tasks.discover import discover
from tasks.extract import Group, extract_pages
from tasks.ledger import STATE, Ledger
from tasks.publish import publish
from tasks.session import Session
from tasks.storage import Storage
from tests.faults import stages
from tests.tasks.conftest import MakePdf, OpenSession, tree
from tests.tasks.staged import lines, read_published, work


def test_a_storage_that_fails_at_any_write_loses_nothing(
    tmp_path: Path,
    make_pdf: MakePdf,
    open_session: OpenSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk is full at the nth write, for each n; each time the next run goes on."""
    (tmp_path / "a.pdf").write_bytes(make_pdf("ptp"))
    (tmp_path / "bad.pdf").write_bytes(b"<html>404")
    reference = open_session(tmp_path, tmp_path / "reference")
    work(reference)
    run = open_session(tmp_path, tmp_path / "out")
    real, calls, fails_at = Storage.writer, 0, 0

    def full(self: Storage, name: str) -> Any:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise DiskLow(f"No space left while writing {name}.")
        return real(self, name)

    monkeypatch.setattr(Storage, "writer", full)
    for fails_at in range(1, 100):
        calls = 0
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        forget(run)
        try:
            work(run)
        except DiskLow:
            forget(run)
            work(run)
        assert read_published(run.output) == read_published(reference.output)
        if calls < fails_at:
            break
    assert fails_at > 8, "there are that many writes at least"


def forget(run: Session) -> None:
    """Let a session know no more than a new process would, and keep its workers."""
    run.looks = Ledger(run.output, "looks", Look)
    run.cuts = Ledger(run.output, "cuts", Cut)
    run.__dict__.pop("images", None)


def test_of_a_large_group_that_stops_the_finished_pages_stay(
    tmp_path: Path,
    make_pdf: MakePdf,
    open_session: OpenSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf("p" * 12))
    monkeypatch.setattr(extract, "SAVE_EVERY", 4)
    run = open_session(tmp_path / "a.pdf", tmp_path / "out")
    real = run.check_space
    calls = 0

    def low(*args: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 11:
            raise DiskLow("low")
        real(*args)

    (pdf,) = discover(run)
    pages = triage.triage(run, pdf)
    monkeypatch.setattr(run, "check_space", low)
    with pytest.raises(DiskLow):
        extract_pages(run, Group(pdf, pages))
    run = open_session(tmp_path / "a.pdf", tmp_path / "out")
    assert len(triage.triage(run, pdf)) == 12 - 8
    assert run.looked == 0


def test_a_pdf_that_vanishes_during_the_run_is_quarantined_and_tried_again(
    source: Path, output: str, open_session: OpenSession, tmp_path: Path
) -> None:
    run = open_session(source, output)
    archive = discover(run)
    by_name = {pdf.name: pdf for pdf in archive}
    path = source / "1887" / "b.pdf"
    path.rename(tmp_path / "b.pdf")
    assert triage.triage(run, by_name["1887/b.pdf"]) == []
    pages = triage.triage(run, by_name["a.pdf"])
    (source / "a.pdf").rename(tmp_path / "a.pdf")
    extract_pages(run, Group(by_name["a.pdf"], pages))
    summary = publish(run, archive)
    assert summary.quarantined == {"not_a_pdf": 1, "unreadable_file": 4 + 1}
    messages = [line["message"] for line in lines(run.output, "quarantine.jsonl")]
    assert any("1887/b.pdf" in message for message in messages)
    assert not any(str(tmp_path) in message for message in messages)
    (tmp_path / "b.pdf").rename(path)
    (tmp_path / "a.pdf").rename(source / "a.pdf")
    assert work(open_session(source, output)).quarantined == {"not_a_pdf": 1}


def test_a_remote_pdf_that_vanishes_during_the_run_is_quarantined_and_tried_again(
    source: Path, open_session: OpenSession, tmp_path: Path, memory: Any
) -> None:
    for path in source.rglob("*.pdf"):
        memory.pipe_file(f"/in/{path.relative_to(source)}", path.read_bytes())
    options = {"workers": 1, "disk_reserve_mb": 0, "scratch": str(tmp_path / "scratch")}
    run = open_session("memory://in", tmp_path / "out", run=options)
    archive = discover(run)
    run.staging.close()
    run = open_session("memory://in", tmp_path / "out", run=options)
    memory.rm_file("/in/1887/b.pdf")
    for pdf in archive:
        if not pdf.fault and not pdf.duplicate_of and (pages := triage.triage(run, pdf)):
            extract_pages(run, Group(pdf, pages))
    assert publish(run, archive).quarantined == {"not_a_pdf": 1, "unreadable_file": 4}
    memory.pipe_file("/in/1887/b.pdf", (source / "1887" / "b.pdf").read_bytes())
    run.close()
    run = open_session("memory://in", tmp_path / "out", run=options)
    assert work(run).quarantined == {"not_a_pdf": 1}
    local = open_session(source, tmp_path / "local")
    work(local)
    assert read_published(run.output) == read_published(local.output)
    run.close()
    assert tree(tmp_path / "scratch") == {}


def test_a_pdf_that_grows_during_the_run_leaves_no_false_records(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make_pdf("pp"))
    run = open_session(path, tmp_path / "out")
    archive = discover(run)
    path.write_bytes(make_pdf("tt"))
    assert triage.triage(run, archive[0]) == []
    assert publish(run, archive).quarantined == {"unreadable_file": 2}
    (line, _) = lines(run.output, "quarantine.jsonl")
    assert "changed while the run was going on" in line["message"]
    path.write_bytes(make_pdf("pp"))
    summary = work(open_session(path, tmp_path / "out"))
    assert summary.pages.kept == 2


def test_a_fault_is_kept_until_the_limits_change(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.tasks import jobs

    (tmp_path / "a.pdf").write_bytes(make_pdf("pt"))
    limits = {"workers": 1, "disk_reserve_mb": 0, "page_timeout_s": 30.0}
    run = open_session(tmp_path / "a.pdf", tmp_path / "out", run=limits)
    (pdf,) = discover(run)
    with monkeypatch.context() as patch:
        patch.setattr("tasks.work.look", jobs.kill_self_with)
        assert triage.triage(run, pdf) == []
    assert run.looked == 2
    same = open_session(tmp_path / "a.pdf", tmp_path / "out", run=limits)
    assert triage.triage(same, pdf) == [] and same.looked == 0
    limits["page_timeout_s"] = 60.0
    other = open_session(tmp_path / "a.pdf", tmp_path / "out", run=limits)
    assert len(triage.triage(other, pdf)) == 1 and other.looked == 2


def test_a_page_whose_worker_was_killed_from_outside_gets_another_chance(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.tasks import jobs

    (tmp_path / "a.pdf").write_bytes(make_pdf("pt"))
    run = open_session(tmp_path / "a.pdf", tmp_path / "out")
    (pdf,) = discover(run)
    with monkeypatch.context() as patch:
        patch.setattr("tasks.work.look", jobs.be_killed)
        assert triage.triage(run, pdf) == []
    publish(run, [pdf])
    assert {line["kind"] for line in lines(run.output, "quarantine.jsonl")} == {"worker_killed"}
    again = open_session(tmp_path / "a.pdf", tmp_path / "out")
    assert len(triage.triage(again, pdf)) == 1 and again.looked == 2


@pytest.fixture
def comes_again(tmp_path: Path) -> Callable[[], None]:
    """Makes a dataset in ``out``; called, it works on it again, and finds it as it was."""
    settings = stages.settings_for(stages.make_archive(tmp_path / "in"), tmp_path / "out")
    stages.work(settings)
    before = stages.tree(tmp_path / "out")

    def again() -> None:
        stages.work(settings)
        assert stages.tree(tmp_path / "out") == before

    return again


def test_a_garbled_ledger_gives_the_same_dataset(
    tmp_path: Path, comes_again: Callable[[], None]
) -> None:
    """Bytes that change a volume's name or a figure are as bad as those that are no JSON."""
    dice = random.Random(5)
    for chosen in (string.ascii_lowercase.encode(), bytes(range(256))) * 2:
        ledger = sorted((tmp_path / "out" / ".intaglio").rglob("*.jsonl"))
        assert len(ledger) > 4
        for path in ledger:
            data = bytearray(path.read_bytes())
            for _ in range(20):
                data[dice.randrange(len(data))] = dice.choice(chosen)
            path.write_bytes(data)
        comes_again()
    path = tmp_path / "out" / ".intaglio" / "archive.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"volume":"three"', b'"volume":"thrae"'))
    comes_again()


def test_records_in_another_pdfs_file_are_not_believed(
    tmp_path: Path, comes_again: Callable[[], None]
) -> None:
    for stage in ("looks", "cuts"):
        files = sorted((tmp_path / "out" / ".intaglio" / stage).rglob("*.jsonl"))
        assert len(files) > 1
        whole = [path.read_bytes() for path in files]
        for path, data in zip(files, [*whole[1:], whole[0]], strict=True):
            path.write_bytes(data)
    comes_again()


def test_a_ledger_of_an_earlier_version_is_made_anew(
    tmp_path: Path, comes_again: Callable[[], None]
) -> None:
    for path in (tmp_path / "out" / ".intaglio").rglob("*.jsonl"):
        rest = [line.partition(b" ")[2] for line in path.read_bytes().splitlines()]
        path.write_bytes(b"".join(b"%08x %b\n" % (crc32(line), line) for line in rest))
    comes_again()


@pytest.mark.parametrize("line", [0, -1])
def test_a_damaged_manifest_is_written_anew(
    tmp_path: Path, comes_again: Callable[[], None], line: int
) -> None:
    path = tmp_path / "out" / "manifest.jsonl"
    written = path.read_bytes().splitlines(keepends=True)
    written[line] = written[line].replace(b'"', b"\xff", 1)
    path.write_bytes(b"".join(written))
    comes_again()


def test_a_ledger_that_is_removed_in_mid_run_stops_the_run_which_can_be_resumed(
    source: Path, output: str, open_session: OpenSession
) -> None:
    reference = open_session(source, output + "-reference")
    work(reference)
    run = open_session(source, output)
    archive = discover(run)
    for pdf in archive:
        if pdf.is_worked:
            for page in triage.triage(run, pdf):
                extract_pages(run, Group(pdf, [page]))
    state = run.output.path(STATE)
    run.output.fs.rm(state, recursive=True)
    with pytest.raises(StorageRefused, match=f"{STATE} vanished"):
        publish(run, archive)
    again = open_session(source, output)
    work(again)
    assert read_published(again.output) == read_published(reference.output)
