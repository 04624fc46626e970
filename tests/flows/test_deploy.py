"""The way of the Prefect UI, for real: work pool, deploy, worker, a run started through the API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def deployed(prefect_url: str, tmp_path_factory: pytest.TempPathFactory):
    """A server with a work pool, both deployments and a worker."""
    environment = {
        **os.environ,
        "PREFECT_API_URL": prefect_url,
        "PREFECT_HOME": str(tmp_path_factory.mktemp("home")),
        "DO_NOT_TRACK": "1",
    }

    def prefect(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "prefect", "--no-prompt", *words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    prefect("work-pool", "create", "intaglio", "--type", "process")
    prefect("deploy", "--all")
    with open(tmp_path_factory.mktemp("worker") / "log", "wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", "intaglio"],
            cwd=tmp_path_factory.getbasetemp(),
            env={**environment, "PREFECT_WORKER_QUERY_SECONDS": "1"},
            stdout=log,
            stderr=log,
        )
    with httpx.Client(base_url=f"{prefect_url}/", timeout=30) as api:
        yield api
    worker.terminate()
    worker.wait(60)


def ask(api: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    deadline = time.monotonic() + 60
    while (answer := api.request(method, path, json=body)).status_code == 503:
        # The server's database is busy; Prefect's own client waits, too.
        assert time.monotonic() < deadline, answer.text
        time.sleep(1)
    assert answer.is_success, answer.text
    return answer.json()


def start(api: httpx.Client, deployment: str, settings: dict) -> dict:
    found = ask(api, "GET", f"deployments/name/extract/{deployment}")
    body = {"parameters": {"settings": settings}, "state": {"type": "SCHEDULED"}}
    return ask(api, "POST", f"deployments/{found['id']}/create_flow_run", body)


def wait_for_end(api: httpx.Client, run: dict) -> dict:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        now = ask(api, "GET", f"flow_runs/{run['id']}")
        if now["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
            return now
        time.sleep(0.5)
    raise TimeoutError(f"the run is still {now['state_name']}")


def test_a_run_started_through_the_api_ends_completed_with_its_output(
    deployed: httpx.Client, demo: Path, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    settings = {
        "source": str(demo / "1887"),
        "output": str(output),
        "fit": {"mode": "long-side", "side": 512},
        "run": {"pages_per_task": 4},
    }
    run = wait_for_end(deployed, start(deployed, "extract", settings))
    assert run["state_name"] == "Completed", run["state"]
    summary = json.loads((output / "summary.json").read_text())
    assert summary["pages"]["kept"] > 0 and (output / "dataset.zip").exists()
    assert summary["settings"]["fit"]["side"] == 512
    manifest = (output / "manifest.jsonl").read_text().splitlines()
    assert max(max(json.loads(m)["width"], json.loads(m)["height"]) for m in manifest) <= 512

    by_run = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    artifacts = ask(deployed, "POST", "artifacts/filter", by_run)
    found = {artifact["key"]: artifact for artifact in artifacts}
    assert set(found) == {"extract-summary", "extract-dropped", "extract-samples"}
    assert f"{summary['pages']['total']}" in found["extract-summary"]["data"]
    assert found["extract-samples"]["data"].startswith("data:image/jpeg;base64,")
    logs = ask(deployed, "POST", "logs/filter", {"logs": {"flow_run_id": {"any_": [run["id"]]}}})
    assert not [line for line in logs if line["level"] >= 40]


def test_bad_settings_are_refused_when_the_run_is_created(deployed: httpx.Client) -> None:
    found = ask(deployed, "GET", "deployments/name/extract/extract")
    settings = {"source": "x", "output": "y", "encode": {"quality": 500}}
    answer = deployed.post(
        f"deployments/{found['id']}/create_flow_run",
        json={"parameters": {"settings": settings}, "enforce_parameter_schema": True},
    )
    assert answer.status_code in (409, 422)
    assert "500" in answer.text and "100" in answer.text


def test_the_form_has_a_field_bounds_and_a_description_for_every_setting(
    deployed: httpx.Client,
) -> None:
    found = ask(deployed, "GET", "deployments/name/extract/extract")
    schema = found["parameter_openapi_schema"]["definitions"]
    for group in ("Read", "Triage", "Regions", "Fit", "Encode", "Run", "Settings"):
        for name, field in schema[group]["properties"].items():
            assert field.get("description") or "$ref" in json.dumps(field), f"{group}.{name}"
    assert schema["Encode"]["properties"]["quality"]["maximum"] == 100
    assert schema["Fit"]["properties"]["mode"]["enum"][0] == "bucket"


def test_nightly_is_scheduled_but_off_and_never_runs_twice_at_once(deployed: httpx.Client) -> None:
    found = ask(deployed, "GET", "deployments/name/extract/nightly")
    (schedule,) = found["schedules"]
    assert schedule["active"] is False and schedule["schedule"]["cron"] == "0 2 * * *"
    assert found["global_concurrency_limit"]["limit"] == 1
    assert found["concurrency_options"]["collision_strategy"] == "ENQUEUE"
