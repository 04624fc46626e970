"""The main job as a user runs it, under load: killed, interrupted and robbed of its workers."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import psutil
import pytest

from tests.faults.record import SAME, record
from tests.faults.stages import tree

Start = Callable[..., "Popen[str]"]
Extract = Callable[..., tuple[int, str]]
AGAIN = "pytest -m nightly tests/faults/test_load.py"
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.resources.make_demo import make

    folder = tmp_path_factory.mktemp("load") / "archive"
    make(folder, pages=120)
    return folder


@pytest.fixture(scope="module")
def reference(
    archive: Path, extract: Extract, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The files of an undisturbed run."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    assert extract("--source", archive, "--output", output)[0] == 0
    return tree(output)


def wait_for_lock(process: Popen[str], output: Path) -> None:
    """Until the run holds its output; before, there is nothing to lose."""
    owner = output / ".intaglio" / "owner.json"
    while process.poll() is None and not (owner.exists() and str(process.pid) in owner.read_text()):
        time.sleep(0.02)


def strike(
    number: signal.Signals,
    times: int,
    archive: Path,
    reference: dict[str, str],
    start_extract: Start,
    folder: Path,
) -> list[tuple[int, float, str]]:
    """Send a signal to running extractions at random times until `times` of them were struck.

    A run that was struck is followed by the next on the same output; one that got to its end first
    is compared with the reference, and the next has an output of its own, as has the last one.

    Returns:
        For each struck run its exit code, the seconds until it ended, and what it printed.
    """
    chance = random.Random(int(number))
    struck: list[tuple[int, float, str]] = []
    for attempt in range(10 * times):
        output = folder / str(attempt)
        code: int | None = None
        while code != 0:
            process = start_extract("--source", archive, "--output", output)
            wait_for_lock(process, output)
            if strikes := len(struck) < times:
                time.sleep(chance.uniform(0, 4))
                process.send_signal(number)
            asked = time.monotonic()
            printed, _ = process.communicate(timeout=300)
            code = process.returncode
            if code != 0:
                assert strikes, printed
                struck.append((code, time.monotonic() - asked, printed))
        assert tree(output) == reference
        assert not list(output.rglob("*.partial"))
        if len(struck) == times:
            return struck
    raise AssertionError(f"only {len(struck)} of {times} runs could be struck")


def test_killed_at_random_times(
    archive: Path, reference: dict[str, str], start_extract: Start, tmp_path: Path
) -> None:
    killed = strike(signal.SIGKILL, 20, archive, reference, start_extract, tmp_path)
    outcome = "each next run went on; the last ended with 0 and the same bytes"
    record("Process and disk", "SIGKILL at random times", len(killed), outcome, AGAIN)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_at_random_times(
    number: signal.Signals,
    archive: Path,
    reference: dict[str, str],
    start_extract: Start,
    tmp_path: Path,
) -> None:
    ended = strike(number, 10, archive, reference, start_extract, tmp_path)
    for code, _, printed in ended:
        assert code == 130, printed
        assert "Traceback" not in printed
    slowest = max(seconds for _, seconds, _ in ended)
    assert slowest < 10
    outcome = f"ended with 130, after {slowest:.1f} s at the latest; {SAME}"
    record("Process and disk", f"{number.name} at random times", len(ended), outcome, AGAIN)


def test_workers_killed_at_random_times(
    archive: Path, reference: dict[str, str], start_extract: Start, tmp_path: Path
) -> None:
    """A page whose worker is killed once is worked again, and nothing is quarantined for it."""
    chance = random.Random(3)
    process = start_extract("--source", archive, "--output", tmp_path / "out")
    wait_for_lock(process, tmp_path / "out")
    parent = psutil.Process(process.pid)
    killed = 0
    while process.poll() is None:
        time.sleep(chance.uniform(0.5, 1.5))
        try:
            busy = [p for p in workers(parent) if p.cpu_times().user > 0.1]
            if busy:
                os.kill(chance.choice(busy).pid, signal.SIGKILL)
                killed += 1
        except (psutil.Error, ProcessLookupError):
            continue
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    assert tree(tmp_path / "out") == reference
    outcome = "the pages were worked again; the run ended with 0 and the same bytes"
    record("Process and disk", "worker killed at random times", killed, outcome, AGAIN)


def workers(parent: psutil.Process) -> list[psutil.Process]:
    """The grandchildren that hang below the process which workers are forked from."""
    servers = [p for p in parent.children() if "forkserver" in " ".join(p.cmdline())]
    return [worker for server in servers for worker in server.children()]


def test_two_runs_at_the_same_time(
    archive: Path, reference: dict[str, str], start_extract: Start, tmp_path: Path
) -> None:
    runs = [start_extract("--source", archive, "--output", tmp_path / "out") for _ in range(4)]
    printed = [run.communicate(timeout=300)[0] for run in runs]
    ends = Counter(run.returncode for run in runs)
    assert set(ends) <= {0, 3} and ends[0] >= 1
    for run, text in zip(runs, printed, strict=True):
        assert run.returncode == 0 or "is being worked by process" in text
    assert tree(tmp_path / "out") == reference
    outcome = f"{ends[0]} ended with 0, {ends[3]} refused with 3; the same bytes"
    record("Process and disk", "four runs on one output at the same time", 4, outcome, AGAIN)
