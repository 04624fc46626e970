"""The dataset as it stands: what extraction made, less what scoring took out.

``manifest.jsonl`` has every sample that was extracted. ``dropped.jsonl``, if there is one, names
those that were judged not to belong, with the reason. It decides: the files of dropped samples lie
below ``dropped/`` under the same names as below ``images/``, and where a run was killed between
writing it and moving them, :func:`settle` moves them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pydantic import ValidationError

from models.errors import BadSettings
from models.records import DroppedLine, Sample
from tasks.storage import Storage

MANIFEST = "manifest.jsonl"
DROPPED = "dropped.jsonl"
IMAGES = "images"
ASIDE = "dropped"
"""Folder of the dropped samples' files."""


def read_all(output: Storage) -> Iterator[Sample]:
    """All samples that were extracted, in the order of the manifest."""
    return map(Sample.model_validate_json, output.lines(MANIFEST))


def read_samples(output: Storage) -> Iterator[Sample]:
    """The samples of the dataset in the order of the manifest, dropped ones left out."""
    return (Sample.model_validate_json(line) for line in read_lines(output))


def read_lines(output: Storage) -> Iterator[bytes]:
    """The lines of the manifest without those of dropped samples."""
    dropped = _dropped_lines(output)
    for line in output.lines(MANIFEST):
        sample = json.loads(line)
        if not _is_dropped(sample["file_name"], sample["sha256"], dropped):
            yield line


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
    dropped: dict[str, DroppedLine] = {}
    for number, data in enumerate(output.lines(DROPPED), 1):
        # People edit this file.
        if not data.strip():
            continue
        try:
            line = DroppedLine.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadSettings(
                f"{output.path(DROPPED)}, line {number}: {first['msg']}.",
                "Correct or remove the line.",
            ) from error
        dropped[line.file_name] = line
    return dropped


def _is_dropped(name: str, sha256: str, dropped: Mapping[str, DroppedLine]) -> bool:
    line = dropped.get(name)
    return line is not None and line.sha256 == sha256
