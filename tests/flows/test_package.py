"""Packing again by hand, and who may."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import handoff, package, score
from models.errors import DamagedDataset, OutputInUse
from tasks.lock import locked
from tasks.storage import Storage
from tests.faults.stages import make_archive, settings_for, work


@pytest.mark.parametrize("main", [package.main, score.main], ids=["package", "score"])
def test_a_dataset_that_is_being_worked_is_left_alone(
    tmp_path: Path, main: Callable[[list[str]], int]
) -> None:
    output = tmp_path / "out"
    work(settings_for(make_archive(tmp_path / "in"), output))
    (output / "dataset.zip").unlink()
    owner = f"is being worked by process {os.getpid()} on "
    with locked(Storage(str(output))), pytest.raises(OutputInUse, match=owner):
        main(["--dataset", str(output)])
    assert not (output / "dataset.zip").exists() and not (output / "report").exists()
    assert package.main(["--dataset", str(output)]) == 0
    assert (output / "dataset.zip").exists()


@pytest.mark.parametrize(
    "main", [package.main, score.main, handoff.main], ids=["package", "score", "handoff"]
)
def test_a_damaged_manifest_is_named_with_its_cure(
    tmp_path: Path, main: Callable[[list[str]], int]
) -> None:
    output = tmp_path / "out"
    work(settings_for(make_archive(tmp_path / "in"), output))
    manifest = output / "manifest.jsonl"
    first, second, *rest = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join([first, second.replace(b":", b"\0", 1), *rest]))
    with pytest.raises(DamagedDataset, match=r"manifest\.jsonl is damaged in line 2: ") as error:
        main(["--dataset", str(output)])
    assert error.value.exit_code == 3
    assert f"flows.verify --output {output} --repair" in error.value.cure
