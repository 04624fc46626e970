"""Several Prefect workers on one work pool, one shard each: what a user with machines does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from models.settings import Settings
from tasks.storage import Storage
from tests.faults.record import SAME, record
from tests.flows.test_deploy import ask, wait_for_end
from tests.s3.conftest import account
from tests.s3.test_shards import archive, on_machine, one_machine, published, settings
from tests.services.radosgw import Radosgw

__all__ = ["archive", "one_machine", "settings"]
pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]


class Machines:
    """Workers as if each were on a machine of its own."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment, self.folder = environment, folder
        self.running: dict[int, psutil.Popen] = {}

    def start(self, number: int) -> None:
        home = self.folder / f"machine-{number}"
        home.mkdir()
        with open(home / "log", "wb") as log:
            self.running[number] = psutil.Popen(
                [
                    sys.executable,
                    "-m",
                    "prefect",
                    "worker",
                    "start",
                    "--pool",
                    "intaglio",
                    "--limit",
                    "1",
                ],
                cwd=ROOT,
                env={
                    **self.environment,
                    "PREFECT_HOME": str(home),
                    "TMPDIR": str(home),
                    "PREFECT_WORKER_QUERY_SECONDS": "1",
                },
                stdout=log,
                stderr=log,
            )

    def kill(self, number: int) -> None:
        """The whole machine at once: the worker and all that it started."""
        worker = self.running.pop(number)
        for process in [worker, *worker.children(recursive=True)]:
            process.kill()
        worker.wait(30)


@pytest.fixture
def machines(server: Radosgw, prefect_url: str, tmp_path: Path) -> Iterator[Machines]:
    environment = {
        **os.environ,
        **account(server.url, server.key, server.secret),
        "PREFECT_API_URL": prefect_url,
        "DO_NOT_TRACK": "1",
    }
    found = Machines(environment, tmp_path)
    yield found
    for number in list(found.running):
        found.kill(number)


def prefect(environment: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_machine_is_killed_and_another_does_its_share(
    machines: Machines,
    settings: Settings,
    place: str,
    one_machine: dict[str, bytes],
    prefect_url: str,
    tmp_path: Path,
) -> None:
    prefect(machines.environment, "work-pool", "create", "intaglio", "--type", "process")
    prefect(machines.environment, "deploy", "--all")
    for number in (1, 2):
        machines.start(number)
    with httpx.Client(base_url=f"{prefect_url}/", timeout=60) as api:
        deployment = ask(api, "GET", "deployments/name/extract/extract")["id"]

        def start(number: int, shard: str) -> dict[str, str]:
            given = on_machine(settings, number, shard, tmp_path).model_dump(mode="json")
            body = {"parameters": {"settings": given}, "state": {"type": "SCHEDULED"}}
            created: dict[str, str] = ask(
                api, "POST", f"deployments/{deployment}/create_flow_run", body
            )
            return created

        def state(run: dict[str, str]) -> str:
            return str(ask(api, "GET", f"flow_runs/{run['id']}")["state_type"])

        runs = {shard: start(n, shard) for n, shard in enumerate(("1/2", "2/2"), start=1)}
        deadline = time.monotonic() + 300
        output = Storage(place)
        while len([n for n in output.names(".intaglio") if "/flow-run" in n]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        machines.kill(1)
        ended: dict[str, str] = {}
        while not ended:
            assert time.monotonic() < deadline
            ended = {s: state(run) for s, run in runs.items() if state(run) == "COMPLETED"}
            time.sleep(0.5)
        (lost,) = runs.keys() - ended.keys()
        for number, shard in ((3, lost), (4, "")):
            end = wait_for_end(api, start(number, shard))
            assert end["state_type"] == "COMPLETED", end["state"]
        assert ask(api, "GET", f"flow_runs/{runs[lost]['id']}")["state_type"] == "CRASHED"
    assert published(place) == one_machine
    assert Storage(place).names(".intaglio/leases") == {}
    record("Several machines", "of two Prefect workers one killed in mid-run", 1, SAME,
           "pytest -m nightly tests/s3/test_workers.py")  # fmt: skip
