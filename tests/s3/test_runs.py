"""Whole runs from S3 to S3: the bytes are those of a local run, whatever the weather."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from models.errors import StopRun, StorageRefused
from models.settings import Settings
from tasks.storage import Storage
from tests.faults.record import SAME, record
from tests.faults.stages import PUBLISHED, make_archive, settings_for, work
from tests.resources.make_faults import MAKERS
from tests.s3.conftest import BUCKET, account
from tests.services.proxy import Fault, Proxy
from tests.services.radosgw import Radosgw

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from models.settings import Settings
from tests.faults.stages import work
work(Settings.model_validate_json(sys.argv[1]))
"""
"""The stages without Prefect, in a process that can be killed."""
ALL = "pytest -m nightly tests/s3/test_runs.py"
STORMS = {
    "503": Fault(status=503),
    "500": Fault(status=500),
    "reset": Fault(refuse=True),
    "reset in mid-body, up": Fault(cut_up=1),
    "reset in mid-body, down": Fault(cut_down=150),
    "a flipped bit going up": Fault(flip=True),
    "no answer": Fault(hang=True),
}


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run on local disks makes of the archive."""
    folder = tmp_path_factory.mktemp("reference")
    work(settings_for(make_archive(folder / "in"), folder / "out"))
    return {name: (folder / "out" / name).read_bytes() for name in PUBLISHED}


@pytest.fixture(scope="session")
def source(server: Radosgw, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The archive on S3."""
    import s3fs

    folder = make_archive(tmp_path_factory.mktemp("source"))
    fs = s3fs.S3FileSystem(endpoint_url=server.url, key=server.key, secret=server.secret)
    fs.put(f"{folder}/", f"{BUCKET}/archive/", recursive=True)
    return f"s3://{BUCKET}/archive"


@pytest.fixture
def settings(source: str, place: str, tmp_path: Path) -> Settings:
    found = settings_for(Path("in"), Path("out")).model_dump()
    found["run"] |= {"scratch": str(tmp_path / "scratch"), "scratch_budget_mb": 10}
    return Settings.model_validate({**found, "source": source, "output": place})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks import s3

    monkeypatch.setattr(s3, "PATIENCE_S", 0.5)
    monkeypatch.setattr(s3, "READ_S", 1)
    s3.client.cache_clear()


def published(place: str) -> dict[str, bytes]:
    output = Storage(place)
    return {name: output.read(name) for name in PUBLISHED}


def leftovers(place: str) -> list[Any]:
    from tasks.s3 import client

    prefix = place.removeprefix(f"s3://{BUCKET}/")
    found = client().call_s3("list_multipart_uploads", Bucket=BUCKET, Prefix=prefix)
    return list(found.get("Uploads", []))


def test_the_command_from_s3_to_s3_tells_no_secret(
    server: Radosgw,
    direct: Radosgw,
    settings: Settings,
    place: str,
    reference: dict[str, bytes],
    start_extract: Callable[..., subprocess.Popen[str]],
    prefect_url: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    run = settings.run
    arguments = ["--source", settings.source, "--output", place, "--triage.method", "sigma"]
    arguments += ["--fit.min-side", "1", "--run.scratch", run.scratch, "--run.workers", "1"]
    arguments += ["--run.scratch-budget-mb", str(run.scratch_budget_mb)]
    process = start_extract(*arguments)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert published(place) == reference
    assert not list((tmp_path / "scratch").rglob("*.pdf")), "staged PDFs are gone"
    output = Storage(place)
    everything = b"".join(output.read(name) for name in output.names(""))
    databases = list(tmp_path_factory.getbasetemp().glob("prefect*/*.db*"))
    assert databases, "the server's parameters, logs and artifacts"
    for secret in (server.secret, server.key):
        assert secret not in printed and secret.encode() not in everything
        for database in databases:
            assert secret.encode() not in database.read_bytes()
    again = start_extract(*arguments)
    printed, _ = again.communicate(timeout=120)
    assert again.returncode == 0 and "Nothing to do" in printed


@pytest.mark.parametrize(
    "storm",
    [
        pytest.param(name, marks=() if name.startswith("reset in") else pytest.mark.nightly)
        for name in STORMS
    ],
)
def test_every_sixth_request_fails_and_the_run_ends_well(
    weather: Proxy,
    settings: Settings,
    place: str,
    reference: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    storm: str,
) -> None:
    from tasks import s3

    monkeypatch.setattr(s3, "READ_S", 1)
    s3.client.cache_clear()
    with weather.spoiling(replace(STORMS[storm], every=6)):
        work(settings)
        met = weather.met
    assert met > 10
    assert published(place) == reference and not leftovers(place)
    record("S3", f"{storm}, at every sixth request", met, "ridden out, the same bytes", ALL)


@pytest.mark.parametrize(
    ("storm", "every"),
    [
        ("503", 25),
        *(pytest.param(name, 4, marks=pytest.mark.nightly) for name in STORMS),
    ],
)
def test_a_storage_that_goes_away_stops_the_run_and_the_next_one_goes_on(
    weather: Proxy,
    settings: Settings,
    place: str,
    reference: dict[str, bytes],
    impatient: None,
    storm: str,
    every: int,
) -> None:
    """From the Nth request on nothing gets through, for one N after the other."""
    stopped = skip = 0
    while True:
        with weather.spoiling(replace(STORMS[storm], skip=skip)):
            try:
                work(settings)
            except StopRun as error:
                stopped += 1
                assert error.exit_code == 3 and f"s3://{BUCKET}/" in error.message
            else:
                break
        skip += every
    assert stopped
    work(settings)
    assert published(place) == reference and not leftovers(place)
    record("S3", f"{storm}, for good, from one request after the other on", stopped,
           f"exit 3, {SAME}", ALL)  # fmt: skip


@pytest.mark.parametrize(
    ("first", "every"), [(40, 1000), pytest.param(0, 3, marks=pytest.mark.nightly)]
)
def test_killed_at_one_request_after_the_other(
    weather: Proxy,
    settings: Settings,
    place: str,
    reference: dict[str, bytes],
    first: int,
    every: int,
) -> None:
    kills, skip = 0, first
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, settings.model_dump_json()], cwd=ROOT
        )
        fault = Fault(skip=skip, times=1, call=lambda p=process: p.send_signal(signal.SIGKILL))
        with weather.spoiling(fault):
            code = process.wait(120)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
        skip += every
    assert kills
    assert published(place) == reference and not leftovers(place)
    record("S3", "SIGKILL at one request after the other", kills, SAME, ALL)


def test_credentials_revoked_in_mid_run(
    server: Radosgw,
    weather: Proxy,
    settings: Settings,
    place: str,
    reference: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tasks import s3

    server.add_key("passing-key", "passing-secret")
    for name, value in account(weather.url, "passing-key", "passing-secret").items():
        monkeypatch.setenv(name, value)
    s3.client.cache_clear()
    begun = time.monotonic()
    revoke = Fault(only="images/", skip=1, times=1, call=lambda: server.remove_key("passing-key"))
    with weather.spoiling(revoke), pytest.raises(StorageRefused) as caught:
        work(settings)
    assert weather.met == 1 and time.monotonic() - begun < 30
    assert place in caught.value.message
    assert "AWS_ACCESS_KEY_ID" in caught.value.cure and caught.value.exit_code == 3
    for name, value in account(weather.url, server.key, server.secret).items():
        monkeypatch.setenv(name, value)
    s3.client.cache_clear()
    work(settings)
    assert published(place) == reference
    record("S3", "credentials revoked in mid-run", 1, f"exit 3, {SAME}", ALL)


def test_the_gateway_killed_and_back_in_mid_run(
    server: Radosgw,
    weather: Proxy,
    settings: Settings,
    place: str,
    reference: dict[str, bytes],
) -> None:
    def outage() -> None:
        server.kill_gateway()
        threading.Timer(4, server.start_gateway).start()

    with weather.spoiling(Fault(only="images/", skip=1, times=1, call=outage)):
        work(settings)
    assert published(place) == reference
    record("S3", "the gateway killed, and back after 4 s", 1, "ridden out, the same bytes", ALL)


@contextmanager
def forbidden(server: Radosgw, names: str) -> Iterator[None]:
    """Nobody may read the objects in the bucket whose names are like that."""
    import s3fs

    fs = s3fs.S3FileSystem(endpoint_url=server.url, key=server.key, secret=server.secret)
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{BUCKET}/{names}",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    fs.call_s3("put_bucket_policy", Bucket=BUCKET, Policy=policy)
    try:
        yield
    finally:
        fs.call_s3("delete_bucket_policy", Bucket=BUCKET)


def listed(source: str, folder: Path, kind: str) -> str:
    """A source on S3, as it is or as a local list of its PDFs."""
    if kind == "folder":
        return source
    names = Storage(source).names("")
    (folder / "list.txt").write_text("".join(f"{source}/{name}\n" for name in names))
    return str(folder / "list.txt")


@pytest.mark.parametrize("kind", ["folder", "list"])
@pytest.mark.parametrize("name", ["1887/three.pdf", "text.pdf"], ids=["the first", "the last"])
def test_one_forbidden_pdf_is_quarantined_and_tried_again(
    direct: Radosgw,
    settings: Settings,
    place: str,
    source: str,
    reference: dict[str, bytes],
    tmp_path: Path,
    kind: str,
    name: str,
) -> None:
    settings = settings.model_copy(update={"source": listed(source, tmp_path, kind)})
    with forbidden(direct, f"archive/{name}"):
        work(settings)
    lines = map(json.loads, Storage(place).lines("quarantine.jsonl"))
    (line,) = (line for line in lines if line["pdf"] == name)
    assert line["kind"] == "unreadable_file"
    assert "cannot be read, though others can: Not allowed" in line["message"]
    work(settings)
    assert published(place) == reference


@pytest.mark.parametrize("kind", ["folder", "list"])
@pytest.mark.parametrize("first", [0, 3])
def test_a_source_that_may_no_longer_be_read_stops_the_run_and_condemns_nothing(
    server: Radosgw,
    weather: Proxy,
    settings: Settings,
    source: str,
    reference: dict[str, bytes],
    tmp_path: Path,
    kind: str,
    first: int,
) -> None:
    """The output is elsewhere, and would take everything."""
    output = tmp_path / "out"
    given = {"source": listed(source, tmp_path, kind), "output": str(output)}
    settings = settings.model_copy(update=given)
    with ExitStack() as stack:
        revoke = Fault(
            only="GET /intaglio/archive/",
            skip=first,
            times=1,
            call=lambda: stack.enter_context(forbidden(server, "archive/*")),
        )
        with weather.spoiling(revoke), pytest.raises(StorageRefused) as caught:
            work(settings)
        assert weather.met == 1 and "s3://intaglio/archive/" in caught.value.message
        assert caught.value.exit_code == 3
        assert not (output / "quarantine.jsonl").exists()
    work(settings)
    assert {name: (output / name).read_bytes() for name in PUBLISHED} == reference
    record("S3", "the right to read the source taken away", 1, f"exit 3, {SAME}", ALL)


@pytest.mark.parametrize("kind", ["folder", "list"])
def test_an_archive_larger_than_scratch_comes_one_pdf_at_a_time(
    direct: Radosgw, settings: Settings, place: str, tmp_path: Path, kind: str
) -> None:
    source, scratch = Storage(f"{place}-source"), tmp_path / "scratch"
    for number in range(5):
        with pikepdf.open(io.BytesIO(MAKERS["plain"]())) as pdf:
            pdf.Root.Padding = pdf.make_stream(os.urandom(4 << 20))
            pdf.save(padded := io.BytesIO())
        source.write(f"{number}.pdf", padded.getvalue())
    most: list[int] = [0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            with suppress(FileNotFoundError):
                most.append(sum(path.stat().st_size for path in scratch.rglob("*.pdf*")))

    watching = threading.Thread(target=watch)
    watching.start()
    work(settings.model_copy(update={"source": listed(source.url, tmp_path, kind)}))
    over.set()
    watching.join()
    assert 4 << 20 < max(most) <= 10 << 20
    lines = [json.loads(line) for line in Storage(place).lines("pages.jsonl")]
    assert {line["pdf"] for line in lines} == {f"{number}.pdf" for number in range(5)}
