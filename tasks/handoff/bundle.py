"""Making a bundle: the trainer's own files, and what it is and where it comes from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType

from pydantic import ValidationError

from models.errors import BadSettings
from models.handoff import TRAINERS, Bundle, BundleSample, Caption, HandoffSettings, TrainerName
from tasks.captions.table import EDITED, caption
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
from tasks.handoff.pack import pack
from tasks.handoff.readme import readme
from tasks.progress import Progress
from tasks.storage import Storage

RECORD = "bundle.json"
SAMPLES = "samples.jsonl"
VERDICT = "verdict.json"
"""What scoring said of the dataset."""
OF_THE_RUN = ("seconds", "peak_bytes", "embedded", "settings")
"""What the verdict says of the run and the machine, not of the dataset."""
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
WRITTEN = "written.jsonl"
"""Samples as runs that did not end were about to write them."""
FOLDERS = ("images", "train", "instance")
NAMELESS = re.compile(rf"({'|'.join(FOLDERS)}|shards)/\..*\.partial|shards/\d{{5}}\.tar")
"""Files of ours that no sample names."""


def bundle_place(settings: HandoffSettings, trainer: TrainerName) -> Storage:
    """Where a trainer's bundle lies."""
    return Storage(f"{settings.place.rstrip('/')}/{trainer}")


def while_ours(place: Storage, dataset: Storage) -> Storage:
    """A folder that may be written as long as the dataset is held by this run."""
    place.fence = dataset.fence
    return place


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
        StopRun: The storage failed or is full, a picture is missing, or the dataset is not ours
            any more.
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
    target = while_ours(bundle_place(settings, trainer), dataset)
    target.remove(RECORD)
    pending = _samples(target, WRITTEN)
    old = [*_samples(target, SAMPLES), *pending]
    target.write(WRITTEN, _lines(dict.fromkeys([*pending, *samples])).encode())
    content = Content(record, dataset, target, samples, progress)
    maker.write(content)
    content.write(README, readme(record, huggingface.card(content)))
    content.write(SAMPLES, _lines(samples))
    # What a person or a trainer has put there is not ours to remove.
    ours = {f"{f}/{n}" for f in FOLDERS for s in old for n in (s.image, f"{s.stem}.txt")}
    for name in target.names("").keys() - content.written:
        if name in ours or NAMELESS.fullmatch(name):
            target.remove(name)
    target.remove(WRITTEN)
    content.write(RECORD, record.model_dump_json(indent=2))
    if settings.zip:
        whole = while_ours(Storage(settings.place), dataset)
        pack(target, content.written, whole, trainer)
    return record


def read_bundle(place: Storage) -> tuple[Bundle, list[BundleSample]]:
    """A finished bundle and its samples, with the captions that a person has edited since.

    Raises:
        BadSettings: There is none, or it lacks pictures.
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
    samples = _samples(place, SAMPLES)
    if not record.images:
        return record, samples
    there = place.names(record.images)
    wanted = [f"{record.images}/{sample.image}" for sample in samples]
    # A dead link has no bytes.
    missing = [name for name in wanted if not there.get(name)]
    if missing or len(samples) != record.samples:
        cause = "it was moved without them, or with dead links"
        raise BadSettings(
            f"bundle: {place.url} lacks {len(missing):,} of its {record.samples:,} pictures"
            + (f", {missing[0]} for one: {cause}." if missing else "."),
            cure,
        )
    # Where a model is trained the dataset need not be at hand.
    edited = {s.image: text for s, text in _edited(place, record.trainer) if text}
    samples = [s.model_copy(update={"caption": edited.get(s.image, s.caption)}) for s in samples]
    captions = digest(s.caption for s in samples)
    return record.model_copy(update={"captions_sha256": captions}), samples


def read_edits(settings: HandoffSettings) -> dict[str, Caption]:
    """Captions that a person changed in the ``.txt`` files of any bundle, by file name.

    Raises:
        BadSettings: One is not UTF-8.
    """
    edits: dict[str, Caption] = {}
    for trainer in TRAINERS:
        for sample, text in _edited(bundle_place(settings, trainer), trainer):
            edits.setdefault(sample.file_name, caption(text, EDITED, sample.sha256))
    return edits


def adopt_edits(settings: HandoffSettings, dataset: Storage) -> None:
    """Note in bundles that are not made anew what their ``.txt`` files say.

    The table has it by now. They would else bring the same edit again, after later ones.
    """
    for trainer in set(SIDECARS).difference(settings.trainers):
        place = while_ours(bundle_place(settings, trainer), dataset)
        edited = {s.image: s.model_copy(update={"caption": t}) for s, t in _edited(place, trainer)}
        if edited:
            known = {sample.image: sample for sample in _samples(place, SAMPLES)}
            place.write(SAMPLES, _lines((known | edited).values()).encode())


def stale_bundles(settings: HandoffSettings, captions: Sequence[str]) -> list[TrainerName]:
    """Trainers with a bundle that is not made anew and has other captions than these."""
    stale: list[TrainerName] = []
    for trainer in TRAINERS:
        place = bundle_place(settings, trainer)
        if trainer in settings.trainers or place.size(RECORD) is None:
            continue
        if [sample.caption for sample in _samples(place, SAMPLES)] != captions:
            stale.append(trainer)
    return stale


def _edited(place: Storage, trainer: TrainerName) -> Iterator[tuple[BundleSample, str]]:
    """Samples whose ``.txt`` says something else than any run wrote, with what it says."""
    if trainer not in SIDECARS:
        return
    there = place.names(IMAGES)
    samples = [*_samples(place, SAMPLES), *_samples(place, WRITTEN)]
    ours = {(sample.stem, sample.caption) for sample in samples}
    for sample in {sample.stem: sample for sample in samples}.values():
        name = f"{IMAGES}/{sample.stem}.txt"
        if name in there:
            text = tidy(_decode(place.read(name), place.path(name)))
            if (sample.stem, text) not in ours:
                yield sample, text


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSettings(
            f"{name}: it is not UTF-8 text.",
            "Save it as UTF-8, or empty it to have its caption written anew.",
        ) from error


def _samples(place: Storage, name: str) -> list[BundleSample]:
    return list(map(BundleSample.model_validate_json, place.lines(name)))


def _lines(samples: Iterable[BundleSample]) -> str:
    return "".join(f"{sample.model_dump_json()}\n" for sample in samples)


def digest(lines: Iterator[str]) -> str:
    """SHA-256 over lines, in hexadecimal."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _purity(dataset: Storage) -> dict[str, object] | None:
    try:
        verdict: dict[str, object] = json.loads(dataset.read(VERDICT))
    except FileNotFoundError:
        return None
    return {name: said for name, said in verdict.items() if name not in OF_THE_RUN}
