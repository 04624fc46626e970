"""The hand-off as a user runs it: a real command, a real Prefect server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from models.handoff import TRAINERS
from tasks.dataset import aside_name
from tasks.lock import locked
from tests.tasks.conftest import tree
from tests.tasks.handoff.conftest import make_dataset

ROOT = Path(__file__).resolve().parent.parent.parent
Handoff = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def handoff(prefect_url: str) -> Handoff:
    """Run ``python -m flows.handoff`` to its end: exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "flows.handoff", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PREFECT_API_URL": prefect_url},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_bundles_for_all_trainers_and_the_same_bytes_again(
    tmp_path: Path, handoff: Handoff
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64), (64, 96), (96, 64)])
    code, printed = handoff("--dataset", tmp_path / "d", "--zip", "--license", "cc0-1.0")
    assert code == 0, printed
    place = tmp_path / "d" / "bundles"
    assert {path.name for path in place.iterdir() if path.is_dir()} == {*TRAINERS}
    assert "builtin" in printed and "flows.train --bundle" in printed
    assert "Traceback" not in printed and "WARNING" not in printed
    first = place / "kohya" / "images" / "ladies-mirror-1887-03-p0001-1.jpg"
    original = tmp_path / "d" / "images" / "ladies-mirror-1887-03" / "p0001-1.jpg"
    assert first.samefile(original), "linked, not copied"
    with zipfile.ZipFile(place / "kohya.zip") as archive:
        assert archive.namelist() == sorted(archive.namelist())
        assert archive.read(f"kohya/images/{first.name}") == original.read_bytes()
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    before = tree(place)
    (place / "kohya.zip").unlink()
    (place / "kohya" / "images" / "ladies-mirror-1887-03-p0002-1.txt").unlink()
    (place / "kohya" / "images" / "gone-p0001-1.jpg").write_bytes(b"of an earlier dataset")
    listed = place / "kohya" / "samples.jsonl"
    line = json.loads(listed.read_text().splitlines()[0])
    with listed.open("a") as stream:
        stream.write(json.dumps(line | {"image": "gone-p0001-1.jpg"}) + "\n")
    (place / "kohya" / "output").mkdir()
    (place / "kohya" / "output" / "lora.safetensors").write_bytes(b"a trainer's")
    assert handoff("--dataset", dataset.url, "--zip", "--license", "cc0-1.0")[0] == 0
    after = tree(place)
    assert after.pop("kohya/output/lora.safetensors") == b"a trainer's"
    assert after == before


def test_a_scoring_that_was_killed_while_it_moved_files_is_ended_first(
    tmp_path: Path, handoff: Handoff
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64), (64, 96)])
    name = "images/ladies-mirror-1887-03/p0002-1.jpg"
    dataset.move(name, aside_name(name))
    code, printed = handoff("--dataset", tmp_path / "d", "--trainers", "kohya")
    assert code == 0, printed
    assert dataset.size(name) and not dataset.size(aside_name(name))


def test_a_dry_run_writes_nothing(tmp_path: Path, handoff: Handoff) -> None:
    make_dataset(tmp_path / "d", sizes=[(64, 64)])
    before = tree(tmp_path)
    code, printed = handoff("--dataset", tmp_path / "d", "--dry-run")
    assert code == 0 and "intaglio, engraving, 1880s" in printed and "kohya" in printed
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("manifest", "code", "said"),
    [(None, 2, "holds no finished dataset"), (b"", 4, "has no samples")],
)
def test_no_dataset_and_an_empty_one(
    tmp_path: Path, handoff: Handoff, manifest: bytes | None, code: int, said: str
) -> None:
    if manifest is not None:
        (tmp_path / "manifest.jsonl").write_bytes(manifest)
    before = tree(tmp_path)
    ended, printed = handoff("--dataset", tmp_path)
    assert (ended, said in printed) == (code, True), printed
    assert tree(tmp_path) == before


def test_a_dataset_that_is_being_worked_is_refused(tmp_path: Path, handoff: Handoff) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    with locked(dataset):
        code, printed = handoff("--dataset", tmp_path / "d", "--trainers", "kohya")
    assert code == 3 and f"is being worked by process {os.getpid()} on " in printed
    assert not (tmp_path / "d" / "bundles").exists()
