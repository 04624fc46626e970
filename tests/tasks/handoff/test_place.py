"""Pictures in bundles: linked where a link serves, and whole everywhere else."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from models.errors import DiskLow, StorageGone
from models.handoff import TRAINERS
from tasks.handoff.bundle import read_bundle
from tasks.storage import Storage
from tests.tasks.handoff.conftest import hand_over_all, make_dataset

PICTURE = "images/ladies-mirror-1887-03-p0001-1.jpg"


def test_a_picture_is_a_hard_link(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    place = hand_over_all(dataset)
    original = tmp_path / "d" / "images" / "ladies-mirror-1887-03" / "p0001-1.jpg"
    # In diffusers' bundle it is there twice; in the shards it is copied.
    assert original.stat().st_nlink == 1 + len(TRAINERS)
    assert not (place / "kohya" / PICTURE).is_symlink()


def test_without_hard_links_it_is_a_relative_link_and_without_those_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EXDEV, "not here")

    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    original = dataset.read("images/ladies-mirror-1887-03/p0001-1.jpg")
    monkeypatch.setattr(os, "link", refused)
    place = hand_over_all(dataset, trainers=["kohya"])
    assert not os.path.isabs(os.readlink(place / "kohya" / PICTURE))
    assert (place / "kohya" / PICTURE).read_bytes() == original
    (place / "kohya" / PICTURE).unlink()
    monkeypatch.setattr(Path, "symlink_to", refused)
    hand_over_all(dataset, trainers=["kohya"])
    assert not (place / "kohya" / PICTURE).is_symlink()
    assert (place / "kohya" / PICTURE).read_bytes() == original


def test_bundles_where_there_are_no_links(tmp_path: Path, memory: Any) -> None:
    """What S3 does, too: the storage copies by itself; and from there to the disk."""
    dataset = make_dataset("memory://bucket/d", sizes=[(64, 64), (64, 96)])
    hand_over_all(dataset)
    names = Storage("memory://bucket/d/bundles").names("")
    assert {name.partition("/")[0] for name in names} == {
        *TRAINERS, "preflight.json", "preflight.png",
    }  # fmt: skip
    original = dataset.read("images/ladies-mirror-1887-03/p0001-1.jpg")
    assert Storage("memory://bucket/d/bundles/kohya").read(PICTURE) == original
    assert read_bundle(Storage("memory://bucket/d/bundles/kohya"))[0].samples == 2
    place = hand_over_all(dataset, bundles=str(tmp_path / "here"), trainers=["kohya"])
    assert (place / "kohya" / PICTURE).read_bytes() == original


def test_a_picture_that_vanished_is_named_with_its_cure(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    dataset.remove("images/ladies-mirror-1887-03/p0001-1.jpg")
    with pytest.raises(StorageGone, match=r"p0001-1\.jpg vanished") as gone:
        hand_over_all(dataset)
    assert "flows.verify" in gone.value.cure and "--repair" in gone.value.cure
    assert not (tmp_path / "d" / "bundles" / "kohya" / "bundle.json").exists()


def test_no_room_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    monkeypatch.setattr(Storage, "free_bytes", lambda _: 1000)
    with pytest.raises(DiskLow, match="MB are needed"):
        hand_over_all(dataset)
    assert not (tmp_path / "d" / "bundles").exists()
    assert not (tmp_path / "d" / "captions.csv").exists()
