"""Looking at samples: what their pixels say, and what CLIP makes of them.

Both are remembered by the hash of the file, so that only what is new or changed is done again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic

import numpy as np

from models.clip.engine import ClipEngine
from models.errors import BadSettings, InputFault
from models.records import Fault, Pdf, Sample
from models.score import Measure
from tasks.dataset import read_file
from tasks.score import measure
from tasks.score.known import KnownMeasures, KnownVectors
from tasks.score.purity import FEWEST_EXAMPLES
from tasks.score.vectors import Vectors
from tasks.session import Job, Session
from tasks.storage import Storage

REPORT = "report"
THUMBNAILS = f"{REPORT}/thumbs"
SAVE_EVERY_S = 10.0
"""Seconds after which what was looked at is written down; a killed run loses no more."""
READING = 8
"""Files read at once, where nothing is done but to compare their hashes."""
NAMED = 10
"""Samples that cannot be looked at of which the log says why; the report does of all."""
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
logger = logging.getLogger("intaglio.score")


class MissingFile(InputFault):
    """A sample of the manifest has no file."""

    kind = "missing_file"
    cure = "Make it again (python -m flows.verify --repair)."


def thumbnail(sample: Sample) -> str:
    """Where a sample's thumbnail lies, relative to the dataset."""
    return f"{THUMBNAILS}/{sample.sha256[:20]}.jpg"


def take_measures(run: Session, samples: Sequence[Sample]) -> list[Measure]:
    """Measure samples and make their thumbnails; those that cannot be looked at have a fault.

    Returns:
        In the order given.

    Raises:
        StopRun: The storage failed or is full.
    """
    store = KnownMeasures(run.output, measure.VERSION)
    known = store.load()
    there = run.output.names(THUMBNAILS)
    seen_before = [s for s in samples if s.sha256 in known and thumbnail(s) in there]
    intact = _intact(run, seen_before)
    new = [s for s in samples if s.file_name not in intact]
    run.progress.start(len(new), "measuring")
    faults: dict[str, Fault] = {}
    unsaved: list[Measure] = []
    saved = monotonic()
    jobs = (_job(run.output, sample) for sample in new)
    for sample, (_, seen) in zip(new, run.map(jobs), strict=True):
        if isinstance(seen, InputFault):
            # Not remembered: the file may be mended and then has the hash it should have.
            faults[sample.file_name] = Fault.of(seen)
        else:
            run.check_space(len(seen.thumbnail))
            run.output.write(thumbnail(sample), seen.thumbnail)
            known[sample.sha256] = seen.measure
            unsaved.append(seen.measure)
        run.progress.advance()
        if unsaved and monotonic() - saved > SAVE_EVERY_S:
            store.add(unsaved)
            unsaved, saved = [], monotonic()
    if unsaved:
        store.add(unsaved)
    run.progress.stop()
    return [
        Measure(sha256=sample.sha256, fault=faults[sample.file_name])
        if sample.file_name in faults
        else known[sample.sha256]
        for sample in samples
    ]


def _intact(run: Session, samples: Sequence[Sample]) -> set[str]:
    """Names of the samples whose files are still those that were looked at.

    All are read: neither its size nor its time tells that a file was damaged, and 10,000 take
    seconds.
    """
    run.progress.start(len(samples), "comparing")

    def is_intact(sample: Sample) -> bool:
        try:
            data = read_file(run.output, sample.file_name)
        except FileNotFoundError:
            return False
        return hashlib.sha256(data).hexdigest() == sample.sha256

    found: set[str] = set()
    with ThreadPoolExecutor(READING) as threads:
        for sample, same in zip(samples, threads.map(is_intact, samples), strict=True):
            if same:
                found.add(sample.file_name)
            run.progress.advance()
    run.progress.stop()
    return found


def say_faults(faults: Mapping[int, Fault]) -> None:
    """Log why samples cannot be looked at, and what to do."""
    for fault in list(faults.values())[:NAMED]:
        logger.warning("%s %s", fault.message, fault.cure)
    if len(faults) > NAMED:
        logger.warning("So it is with %d more; the report names them.", len(faults) - NAMED)


def _job(output: Storage, sample: Sample) -> Job[measure.Seen]:
    name = sample.file_name
    # Only PDFs and their pages are known to the workers' jobs by name.
    about = Pdf(name=name, path="")
    try:
        data = read_file(output, name)
    except FileNotFoundError:
        return Job(about, name, _missing, (name,))
    return Job(about, name, measure.look, (name, data, sample.sha256))


def _missing(name: str) -> measure.Seen:
    raise MissingFile(f"{name} is missing.")


def embed(
    run: Session, clip: ClipEngine, samples: Sequence[Sample]
) -> tuple[Vectors, dict[int, Fault], int]:
    """Embed samples.

    Args:
        run: The session.
        clip: The engine.
        samples: Those that could be measured.

    Returns:
        (n, dim) unit vectors, rows of zeros where there is a fault; the faults by place; and how
        many samples had to be embedded.

    Raises:
        StopRun: The model cannot be loaded, or storage failed.
    """
    store = KnownVectors(run.output, clip.name)
    known = store.load()
    new = {s.sha256: s for s in samples if s.sha256 not in known}
    run.progress.start(len(new), "embedding")
    faults: dict[str, Fault] = {}
    unsaved: dict[str, Vectors] = {}
    saved = monotonic()
    reads = ((s.sha256, partial(read_file, run.output, s.file_name)) for s in new.values())
    for sha256, vector in clip.embed_images(reads):
        if isinstance(vector, InputFault):
            faults[sha256] = Fault.of(vector)
        else:
            known[sha256] = unsaved[sha256] = vector
        run.progress.advance()
        if unsaved and monotonic() - saved > SAVE_EVERY_S:
            store.add(unsaved)
            unsaved, saved = {}, monotonic()
    if unsaved:
        store.add(unsaved)
    run.progress.stop()
    dim = len(next(iter(known.values()))) if known else 0
    nothing = np.zeros(dim, np.float32)
    vectors = np.array([known.get(sample.sha256, nothing) for sample in samples], np.float32)
    broken = {i: faults[s.sha256] for i, s in enumerate(samples) if s.sha256 in faults}
    return vectors.reshape(len(samples), dim), broken, len(new)


def examples(folder: str) -> list[str]:
    """Names of the user's own pictures of what is wanted.

    Raises:
        BadSettings: There is no such folder, or too few pictures in it.
    """
    place = Storage(folder)
    there = place.names("")
    # Object stores have no empty folders.
    if not there or "" in there:
        raise BadSettings(f"like: there is no folder {place.url}, or nothing in it.")
    names = sorted(name for name in there if name.lower().endswith(PICTURES))
    if len(names) < FEWEST_EXAMPLES:
        raise BadSettings(
            f"like: {place.url} holds {len(names)} pictures ({', '.join(PICTURES)}).",
            f"Put at least {FEWEST_EXAMPLES} there; ten of each kind you want are good.",
        )
    return names


def embed_examples(clip: ClipEngine, folder: str) -> Vectors:
    """Embed the user's own pictures of what is wanted.

    Args:
        clip: The engine.
        folder: Local path or fsspec URL.

    Raises:
        BadSettings: There are too few, or one is unreadable.
    """
    place = Storage(folder)
    reads = ((name, partial(place.read, name)) for name in examples(folder))
    vectors = []
    for _, vector in clip.embed_images(reads):
        if isinstance(vector, InputFault):
            raise BadSettings(f"like: {vector.message}", "Replace the file or take it away.")
        vectors.append(vector)
    return np.stack(vectors)
