"""The whole job, Prefect's own server included, in 2 GB for all processes together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.record import ROOT, record
from tests.resources.make_faults import make

LIMIT = 2 * 1024**3
CGROUPS = Path("/sys/fs/cgroup")


class Group:
    """A control group of Linux that limits the memory of the processes in it."""

    def __init__(self) -> None:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().split()]
        paths = {kind: path.lstrip("/") for _, kind, path in lines}
        self.old = "memory" in paths
        parent = CGROUPS / "memory" / paths["memory"] if self.old else CGROUPS / paths[""]
        self.folder = parent / f"intaglio-test-{os.getpid()}"
        limit = "memory.limit_in_bytes" if self.old else "memory.max"
        try:
            self.folder.mkdir()
            (self.folder / limit).write_text(str(LIMIT))
        except OSError as error:
            self.close()
            pytest.skip(f"no control group can be made here: {error}")

    def count(self, file: str, name: str) -> int:
        """A number of one of the group's files."""
        pairs = (line.split() for line in (self.folder / file).read_text().splitlines())
        return next((int(pair[1]) for pair in pairs if pair[0] == name), 0)

    @property
    def used(self) -> int:
        """Bytes in use now, without the copies of files that the system keeps as long as it can."""
        return self.count("memory.stat", "total_rss" if self.old else "anon")

    @property
    def killed(self) -> int:
        """Processes that were ended for lack of memory."""
        return self.count("memory.oom_control" if self.old else "memory.events", "oom_kill")

    def close(self) -> None:
        if self.folder.exists():
            self.folder.rmdir()


@pytest.fixture
def group() -> Iterator[Group]:
    if not sys.platform.startswith("linux"):
        pytest.skip("control groups are Linux's")
    made = Group()
    yield made
    for _ in range(100):
        if not (made.folder / "cgroup.procs").read_text():
            break
        time.sleep(0.1)
    made.close()


@pytest.mark.nightly
def test_the_whole_job_fits_two_gigabytes(demo: Path, group: Group, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    shutil.copytree(demo, archive)
    make(archive / "faults")
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path / "home")}
    environment.pop("PREFECT_API_URL", None)
    command = [sys.executable, "-m", "flows.extract", "--source", archive, "--output"]
    join = 'echo $$ > "$0" && exec "$@"'
    process = subprocess.Popen(
        [
            "sh",
            "-c",
            join,
            str(group.folder / "cgroup.procs"),
            *map(str, [*command, tmp_path / "out"]),
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, group.used)
        time.sleep(0.1)
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    assert group.killed == 0
    pdfs = len(list(archive.rglob("*.pdf")))
    outcome = f"ended with 0; at most {peak >> 20:,} MB in use"
    record(
        "Process and disk",
        f"2 GB for all processes together, Prefect's server included ({pdfs} PDFs)",
        1,
        outcome,
        "pytest -m nightly tests/faults/test_memory.py",
    )
