"""Dropped samples lie aside, are never deleted, and come back; a kill in between is mended."""

from __future__ import annotations

from typing import Any

import pytest

from models.errors import DamagedDataset, StorageGone
from models.records import Sample
from tasks import package
from tasks.dataset import (
    aside_name,
    read_dropped,
    read_file,
    read_samples,
    sample_files,
    settle,
    write_dropped,
)
from tasks.score.pages import dropped_pages
from tasks.storage import Storage
from tests.resources.make_dataset import make_dataset
from tests.tasks.conftest import OpenSession

NAMES = ["a/p0001-1.jpg", "a/p0002-1.jpg", "b/p0001-1.jpg"]


@pytest.fixture
def dataset(output: str) -> tuple[Storage, list[Sample]]:
    storage = Storage(output)
    return storage, make_dataset(storage, [(name, name.encode()) for name in NAMES])


def test_what_is_dropped_moves_aside_and_comes_back(dataset: tuple[Storage, list[Sample]]) -> None:
    storage, samples = dataset
    before = sample_files(storage)
    manifest = storage.read("manifest.jsonl")
    dropped = samples[2].file_name
    write_dropped(storage, samples, {dropped: "impure"})
    assert set(storage.names("images")) == {s.file_name for s in samples[:2]}
    assert set(storage.names("dropped")) == {"dropped/b/p0001-1.jpg"}
    assert read_dropped(storage) == {dropped: "impure"}
    assert list(read_samples(storage)) == samples[:2]
    assert read_file(storage, dropped) == NAMES[2].encode()
    assert sample_files(storage) == before and storage.read("manifest.jsonl") == manifest
    write_dropped(storage, samples, {samples[0].file_name: "text"})
    assert set(storage.names("dropped")) == {aside_name(samples[0].file_name)}
    assert set(storage.names("images")) == {s.file_name for s in samples[1:]}


def test_a_kill_between_writing_and_moving_is_mended_by_packing(
    dataset: tuple[Storage, list[Sample]],
    output: str,
    open_session: OpenSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, samples = dataset
    real, moved = Storage.move, []

    def killed_after_one(self: Storage, name: str, to: str) -> None:
        if moved:
            raise StorageGone("killed")
        moved.append(name)
        real(self, name, to)

    monkeypatch.setattr(Storage, "move", killed_after_one)
    with pytest.raises(StorageGone):
        write_dropped(storage, samples, {s.file_name: "impure" for s in samples[1:]})
    monkeypatch.undo()
    assert len(storage.names("dropped")) == 1
    package.package(open_session("nowhere", output))
    assert set(storage.names("images")) == {samples[0].file_name}
    assert len(storage.names("dropped")) == 2
    assert package.kept_manifest(storage) == samples[0].model_dump_json().encode() + b"\n"


def test_a_move_that_was_half_done_leaves_one_file(dataset: tuple[Storage, list[Sample]]) -> None:
    # On object storage a move is a copy and a removal.
    storage, samples = dataset
    write_dropped(storage, samples, {samples[0].file_name: "impure"})
    storage.write(samples[0].file_name, NAMES[0].encode())
    storage.write(aside_name(samples[1].file_name), NAMES[1].encode())
    settle(storage)
    assert set(storage.names("images")) == {s.file_name for s in samples[1:]}
    assert set(storage.names("dropped")) == {aside_name(samples[0].file_name)}


def test_a_sample_cut_again_counts_as_unjudged(dataset: tuple[Storage, list[Sample]]) -> None:
    storage, samples = dataset
    write_dropped(storage, samples, {samples[0].file_name: "impure"})
    files: list[tuple[str, Any]] = [(NAMES[0], b"other pixels"), *((n, n.encode()) for n in NAMES)]
    again = make_dataset(storage, [files[0], *files[2:]])
    settle(storage)
    assert list(read_samples(storage)) == again and not read_dropped(storage)
    assert not storage.names("dropped")
    assert storage.read(again[0].file_name) == b"other pixels"


def test_what_people_edit_may_have_empty_lines_and_bad_ones_are_named(
    dataset: tuple[Storage, list[Sample]],
) -> None:
    storage, samples = dataset
    write_dropped(storage, samples, {s.file_name: "impure" for s in samples[:2]})
    first, second = storage.lines("dropped.jsonl")
    storage.write("dropped.jsonl", b"\n" + second + b"\n\r\n")
    settle(storage)
    assert read_dropped(storage) == {samples[1].file_name: "impure"}
    storage.write("dropped.jsonl", second + b"\n" + first[:-9] + b"\n")
    with pytest.raises(DamagedDataset, match=r"dropped\.jsonl is damaged in line 2: ") as error:
        settle(storage)
    assert "remove the line" in error.value.cure


def test_a_damaged_line_of_the_page_list_is_named(output: str, open_session: OpenSession) -> None:
    run = open_session("nowhere", output)
    run.output.write("pages.jsonl", b"{")
    with pytest.raises(DamagedDataset, match=r"pages\.jsonl is damaged in line 1: ") as error:
        dropped_pages(run)
    assert f"flows.verify --output {run.output.url} --repair" in error.value.cure
