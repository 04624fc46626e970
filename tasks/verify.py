"""Verification: is the dataset on the disk what its records say?"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from models.errors import BadSettings, InputFault
from models.records import Outcome, PageLine, Pdf, Record, Sample, Summary
from tasks import work
from tasks.dataset import MANIFEST, aside_name, read_all, read_samples
from tasks.discover import last_time
from tasks.package import DATASET, PACKED, kept_manifest
from tasks.progress import Progress
from tasks.publish import PAGES, PUBLISHED, SUMMARY
from tasks.session import Job, Session
from tasks.storage import Storage


class Problem(Record):
    """Something that is not as the records say.

    Attributes:
        file_name: Path relative to the output.
        what: What is wrong, in words.
    """

    file_name: str
    what: str


def verify(output: Storage, progress: Progress) -> list[Problem]:
    """Compare files, page list, sums and ZIP with the records.

    Args:
        output: A finished dataset.
        progress: Told of every sample.

    Returns:
        What is wrong, in the order of the manifest; empty if all is well.

    Raises:
        FileNotFoundError: There is no finished dataset.
        StorageGone: It cannot be read.
    """
    Summary.model_validate_json(output.read(SUMMARY))
    samples = list(read_all(output))
    progress.start(len(samples), "verifying")
    problems: list[Problem] = []
    for sample in samples:
        problems += _check_sample(output, sample)
        progress.advance()
    progress.stop()
    return [*problems, *_check_pages(output, samples), *_check_zip(output)]


def repair(output: Storage, problems: list[Problem]) -> None:
    """Take away what is wrong, so that the next run of extraction makes it again.

    The records of finished pages stay; only files that are not what they should be go.
    """
    for problem in problems:
        output.remove(problem.file_name)
    for name in (PUBLISHED, PACKED):
        output.remove(name)


def check_passwords(run: Session, problems: list[Problem]) -> None:
    """Make sure that the encrypted PDFs whose samples must be made again open.

    Passwords are written nowhere, so that the settings of the last run lack them; extraction would
    quarantine the pages, and the samples would be gone for good.

    Raises:
        BadSettings: One does not.
        StorageGone: It cannot be read.
    """
    wrong = {problem.file_name for problem in problems}
    needed = {
        sample.pdf_sha256
        for sample in read_all(run.output)
        if wrong & {sample.file_name, aside_name(sample.file_name)}
    }
    for pdf in last_time(run.output):
        if pdf.is_worked and pdf.sha256 in needed and pdf.facts and pdf.facts.encrypted:
            _open(run, pdf)


def _open(run: Session, pdf: Pdf) -> None:
    try:
        path = run.staging.fetch(pdf)
        try:
            job = Job(pdf, path, work.inspect, (path, run.passwords(pdf)))
            ((_, answer),) = run.map([job])
        finally:
            run.staging.release(pdf)
    except InputFault as error:
        answer = error
    if isinstance(answer, InputFault):
        raise BadSettings(
            f"{answer.message} Nothing was changed.",
            "Give its password with --password and run the same command again.",
        )


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
    lines = [PageLine.model_validate_json(line) for line in output.lines(PAGES)]
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
    except (zipfile.BadZipFile, EOFError) as error:
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
    """The settings the dataset was made with, and passwords, which are not written there."""
    settings: dict[str, Any] = json.loads(output.read(SUMMARY))["settings"]
    settings["read"] |= {"passwords": list(passwords), "password_of": {}}
    return settings
