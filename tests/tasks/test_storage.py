"""Storage: a name appears when all its bytes are there, or never."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pydantic import ValidationError

from flows.command import parse
from models.errors import BadSettings, DiskLow, StorageGone, StorageRefused
from models.handoff import HandoffSettings
from models.settings import holds_password
from tasks.discover import find_pdfs
from tasks.places import filesystem
from tasks.storage import Storage, named_errors
from tests.tasks.conftest import tree


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, memory: Any) -> Storage:
    return Storage(str(tmp_path / "out") if request.param == "local" else "memory://bucket/out")


def test_what_is_written_can_be_read_listed_and_removed(storage: Storage) -> None:
    storage.write("a/b/c.txt", b"one\ntwo\n")
    storage.write("d.txt", b"")
    assert storage.read("a/b/c.txt") == b"one\ntwo\n"
    assert list(storage.lines("a/b/c.txt")) == [b"one", b"two"]
    assert storage.names("") == {"a/b/c.txt": 8, "d.txt": 0}
    assert storage.names("a") == {"a/b/c.txt": 8}
    assert storage.names("a/b/c.txt") == {"a/b/c.txt": 8}
    storage.remove("a/b/c.txt")
    storage.remove("a/b/c.txt")
    assert storage.names("") == {"d.txt": 0}


def test_absence_is_an_answer(storage: Storage) -> None:
    assert storage.names("nowhere") == {}
    assert list(storage.lines("nowhere")) == []
    with pytest.raises(FileNotFoundError):
        storage.read("nowhere")


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError("broken")])
def test_an_exception_in_the_middle_publishes_nothing(
    storage: Storage, error: BaseException
) -> None:
    storage.write("old.txt", b"old")
    for name in ("old.txt", "new.txt"):
        with pytest.raises((type(error), StorageGone)), storage.writer(name) as stream:
            stream.write(b"half of it")
            raise error
    assert storage.names("") == {"old.txt": 3}
    assert storage.read("old.txt") == b"old"


def test_nothing_is_visible_before_the_end(storage: Storage) -> None:
    with storage.writer("new.txt") as stream:
        stream.write(b"x" * 100_000)
        assert not [name for name in storage.names("") if not name.endswith(".partial")]
    assert storage.names("") == {"new.txt": 100_000}


def test_a_local_file_gets_the_rights_the_user_gives_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        Storage(str(tmp_path)).write("a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("letter", ["a", "é", "漢"])
def test_names_as_long_as_the_system_takes_do_not_meet(tmp_path: Path, letter: str) -> None:
    """Both names begin alike for as long as a shortened temporary name could be."""
    storage = Storage(str(tmp_path))
    many = 250 // len(letter.encode())
    with storage.writer(letter * many + "1") as one, storage.writer(letter * many + "2") as two:
        one.write(b"one")
        two.write(b"two")
    assert sorted(tree(tmp_path).values()) == [b"one", b"two"]


def test_places_with_unusual_names(tmp_path: Path) -> None:
    for name in ("with space", "a::b", "-dash", "ünï", "new\nline", "[1887] *?"):
        storage = Storage(str(tmp_path / name))
        storage.write("x", b"1")
        assert (tmp_path / name / "x").read_bytes() == b"1"
        assert storage.names("") == {"x": 1}


def test_a_relative_place_is_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage("here/../out/")
    monkeypatch.chdir("/")
    storage.write("x", b"1")
    assert (tmp_path / "out" / "x").exists()


@pytest.mark.parametrize("place", ["nosuch://bucket/key", "s3a9://x"])
def test_an_unknown_filesystem_is_a_bad_setting(place: str) -> None:
    with pytest.raises(BadSettings, match=place):
        Storage(place)


def test_a_full_disk_is_named() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with (
        pytest.raises(DiskLow, match="writing x") as low,
        named_errors("writing x"),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert "reserve" not in low.value.cure, "not every command has one"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskLow):
        Storage(str(tmp_path)).write("a/b", b"x")
    assert tree(tmp_path) == {}


def test_a_place_that_cannot_be_written_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageGone, match="file"):
        Storage(str(tmp_path / "file")).write("a", b"x")
    (tmp_path / "folder" / "a").mkdir(parents=True)
    with pytest.raises(StorageGone):
        Storage(str(tmp_path / "folder")).write("a", b"x")
    assert tree(tmp_path) == {"file": b"in the way"}


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def picky(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not here")
        real(handle)

    monkeypatch.setattr(os, "fsync", picky)
    Storage(str(tmp_path)).write("a", b"x")
    assert tree(tmp_path) == {"a": b"x"}


def test_many_threads_may_write(storage: Storage) -> None:
    def write(number: int) -> None:
        for n in range(20):
            storage.write(f"{n % 3}/{number}-{n}", b"x" * number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(storage.names("")) == 120


def test_free_space_is_known_locally_even_before_the_folder_exists(tmp_path: Path) -> None:
    assert Storage(str(tmp_path / "a" / "b" / "c")).free_bytes()
    assert Storage("memory://x").free_bytes() is None


def test_what_the_system_refuses_is_not_blamed_on_credentials() -> None:
    with pytest.raises(StorageRefused) as caught, named_errors("writing x"):
        raise PermissionError(errno.EACCES, "Permission denied", "/x")
    assert "rights" in caught.value.cure and "AWS" not in caught.value.cure


def test_an_answer_cut_short_is_a_fault_of_the_connection() -> None:
    exceptions = pytest.importorskip("botocore.exceptions")
    with pytest.raises(StorageGone) as caught, named_errors("reading x"):
        raise exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2)
    assert not isinstance(caught.value, StorageRefused)


PASSWORDS = [
    "ftp://me:Sec@host/x",
    "ftp://me:Sec/Ret@host/x",
    "ftp://me:7531/Ret@host/x",
    "ftp://me:7531/Sec/Ret@host:21/x",
    "https://me:Sec@Ret@host/a.pdf",
    "https://me:Sec:Ret@host/a.pdf",
    "https://me:Sec#Ret@host/a.pdf",
    "https://me:Sec?Ret/7531@host/a.pdf",
    "https://me:Sec%40Ret@host/a.pdf",
    "https://me:Sec%40host/a.pdf",
    "https://me%3ASec@host/a.pdf",
    "https://me:Sec Ret@host/a.pdf",
    "https://me:Sec\\Ret@host/a.pdf",
    "https://:Sec@host/a.pdf",
    "https://me:Sec://Ret@host/a.pdf",
    "https:/me:Sec@host/a.pdf",
    "HTTPS://me:Sec@host/a.pdf",
    " https://me:Sec@host/a.pdf",
    "https://me:Sec@[::1]:8080/a.pdf",
    "simplecache::https://me:Sec@host/a.pdf",
    "zip://in/a.pdf::https://me:Sec@host/a.zip",
    "nosuch://me:7531/Ret@host/x",
    "s3://key:Sec/Ret@bucket/x",
]
"""URLs that hold a password, of which nothing may show."""
NONE = [
    "s3://bucket/vol:1/a@b.pdf",
    "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/scans/a.pdf",
    "https://host:8080/a%40b.pdf",
    "https://[::1]:8080/a.pdf",
    "sftp://me@host/x:y",
    "file:///a:b@c.pdf",
    "memory://a/b:c@d.pdf",
    "/scans/vol:1/a@b.pdf",
    "Lady's Mirror: 1@2.pdf",
]


def quotes(text: str) -> bool:
    """Whether a part of the passwords shows."""
    return any(word in text for word in ("Sec", "Ret", "7531"))


@pytest.mark.parametrize("url", PASSWORDS)
def test_passwords_in_urls_are_refused_and_not_repeated(url: str, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"a.pdf\n{url}\n")
    for doing in (
        lambda: filesystem(url),
        lambda: Storage(url),
        lambda: find_pdfs(url, Storage(str(tmp_path))),
        lambda: find_pdfs(str(tmp_path / "list.txt"), Storage(str(tmp_path / "out"))),
        lambda: parse("extract", "", ["--source", url, "--output", "out"]),
        lambda: parse("extract", "", ["--source", "in", "--output", url]),
    ):
        with pytest.raises(BadSettings, match=r"(a|A) URL with a password") as caught:
            doing()
        assert not quotes(f"{caught.value.message} {caught.value.cure}")
    with pytest.raises(ValidationError) as refused:
        HandoffSettings(dataset="d", bundles=url)
    assert not quotes(str(refused.value))


@pytest.mark.parametrize("place", NONE)
def test_other_colons_and_ats_are_no_passwords(place: str) -> None:
    assert not holds_password(place)


def test_a_url_with_a_password_in_a_librarys_error_is_not_repeated() -> None:
    for url in PASSWORDS[:2]:
        with (
            pytest.raises(StorageGone, match="cannot connect") as caught,
            named_errors("reading x"),
        ):
            raise OSError(f"cannot connect to {url}")
        assert not quotes(caught.value.message) and "host" in caught.value.message


def test_a_read_only_disk_is_not_waited_for() -> None:
    with pytest.raises(StorageRefused, match="Read-only") as caught, named_errors("writing x"):
        raise OSError(errno.EROFS, "Read-only file system")
    assert "Make it writable again" in caught.value.cure


def test_a_listed_name_with_an_at_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec, "url_to_fs", lambda url: (None, url))
    url = "https://host:8080/a@b.pdf"
    assert filesystem(url, listed=True)[1] == url


def test_a_name_in_a_url_is_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec, "url_to_fs", lambda url: (None, url))
    assert filesystem("sftp://me@host/x")[1] == "sftp://me@host/x"


def test_full_scratch_is_not_said_to_be_the_output(tmp_path: Path, memory: Any) -> None:
    output = Storage("memory://out", str(tmp_path))
    with pytest.raises(DiskLow, match=f"in scratch, {tmp_path}") as caught, output.writer("x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "memory://" not in caught.value.message and "run.scratch" in caught.value.cure
