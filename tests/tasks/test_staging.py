"""Staging: remote PDFs on the local disk, never more than the budget allows."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from models.errors import DiskLow, InputFault, StorageGone, UnreadableFile
from models.records import Pdf
from tasks.staging import MB, Staging

PATIENCE = 30


@pytest.fixture
def archive(memory: Any) -> Callable[..., Pdf]:
    def make(name: str, megabytes: float = 4, there: bool = True) -> Pdf:
        size = int(megabytes * MB)
        if there:
            memory.pipe_file(f"/in/{name}", name.encode().ljust(size, b"."))
        return Pdf(name=name, path=f"memory://in/{name}", size=size)

    return make


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(tmp_path, "test", budget_mb=10)


def staged(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*.pdf*"):
        with suppress(FileNotFoundError):  # removed by another thread just now
            total += path.stat().st_size
    return total


def in_thread(function: Callable[..., Any], *args: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(function(*args))
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, results


def test_a_local_pdf_is_its_own_copy(tmp_path: Path, staging: Staging) -> None:
    path = tmp_path / "a::b.pdf"
    path.write_bytes(b"x")
    pdf = Pdf(name="a", path=str(path))
    assert staging.fetch(pdf) == str(path)
    staging.release(pdf)
    staging.close()
    assert os.listdir(tmp_path) == ["a::b.pdf"]


def test_copies_stay_while_there_is_room(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf], memory: Any
) -> None:
    a, b, c = (archive(name) for name in "abc")
    first = staging.fetch(a)
    assert Path(first).read_bytes().startswith(b"a.")
    staging.release(a)
    memory.rm_file("/in/a")
    assert staging.fetch(a) == first, "fetched once only"
    staging.release(a)
    staging.fetch(b)
    staging.fetch(c)  # no room: a has to go
    assert not Path(first).exists()
    assert staged(tmp_path) == 8 * MB
    staging.close()
    assert not os.listdir(tmp_path)


def test_who_finds_no_room_waits_for_a_release(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf]
) -> None:
    a, b, c = (archive(name) for name in "abc")
    staging.fetch(a)
    staging.fetch(b)
    thread, results = in_thread(staging.fetch, c)
    thread.join(0.3)
    assert thread.is_alive() and not results
    staging.release(a)
    thread.join(PATIENCE)
    assert Path(results[0]).read_bytes().startswith(b"c.")
    assert staged(tmp_path) == 8 * MB


def test_a_pdf_larger_than_the_budget_is_at_fault(
    staging: Staging, archive: Callable[..., Pdf]
) -> None:
    with pytest.raises(InputFault, match=r"huge.pdf has 12 MB; scratch may take 10 MB") as caught:
        staging.fetch(archive("huge.pdf", 12, there=False))
    assert "scratch-budget-mb" in caught.value.cure


def test_a_pdf_that_vanished_is_at_fault_and_takes_no_room(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf]
) -> None:
    for _ in range(5):
        with pytest.raises(UnreadableFile, match=r"gone\.pdf vanished"):
            staging.fetch(archive("gone.pdf", 9, there=False))
    assert staging.fetch(archive("a", 9))
    assert staged(tmp_path) == 9 * MB


class Broken:
    """A filesystem's ``open`` whose streams break off, after a while, as often as told."""

    def __init__(self, fs: Any, failures: int, error: BaseException) -> None:
        self.failures, self.error = failures, error
        self.real = fs.open
        self.calls = 0
        self.lock = threading.Lock()

    def __call__(self, path: str, mode: str) -> Any:
        with self.lock:
            self.calls += 1
            fails = self.calls <= self.failures
        time.sleep(0.05)
        data = self.real(path, mode).getvalue()
        return Torn(data, self.error) if fails else io.BytesIO(data)


class Torn(io.BytesIO):
    """A stream that breaks off after its first piece."""

    def __init__(self, data: bytes, error: BaseException) -> None:
        super().__init__(data)
        self.error = error

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise self.error
        return super().read(size)


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_many_threads_share_one_fetch_and_survive_one_that_fails(
    tmp_path: Path,
    staging: Staging,
    archive: Callable[..., Pdf],
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
) -> None:
    broken = Broken(memory, failures, OSError("connection reset"))
    pdf, other = archive("a", 6), archive("b", 9)
    # Each thread has an instance of its own.
    monkeypatch.setattr(type(memory), "open", lambda _, *args: broken(*args))
    started = [in_thread(staging.fetch, pdf) for _ in range(8)]
    for thread, _ in started:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "deadlock"
    results = [result for _, (result,) in started]
    failed = [result for result in results if isinstance(result, StorageGone)]
    paths = {result for result in results if isinstance(result, str)}
    assert len(failed) == failures and len(paths) == 1
    assert broken.calls == failures + 1
    assert Path(paths.pop()).stat().st_size == 6 * MB
    for _ in range(8 - failures):
        staging.release(pdf)
    assert staging.fetch(other), "all pins are gone"
    assert staged(tmp_path) == 9 * MB


def test_the_budget_holds_with_many_pdfs_and_many_threads(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf]
) -> None:
    pdfs = [archive(str(n), 1 + n % 5) for n in range(20)]
    most = 0

    def work(start: int) -> None:
        nonlocal most
        for pdf in pdfs[start:] + pdfs[:start]:
            path = staging.fetch(pdf)
            most = max(most, staged(tmp_path))
            assert Path(path).read_bytes().startswith(pdf.name.encode())
            staging.release(pdf)

    started = [in_thread(work, start) for start in range(0, 20, 3)]
    for thread, results in started:
        thread.join(PATIENCE)
        assert results == [None]
    assert most <= 10 * MB


def test_a_second_process_leaves_the_copies_of_the_first_alone(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf]
) -> None:
    path = Path(staging.fetch(archive("a")))
    other = Staging(tmp_path, "test", budget_mb=10)
    second = other.fetch(archive("b"))
    assert path.exists() and second != str(path)
    other.close()
    assert path.exists()


def test_what_a_killed_run_left_is_removed(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf]
) -> None:
    program = (
        "import os, sys, fsspec; from pathlib import Path\n"
        "from models.records import Pdf; from tasks.staging import Staging\n"
        "fsspec.filesystem('memory').pipe_file('/in/a', b'x' * 1000)\n"
        "Staging(Path(sys.argv[1]), 'test', 10).fetch(Pdf(name='a', path='memory://in/a'))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=Path(__file__).parents[2])
    (left,) = tmp_path.iterdir()
    assert staged(tmp_path) == 1000
    staging.fetch(archive("b"))
    assert not left.exists()


def test_a_file_that_changed_is_told(tmp_path: Path, staging: Staging) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"one")
    stamp = str(path.stat().st_mtime_ns)
    pdf = Pdf(name="a.pdf", path=str(path), size=3, stamp=stamp)
    assert staging.changed(pdf) is None
    path.write_bytes(b"more")
    assert "a.pdf changed" in str(staging.changed(pdf))
    path.unlink()
    assert "a.pdf cannot be read: No such file" in str(staging.changed(pdf))


ANOTHER = """
import sys
from pathlib import Path
from tasks.staging import Staging
for _ in range(60):
    staging = Staging(Path(sys.argv[1]), "test", 10)
    staging._own_folder()
    assert staging._folder.is_dir(), "swept by another"
    staging.close()
"""


def test_folders_just_made_are_not_swept_by_others(tmp_path: Path) -> None:
    words = [sys.executable, "-c", ANOTHER, str(tmp_path)]
    started = [
        subprocess.Popen(words, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in started:
        _, told = process.communicate(timeout=PATIENCE * 2)
        assert process.returncode == 0, told
    assert not os.listdir(tmp_path)


def test_full_scratch_is_not_said_to_be_the_source(
    tmp_path: Path, staging: Staging, archive: Callable[..., Pdf], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    pdf = archive("a")
    Path(f"{staging._copy(pdf)}.part").symlink_to("/dev/full")
    with pytest.raises(DiskLow, match=f"in scratch, {tmp_path}") as caught:
        staging.fetch(pdf)
    assert "memory://" not in caught.value.message
