"""Scenes made up from real pages: pictures, ornaments and lettering put onto pages of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import cv2
import numpy as np
from numpy.random import Generator

from models.records import RelativeBox
from tasks.detect.boxes import touch
from tasks.detect.page import Gray, absolute, flatten
from tasks.detect.train import synth
from tasks.detect.train.pages import Scene

T = TypeVar("T")


@dataclass(frozen=True)
class Bank:
    """What scenes are made from. Only works of the training side may be in it.

    Attributes:
        illustrated: Scenes with pictures, by work.
        decorated: Scenes with ornaments and no pictures, by work.
        others: Scenes with neither, by work.
        plain: Scenes with nothing but text.
        pictures: Picture patches on white paper, by work; ornaments likewise.
    """

    illustrated: dict[str, list[Scene]]
    decorated: dict[str, list[Scene]]
    others: dict[str, list[Scene]]
    plain: list[Scene]
    pictures: dict[str, list[Gray]]
    ornaments: dict[str, list[Gray]]


def make_bank(scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]]) -> Bank:
    """Sort scenes by what is on them and cut out their pictures and ornaments.

    ``pictures`` are more of them, each with its work.
    """
    illustrated: dict[str, list[Scene]] = {}
    decorated: dict[str, list[Scene]] = {}
    others: dict[str, list[Scene]] = {}
    patches: dict[str, list[Gray]] = {}
    ornaments: dict[str, list[Gray]] = {}
    for work, patch in pictures:
        patches.setdefault(work, []).append(patch)
    for scene in scenes:
        group = illustrated if scene.pictures else decorated if scene.ornaments else others
        group.setdefault(scene.work, []).append(scene)
        flat = flatten(scene.gray)
        for box in scene.pictures:
            if min((patch := _crop(flat, box)).shape) > 24:
                patches.setdefault(scene.work, []).append(patch)
        for box in scene.ornaments:
            if min((patch := _crop(flat, box)).shape) > 0:
                ornaments.setdefault(scene.work, []).append(patch)
    plain = [scene for scene in scenes if scene.plain and scene.text.any()]
    return Bank(illustrated, decorated, others, plain, patches, ornaments)


def make_scene(bank: Bank, rng: Generator) -> Scene:
    """A scene for training: about half real pages, half made up.

    Works are drawn first and pages after, so that a long book counts no more than a leaflet.
    Ornaments come far more often than in books: they are what pictures are confused with.
    """
    draw = rng.random()
    if draw < 0.30 and bank.illustrated:
        return _pick(bank.illustrated, rng)
    if draw < 0.42 and bank.others:
        return _pick(bank.others, rng)
    if draw < 0.53 and bank.decorated:
        return _pick(bank.decorated, rng)
    base = bank.plain[int(rng.integers(len(bank.plain)))]
    if draw < 0.69:
        return _with_pictures(base, bank, rng)
    if draw < 0.74:
        return _plate(base, bank, rng)
    if draw < 0.91:
        return _with_ornaments(base, bank, rng)
    if draw < 0.96:
        return _with_ruled(base, rng)
    return _with_display(base, rng)


def make_spread(left: Scene, right: Scene) -> Scene:
    """Two pages side by side, as a scan of an open book."""
    height = left.gray.shape[0]
    size = (max(8, round(right.gray.shape[1] * height / right.gray.shape[0])), height)
    share = left.gray.shape[1] / (left.gray.shape[1] + size[0])

    def join(a: tuple[RelativeBox, ...], b: tuple[RelativeBox, ...]) -> tuple[RelativeBox, ...]:
        first = [(x0 * share, y0, x1 * share, y1) for x0, y0, x1, y1 in a]
        rest = 1.0 - share
        return (*first, *((share + x0 * rest, y0, share + x1 * rest, y1) for x0, y0, x1, y1 in b))

    gray = cv2.resize(right.gray, size, interpolation=cv2.INTER_AREA).astype(np.uint8)
    text = cv2.resize(right.text, size, interpolation=cv2.INTER_NEAREST).astype(np.uint8)
    return Scene(
        gray=np.hstack([left.gray, gray]),
        text=np.hstack([left.text, text]),
        work=left.work,
        pictures=join(left.pictures, right.pictures),
        ornaments=join(left.ornaments, right.ornaments),
        ruled=join(left.ruled, right.ruled),
    )


def _with_pictures(base: Scene, bank: Bank, rng: Generator) -> Scene:
    """One to three pictures set into a page of text, which may have ornaments too."""
    scene = _with_ornaments(base, bank, rng) if rng.random() < 0.25 else base
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        patch = _vary(_window(_pick(bank.pictures, rng), rng), rng)
        scene = _paste(scene, patch, rng, "pictures", rng.uniform(0.12, 0.75))
    return scene


def _with_ornaments(base: Scene, bank: Bank, rng: Generator) -> Scene:
    scene = base
    for _ in range(int(rng.integers(1, 3))):
        kind = rng.random()
        if kind < 0.5 and bank.ornaments:
            patch = _vary(_pick(bank.ornaments, rng), rng)
            scene = _paste(scene, patch, rng, "ornaments", patch.shape[1] / base.gray.shape[1])
        elif kind < 0.7:
            patch = synth.flourish(rng, int(rng.integers(60, 260)), int(rng.integers(120, 480)))
            scene = _paste(scene, patch, rng, "ornaments", rng.uniform(0.2, 0.8))
        elif kind < 0.82:
            patch = synth.fleurons(rng, int(rng.integers(16, 90)), int(rng.integers(200, 600)))
            scene = _paste(scene, patch, rng, "ornaments", rng.uniform(0.4, 0.9))
        else:
            patch = synth.initial(rng, int(rng.integers(40, 220)))
            scene = _paste(scene, patch, rng, "ornaments", patch.shape[1] / base.gray.shape[1])
    return scene


def _with_ruled(base: Scene, rng: Generator) -> Scene:
    height, width = base.gray.shape
    size = (int(height * rng.uniform(0.2, 0.85)), int(width * rng.uniform(0.4, 0.85)))
    patch = synth.staves(rng, *size) if rng.random() < 0.6 else synth.table(rng, *size, base.gray)
    return _paste(base, patch, rng, "ruled", patch.shape[1] / width)


def _with_display(base: Scene, rng: Generator) -> Scene:
    height, width = base.gray.shape
    size = (int(height * rng.uniform(0.05, 0.2)), int(width * rng.uniform(0.4, 0.9)))
    return _paste(base, synth.display(rng, *size, base.gray), rng, None, size[1] / width)


def _plate(base: Scene, bank: Bank, rng: Generator) -> Scene:
    """A picture that takes most of an empty page, perhaps with a line of text beneath it."""
    height = base.gray.shape[0]
    tone = int(np.percentile(base.gray, 90))
    page = np.full_like(base.gray, tone)
    noise = rng.normal(0, rng.uniform(0, 4), page.shape)
    page = np.clip(page + noise, 0, 255).astype(np.uint8)
    text = np.zeros_like(base.text)
    if rng.random() < 0.6:
        low = int(height * 0.93)
        page[low:] = base.gray[low - 100 : height - 100]
        text[low:] = base.text[low - 100 : height - 100]
    scene = replace(base, gray=page, text=text)
    patch = _vary(_window(_pick(bank.pictures, rng), rng), rng)
    return _paste(scene, patch, rng, "pictures", rng.uniform(0.6, 0.98), tallest=0.9)


def _paste(
    scene: Scene,
    patch: Gray,
    rng: Generator,
    field: str | None,
    width_share: float,
    tallest: float = 0.7,
) -> Scene:
    """Put a patch on a page where no other thing is, the text beneath it taken away.

    ``field`` says which boxes of the scene it joins, None for what is still text; its width and
    greatest height are shares of the page's.
    """
    height, width = scene.gray.shape
    scale = min(width_share * width / patch.shape[1], tallest * height / patch.shape[0])
    w, h = max(8, int(patch.shape[1] * scale)), max(8, int(patch.shape[0] * scale))
    if w >= width - 4 or h >= height - 4:
        return scene
    x, y = int(rng.integers(1, width - w)), int(rng.integers(1, height - h))
    pad = int(rng.integers(3, 14))
    around = (x - pad, y - pad, x + w + pad, y + h + pad)
    if any(touch(around, absolute(box, (height, width))) for box in _taken(scene)):
        return scene
    gray, text = scene.gray.copy(), scene.text.copy()
    tone = float(np.percentile(gray[::4, ::4], 88))
    wrap = rng.random() < 0.5  # else the text stops above and goes on below
    left, right = (max(0, x - pad), x + w + pad) if wrap else (0, width)
    rows = slice(max(0, y - pad), y + h + pad)
    gray[rows, left:right] = tone
    text[rows, left:right] = 0
    shrunk = cv2.resize(patch, (w, h), interpolation=cv2.INTER_AREA)
    gray[y : y + h, x : x + w] = np.clip(shrunk * (tone / 255.0), 0, 255)
    if field is None:
        text[y : y + h, x : x + w] = 255
        return replace(scene, gray=gray, text=text)
    box = (x / width, y / height, (x + w) / width, (y + h) / height)
    if field == "pictures":
        return replace(scene, gray=gray, text=text, pictures=(*scene.pictures, box))
    if field == "ornaments":
        return replace(scene, gray=gray, text=text, ornaments=(*scene.ornaments, box))
    return replace(scene, gray=gray, text=text, ruled=(*scene.ruled, box))


def _window(patch: Gray, rng: Generator) -> Gray:
    """Often only a part of a picture, perhaps lying on its side: a picture it still is.

    There are few pictures, and a network that has learnt them by heart takes all others for
    ornaments.
    """
    if rng.random() < 0.5:
        height, width = patch.shape
        h, w = (max(48, int(size * rng.uniform(0.35, 1.0))) for size in (height, width))
        y, x = (int(rng.integers(0, max(1, room + 1))) for room in (height - h, width - w))
        patch = patch[y : y + h, x : x + w]
    return np.rot90(patch, int(rng.integers(1, 4))) if rng.random() < 0.15 else patch


def _vary(patch: Gray, rng: Generator) -> Gray:
    """A patch mirrored, faded, framed or binarised at random."""
    if rng.random() < 0.5:
        patch = patch[:, ::-1]
    gamma = float(np.exp(rng.normal(0, 0.35)))
    patch = np.rint(255.0 * (patch / 255.0) ** gamma).astype(np.uint8)
    style = rng.random()
    if style < 0.25:
        patch = np.where(patch > rng.uniform(90, 200), 255, 0).astype(np.uint8)
    elif style < 0.4:
        fade = rng.uniform(0.35, 0.8)
        patch = np.rint(255 - fade * (255.0 - patch)).astype(np.uint8)
    if rng.random() < 0.15:
        h, w = patch.shape
        patch = np.ascontiguousarray(patch)
        cv2.rectangle(patch, (0, 0), (w - 1, h - 1), 0, int(rng.integers(1, 5)))
    return np.ascontiguousarray(patch)


def _pick(works: dict[str, list[T]], rng: Generator) -> T:
    names = list(works)
    group = works[names[int(rng.integers(len(names)))]]
    return group[int(rng.integers(len(group)))]


def _crop(gray: Gray, box: RelativeBox) -> Gray:
    x0, y0, x1, y1 = absolute(box, gray.shape)
    return np.ascontiguousarray(gray[max(0, y0) : y1, max(0, x0) : x1])


def _taken(scene: Scene) -> tuple[RelativeBox, ...]:
    return (*scene.pictures, *scene.ornaments, *scene.ruled)
