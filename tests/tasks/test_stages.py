"""The stages one after the other without Prefect: triage, extract, publish, package, plan."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tasks import package, triage
from tasks.discover import discover
from tasks.extract import Group, extract_pages, group_size
from tasks.plan import estimate, finished
from tasks.publish import publish
from tasks.report import contact_sheet, rows
from tests.resources.fault_files import PASSWORD
from tests.resources.make_faults import MAKERS
from tests.tasks.conftest import MakePdf, OpenSession, tree
from tests.tasks.staged import lines, read_published, work


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
