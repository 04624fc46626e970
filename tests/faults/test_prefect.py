"""What happens to Prefect's server happens to the telling, not to the work."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from tests.conftest import prefect_server
from tests.faults.record import record
from tests.faults.stages import tree

Start = Callable[..., "Popen[str]"]
Extract = Callable[..., tuple[int, str]]
AGAIN = "pytest -m nightly tests/faults/test_prefect.py"


def wait_for_samples(process: Popen[str], output: Path) -> None:
    deadline = time.monotonic() + 120
    while not list(output.glob("images/*/*.jpg")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def states(url: str, output: Path) -> Counter[str]:
    """How many flow runs of an output are in which state, by Prefect's own account."""
    data = json.dumps({"sort": "START_TIME_ASC"}).encode()
    request = urllib.request.Request(
        f"{url}/flow_runs/filter", data, {"Content-Type": "application/json"}
    )
    runs = json.loads(urllib.request.urlopen(request).read())
    return Counter(
        run["state_name"]
        for run in runs
        if run["parameters"]["settings"].get("output") == str(output)
    )


def test_the_flow_run_of_a_killed_process_is_crashed_when_the_next_one_begins(
    demo: Path, start_extract: Start, extract: Extract, prefect_url: str, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    arguments = ("--source", demo, "--output", output)
    for killed in range(2):
        process = start_extract(*arguments)
        if killed:
            # The first sample is there from the start; the flow run takes the output over first.
            last = (output / ".intaglio" / "flow-run").read_text()
            while (output / ".intaglio" / "flow-run").read_text() == last:
                time.sleep(0.02)
        wait_for_samples(process, output)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert states(prefect_url, output) == Counter(Running=1, Crashed=killed)
    code, printed = extract(*arguments)
    assert code == 0, printed
    assert states(prefect_url, output) == {"Completed": 1, "Crashed": 2}
    (output / ".intaglio" / "flow-run").write_bytes(b"\xff no id")
    code, printed = extract(*arguments, "--encode.quality", "80")
    assert code == 0, printed


@pytest.fixture(scope="module")
def reference(
    demo: Path, extract: Extract, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The files of an undisturbed run."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    assert extract("--source", demo, "--output", output)[0] == 0
    return tree(output)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "server"
    folder.mkdir()
    return folder


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody else reads or writes a database of SQLite."""
    connection = sqlite3.connect(database, timeout=30, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def start(start_extract: Start, demo: Path, output: Path, url: str) -> Popen[str]:
    process = start_extract(
        "--source", demo, "--output", output, environment={"PREFECT_API_URL": url}
    )
    wait_for_samples(process, output)
    return process


def end_well(process: Popen[str], output: Path, reference: dict[str, str]) -> tuple[str, float]:
    """Wait until a run has ended as if undisturbed: what it printed, and the seconds it took."""
    begun = time.monotonic()
    printed, _ = process.communicate(timeout=900)
    seconds = time.monotonic() - begun
    assert process.returncode == 0, printed
    assert "Traceback" not in printed
    assert tree(output) == reference
    return printed, seconds


def record_going_on(fault: str, seconds: float) -> None:
    outcome = f"went on and ended with 0 after {seconds:.0f} s; the same bytes"
    record("Prefect", fault, 1, outcome, AGAIN)


@pytest.mark.nightly
def test_a_server_that_dies_stops_no_run(
    demo: Path, start_extract: Start, reference: dict[str, str], home: Path, tmp_path: Path
) -> None:
    with prefect_server(home) as (url, server):
        process = start(start_extract, demo, tmp_path / "out", url)
        server.kill()
        printed, seconds = end_well(process, tmp_path / "out", reference)
    assert "went away" in printed
    record_going_on("server killed in mid-run", seconds)


@pytest.mark.nightly
def test_a_server_that_comes_back_is_told_the_rest(
    demo: Path, start_extract: Start, reference: dict[str, str], home: Path, tmp_path: Path
) -> None:
    with prefect_server(home) as (url, server):
        process = start(start_extract, demo, tmp_path / "out", url)
        server.kill()
        server.wait()
        with prefect_server(home, port=int(url.split(":")[2].split("/")[0])):
            end_well(process, tmp_path / "out", reference)
            assert states(url, tmp_path / "out") in ({"Completed": 1}, {"Running": 1})
    record("Prefect", "server killed and started anew", 1, "went on; the same bytes", AGAIN)


@pytest.mark.nightly
def test_a_locked_database_is_waited_for(
    demo: Path, start_extract: Start, reference: dict[str, str], home: Path, tmp_path: Path
) -> None:
    with prefect_server(home) as (url, _):
        process = start(start_extract, demo, tmp_path / "out", url)
        with locked(home / "prefect.db"):
            time.sleep(15)
        end_well(process, tmp_path / "out", reference)
        assert states(url, tmp_path / "out") == {"Completed": 1}
    record("Prefect", "server's database locked for 15 s", 1, "went on; the same bytes", AGAIN)


@pytest.mark.nightly
def test_a_database_that_stays_locked_ends_no_worse(
    demo: Path, start_extract: Start, reference: dict[str, str], home: Path, tmp_path: Path
) -> None:
    with prefect_server(home) as (url, _):
        process = start(start_extract, demo, tmp_path / "out", url)
        with locked(home / "prefect.db"):
            _, seconds = end_well(process, tmp_path / "out", reference)
    record_going_on("server's database locked for ever", seconds)
