"""Making a bundle: the trainer's own files, and what it is and where it comes from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from pydantic import ValidationError

from models.errors import BadSettings
from models.handoff import TRAINERS, Bundle, BundleSample, HandoffSettings, TrainerName
from tasks.captions.text import tidy
from tasks.handoff import (
    ai_toolkit,
    diffusers,
    huggingface,
    kohya,
    onetrainer,
    open_clip,
    simpletuner,
    webdataset,
)
from tasks.handoff.content import IMAGES, README, Content
from tasks.handoff.readme import readme
from tasks.progress import Progress
from tasks.storage import Storage

RECORD = "bundle.json"
SAMPLES = "samples.jsonl"
VERDICT = "verdict.json"
"""What scoring said of the dataset."""
MAKERS: Mapping[TrainerName, ModuleType] = {
    "kohya": kohya,
    "diffusers": diffusers,
    "ai-toolkit": ai_toolkit,
    "onetrainer": onetrainer,
    "simpletuner": simpletuner,
    "huggingface": huggingface,
    "webdataset": webdataset,
    "open-clip": open_clip,
}
SIDECARS: tuple[TrainerName, ...] = ("kohya", "ai-toolkit", "onetrainer", "simpletuner")
"""Trainers that read captions from ``.txt`` files."""
OURS = re.compile(r"(images|train|instance|shards)/[^/]+\.(jpg|png|webp|txt|tar)(\.partial)?")
"""Names of files that a bundle may have from an earlier dataset."""


def bundle_place(settings: HandoffSettings, trainer: TrainerName) -> Storage:
    """Where a trainer's bundle lies."""
    return Storage(f"{settings.place.rstrip('/')}/{trainer}")


def check(trainers: Sequence[TrainerName], samples: Sequence[BundleSample]) -> None:
    """Refuse what a trainer cannot read, before anything is written.

    Raises:
        BadSettings: Naming trainer and sample.
    """
    if "ai-toolkit" in trainers:
        ai_toolkit.check(samples)


def make_bundle(
    settings: HandoffSettings,
    dataset: Storage,
    samples: Sequence[BundleSample],
    trainer: TrainerName,
    progress: Progress,
) -> Bundle:
    """Write a trainer's bundle, or bring it up to date.

    Its record is written last: a bundle without it is not finished.

    Raises:
        StopRun: The storage failed or is full, or a picture is missing.
    """
    maker = MAKERS[trainer]
    record = Bundle(
        trainer=trainer,
        dataset_sha256=digest(f"{s.file_name} {s.sha256}" for s in samples),
        captions_sha256=digest(s.caption for s in samples),
        samples=len(samples),
        images=getattr(maker, "FOLDER", IMAGES),
        trigger=settings.captions.trigger,
        purity=_purity(dataset),
        license=settings.license,
        notes=settings.notes,
        plan=settings.plan,
        home=getattr(maker, "HOME", ""),
        program=getattr(maker, "PROGRAM", ""),
    )
    target = bundle_place(settings, trainer)
    target.remove(RECORD)
    content = Content(record, dataset, target, samples, progress)
    maker.write(content)
    content.write(README, readme(record, huggingface.card(content)))
    content.write(SAMPLES, "".join(f"{sample.model_dump_json()}\n" for sample in samples))
    for name in target.names("").keys() - content.written:
        if OURS.fullmatch(name):
            target.remove(name)
    target.write(RECORD, record.model_dump_json(indent=2).encode())
    return record


def read_bundle(place: Storage) -> tuple[Bundle, list[BundleSample]]:
    """A finished bundle and its samples.

    Raises:
        BadSettings: There is none, or pictures or captions are not what its record says.
    """
    cure = "Make it again with python -m flows.handoff, or take the whole folder along."
    try:
        record = Bundle.model_validate_json(place.read(RECORD))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadSettings(
            f"bundle: {place.url} holds no finished bundle.",
            "Name a bundle's own folder, for instance OUT/bundles/kohya; python -m flows.handoff "
            "makes it.",
        ) from error
    except ValidationError as error:
        raise BadSettings(f"bundle: {place.path(RECORD)} is none of ours: {error}") from error
    samples = list(map(BundleSample.model_validate_json, place.lines(SAMPLES)))
    if not record.images:
        return record, samples
    there = place.names(record.images)
    wanted = [f"{record.images}/{sample.image}" for sample in samples]
    missing = [name for name in wanted if name not in there]
    if missing or len(samples) != record.samples:
        raise BadSettings(
            f"bundle: {place.url} lacks {len(missing):,} of its {record.samples:,} pictures"
            + (f", {missing[0]} for one; it was moved without them." if missing else "."),
            cure,
        )
    if edited := [s.image for s, _ in edited_sidecars(place, record.trainer)]:
        raise BadSettings(
            f"bundle: captions beside {', '.join(edited[:3])} were edited.",
            "Run python -m flows.handoff again, which takes them over into all bundles.",
        )
    return record, samples


def read_edits(settings: HandoffSettings, known: Mapping[str, str]) -> dict[str, str]:
    """Captions that a person changed in the ``.txt`` files of any bundle, by file name.

    Args:
        settings: Where the bundles are.
        known: Captions as the table has them. A ``.txt`` that says the same is no edit: a run that
            was killed had just written it.
    """
    edits: dict[str, str] = {}
    for trainer in TRAINERS:
        for sample, text in edited_sidecars(bundle_place(settings, trainer), trainer):
            if text != known.get(sample.file_name):
                edits.setdefault(sample.file_name, text)
    return edits


def edited_sidecars(place: Storage, trainer: TrainerName) -> Iterator[tuple[BundleSample, str]]:
    """Samples whose ``.txt`` says something else than was written, with what it says."""
    if trainer not in SIDECARS:
        return
    there = place.names(IMAGES)
    for line in place.lines(SAMPLES):
        sample = BundleSample.model_validate_json(line)
        name = f"{IMAGES}/{sample.stem}.txt"
        if name in there:
            text = tidy(place.read(name).decode("utf-8-sig", "replace"))
            if text and text != sample.caption:
                yield sample, text


def digest(lines: Iterator[str]) -> str:
    """SHA-256 over lines, in hexadecimal."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _purity(dataset: Storage) -> dict[str, object] | None:
    try:
        verdict: dict[str, object] = json.loads(dataset.read(VERDICT))
    except FileNotFoundError:
        return None
    return verdict
