"""Discovery: what is found, under which name, and what is the same."""

from __future__ import annotations

import errno
import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings, StorageGone
from models.records import Pdf
from tasks.discover import discover, find_pdfs, name_volumes
from tasks.storage import Storage
from tests.tasks.conftest import MakePdf, OpenSession

NO_OUTPUT = "/nowhere/output"


def names(source: object, output: object = NO_OUTPUT) -> list[str]:
    return [pdf.name for pdf in find_pdfs(str(source), Storage(str(output)))]


def touch(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(path.encode())


def test_folders_are_searched_through_whatever_the_case(tmp_path: Path) -> None:
    touch(tmp_path, "b.PDF", "a.pdf", "1887/x/y/c.Pdf", "notes.txt", "pdf", "d.pdf.part")
    assert names(tmp_path) == ["1887/x/y/c.Pdf", "a.pdf", "b.PDF"]
    assert names(f"{tmp_path}/") == names(tmp_path)


def test_a_relative_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "in/a.pdf")
    monkeypatch.chdir(tmp_path)
    for source in ("in", "./in", "in/../in/", "."):
        assert names(source) == ["in/a.pdf" if source == "." else "a.pdf"]


def test_one_file_is_a_source_whatever_its_ending(tmp_path: Path) -> None:
    touch(tmp_path, "a.pdf", "b.bin")
    assert names(tmp_path / "a.pdf") == ["a.pdf"]
    assert names(tmp_path / "b.bin") == ["b.bin"]


def test_a_glob(tmp_path: Path) -> None:
    touch(tmp_path, "1887/a.pdf", "1887/b.pdf", "1888/a.pdf", "1888/deep/c.PDF", "1889.txt")
    assert names(f"{tmp_path}/*/a.pdf") == ["1887/a.pdf", "1888/a.pdf"]
    assert names(f"{tmp_path}/188[7]/*") == ["1887/a.pdf", "1887/b.pdf"]
    everything = ["1887/a.pdf", "1887/b.pdf", "1888/a.pdf", "1888/deep/c.PDF"]
    assert names(f"{tmp_path}/*") == everything
    assert names(f"{tmp_path}/**") == everything, "each once, however many ways lead there"
    assert names(f"{tmp_path}/1890/*.pdf") == []


def test_a_file_whose_name_looks_like_a_glob_or_a_url_is_that_file(tmp_path: Path) -> None:
    touch(tmp_path, "[1887] *?.pdf", "a::b.pdf", "file:c.pdf", "~.pdf")
    found = find_pdfs(str(tmp_path), Storage(NO_OUTPUT))
    assert [pdf.name for pdf in found] == ["[1887] *?.pdf", "a::b.pdf", "file:c.pdf", "~.pdf"]
    assert all(not pdf.fault and pdf.size == len(pdf.name) for pdf in found)
    assert names(tmp_path / "[1887] *?.pdf") == ["[1887] *?.pdf"]


def test_a_list_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "in/a.pdf", "in/b c.pdf", "in/é.pdf")
    absolute = tmp_path / "in" / "b c.pdf"
    text = f"\ufeffin/a.pdf\r\n\n# a comment\n{absolute}\nin/é.pdf\nin/a.pdf\nin/none.pdf\nin"
    (tmp_path / "list.TXT").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = find_pdfs("list.TXT", Storage(NO_OUTPUT))
    good = [pdf.name for pdf in found if not pdf.fault]
    # Named from the folder that holds them all: nothing of this machine gets into a dataset.
    assert good == ["in/a.pdf", "in/b c.pdf", "in/é.pdf"]
    bad = {pdf.name: pdf.fault.message for pdf in found if pdf.fault}
    assert "No such file" in bad["in/none.pdf"]
    assert "no regular file" in bad["in"]


def test_a_folder_called_like_a_list_is_a_folder(tmp_path: Path) -> None:
    touch(tmp_path, "folder.txt/a.pdf")
    assert names(tmp_path / "folder.txt") == ["a.pdf"]


@pytest.mark.parametrize("source", ["nowhere", "nowhere.txt", "memory://nowhere", "no://such"])
def test_a_source_that_is_not_there_is_a_bad_setting(source: str, memory: Any) -> None:
    with pytest.raises(BadSettings, match=source):
        names(source)


def test_a_url(memory: Any) -> None:
    for path in ("/in/a.pdf", "/in/1887/b.PDF", "/in/c.txt", "/other/d.pdf"):
        memory.pipe_file(path, b"12345")
    found = find_pdfs("memory://in", Storage("memory://out"))
    assert [pdf.name for pdf in found] == ["1887/b.PDF", "a.pdf"]
    assert {pdf.size for pdf in found} == {5} and all(pdf.stamp for pdf in found)
    assert found[1].path == "memory:///in/a.pdf"
    assert names("memory://in/a.pdf") == ["a.pdf"]
    assert names("memory://in/*.pdf") == ["a.pdf"]
    memory.pipe_file("/in/out/images/x.pdf", b"1")
    assert names("memory://in", "memory://in/out") == ["1887/b.PDF", "a.pdf"]


def test_an_output_inside_the_source_is_left_out(tmp_path: Path) -> None:
    touch(tmp_path, "a.pdf", "out/b.pdf", "output/c.pdf")
    assert names(tmp_path, tmp_path / "out") == ["a.pdf", "output/c.pdf"]


def test_a_source_inside_the_output_is_worked(tmp_path: Path) -> None:
    touch(tmp_path, "a.pdf", "in/b.pdf")
    assert names(tmp_path / "in", tmp_path) == ["b.pdf"]
    assert names(tmp_path, tmp_path) == ["a.pdf", "in/b.pdf"]


def test_loops_of_links_end(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.pdf")
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "self.pdf").symlink_to("self.pdf")
    (tmp_path / "a" / "gone.pdf").symlink_to("nowhere.pdf")
    (tmp_path / "a" / "link.pdf").symlink_to("x.pdf")
    for source, found in ((tmp_path, "a/"), (f"{tmp_path}/a/**", "")):
        pdfs = find_pdfs(str(source), Storage(NO_OUTPUT))
        assert [pdf.name for pdf in pdfs if not pdf.fault] == [found + "link.pdf", found + "x.pdf"]
    faults = {pdf.name: pdf.fault for pdf in find_pdfs(str(tmp_path), Storage(NO_OUTPUT))}
    assert all(faults[f"a/{name}.pdf"].kind == "unreadable_file" for name in ("self", "gone"))


def test_linked_folders_are_entered_once(tmp_path: Path) -> None:
    touch(tmp_path, "elsewhere/1887/x.pdf", "archive/y.pdf")
    for name in ("one", "two"):
        (tmp_path / "archive" / name).symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "archive") == ["one/1887/x.pdf", "y.pdf"]
    assert names(tmp_path / "archive" / "*") == ["one/1887/x.pdf", "y.pdf"]


def test_what_is_no_file_is_at_fault_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "zero.pdf").symlink_to("/dev/zero")
    (tmp_path / "folder.pdf").mkdir()
    touch(tmp_path, "folder.pdf/a.pdf")
    found = find_pdfs(str(tmp_path), Storage(NO_OUTPUT))
    assert [(pdf.name, bool(pdf.fault)) for pdf in found] == [
        ("folder.pdf/a.pdf", False),
        ("pipe.pdf", True),
        ("zero.pdf", True),
    ]
    assert "no regular file" in found[1].fault.message


@contextmanager
def unprivileged() -> Iterator[None]:
    """Without the rights of root, if this is root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that anybody may enter."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o700)
    shutil.rmtree(folder)


def test_a_folder_that_refuses_to_be_read_does_not_vanish(public: Path) -> None:
    touch(public, "a.pdf", "secret/b.pdf")
    (public / "secret").chmod(0)
    with unprivileged():
        found = find_pdfs(str(public), Storage(NO_OUTPUT))
    assert [pdf.name for pdf in found] == ["a.pdf", "secret/"]
    assert "Permission denied" in found[1].fault.message


HARD_NAMES = [
    "with space.pdf",
    " lead and trail .pdf",
    "-rf.pdf",
    "new\nline.pdf",
    "quo\"te's.pdf",
    "back\\slash.pdf",
    "漢字.pdf",
    "📰.pdf",
    ".pdf",
    "..pdf",
    "%s%d{0}.pdf",
    "[bold]x.pdf",
    "A.pdf",
    "a.pdf",
    unicodedata.normalize("NFC", "é.pdf"),
    unicodedata.normalize("NFD", "é.pdf"),
    "x" * 251 + ".pdf",
    os.fsdecode(b"caf\xe9.pdf"),
    os.fsdecode(b"\xff\xfe.pdf"),
]


def test_whatever_a_file_is_called_it_is_worked_and_remembered(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, name in enumerate(HARD_NAMES):
        (folder / name).write_bytes(make_pdf("b", title=str(number)))
    run = open_session(folder, tmp_path / "out")
    archive = discover(run)
    assert not [pdf for pdf in archive if pdf.fault]
    assert len(archive) == len(HARD_NAMES)
    volumes = [pdf.volume for pdf in archive]
    assert len({volume.casefold() for volume in volumes}) == len(HARD_NAMES)
    assert all(volume.isascii() and 0 < len(volume) < 100 for volume in volumes)
    for pdf in archive:
        pdf.name.encode()
        assert Pdf.model_validate_json(pdf.model_dump_json()).name == pdf.name
    again = discover(open_session(folder, tmp_path / "out"))
    assert again == archive
    assert run.pool.peak_worker_bytes  # and so the first time they were read


def no_work(*_: object) -> None:
    raise AssertionError("nothing should be read")


def test_what_did_not_change_is_not_read_again(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "in/bad.pdf")
    (tmp_path / "in" / "a.pdf").write_bytes(make_pdf("bbb"))
    first = discover(open_session(tmp_path / "in", tmp_path / "out"))
    assert first[0].facts.page_count == 3 and first[1].fault.kind == "not_a_pdf"
    before = (tmp_path / "out" / ".intaglio" / "archive.jsonl").stat().st_mtime_ns
    monkeypatch.setattr("tasks.discover._identify", no_work)
    assert discover(open_session(tmp_path / "in", tmp_path / "out")) == first
    assert (tmp_path / "out" / ".intaglio" / "archive.jsonl").stat().st_mtime_ns == before


def test_a_fault_gets_another_chance_when_the_limits_change(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession, memory: Any
) -> None:
    big = make_pdf("b").ljust(11 << 20, b"\n")
    memory.pipe_file("/in/big.pdf", big)
    run = {"workers": 1, "scratch_budget_mb": 10, "scratch": str(tmp_path / "scratch")}
    (pdf,) = discover(open_session("memory://in", tmp_path / "out", run=run))
    assert pdf.fault and "scratch may take 10 MB" in pdf.fault.message
    run["scratch_budget_mb"] = 20
    (pdf,) = discover(open_session("memory://in", tmp_path / "out", run=run))
    assert not pdf.fault and pdf.facts.page_count == 1


def test_a_file_that_could_not_be_reached_is_tried_again(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in" / "a.pdf"
    touch(tmp_path, "in/a.pdf")
    path.write_bytes(make_pdf("b"))

    def list_then_lose(*args: Any) -> list[Pdf]:
        found = find_pdfs(*args)
        path.rename(tmp_path / "elsewhere")
        return found

    with monkeypatch.context() as patch:
        patch.setattr("tasks.discover.find_pdfs", list_then_lose)
        (pdf,) = discover(open_session(tmp_path / "in", tmp_path / "out"))
    assert pdf.fault.kind == "unreadable_file"
    assert "a.pdf cannot be read: No such file" in pdf.fault.message
    assert str(tmp_path) not in pdf.fault.message
    (tmp_path / "elsewhere").rename(path)  # with the same size and date as before
    (pdf,) = discover(open_session(tmp_path / "in", tmp_path / "out"))
    assert not pdf.fault


def test_the_same_bytes_are_worked_once(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.pdf", "a.pdf", "c.pdf"):
        (tmp_path / "in" / name).write_bytes(make_pdf("b"))
    archive = discover(open_session(tmp_path / "in", tmp_path / "out"))
    assert [pdf.duplicate_of for pdf in archive] == [None, "a.pdf", "a.pdf"]
    assert {pdf.volume for pdf in archive} == {"a"}


def test_zero_pdfs(tmp_path: Path, open_session: OpenSession) -> None:
    (tmp_path / "in").mkdir()
    assert discover(open_session(tmp_path / "in", tmp_path / "out")) == []


def test_discovery_without_memory_writes_nothing(
    tmp_path: Path, make_pdf: MakePdf, open_session: OpenSession
) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf("b"))
    discover(open_session(tmp_path / "a.pdf", tmp_path / "out"), remember=False)
    assert not (tmp_path / "out").exists()


def pdf(name: str, number: int) -> Pdf:
    return Pdf(name=name, path=name, sha256=hashlib.sha256(bytes([number])).hexdigest())


def test_volumes_are_stable_whatever_the_files_are_called_later() -> None:
    first = name_volumes([pdf("A.pdf", 1), pdf("a.pdf", 2), pdf("x/a.pdf", 3)], {})
    volumes = {p.sha256: p.volume for p in first}
    assert first[0].volume == "a" and len(set(volumes.values())) == 3
    later = name_volumes([pdf("0/a.pdf", 4), pdf("renamed.pdf", 1), pdf("z/a.pdf", 3)], volumes)
    assert later[1].volume == first[0].volume
    assert later[2].volume == first[2].volume
    assert later[0].volume not in volumes.values()


def test_volumes_differ_even_where_a_file_is_called_like_anothers_hash() -> None:
    last = pdf("d/issue.pdf", 4)
    hashed = f"Issue-{(last.sha256 or '')[:8]}"
    others = [pdf(f"a/{hashed}.pdf", 1), pdf(f"b/{hashed}-2.pdf", 2), pdf("c/issue.pdf", 3)]
    named = name_volumes([*others, last], {})
    hashed = hashed.lower()
    assert [p.volume for p in named] == [hashed, f"{hashed}-2", "issue", f"{hashed}-3"]
    later = name_volumes([pdf("0/issue.pdf", 5), *named], {p.sha256: p.volume for p in named})
    assert later[1:] == named and later[0].volume not in {p.volume for p in named}


def test_a_killed_discovery_forgets_no_volume(
    tmp_path: Path,
    make_pdf: MakePdf,
    open_session: OpenSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.pdf").write_bytes(make_pdf("b", title=str(n)))
    first = discover(open_session(folder, tmp_path / "out"))
    for n in range(3):
        (folder / f"{n}.pdf").rename(folder / f"renamed-{n}.pdf")

    def killed(*_: Any) -> Callable[..., Any]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tasks.discover.SAVE_EVERY", 1)
        patch.setattr("tasks.discover.name_volumes", killed)
        with pytest.raises(KeyboardInterrupt):
            discover(open_session(folder, tmp_path / "out"))
    later = discover(open_session(folder, tmp_path / "out"))
    assert [p.volume for p in later] == [p.volume for p in first] == ["0", "1", "2"]


@pytest.mark.parametrize("error", [OSError(errno.EBUSY, "Slow down"), TimeoutError("hangs")])
def test_a_server_that_is_busy_condemns_no_pdf(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """A PDF at fault loses its samples at the end of the run."""
    memory.pipe_file("/in/a.pdf", b"1")
    (tmp_path / "list.txt").write_text("memory://in/a.pdf\nmemory://in/gone.pdf\n")
    source = str(tmp_path / "list.txt")
    found = {pdf.name: bool(pdf.fault) for pdf in find_pdfs(source, Storage(NO_OUTPUT))}
    assert found == {"a.pdf": False, "gone.pdf": True}

    def busy(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(type(memory), "info", busy)
    with pytest.raises(StorageGone, match=r"list\.txt"):
        find_pdfs(source, Storage(NO_OUTPUT))
