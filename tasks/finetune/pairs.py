"""Image-text pairs on their way to the trainer: read, made square, split by work, written.

A tall picture is fitted whole into a square filled with its paper, because the trainer's own
preprocessing would crop it. A work is never split between training and validation.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from models.clip.pixels import decode, square
from models.errors import BadSettings, InputFault
from models.finetune import PairForm, Pairs
from tasks.shards import SHARD, write_shard
from tasks.storage import Storage

FOLDER = "pairs"
RECORD = f"{FOLDER}/pairs.json"
TEXTS = f"{FOLDER}/texts.txt"
ROOM = 1.15
"""Squares are this much larger than the model's input, for the trainer to cut its windows from."""


@dataclass(frozen=True)
class Pair:
    """A picture with a text.

    Attributes:
        name: For messages.
        text: The caption.
        work: What must never be split between training and validation.
        picture: Gives the picture, RGB; may raise :class:`InputFault`.
    """

    name: str
    text: str
    work: str
    picture: Callable[[], Image.Image]


def read_table(source: str, side: int) -> list[Pair]:
    """The pairs of a tab-separated table, local or remote.

    Args:
        source: The table, with the columns ``filepath`` (relative to the table's folder, or a path
            or URL), ``title`` (the caption) and, if there is one, ``work``.
        side: Of the model's input, in pixels.

    Raises:
        BadSettings: There is no such table, or it is not as it should be.
    """
    folder, name = posixpath.split(source)
    storage = Storage(folder or ".")
    try:
        text = storage.read(name).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise BadSettings(f"source: there is no {source}.") from error
    except UnicodeDecodeError as error:
        raise BadSettings(f"source: {source} is not UTF-8 text.") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise BadSettings(f"source: {source}, line {reader.line_num + 1}: {error}.") from error
    if not rows or not {"filepath", "title"} <= rows[0][1].keys():
        raise BadSettings(f"source: {source} needs the columns filepath and title, tab-separated.")
    pairs = []
    for line, row in rows:
        path, title = row["filepath"], row["title"]
        if not path or title is None:
            raise BadSettings(f"source: {source}, line {line}: filepath or title is missing.")
        work = row.get("work") or path
        pairs.append(Pair(path, title, work, _opener(storage, path, round(side * ROOM))))
    return pairs


def _opener(storage: Storage, path: str, side: int) -> Callable[[], Image.Image]:
    def opened() -> Image.Image:
        where, name = (storage, path)
        if "://" in path or path.startswith("/"):
            folder, name = posixpath.split(path)
            where = Storage(folder)
        try:
            return decode(path, where.read(name), side)
        except FileNotFoundError as error:
            raise InputFault(f"{path}: there is no such file.", "Correct the table.") from error

    return opened


def split(works: Iterable[str], share: float) -> set[str]:
    """The works held out for validation: about `share` of them, at least one.

    Which ones depends on their names alone.

    Raises:
        BadSettings: There are fewer than two works.
    """
    ordered = sorted(set(works), key=lambda work: hashlib.sha256(work.encode()).digest())
    if len(ordered) < 2:
        raise BadSettings("source: at least two works are needed, one of them to validate on.")
    return set(ordered[: max(1, min(len(ordered) - 1, round(share * len(ordered))))])


def write_pairs(
    output: Storage,
    form: PairForm,
    side: int,
    parts: Mapping[str, Sequence[Pair]],
    shards: int,
    note: Callable[[InputFault | None], None],
) -> Pairs:
    """Write pairs for open_clip's trainer.

    Args:
        output: The run's folder; they go below ``pairs/``.
        form: A table with loose images, or WebDataset shards.
        side: Of the model's input, in pixels.
        parts: ``train`` and ``val``.
        shards: Least number of shards of ``train``, so that every reader has one.
        note: Called for each pair, with what was wrong with it.

    Returns:
        Where they are and how many.
    """
    made: dict[str, tuple[str, int]] = {}
    for part, pairs in parts.items():
        squares = _squares(pairs, round(side * ROOM), note)
        if form == "tsv":
            made[part] = _write_table(output, part, squares)
        else:
            per_shard = min(SHARD, math.ceil(len(pairs) / (shards if part == "train" else 1)))
            made[part] = _write_shards(output, part, squares, max(1, per_shard))
        if not made[part][1]:
            raise BadSettings(f"source: not one usable pair for {part}.")
    (train, count), (val, val_count) = made["train"], made["val"]
    lines = {f"{' '.join(pair.text.split())}\n" for pairs in parts.values() for pair in pairs}
    output.write(TEXTS, "".join(sorted(lines)).encode())
    return Pairs(
        form=form, train=train, train_count=count, val=val, val_count=val_count, texts=TEXTS
    )


def _squares(
    pairs: Iterable[Pair], side: int, note: Callable[[InputFault | None], None]
) -> Iterator[tuple[bytes, str]]:
    for pair in pairs:
        try:
            stream = io.BytesIO()
            square(pair.picture(), side).save(stream, "JPEG", quality=92)
        except InputFault as fault:
            note(fault)
            continue
        note(None)
        yield stream.getvalue(), pair.text


def _write_table(
    output: Storage, part: str, squares: Iterator[tuple[bytes, str]]
) -> tuple[str, int]:
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", lineterminator="\n")
    writer.writerow(["filepath", "title"])
    count = 0
    for image, text in squares:
        name = f"{FOLDER}/{part}/{count:06}.jpg"
        output.write(name, image)
        writer.writerow([output.path(name), text])
        count += 1
    output.write(f"{FOLDER}/{part}.tsv", table.getvalue().encode())
    return output.path(f"{FOLDER}/{part}.tsv"), count


def _write_shards(
    output: Storage, part: str, squares: Iterator[tuple[bytes, str]], per_shard: int
) -> tuple[str, int]:
    sizes: dict[str, int] = {}
    batch: list[tuple[bytes, str]] = []

    def members(prefix: str) -> Iterator[tuple[str, bytes]]:
        for index, (image, text) in enumerate(batch):
            yield f"{prefix}{index:05}.jpg", image
            yield f"{prefix}{index:05}.txt", text.encode()

    def flush() -> None:
        name = f"{part}-{len(sizes):05}.tar"
        with output.writer(f"{FOLDER}/{part}/{name}") as stream:
            write_shard(stream, members(f"{len(sizes):05}"))
        sizes[name] = len(batch)
        batch.clear()

    for each in squares:
        batch.append(each)
        if len(batch) == per_shard:
            flush()
    if batch:
        flush()
    output.write(f"{FOLDER}/{part}/sizes.json", json.dumps(sizes).encode())
    last = len(sizes) - 1
    names = f"{part}-{{00000..{last:05}}}.tar"
    return output.path(f"{FOLDER}/{part}/{names}"), sum(sizes.values())
