"""The main job as a user runs it: a real command, a real Prefect server, real kills."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

Extract = Callable[..., tuple[int, str]]
PUBLISHED = ("dataset.zip", "manifest.jsonl", "pages.jsonl", "quarantine.jsonl")


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def published(output: Path) -> dict[str, str]:
    return {name: hashlib.sha256((output / name).read_bytes()).hexdigest() for name in PUBLISHED}


@pytest.fixture(scope="module")
def truth(demo: Path) -> list[dict]:
    return lines(demo / "truth.jsonl")


@pytest.fixture(scope="module")
def finished(
    demo: Path, extract: Extract, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A finished dataset of the demo archive, and what its run printed."""
    output = tmp_path_factory.mktemp("finished") / "dataset"
    code, printed = extract("--source", demo, "--output", output)
    assert code == 0, printed
    return output, printed


def test_every_page_is_accounted_for(finished: tuple[Path, str], truth: list[dict]) -> None:
    output, _ = finished
    readable = sorted((t["pdf"], t["page"]) for t in truth if t["page"] is not None)
    pages = [(line["pdf"], line["page_index"]) for line in lines(output / "pages.jsonl")]
    assert pages == sorted(pages)
    # The renderer may find the first, empty page of a torn file; nothing else comes on top.
    torn = {(t["pdf"], 0) for t in truth if t["kind"] == "broken"}
    assert set(readable) <= set(pages) <= set(readable) | torn
    summary = json.loads((output / "summary.json").read_text())
    counts = summary["pages"]
    assert counts["total"] == len(pages)
    assert counts["total"] == counts["kept"] + counts["dropped"] + counts["quarantined"]
    outcomes = Counter(line["outcome"] for line in lines(output / "pages.jsonl"))
    assert outcomes["kept"] == counts["kept"] > 0
    assert sum(summary["dropped"].values()) == counts["dropped"]


def test_files_that_cannot_be_read_are_quarantined_with_a_cure(
    finished: tuple[Path, str], truth: list[dict]
) -> None:
    output, _ = finished
    quarantine = lines(output / "quarantine.jsonl")
    unreadable = {t["pdf"]: t["kind"] for t in truth if t["page"] is None}
    expected = {
        "broken": {"truncated_pdf", "damaged_pdf", "damaged_page"},
        "locked": {"encrypted_pdf"},
        "html": {"not_a_pdf"},
    }
    assert {line["pdf"] for line in quarantine} == set(unreadable)
    for line in quarantine:
        assert line["kind"] in expected[unreadable[line["pdf"]]]
        assert line["pdf"] in line["message"] and line["cure"]


def test_the_manifest_describes_the_files(finished: tuple[Path, str]) -> None:
    output, _ = finished
    samples = lines(output / "manifest.jsonl")
    assert samples
    on_disk = {str(p.relative_to(output)) for p in (output / "images").rglob("*.jpg")}
    assert {sample["file_name"] for sample in samples} == on_disk
    for sample in samples:
        data = (output / sample["file_name"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == sample["sha256"]
        x0, y0, x1, y1 = sample["box"]
        width, height = sample["page_size"]
        assert 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height
        # SDXL buckets: sides in steps of 64, no larger than the area of 1024 x 1024.
        assert sample["width"] % 64 == 0 and sample["height"] % 64 == 0
        assert sample["width"] * sample["height"] <= 1024**2
        assert sample["pdf_sha256"].encode() in data  # provenance inside the file


def test_the_zip_holds_images_and_manifest(finished: tuple[Path, str]) -> None:
    output, _ = finished
    with zipfile.ZipFile(output / "dataset.zip") as archive:
        assert archive.testzip() is None
        members = archive.infolist()
        names = [member.filename for member in members]
        assert names == sorted(names)
        assert {m.compress_type for m in members} == {zipfile.ZIP_STORED}
        assert {m.date_time for m in members} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.read("manifest.jsonl") == (output / "manifest.jsonl").read_bytes()
        samples = lines(output / "manifest.jsonl")
        assert set(names) == {"manifest.jsonl", *(sample["file_name"] for sample in samples)}


def test_the_end_of_a_run_is_a_table_and_nothing_else(finished: tuple[Path, str]) -> None:
    output, printed = finished
    for word in ("pages", "kept", "dropped", "quarantined", "pages/s", "peak memory", str(output)):
        assert word in printed.replace("\n", "")
    assert "Traceback" not in printed and "WARNING" not in printed
    assert len(printed.splitlines()) < 20


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    demo: Path,
    finished: tuple[Path, str],
    start_extract: Callable,
    extract: Extract,
    tmp_path: Path,
) -> None:
    output = tmp_path / "dataset"
    arguments = ("--source", demo, "--output", output)
    looked_before = 0
    kills = 0
    # Killed once during triage, then as soon as more samples and more again are on the disk.
    for wanted in (0, 2, 5, 9):
        process = start_extract(*arguments)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            looks = sum(
                p.read_bytes().count(b"\n") for p in output.glob(".intaglio/looks/**/*.jsonl")
            )
            samples = len(list(output.glob("images/*/*.jpg")))
            if looks > looked_before and samples >= wanted:
                break
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
            looked_before = min(looks, 30)
        process.wait()
    assert kills >= 3
    code, printed = extract(*arguments)
    assert code == 0, printed
    assert published(output) == published(finished[0])
    assert not list(output.rglob("*.partial"))


def test_a_second_run_does_nothing_and_says_so(
    demo: Path, finished: tuple[Path, str], extract: Extract
) -> None:
    output, _ = finished
    before = {p: p.stat().st_mtime_ns for p in output.rglob("*") if p.is_file()}
    started = time.monotonic()
    code, printed = extract("--source", demo, "--output", output)
    assert code == 0 and "Nothing to do" in printed
    assert "Starting Prefect" not in printed
    after = {p: p.stat().st_mtime_ns for p in output.rglob("*") if p.is_file()}
    changed = {p.name for p in after if before.get(p) != after[p]}
    assert changed <= {"owner.json", "lock"}
    assert time.monotonic() - started < 30


@pytest.fixture
def copied(demo: Path, finished: tuple[Path, str], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the archive and of its finished dataset, to be changed."""
    shutil.copytree(demo, tmp_path / "archive")
    shutil.copytree(finished[0], tmp_path / "dataset")
    return tmp_path / "archive", tmp_path / "dataset"


def test_a_new_pdf_is_the_only_one_worked(
    demo: Path, copied: tuple[Path, Path], extract: Extract
) -> None:
    source, output = copied
    looks = {p: p.stat().st_mtime_ns for p in output.glob(".intaglio/looks/**/*.jsonl")}
    samples = {p: p.stat().st_mtime_ns for p in output.glob("images/**/*.jpg")}
    new = source / "new.pdf"
    data = (source / "1887" / "ladies-mirror-1887-03.pdf").read_bytes()
    new.write_bytes(data + b"\n% another copy, with other bytes\n")
    code, printed = extract("--source", source, "--output", output)
    assert code == 0, printed
    assert {p: p.stat().st_mtime_ns for p in looks} == looks
    assert {p: p.stat().st_mtime_ns for p in samples} == samples
    added = [line for line in lines(output / "pages.jsonl") if line["pdf"] == "new.pdf"]
    assert added and (output / "images" / "new").is_dir()
    assert len(list(output.glob(".intaglio/looks/**/*.jsonl"))) == len(looks) + 1


def test_renaming_and_copying_a_pdf_redoes_nothing(
    copied: tuple[Path, Path], extract: Extract
) -> None:
    source, output = copied
    samples = {p: p.stat().st_mtime_ns for p in output.glob("images/**/*.jpg")}
    old = source / "1887" / "ladies-mirror-1887-03.pdf"
    old.rename(source / "renamed.pdf")
    shutil.copy(source / "renamed.pdf", source / "the same again.pdf")
    code, printed = extract("--source", source, "--output", output)
    assert code == 0, printed
    assert {p: p.stat().st_mtime_ns for p in output.glob("images/**/*.jpg")} == samples
    named = {line["pdf"] for line in lines(output / "manifest.jsonl")}
    assert "renamed.pdf" in named and "1887/ladies-mirror-1887-03.pdf" not in named
    again = [x for x in lines(output / "pages.jsonl") if x["pdf"] == "the same again.pdf"]
    assert {line["reason"] for line in again} == {"duplicate"}


def test_a_changed_setting_redoes_what_depends_on_it(
    copied: tuple[Path, Path], extract: Extract
) -> None:
    source, output = copied
    looks = {p: p.stat().st_mtime_ns for p in output.glob(".intaglio/looks/**/*.jsonl")}
    before = {line["file_name"]: line["sha256"] for line in lines(output / "manifest.jsonl")}
    arguments = ("--source", source, "--output", output)
    code, printed = extract(*arguments, "--encode.quality", 50)
    assert code == 0, printed
    after = {line["file_name"]: line["sha256"] for line in lines(output / "manifest.jsonl")}
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    # Triage does not depend on the quality of the JPEGs.
    assert {p: p.stat().st_mtime_ns for p in output.glob(".intaglio/looks/**/*.jsonl")} == looks
    # And back again: the files were overwritten, so the old records must not be believed.
    code, printed = extract(*arguments)
    assert code == 0, printed
    again = {line["file_name"]: line["sha256"] for line in lines(output / "manifest.jsonl")}
    assert again == before


def test_a_stricter_threshold_cuts_nothing_anew(
    copied: tuple[Path, Path], extract: Extract
) -> None:
    source, output = copied
    samples = {p: p.stat().st_mtime_ns for p in output.glob("images/**/*.jpg")}
    code, printed = extract("--source", source, "--output", output, "--triage.min-area", 0.2)
    assert code == 0, printed
    left = {p: p.stat().st_mtime_ns for p in output.glob("images/**/*.jpg")}
    assert left.items() < samples.items()


@pytest.mark.parametrize("lost", ["summary.json", "quarantine.jsonl", "dataset.zip"])
def test_a_lost_result_is_written_again(
    lost: str, copied: tuple[Path, Path], extract: Extract
) -> None:
    source, output = copied
    before = published(output)
    (output / lost).unlink()
    code, printed = extract("--source", source, "--output", output)
    assert code == 0 and "Nothing to do" not in printed, printed
    assert published(output) == before and (output / "summary.json").exists()


def test_where_nothing_is_usable_the_quarantine_says_why(extract: Extract, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "error.pdf").write_text("<html>404")
    code, printed = extract("--source", tmp_path / "in", "--output", tmp_path / "out")
    assert code == 4 and "1 not_a_pdf" in printed, printed
    assert [line["kind"] for line in lines(tmp_path / "out" / "quarantine.jsonl")] == ["not_a_pdf"]


def test_a_lost_sample_is_made_again(copied: tuple[Path, Path], extract: Extract) -> None:
    source, output = copied
    before = published(output)
    next(output.glob("images/*/*.jpg")).unlink()
    code, printed = extract("--source", source, "--output", output)
    assert code == 0, printed
    assert published(output) == before
    manifest = lines(output / "manifest.jsonl")
    assert all((output / sample["file_name"]).exists() for sample in manifest)


def test_dry_run_says_what_would_be_done_and_writes_nothing(
    demo: Path, extract: Extract, tmp_path: Path
) -> None:
    code, printed = extract("--source", demo, "--output", tmp_path / "dataset", "--dry-run")
    assert code == 0
    for word in ("PDFs", "pages", "estimated disk", "estimated time", "encrypted_pdf"):
        assert word in printed
    assert not (tmp_path / "dataset").exists()


def test_strict_ends_with_4_when_anything_was_quarantined(
    demo: Path, finished: tuple[Path, str], extract: Extract
) -> None:
    code, printed = extract("--source", demo, "--output", finished[0], "--strict")
    assert code == 4, printed


def test_the_password_opens_the_locked_pdf(
    demo: Path, copied: tuple[Path, Path], extract: Extract
) -> None:
    from tests.resources.make_demo import PASSWORD

    source, output = copied
    locked = {x["pdf"] for x in lines(output / "quarantine.jsonl") if x["kind"] == "encrypted_pdf"}
    code, printed = extract("--source", source, "--output", output, "--read.passwords", PASSWORD)
    assert code == 0, printed
    assert not [x for x in lines(output / "quarantine.jsonl") if x["pdf"] in locked]
    assert locked <= {line["pdf"] for line in lines(output / "pages.jsonl")}
    settings = json.loads((output / "summary.json").read_text())["settings"]
    assert settings["read"]["passwords"] == ["**********"]


def test_the_article_preset_gives_whole_pages_at_1024(
    demo: Path, extract: Extract, tmp_path: Path
) -> None:
    source = demo / "1887" / "ladies-mirror-1887-03.pdf"
    code, printed = extract(
        "--source",
        source,
        "--output",
        tmp_path,
        "--preset",
        "article",
        "--triage.sigma-threshold",
        20,
    )
    assert code == 0, printed
    samples = lines(tmp_path / "manifest.jsonl")
    assert samples
    for sample in samples:
        assert (sample["width"], sample["height"]) == (1024, 1024)
        assert sample["box"] == [0.0, 0.0, *sample["page_size"]]


def test_interrupting_ends_with_130_and_is_resumable(
    demo: Path,
    finished: tuple[Path, str],
    start_extract: Callable,
    extract: Extract,
    tmp_path: Path,
) -> None:
    output = tmp_path / "dataset"
    arguments = ("--source", demo, "--output", output)
    for number in (signal.SIGINT, signal.SIGTERM):
        shutil.rmtree(output, ignore_errors=True)
        process = start_extract(*arguments)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not list(output.glob(".intaglio/looks/**/*.jsonl")):
            time.sleep(0.01)
        asked = time.monotonic()
        process.send_signal(number)
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 130, printed
        assert time.monotonic() - asked < 10
        assert "Traceback" not in printed
    code, printed = extract(*arguments)
    assert code == 0, printed
    assert published(output) == published(finished[0])


def test_a_second_run_at_the_same_time_is_refused(
    demo: Path, start_extract: Callable, extract: Extract, tmp_path: Path
) -> None:
    arguments = ("--source", demo, "--output", tmp_path / "dataset")
    first = start_extract(*arguments)
    deadline = time.monotonic() + 120
    while not (tmp_path / "dataset" / ".intaglio" / "owner.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    code, printed = extract(*arguments)
    assert code == 3
    assert str(first.pid) in printed
    first.communicate(timeout=120)
    assert first.returncode == 0
