"""Packing a dataset: many members, a full disk, a sample that vanishes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from models.errors import DiskLow, StorageRefused
from tasks import package
from tasks.session import Session
from tests.resources.make_dataset import make_sample
from tests.tasks.conftest import OpenSession

SAMPLE = make_sample("v/p1-1.jpg", b"x")
LOST = SAMPLE.model_dump_json().encode() + b"\n"


def fake_manifest(run: Session, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"images/v/p{n:06d}-1.jpg" for n in range(count)]
    lines = [SAMPLE.model_copy(update={"file_name": name}).model_dump_json() for name in names]
    run.output.write("manifest.jsonl", "".join(f"{line}\n" for line in lines).encode())
    real = run.output.read
    monkeypatch.setattr(
        run.output, "read", lambda name: b"x" if name.startswith("images/") else real(name)
    )


def test_more_members_than_a_plain_zip_can_hold(
    tmp_path: Path, open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_session(tmp_path, tmp_path / "out")
    fake_manifest(run, 65_600, monkeypatch)
    size = package.package(run)
    path = tmp_path / "out" / "dataset.zip"
    assert path.stat().st_size == size
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 65_601
    with path.open("rb") as stream:
        stream.seek(-200, 2)
        assert b"PK\x06\x06" in stream.read(), "the end record of ZIP64"


def test_packing_stops_before_the_disk_is_full(
    tmp_path: Path, open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_session(tmp_path, tmp_path / "out")
    run.output.write("manifest.jsonl", LOST.replace(b'"bytes":1,', b'"bytes":%d,' % 10**18))
    with pytest.raises(DiskLow, match="are needed"):
        package.package(run)
    assert not list((tmp_path / "out").glob("*dataset*"))


def test_a_sample_that_vanishes_while_packing_stops_the_run(
    tmp_path: Path, open_session: OpenSession, output: str
) -> None:
    run = open_session(tmp_path, output, run={"scratch": str(tmp_path / "not yet there")})
    run.output.write("manifest.jsonl", LOST)
    with pytest.raises(StorageRefused, match=r"p1-1\.jpg vanished") as error:
        package.package(run)
    assert f"flows.verify --output {run.output.url} --repair" in error.value.cure
    assert set(run.output.names("")) == {"manifest.jsonl"}


def test_a_sample_somebody_changed_is_neither_packed_nor_removed(
    tmp_path: Path, open_session: OpenSession, output: str
) -> None:
    run = open_session(tmp_path, output)
    run.output.write("images/v/p1-1.jpg", b"?")
    run.output.write("manifest.jsonl", LOST)
    with pytest.raises(StorageRefused, match="is not the file that was written") as error:
        package.package(run)
    assert f"flows.verify --output {run.output.url} --repair" in error.value.cure
    assert set(run.output.names("")) == {"manifest.jsonl", "images/v/p1-1.jpg"}
    assert run.output.read("images/v/p1-1.jpg") == b"?"
