"""The dataset as it stands: what extraction made, less what scoring took out.

``manifest.jsonl`` has every sample that was extracted. ``dropped.jsonl``, if there is one, names
those that were judged not to belong, with the reason. It decides: the files of dropped samples lie
below ``dropped/`` under the same names as below ``images/``, and where a run was killed between
writing it and moving them, :func:`settle` moves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from pydantic import ValidationError

from models.errors import DamagedDataset
from models.records import DroppedLine, Record, Sample
from tasks.storage import Storage

MANIFEST = "manifest.jsonl"
DROPPED = "dropped.jsonl"
IMAGES = "images"
ASIDE = "dropped"
"""Folder of the dropped samples' files."""

R = TypeVar("R", bound=Record)


def read_all(output: Storage) -> Iterator[Sample]:
    """All samples that were extracted, in the order of the manifest."""
    return (sample for _, sample in read_records(output, MANIFEST, Sample))


def read_samples(output: Storage) -> Iterator[Sample]:
    """The samples of the dataset in the order of the manifest, dropped ones left out."""
    return (sample for _, sample in read_lines(output))


def read_lines(output: Storage) -> Iterator[tuple[bytes, Sample]]:
    """The lines of the manifest and their samples, without those that were dropped."""
    dropped = _dropped_lines(output)
    for line, sample in read_records(output, MANIFEST, Sample):
        if not _is_dropped(sample.file_name, sample.sha256, dropped):
            yield line, sample


def read_records(output: Storage, name: str, kind: type[R]) -> Iterator[tuple[bytes, R]]:
    """The lines of a file of the dataset, and the records in them.

    Raises:
        DamagedDataset: A line holds none.
    """
    for number, line in enumerate(output.lines(name), start=1):
        # People edit this file.
        if name == DROPPED and not line.strip():
            continue
        try:
            record = kind.model_validate_json(line)
        except ValidationError as error:
            raise DamagedDataset(
                f"{output.path(name)} is damaged in line {number}: {error.errors()[0]['msg']}.",
                "Correct or remove the line." if name == DROPPED else made_again(output),
            ) from error
        yield line, record


def made_again(output: Storage) -> str:
    """What to do about a file that extraction makes, in words."""
    return f"Make it again: python -m flows.verify --output {output.url} --repair"


def read_dropped(output: Storage) -> dict[str, str]:
    """Why samples were taken out, by file name."""
    dropped = _dropped_lines(output)
    return {
        sample.file_name: dropped[sample.file_name].reason
        for sample in read_all(output)
        if _is_dropped(sample.file_name, sample.sha256, dropped)
    }


def write_dropped(output: Storage, samples: Iterable[Sample], reasons: Mapping[str, str]) -> None:
    """Say which samples are taken out, and move the files accordingly.

    Args:
        output: The dataset.
        samples: All of the manifest.
        reasons: Why samples are taken out, by file name.
    """
    with output.writer(DROPPED) as stream:
        for sample in samples:
            if reason := reasons.get(sample.file_name):
                name, sha256 = sample.file_name, sample.sha256
                line = DroppedLine(file_name=name, sha256=sha256, reason=reason)
                stream.write(line.model_dump_json().encode() + b"\n")
    settle(output)


def settle(output: Storage) -> None:
    """Move files so that they lie where ``dropped.jsonl`` says; harmless to repeat."""
    aside = output.names(ASIDE)
    dropped = _dropped_lines(output)
    if not aside and not dropped:
        return
    kept = output.names(IMAGES)
    for sample in read_all(output):
        name, twin = sample.file_name, aside_name(sample.file_name)
        with suppress(FileNotFoundError):
            if _is_dropped(name, sample.sha256, dropped):
                if name in kept:
                    output.move(name, twin)
            elif twin in aside:
                if name in kept:
                    # Cut again since it was dropped.
                    output.remove(twin)
                else:
                    output.move(twin, name)
    for folder in (IMAGES, ASIDE):
        output.remove_empty(folder)


def sample_files(output: Storage) -> dict[str, int]:
    """Names (as in the manifest) and sizes of all sample files, wherever they lie."""
    aside = {image_name(name): size for name, size in output.names(ASIDE).items()}
    return aside | output.names(IMAGES)


def read_file(output: Storage, name: str) -> bytes:
    """The bytes of a sample's file, kept or dropped.

    Raises:
        FileNotFoundError: It lies in neither place.
    """
    try:
        return output.read(name)
    except FileNotFoundError:
        return output.read(aside_name(name))


def aside_name(name: str) -> str:
    """Where the file of a dropped sample lies."""
    return ASIDE + name[name.index("/") :]


def image_name(name: str) -> str:
    """The name in the manifest of a sample's file, wherever it lies."""
    return IMAGES + name[name.index("/") :]


def _dropped_lines(output: Storage) -> dict[str, DroppedLine]:
    return {line.file_name: line for _, line in read_records(output, DROPPED, DroppedLine)}


def _is_dropped(name: str, sha256: str, dropped: Mapping[str, DroppedLine]) -> bool:
    line = dropped.get(name)
    return line is not None and line.sha256 == sha256
