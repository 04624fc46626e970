"""Verification: is the dataset on the disk what its records say?"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import ValidationError

from models.errors import BadSettings
from models.records import Outcome, PageLine, QuarantineLine, Record, Sample, Summary
from models.settings import Settings
from tasks.dataset import MANIFEST, aside_name, read_samples
from tasks.discover import last_time
from tasks.package import DATASET, kept_manifest
from tasks.progress import Progress
from tasks.publish import PAGES, PUBLISHED, QUARANTINE, SUMMARY
from tasks.report import SHEET
from tasks.storage import Storage

R = TypeVar("R", bound=Record)


class Problem(Record):
    """Something that is not as the records say.

    Attributes:
        file_name: Path relative to the output.
        what: What is wrong, in words.
    """

    file_name: str
    what: str


def verify(output: Storage, progress: Progress) -> list[Problem]:
    """Compare samples, lists, sums, contact sheet and ZIP with the records.

    Args:
        output: A finished dataset.
        progress: Told of every sample.

    Returns:
        What is wrong, in the order of the manifest; empty if all is well.

    Raises:
        FileNotFoundError: There is no finished dataset.
        StorageGone: It cannot be read.
    """
    problems: list[Problem] = []
    summary: Summary | None = None
    try:
        summary = Summary.model_validate_json(output.read(SUMMARY))
    except ValidationError as error:
        what = f"is damaged: {error.errors()[0]['msg']}"
        problems.append(Problem(file_name=SUMMARY, what=what))
    samples, damaged = sound_records(output, MANIFEST, Sample)
    progress.start(len(samples), "verifying")
    for sample in samples:
        problems += _check_sample(output, sample)
        progress.advance()
    progress.stop()
    problems += damaged
    problems += sound_records(output, QUARANTINE, QuarantineLine)[1]
    if damaged:
        # Pages and ZIP can only be compared with a whole manifest.
        problems += sound_records(output, PAGES, PageLine)[1]
    else:
        problems += [*_check_pages(output, samples), *_check_zip(output)]
    named = {problem.file_name for problem in problems}
    # A run that did not get to its end may have written lists that no summary speaks of.
    if summary and output.size(PUBLISHED) is not None:
        problems += [p for p in _check_lists(output, summary) if p.file_name not in named]
    return problems


def sound_records(output: Storage, name: str, kind: type[R]) -> tuple[list[R], list[Problem]]:
    """The records in the lines of a file, and which lines hold none."""
    records: list[R] = []
    damaged: list[Problem] = []
    for number, line in enumerate(output.lines(name), start=1):
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError:
            damaged.append(Problem(file_name=name, what=f"is damaged in line {number}"))
    return records, damaged


def _check_lists(output: Storage, summary: Summary) -> Iterator[Problem]:
    """The lists are those that were published, byte for byte, and the contact sheet is there."""
    for name in (MANIFEST, PAGES, QUARANTINE):
        if output.size(name) is None:
            yield Problem(file_name=name, what="is missing")
            continue
        with output.reader(name) as stream:
            # Files and spools alike can do what it asks for; IO does not say so.
            found = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        if found != summary.lists.get(name):
            yield Problem(file_name=name, what="is not the file that was written")
    if summary.samples and output.size(SHEET) is None:
        yield Problem(file_name=SHEET, what="is missing")


def _check_sample(output: Storage, sample: Sample) -> Iterator[Problem]:
    for place in (sample.file_name, aside_name(sample.file_name)):
        try:
            data = output.read(place)
        except FileNotFoundError:
            continue
        if hashlib.sha256(data).hexdigest() != sample.sha256:
            yield Problem(file_name=place, what="is not the file that was written")
        return
    yield Problem(file_name=sample.file_name, what="is missing")


def _check_pages(output: Storage, samples: list[Sample]) -> Iterator[Problem]:
    """Every page of the archive has one line, and the kept ones name the manifest's samples."""
    counts = {pdf.name: pdf.facts.page_count for pdf in last_time(output) if pdf.facts}
    expected = [(name, index) for name in sorted(counts) for index in range(counts[name])]
    lines, damaged = sound_records(output, PAGES, PageLine)
    if damaged:
        yield from damaged
        return
    if [(line.pdf, line.page_index) for line in lines] != expected:
        yield Problem(
            file_name=PAGES, what=f"has {len(lines)} lines; the archive has {len(expected)} pages"
        )
    named = [name for line in lines if line.outcome is Outcome.KEPT for name in line.samples]
    if named != [sample.file_name for sample in samples]:
        yield Problem(file_name=MANIFEST, what=f"does not list the samples that {PAGES} names")


def _check_zip(output: Storage) -> Iterator[Problem]:
    try:
        with output.reader(DATASET) as stream, zipfile.ZipFile(stream) as archive:
            wrong = _first_difference(archive, output)
    except FileNotFoundError:
        wrong = "is missing"
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        wrong = f"is damaged: {error}"
    if wrong:
        yield Problem(file_name=DATASET, what=wrong)


def _first_difference(archive: zipfile.ZipFile, output: Storage) -> str | None:
    samples = list(read_samples(output))
    expected = sorted([MANIFEST, *(sample.file_name for sample in samples)])
    if archive.namelist() != expected:
        return "does not hold the samples of the dataset"
    if archive.read(MANIFEST) != kept_manifest(output):
        return "holds another manifest"
    hashes = {sample.file_name: sample.sha256 for sample in samples}
    for name, sha256 in hashes.items():
        if hashlib.sha256(archive.read(name)).hexdigest() != sha256:
            return f"holds another {name}"
    return None


def settings_of_last_run(output: Storage, passwords: Sequence[str] = ()) -> dict[str, Any]:
    """The settings the dataset was made with, and passwords, which are not written there.

    Raises:
        FileNotFoundError: There is no finished dataset.
        BadSettings: They are damaged in both places where they stand.
    """
    places = [output.read(SUMMARY)]
    with suppress(FileNotFoundError):
        places.append(output.read(PUBLISHED))
    for data in places:
        with suppress(ValueError, KeyError, TypeError):
            settings: dict[str, Any] = json.loads(data)["settings"]
            settings["read"] |= {"passwords": list(passwords), "password_of": {}}
            Settings.model_validate(settings)
            return settings
    raise BadSettings(
        f"{output.path(SUMMARY)} is damaged, and with it the settings of the last run.",
        "Run python -m flows.extract with the settings the dataset was made with.",
    )
