"""Pictures in bundles: linked where a link serves, and whole everywhere else."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings, DiskLow, StorageGone
from models.handoff import TRAINERS
from models.score import Verdict
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


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another filesystem than the tests' own."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second filesystem at /dev/shm")
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


def test_on_another_filesystem_it_is_a_copy_that_moves_along(
    tmp_path: Path, elsewhere: Path
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    original = dataset.read("images/ladies-mirror-1887-03/p0001-1.jpg")
    place = hand_over_all(dataset, trainers=["kohya"], bundles=str(elsewhere / "b"))
    picture = place / "kohya" / PICTURE
    assert picture.read_bytes() == original and not picture.is_symlink()
    before = picture.stat()
    hand_over_all(dataset, trainers=["kohya"], bundles=str(elsewhere / "b"))
    assert picture.stat().st_ino == before.st_ino, "it is not copied again"
    changed = original[:-1] + b"x"
    dataset.write("images/ladies-mirror-1887-03/p0001-1.jpg", changed)
    hand_over_all(dataset, trainers=["kohya"], bundles=str(elsewhere / "b"))
    assert picture.read_bytes() == changed
    moved = (place / "kohya").rename(elsewhere / "moved")
    (tmp_path / "d").rename(tmp_path / "away")
    assert read_bundle(Storage(str(moved)))[0].samples == 1
    assert (moved / PICTURE).read_bytes() == changed


def test_a_bundle_whose_list_of_samples_is_cut_off_is_none(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64), (64, 96)])
    place = Storage(str(hand_over_all(dataset, trainers=["kohya"]) / "kohya"))
    place.write("samples.jsonl", place.read("samples.jsonl").splitlines(keepends=True)[0])
    with pytest.raises(BadSettings, match=r"lacks 0 of its 2 pictures\.$"):
        read_bundle(place)


def test_a_dead_link_is_no_picture_and_is_replaced(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64), (64, 96)])
    place = hand_over_all(dataset, trainers=["kohya"])
    picture = place / "kohya" / PICTURE
    for target in ("nowhere.jpg", "../../../images/ladies-mirror-1887-03/p0001-1.jpg"):
        picture.unlink()
        picture.symlink_to(target)
        if target == "nowhere.jpg":
            with pytest.raises(BadSettings, match="lacks 1 of its 2 pictures, images/") as refused:
                read_bundle(Storage(str(place / "kohya")))
            assert "python -m flows.handoff" in refused.value.cure
        hand_over_all(dataset, trainers=["kohya"])
        assert not picture.is_symlink()
        assert read_bundle(Storage(str(place / "kohya")))[0].samples == 2


def test_bundles_where_there_are_no_links(tmp_path: Path, memory: Any) -> None:
    """What S3 does, too: the storage copies by itself; and from there to the disk."""
    dataset = make_dataset("memory://bucket/d", sizes=[(64, 64), (64, 96)])
    hand_over_all(dataset)
    names = Storage("memory://bucket/d/bundles").names("")
    assert {name.partition("/")[0] for name in names} == {
        *TRAINERS, "preflight.csv", "preflight.json", "preflight.png",
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


def test_what_others_put_into_a_bundle_stays_and_what_is_ours_goes(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 2)
    chosen = {"trainers": ["kohya", "webdataset"], "zip": True}
    place = hand_over_all(dataset, **chosen)
    images = place / "kohya" / "images"
    theirs = [
        images / "ladies-mirror-1887-03-p0001-1-masklabel.png",
        images / "ladies-mirror-1887-03-p0001-1.npz",
        images / "my-extra.jpg",
        images / "my-extra.txt",
        images / "notes.txt",
    ]
    for path in theirs:
        path.write_bytes(b"theirs")
    (images / ".ladies-mirror-1887-03-p0002-1.jpg.partial").write_bytes(b"a killed run's")
    manifest = dataset.read("manifest.jsonl").splitlines(keepends=True)
    dataset.write("manifest.jsonl", manifest[0])
    hand_over_all(dataset, **chosen)
    assert all(path.read_bytes() == b"theirs" for path in theirs)
    left = {path.name for path in images.iterdir()} - {path.name for path in theirs}
    assert left == {f"ladies-mirror-1887-03-p0001-1.{end}" for end in ("jpg", "txt")}
    assert [path.name for path in (place / "webdataset" / "shards").glob("*.tar")] == ["00000.tar"]
    with zipfile.ZipFile(place / "kohya.zip") as archive:
        names = {Path(name).name for name in archive.namelist()}
    assert not names & {path.name for path in theirs} and "train.sh" in names


def test_the_same_dataset_elsewhere_and_scored_in_another_time_gives_the_same_zips(
    tmp_path: Path,
) -> None:
    shares = {"value": None, "low": None, "high": None}
    purity = {"estimate": 0.975, "estimate_before": 0.5, "measured": shares}
    spread = {"coverage": 1, "vendi_kept": 1, "vendi_all": 1, "balance": {}}
    for run in (1, 2):
        dataset = make_dataset(tmp_path / f"{run}", sizes=[(64, 64)])
        verdict = Verdict.model_validate({
            "scored_by": "print", "samples": 1, "kept": 1, "dropped": {}, "purity": purity,
            "duplicate_groups": 0, "duplicates": 0, "spread": spread, "seconds": run,
            "peak_bytes": run, "embedded": run, "settings": {"dataset": dataset.url},
        })  # fmt: skip
        dataset.write("verdict.json", verdict.model_dump_json().encode())
        hand_over_all(dataset, zip=True)
    for trainer in TRAINERS:
        one, other = (tmp_path / run / "bundles" / f"{trainer}.zip" for run in ("1", "2"))
        assert one.read_bytes() == other.read_bytes(), trainer
        with zipfile.ZipFile(one) as archive:
            text = archive.read(f"{trainer}/README.md").decode()
        assert "| purity | estimated without labels 97.5 % (before: 50.0 %) |" in text


def test_copies_need_room_where_links_do_not(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.handoff.run.SPARE", 0)
    monkeypatch.setattr(Storage, "free_bytes", lambda _: 1000)
    here = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    hand_over_all(here, trainers=["kohya"])
    far = make_dataset("memory://bucket/d", sizes=[(64, 64)])
    with pytest.raises(DiskLow):
        hand_over_all(far, trainers=["kohya"], bundles=str(tmp_path / "bundles"))


def test_another_filesystem_needs_room_once(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    hand_over_all(dataset, trainers=["kohya"], bundles=str(elsewhere / "b"))
    monkeypatch.setattr("tasks.handoff.run.SPARE", 0)
    monkeypatch.setattr(Storage, "free_bytes", lambda _: 0)
    hand_over_all(dataset, trainers=["kohya"], bundles=str(elsewhere / "b"))
    with pytest.raises(DiskLow):
        hand_over_all(dataset, trainers=["kohya"], bundles=str(elsewhere / "c"))
