"""Disks that are really full: small filesystems made for the purpose, and a limit on files."""

from __future__ import annotations

import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from models.errors import DiskLow, StopRun
from models.settings import Settings
from tasks import session
from tests.faults.record import SAME, record
from tests.faults.stages import make_archive, settings_for, tree, work
from tests.tasks.conftest import memory  # noqa: F401

MountDisk = Callable[[Path, int], Callable[[int], None]]
AGAIN = "pytest tests/faults/test_disk.py"
NIGHTLY = "pytest -m nightly tests/faults/test_disk.py"


@pytest.fixture
def disk() -> Iterator[MountDisk]:
    """Mount a filesystem of so many KB at a folder; what comes back makes it larger."""
    mounted: list[Path] = []

    def mount(folder: Path, kilobytes: int) -> Callable[[int], None]:
        folder.mkdir(parents=True, exist_ok=True)
        size = f"size={kilobytes}k"
        command = ["mount", "-t", "tmpfs", "-o", size, "intaglio-test", str(folder)]
        tried = subprocess.run(command, capture_output=True, text=True)
        if tried.returncode:
            pytest.skip(f"no filesystem can be mounted here: {tried.stderr.strip()}")
        mounted.append(folder)

        def grow(more: int) -> None:
            remount = f"remount,size={more}k"
            subprocess.run(["mount", "-o", remount, str(folder)], check=True)

        return grow

    try:
        yield mount
    finally:
        for folder in mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return make_archive(tmp_path / "archive")


@pytest.fixture
def reference(archive: Path, tmp_path: Path) -> dict[str, str]:
    work(settings_for(archive, tmp_path / "reference"))
    return tree(tmp_path / "reference")


def fill(settings: Settings, grow: Callable[[int], None], sizes: range, word: str) -> int:
    """Run again and again on a disk that is full each time, and a little larger the next.

    Returns:
        How often it was full.
    """
    output = Path(settings.output)
    for full, size in enumerate(sizes):
        grow(size)
        try:
            work(settings)
        except DiskLow as error:
            assert word in error.message and "run the same command again" in error.cure
            assert not list(output.rglob("*.partial")), "something half-written"
        else:
            return full
    raise AssertionError(f"{sizes[-1]} KB should be enough")


@pytest.mark.parametrize(("what", "start", "step"), [("output", 8, 8), ("ledger", 4, 4)])
def test_a_full_disk_stops_the_run_until_there_is_room(
    what: str,
    start: int,
    step: int,
    archive: Path,
    reference: dict[str, str],
    disk: MountDisk,
    tmp_path: Path,
) -> None:
    output = tmp_path / "out"
    folder = output / ".intaglio" if what == "ledger" else output
    grow = disk(folder, start)
    full = fill(settings_for(archive, output), grow, range(start, 4000, step), str(folder))
    assert tree(output) == reference
    assert full > 3
    outcome = f"{full} stopped with 3; {SAME}"
    record("Process and disk", f"{what} on a disk that is really full", full, outcome, AGAIN)


def test_full_scratch_stops_the_run_until_there_is_room(
    archive: Path,
    reference: dict[str, str],
    disk: MountDisk,
    memory: object,  # noqa: F811
    tmp_path: Path,
) -> None:
    for path in archive.rglob("*.pdf"):
        memory.pipe_file(f"/in/{path.relative_to(archive)}", path.read_bytes())  # type: ignore[attr-defined]
    scratch = tmp_path / "scratch"
    grow = disk(scratch, 4)
    settings = settings_for(archive, tmp_path / "out")
    run = settings.run.model_copy(update={"scratch": str(scratch)})
    settings = settings.model_copy(update={"source": "memory://in", "run": run})
    full = fill(settings, grow, range(4, 400, 4), "scratch")
    assert tree(tmp_path / "out") == reference
    assert full > 1
    outcome = f"{full} stopped with 3; {SAME}"
    record("Process and disk", "scratch on a disk that is really full", full, outcome, AGAIN)


def test_free_space_is_watched_before_it_is_gone(
    archive: Path, reference: dict[str, str], disk: MountDisk, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    grow = disk(output, 1060)
    settings = settings_for(archive, output)
    reserving = settings.run.model_copy(update={"disk_reserve_mb": 1})
    settings = settings.model_copy(update={"run": reserving})
    with pytest.raises(DiskLow, match=r"MB are free at .*1 MB are reserved"):
        work(settings)
    grow(8000)
    work(settings)
    assert tree(output) == reference


@pytest.mark.nightly
def test_the_user_is_told_how_much_room_the_rest_takes(
    demo: Path, extract: Callable[..., tuple[int, str]], disk: MountDisk, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    grow = disk(output, 1500)
    arguments = ("--source", demo, "--output", output, "--run.disk-reserve-mb", 0)
    code, printed = extract(*arguments)
    assert code == 3, printed
    told = re.sub(r"\s+", " ", printed)
    wanted = rf"About ([\d.]+) MB more are needed at {output}: \d+ of \d+ pages are done"
    needed = float(re.search(wanted, told).group(1))  # type: ignore[union-attr]
    grow(1500 + round(1.5 * needed * 1000))
    code, printed = extract(*arguments)
    assert code == 0, printed


def test_where_files_may_not_grow_the_run_stops(
    archive: Path, reference: dict[str, str], tmp_path: Path
) -> None:
    """As on a disk with a limit for each file; the ZIP is the first to meet it."""
    settings = settings_for(archive, tmp_path / "out")
    largest = max(path.stat().st_size for path in (tmp_path / "reference").rglob("*.jpg"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        session.begin(settings)  # its worker processes are none of this
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 1000, before[1]))
        with pytest.raises(StopRun, match=r"writing .*dataset\.zip.*File too large"):
            work(settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "out").rglob("*.partial"))
    work(settings)
    assert tree(tmp_path / "out") == reference


@contextmanager
def read_only(folder: Path, view: Path) -> Iterator[None]:
    """A folder that is read-only from one moment on, whatever is open there; a view is for help."""
    with ExitStack() as mounted:

        def mount(*words: object) -> None:
            tried = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)
            if tried.returncode:
                pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
            mounted.callback(subprocess.run, ["umount", "--lazy", str(words[-1])], check=True)

        view.mkdir()
        mount("--bind", folder, view)
        subprocess.run(["mount", "-o", "remount,ro,bind", view], check=True)
        mount("--bind", view, folder)
        yield


@pytest.mark.nightly
def test_an_output_that_turns_read_only_stops_the_run_at_once(
    archive: Path, start_extract: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    for number in range(20):
        name = f"more {number}.pdf"
        (archive / name).write_bytes((archive / "a.pdf").read_bytes() + b"%%%d\n" % number)
    words = ["--triage.method", "sigma", "--fit.min-side", "1", "--run.disk-reserve-mb", "0"]
    process = start_extract("--source", archive, "--output", output, *words, "--run.workers", "1")
    try:
        while not list(output.glob("images/*/*.jpg")):
            assert process.poll() is None
            time.sleep(0.01)
        with read_only(output, tmp_path / "view"):
            begun = time.monotonic()
            printed, _ = process.communicate(timeout=120)
            seconds = time.monotonic() - begun
    finally:
        process.kill()
    assert process.returncode == 3 and seconds < 20, printed
    assert f"Not allowed while writing {output}" in printed and "Read-only file system" in printed
    assert "Make it writable again" in printed and "Traceback" not in printed
    work(settings_for(archive, output))
    work(settings_for(archive, tmp_path / "whole"))
    assert tree(output) == tree(tmp_path / "whole")
    outcome = f"stopped with 3 after {seconds:.0f} s; {SAME}"
    record("Process and disk", "output turned read-only in mid-run", 1, outcome, NIGHTLY)
