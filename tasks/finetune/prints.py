"""Pictures of the kinds of print from a labelled folder, with the work each is from.

The folder has the corpus format (``tasks/detect/corpus.py``). Which kind a picture is says a table
with the columns ``path`` and ``kind``; a picture on a page that is not in the table is a woodcut or
wood engraving.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.random import Generator

from models.records import RelativeBox
from tasks.detect.corpus import render_fit
from tasks.detect.page import Gray
from tasks.detect.train import synth
from tasks.detect.train.pages import Scene, load
from tasks.finetune import made
from tasks.finetune.degrade import screen, soften
from tasks.finetune.kinds import KINDS, PrintKind

DRAWN = "drawn"
"""Works of pictures that were made up begin with this."""
USUAL: PrintKind = "wood engraving"
LOOSE_SIDE = 512
"""Longer side of loose illustrations, in pixels."""


@dataclass(frozen=True)
class Print:
    """A picture of one kind.

    Attributes:
        kind: What it is.
        work: What must never be split between training and measuring.
        gray: (H, W) uint8.
        whole: Whether only the whole shows what it is; of others any large part does.
        drawn: Whether it was made up, rather than scanned.
    """

    kind: PrintKind
    work: str
    gray: Gray
    whole: bool = False
    drawn: bool = False


def read_prints(corpus: Path, annotations: Path | None, kinds: Path) -> list[Print]:
    """Every picture of a labelled folder whose kind is known, and pages and parts of pages.

    Args:
        corpus: The folder.
        annotations: Table that adds to its ``labels.csv``.
        kinds: Table of kinds.
    """
    with kinds.open(newline="", encoding="utf-8") as lines:
        known = {row["path"]: cast(PrintKind, row["kind"]) for row in csv.DictReader(lines)}
    assert set(known.values()) <= set(KINDS)
    pages, scenes = load(corpus, annotations)
    found: list[Print] = []
    for page, scene in zip(pages, scenes, strict=True):
        kind = known.get(page.path)
        if kind in ("cover or binding", "table") and not page.boxes:
            found.append(Print(kind, page.work, scene.gray, whole=True))
            continue
        found += (
            Print(kind or USUAL, page.work, part) for part in _cut(scene.gray, scene.pictures)
        )
        found += (Print("ornament", page.work, part) for part in _cut(scene.gray, scene.ornaments))
        ruled: PrintKind = kind if kind == "music" else "table"
        found += (Print(ruled, page.work, part) for part in _cut(scene.gray, scene.ruled))
        if page.label == "blank":
            found.append(Print("blank paper", page.work, scene.gray))
        elif page.label in ("text", "mixed"):
            found += _text_of(scene)
            found += _margins_of(scene)
    table = corpus / "engravings" / "labels.csv"
    if table.exists():
        found += _loose(corpus, table, known)
    return found


def make_prints(prints: Sequence[Print], count: int, rng: Generator) -> Iterator[Print]:
    """Pictures made up, of the kinds that labelled scans have too few of.

    What is made from a real picture or text keeps its work.

    Args:
        prints: Real ones, to take text, tones and foliage from.
        count: How many of each kind.
        rng: Chance.
    """
    texts = [each for each in prints if each.kind == "printed text"]
    engraved = [each for each in prints if each.kind in ("wood engraving", "line engraving")]
    tonal = [each for each in prints if each.kind == "halftone photograph"]
    for index in range(count):
        high, wide = (int(side) for side in rng.integers(180, 460, 2))
        long = max(high, wide)
        text = texts[int(rng.integers(len(texts)))]
        picture = engraved[int(rng.integers(len(engraved)))]
        tone = (tonal or engraved)[int(rng.integers(len(tonal or engraved)))]
        own = f"{DRAWN}_{index}"
        soft, softer = soften(picture.gray, rng), soften(tone.gray, rng)
        letters = made.advertisement(rng, high, wide, text.gray)
        ruled = synth.table(rng, high, wide, text.gray)
        binding = made.cover(rng, long, int(long * 0.7))
        yield Print("lithograph or wash", picture.work, soft, True, True)
        yield Print("lithograph or wash", tone.work, softer, True, True)
        yield Print("halftone photograph", picture.work, screen(picture.gray, rng), True, True)
        yield Print("map", own, made.chart(rng, high, wide), False, True)
        yield Print("handwriting", own, made.script(rng, high, wide), False, True)
        yield Print("stamp", own, made.stamp(rng, high, wide), True, True)
        yield Print("cover or binding", own, binding, True, True)
        yield Print("advertisement with lettering", text.work, letters, True, True)
        yield Print("music", own, synth.staves(rng, high, wide), False, True)
        yield Print("table", text.work, ruled, False, True)
        yield Print("ornament", own, _ornament(rng, high, wide), True, True)
        yield Print("blank paper", own, np.full((high, wide), 255, np.uint8), False, True)


def _ornament(rng: Generator, height: int, width: int) -> Gray:
    draw = rng.random()
    if draw < 0.35:
        return synth.flourish(rng, height, width)
    if draw < 0.7:
        return synth.fleurons(rng, max(24, height // 4), width)
    return synth.initial(rng, min(height, width))


def _cut(gray: Gray, boxes: Sequence[RelativeBox]) -> Iterator[Gray]:
    height, width = gray.shape
    for x0, y0, x1, y1 in boxes:
        part = gray[int(y0 * height) : int(y1 * height), int(x0 * width) : int(x1 * width)]
        if min(part.shape) >= 24:
            yield part


def _text_of(scene: Scene) -> Iterator[Print]:
    """The page itself if there is only text on it, and windows full of text."""
    height, width = scene.gray.shape
    if scene.plain and scene.text.mean() > 0.05 * 255:
        yield Print("printed text", scene.work, scene.gray, whole=True)
    rng = np.random.default_rng(height * 31 + width)
    for _ in range(12):
        h, w = (int(side * rng.uniform(0.15, 0.6)) for side in (height, width))
        y, x = int(rng.integers(0, height - h)), int(rng.integers(0, width - w))
        if scene.text[y : y + h, x : x + w].mean() > 0.6 * 255:
            yield Print("printed text", scene.work, scene.gray[y : y + h, x : x + w])


def _margins_of(scene: Scene) -> Iterator[Print]:
    """Windows with nothing on them."""
    height, width = scene.gray.shape
    rng = np.random.default_rng(height * 17 + width)
    for _ in range(12):
        h, w = (int(side * rng.uniform(0.06, 0.35)) for side in (height, width))
        y, x = int(rng.integers(0, height - h)), int(rng.integers(0, width - w))
        part = scene.gray[y : y + h, x : x + w]
        if min(part.shape) >= 32 and float(np.percentile(part, 99) - np.percentile(part, 1)) < 40:
            yield Print("blank paper", scene.work, part)


def _loose(corpus: Path, table: Path, known: dict[str, PrintKind]) -> Iterator[Print]:
    with table.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        gray = render_fit(corpus / row["path"], 0, LOOSE_SIDE)
        yield Print(known.get(row["path"], USUAL), row["work"], gray)
