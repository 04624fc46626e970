"""The stages one after the other without Prefect: triage, extract, publish, package, plan."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from models.errors import DiskLow
from models.records import Cut, Look, Summary
from tasks import extract, package, triage
from tasks.discover import discover
from tasks.extract import Group, extract_pages, group_size
from tasks.ledger import Ledger
from tasks.plan import estimate, finished, remember_published
from tasks.publish import SUMMARY, publish
from tasks.report import contact_sheet, rows
from tasks.session import Session
from tasks.storage import Storage
from tests.resources.fault_files import PASSWORD
from tests.resources.make_faults import MAKERS
from tests.tasks.conftest import MakePdf, OpenSession, tree

PUBLISHED = ("dataset.zip", "manifest.jsonl", "pages.jsonl", "quarantine.jsonl")


@pytest.fixture
def source(tmp_path: Path, make_pdf: MakePdf) -> Path:
    folder = tmp_path / "in"
    (folder / "1887").mkdir(parents=True)
    (folder / "1887" / "b.pdf").write_bytes(make_pdf("ptpb", title="B & <co>"))
    (folder / "a.pdf").write_bytes(make_pdf("btp", title="A"))
    (folder / "copy of a.pdf").write_bytes(make_pdf("btp", title="A"))
    (folder / "bad.pdf").write_bytes(b"<html>404")
    return folder


def work(run: Session, pages_per_task: int = 2) -> Summary:
    """What the flow does."""
    archive = discover(run)
    for pdf in archive:
        if not pdf.fault and not pdf.duplicate_of:
            pages = triage.triage(run, pdf)
            for start in range(0, len(pages), pages_per_task):
                extract_pages(run, Group(pdf, pages[start : start + pages_per_task]))
    summary = publish(run, archive)
    package.package(run)
    run.output.write(SUMMARY, summary.model_dump_json().encode())
    remember_published(run, archive)
    return summary


def read_published(output: Storage) -> dict[str, str]:
    return {name: hashlib.sha256(output.read(name)).hexdigest() for name in PUBLISHED}


def lines(output: Storage, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.lines(name)]


def test_every_page_ends_in_one_place(source: Path, output: str, open_session: OpenSession) -> None:
    run = open_session(source, output)
    summary = work(run)
    pages = lines(run.output, "pages.jsonl")
    assert [(page["pdf"], page["page_index"]) for page in pages] == [
        *(("1887/b.pdf", n) for n in range(4)),
        *(("a.pdf", n) for n in range(3)),
        *(("copy of a.pdf", n) for n in range(3)),
    ]
    outcomes = Counter((page["outcome"], page["reason"]) for page in pages)
    assert outcomes == {
        ("kept", "sigma"): 3,
        ("dropped", "low_sigma"): 4,
        ("dropped", "duplicate"): 3,
    }
    counts = summary.pages
    assert counts.total == counts.kept + counts.dropped + counts.quarantined == 10
    assert summary.pdfs.model_dump() == {"total": 4, "kept": 2, "dropped": 1, "quarantined": 1}
    (bad,) = lines(run.output, "quarantine.jsonl")
    assert (bad["pdf"], bad["page_index"], bad["kind"]) == ("bad.pdf", None, "not_a_pdf")
    assert bad["cure"] and "bad.pdf" in bad["message"]
    manifest = lines(run.output, "manifest.jsonl")
    for sample in manifest:
        data = run.output.read(sample["file_name"])
        assert hashlib.sha256(data).hexdigest() == sample["sha256"]
        assert len(data) == sample["bytes"]
    assert [s["file_name"] for s in manifest] == [n for page in pages for n in page["samples"]]
    assert contact_sheet(run.output)
    assert dict(rows(summary, "x"))["pages"] == "10"


def test_pages_of_mended_pdfs_are_marked(tmp_path: Path, open_session: OpenSession) -> None:
    for name in ("broken_xref", "plain"):
        (tmp_path / f"{name}.pdf").write_bytes(MAKERS[name]())
    run = open_session(tmp_path, tmp_path / "out")
    work(run)
    marks = {(page["pdf"], page["repaired"]) for page in lines(run.output, "pages.jsonl")}
    assert marks == {("broken_xref.pdf", True), ("plain.pdf", False)}


def test_a_password_given_for_one_pdf_opens_it(tmp_path: Path, open_session: OpenSession) -> None:
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(MAKERS["user_password"]() + name.encode())
    summary = work(open_session(tmp_path, tmp_path / "out"))
    assert summary.quarantined == {"encrypted_pdf": 2}
    run = open_session(tmp_path, tmp_path / "out", read={"password_of": {"b*": PASSWORD}})
    assert work(run).quarantined == {"encrypted_pdf": 1}
    assert {page["pdf"] for page in lines(run.output, "pages.jsonl")} == {"b.pdf"}
    assert PASSWORD not in json.dumps(run.settings.model_dump(mode="json"))


def test_the_order_of_work_does_not_show(
    source: Path, output: str, open_session: OpenSession, tmp_path: Path
) -> None:
    work(run := open_session(source, output))
    other = open_session(source, tmp_path / "other", run={"workers": 2, "disk_reserve_mb": 0})
    archive = discover(other)
    for pdf in reversed(archive):
        if not pdf.fault and not pdf.duplicate_of:
            for page in reversed(triage.triage(other, pdf)):
                extract_pages(other, Group(pdf, [page]))
    publish(other, archive)
    package.package(other)
    assert read_published(other.output) == read_published(run.output)


def test_a_finished_run_has_nothing_to_do(
    source: Path, output: str, open_session: OpenSession
) -> None:
    run = open_session(source, output)
    assert not finished(run, discover(run))
    work(run)
    again = open_session(source, output)
    assert finished(again, discover(again))
    changed = open_session(source, output, encode={"quality": 50})
    assert not finished(changed, discover(changed))
    again.output.remove(lines(again.output, "manifest.jsonl")[0]["file_name"])
    again = open_session(source, output)
    assert not finished(again, discover(again)), "a sample is missing"


def test_an_estimate_changes_nothing(
    source: Path, tmp_path: Path, open_session: OpenSession
) -> None:
    fresh = open_session(source, tmp_path / "nothing")
    guess = estimate(fresh, discover(fresh, remember=False))
    assert (guess.pages, guess.left, guess.kept) == (10, 7, 3)
    assert guess.sample_bytes > 0 and guess.seconds > 0
    assert not (tmp_path / "nothing").exists()
    work(open_session(source, tmp_path / "out"))
    before = tree(tmp_path / "out")
    other = open_session(
        source, tmp_path / "out", encode={"quality": 50}, read={"max_megapixels": 2}
    )
    assert estimate(other, discover(other, remember=False)).left == 7
    assert tree(tmp_path / "out") == before
    same = open_session(source, tmp_path / "out")
    assert estimate(same, discover(same)).left == 0


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


def test_publishing_removes_stale_samples_and_nothing_of_the_users(
    source: Path, tmp_path: Path, open_session: OpenSession
) -> None:
    output = tmp_path / "out"
    ours = ["images/b/p0009-1.jpg", "images/gone/p12345-2.webp", "images/b/.p0001-1.jpg.partial"]
    foreign = ["images/holiday.jpg", "images/b/notes.txt", "images/x/y/p0001-1.jpg", "p0001-1.jpg"]
    for name in (*ours, *foreign):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_bytes(b"x")
    work(open_session(source, output))
    assert not [name for name in ours if (output / name).exists()]
    assert not [name for name in foreign if not (output / name).exists()]
    with zipfile.ZipFile(output / "dataset.zip") as archive:
        assert not set(archive.namelist()) & set(foreign)


def test_the_zip_is_the_same_whenever_it_is_made(
    source: Path, output: str, open_session: OpenSession
) -> None:
    run = open_session(source, output)
    work(run)
    first = run.output.read("dataset.zip")
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == sorted(names) and names[-1] == "manifest.jsonl"
        for member in archive.infolist():
            assert member.compress_type == zipfile.ZIP_STORED
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            assert member.external_attr >> 16 == 0o100644
            assert archive.read(member) == run.output.read(member.filename)
    assert package.package(run) == len(first)
    run.output.remove(package.PACKED)
    run.output.write("dataset.zip", b"damaged")
    assert package.packed_size(run.output) is None
    assert package.package(run) == len(first)
    assert run.output.read("dataset.zip") == first


def test_an_empty_dataset_is_packed_too(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession
) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf("bt"))
    run = open_session(tmp_path / "a.pdf", tmp_path / "out")
    summary = work(run)
    assert summary.samples == 0 and contact_sheet(run.output) is None
    with zipfile.ZipFile(tmp_path / "out" / "dataset.zip") as archive:
        assert archive.namelist() == ["manifest.jsonl"]


def test_metadata_of_any_size_is_survived(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession
) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf("pp", title="& < > ü " * 100_000))
    run = open_session(tmp_path / "a.pdf", tmp_path / "out")
    assert work(run).samples == 2
    assert max(len(line) for line in run.output.lines("manifest.jsonl")) < 10_000


@pytest.mark.parametrize(
    ("wanted", "pages", "size"),
    [
        ("auto", 1, 1),
        ("auto", 200, 1),
        ("auto", 201, 32),
        ("auto", 90_000, 113),
        (1, 90_000, 1),
        (7, 3, 7),
    ],
)
def test_groups_grow_with_the_archive(
    wanted: object, pages: int, size: int, open_session: OpenSession, tmp_path: Path
) -> None:
    settings = open_session("a", tmp_path, run={"pages_per_task": wanted}).settings
    assert group_size(settings, pages) == size
    assert -(-pages // size) <= 1000 or wanted != "auto"
