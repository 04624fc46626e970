"""A Dask cluster: real workers with scratch folders of their own, one of them killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from models.settings import Settings
from tasks.storage import Storage
from tests.faults.record import record
from tests.s3.conftest import account
from tests.s3.test_shards import archive, one_machine, published, settings
from tests.services.radosgw import Radosgw, free_port

__all__ = ["archive", "one_machine", "settings"]
pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def cluster(server: Radosgw, tmp_path: Path) -> Iterator[tuple[str, list[psutil.Popen]]]:
    """The address of a scheduler, and its two workers."""
    pytest.importorskip("prefect_dask", reason="the extra intaglio[dask] is not installed")
    address = f"tcp://127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        **account(server.url, server.key, server.secret),
        "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    }

    def dask(*words: str, scratch: Path = tmp_path) -> psutil.Popen:
        return psutil.Popen(
            [sys.executable, "-m", "dask", *words],
            cwd=ROOT,
            env={**environment, "TMPDIR": str(scratch), "PREFECT_HOME": str(scratch)},
        )

    running = [dask("scheduler", "--host", address, "--no-dashboard")]
    for number in (1, 2):
        scratch = tmp_path / f"machine-{number}"
        scratch.mkdir()
        running.append(
            dask(
                "worker",
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--local-directory",
                str(scratch),
                scratch=scratch,
            )
        )
    yield address, running[1:]
    for process in running:
        if process.is_running():
            for each in [process, *process.children(recursive=True)]:
                each.kill()
            process.wait(30)


def arguments(settings: Settings) -> list[str]:
    given = ["--source", settings.source, "--output", settings.output, "--run.runner", "dask"]
    return [*given, "--triage.method", "sigma", "--fit.min-side", "1", "--run.workers", "1"]


def test_a_machine_of_the_cluster_is_killed(
    cluster: tuple[str, list[psutil.Popen]],
    settings: Settings,
    place: str,
    one_machine: dict[str, bytes],
    start_extract: Start,
) -> None:
    address, workers = cluster
    process = start_extract(*arguments(settings), "--run.dask-address", address)
    output = Storage(place)
    deadline = time.monotonic() + 300
    while not output.names(".intaglio/looks"):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    for each in [workers[0], *workers[0].children(recursive=True)]:
        each.kill()
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert published(place) == one_machine
    scratch = Path(workers[1].environ()["TMPDIR"])
    assert not list(scratch.glob("intaglio-*")), "the session on the cluster is closed"
    record(
        "Several machines",
        "of two Dask workers one killed in mid-run",
        1,
        "ridden out, the same bytes",
        "pytest -m nightly tests/s3/test_dask.py",
    )


def test_a_cluster_made_for_the_run(
    settings: Settings, place: str, one_machine: dict[str, bytes], start_extract: Start
) -> None:
    pytest.importorskip("prefect_dask", reason="the extra intaglio[dask] is not installed")
    process = start_extract(*arguments(settings))
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert published(place) == one_machine
