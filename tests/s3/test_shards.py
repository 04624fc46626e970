"""Several machines on one archive: real processes that share S3 and nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.records import Pdf, PdfFacts
from models.settings import Settings
from tasks.discover import share
from tasks.storage import Storage
from tests.faults.record import SAME, record
from tests.faults.stages import PUBLISHED, settings_for, work
from tests.resources.make_faults import MAKERS
from tests.services.radosgw import Radosgw

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys
from models.settings import Settings
from tasks import lease, session, triage
from tasks.discover import discover, share
from tasks.extract import Group, extract_pages
lease._machine = lambda: sys.argv[2]  # another machine, whose processes nobody here can see
lease.LEASE_S, lease.RENEW_S = 4, 1
settings = Settings.model_validate_json(sys.argv[1])
run = session.begin(settings)
for pdf in share(discover(run), settings.shard):
    pages = triage.triage(run, pdf)
    print("worked", pdf.name, flush=True)
    if pages:
        extract_pages(run, Group(pdf, pages))
session.end()
"""
NAMES = ("plain", "count_too_low", "labels", "text_only", "cropbox", "userunit", "owner_only")


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards") / "in"
    folder.mkdir()
    for name in NAMES:
        for copy in range(3):
            data = MAKERS[name]() + b"\n%% copy %d\n" % copy  # the same picture, another file
            (folder / f"{name}-{copy}.pdf").write_bytes(data)
    (folder / "again.pdf").write_bytes((folder / "plain-0.pdf").read_bytes())
    (folder / "bad.pdf").write_bytes(b"<html>")
    return folder


@pytest.fixture(scope="session")
def one_machine(archive: Path) -> dict[str, bytes]:
    output = archive.parent / "out"
    work(settings_for(archive, output))
    return {name: (output / name).read_bytes() for name in PUBLISHED}


@pytest.fixture
def settings(direct: Radosgw, archive: Path, place: str) -> Settings:
    source = Storage(f"{place}-source")
    for path in archive.iterdir():
        source.write(path.name, path.read_bytes())
    found = settings_for(Path("in"), Path("out")).model_dump()
    return Settings.model_validate({**found, "source": source.url, "output": place})


def on_machine(settings: Settings, number: int, shard: str, folder: Path) -> Settings:
    """The settings of a machine with a scratch folder of its own."""
    run = settings.run.model_copy(update={"scratch": str(folder / f"scratch-{number}")})
    return settings.model_copy(update={"shard": shard, "run": run})


def start(settings: Settings, machine: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, settings.model_dump_json(), f"machine {machine}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def published(place: str) -> dict[str, bytes]:
    return {name: Storage(place).read(name) for name in PUBLISHED}


def test_every_pdf_falls_to_one_shard() -> None:
    pdfs = [
        Pdf(name=str(n), path="", sha256=f"{n * 7919:064x}", facts=PdfFacts(page_count=1))
        for n in range(100)
    ]
    shares = [share(pdfs, f"{index}/7") for index in range(1, 8)]
    assert sorted(int(pdf.name) for each in shares for pdf in each) == list(range(100))
    assert all(shares) and share(pdfs, "") == pdfs == share(pdfs, "1/1")


def test_machines_side_by_side_one_of_them_killed(
    settings: Settings, place: str, one_machine: dict[str, bytes], tmp_path: Path
) -> None:
    machines = {n: on_machine(settings, n, f"{n}/2", tmp_path) for n in (1, 2)}
    first, second = (start(machines[n], n) for n in (1, 2))
    assert first.stdout is not None
    assert first.stdout.readline().startswith("worked")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    # Another machine takes the dead one's place, with the same shard and scratch of its own.
    third = start(on_machine(settings, 3, "1/2", tmp_path), 3)
    for process in (second, third):
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 0, printed
    assert not Storage(place).names("dataset.zip"), "shards publish nothing"
    work(settings)
    assert published(place) == one_machine
    record("Several machines", "one of two shards killed, another machine in its place", 1,
           SAME, "pytest tests/s3/test_shards.py")  # fmt: skip
