"""The studio: every kind of picture a fashion paper prints, drawn once and used again."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from tests.resources import scan_objects as objects
from tests.resources import scan_scenes as scenes
from tests.resources import scan_text as text
from tests.resources.scan_engrave import Block, Cut, curve, smooth_noise
from tests.resources.scan_figures import Pose, hat, head_and_hair, limb, plume, rosette
from tests.resources.scan_gowns import SKIRTS, fan, lady

YEARS = tuple(SKIRTS)
RNG = np.random.Generator


def number_below(block: Block, label: str, x: float, y: float) -> None:
    """Engrave a figure's number under it."""
    text.put_line(block.ink, label, x, y, text.ITALIC, 26, 0, "center")


def frame(block: Block, double: bool = True) -> None:
    """Rule a border round the whole block."""
    w, h = block.width, block.height
    block.ink[:14], block.ink[-14:], block.ink[:, :14], block.ink[:, -14:] = 0, 0, 0, 0
    cv2.rectangle(block.ink, (2, 2), (w - 3, h - 3), 255, 3)
    if double:
        cv2.rectangle(block.ink, (12, 12), (w - 13, h - 13), 255, 2)


def single(rng: RNG) -> np.ndarray:
    """One lady, alone on the paper."""
    b = Block(820, 1400, rng, 4.6)
    mirror = int(rng.choice([-1, 1]))
    lady(Pose(b, 410 - 40 * mirror, 170, 152, mirror), int(rng.choice(YEARS)))
    return b.ink


def pair(rng: RNG) -> np.ndarray:
    """Two ladies face to face, numbered."""
    b = Block(1240, 1480, rng, 4.7)
    year = int(rng.choice(YEARS))
    lady(Pose(b, 380, 190, 150, -1), year)
    lady(Pose(b, 860, 210, 148, 1), year)
    number_below(b, "Fig. 1.", 380, 1455)
    number_below(b, "Fig. 2.", 860, 1455)
    return b.ink


def wall(b: Block, floor: float) -> None:
    """Paper the wall of a room down to the floor (pixels) and light it from the window."""
    w, rng = b.width, b.rng
    ys, xs = np.mgrid[0:1 : b.height * 1j, 0:1 : w * 1j].astype(np.float32)
    tone = 0.24 + 0.28 * xs + 0.18 * (1 - ys) ** 2 + 0.04 * smooth_noise(ys.shape, 90, rng)
    tone[int(floor) :] = 0
    motif = np.sin(xs * w / 27) * np.sin(ys * b.height / 27 + (np.floor(xs * w / 85) % 2) * 3)
    tone += 0.14 * (np.abs(motif) > 0.6) * (tone > 0)
    b.wash(np.clip(tone, 0, 0.85), Cut(angle=90, pitch=0.95, wander=0.12))
    boards = scenes.quad(-5, floor, w + 5, b.height + 5)
    b.part(boards, Cut(tone=0.42, angle=0, rim=0, edge=2.4, wander=0.1, grain=0.06, pitch=1.1))
    b.part(scenes.quad(-5, floor - 34, w + 5, floor), Cut(tone=0.25, angle=0, rim=0, edge=2))
    deep = b.height - floor
    rug = np.float32([(w * 0.1, floor + deep * 0.25), (w * 0.92, floor + deep * 0.25), (w * 1.05, b.height), (-w * 0.05, b.height)])
    b.part(rug, Cut(tone=0.5, angle=35, rim=0, edge=3, stripes=24, pitch=0.9))


def picture_on_wall(b: Block, x: float, y: float, w: float, h: float) -> None:
    """Hang a small framed landscape (pixels)."""
    b.stroke([(x + w / 2, y - h * 0.5), (x + w / 4, y - h * 0.25), (x, y)], 2, taper=0)
    b.stroke([(x + w / 2, y - h * 0.5), (x + w * 0.75, y - h * 0.25), (x + w, y)], 2, taper=0)
    b.part(scenes.quad(x, y, x + w, y + h), Cut(tone=0.12, angle=45, rim=0.25, edge=2.4))
    b.part(scenes.quad(x + 18, y + 18, x + w - 18, y + h - 18), Cut(tone=0.25, angle=0, rim=0, edge=2))
    hill = [(x + 20, y + h * 0.6), (x + w * 0.4, y + h * 0.45), (x + w * 0.7, y + h * 0.6), (x + w - 20, y + h * 0.52), (x + w - 20, y + h - 20), (x + 20, y + h - 20)]
    b.part(np.float32(hill), Cut(tone=0.6, angle=20, rim=0, edge=1.5, grain=0.5))


def curtains(b: Block, x: float, floor: float, w: float) -> None:
    """Hang a tall window with drawn-back curtains (pixels)."""
    b.part(scenes.quad(x, 60, x + w, floor - 40), Cut(tone=0.0, rim=0, edge=3))
    scenes.window(b, x + 24, 84, x + w - 24, floor - 70, (2, 4))
    b.part(scenes.quad(x + 24, 84, x + w - 24, floor - 70), Cut(tone=0.04, angle=45, rim=0, edge=2, pitch=1.3))
    for t in (0.25, 0.5, 0.75):
        y = 84 + (floor - 154) * t
        b.stroke([(x + 24, y), (x + w / 2, y), (x + w - 24, y)], 7, taper=0)
    b.stroke([(x + w / 2, 84), (x + w / 2, 300), (x + w / 2, floor - 70)], 8, taper=0)
    drape = Cut(tone=0.35, folds=6, fold_depth=22, angle=0, edge=2.4)
    for side in (0, 1):
        pts = [(-0.15, 0.0), (0.5, 0.0), (0.42, 0.3), (0.06, 0.62), (0.16, 0.8), (0.2, 1.0), (-0.15, 1.0), (-0.08, 0.6)]
        b.part(curve([(x + w * (p if not side else 1 - p), 50 + (floor - 50) * q) for p, q in pts], True), drape)
    b.part(curve([(x - w * 0.15, 30), (x + w / 2, 24), (x + w * 1.15, 30), (x + w * 1.15, 100), (x + w * 0.8, 190), (x + w / 2, 130), (x + w * 0.2, 190), (x - w * 0.15, 100)], True), Cut(tone=0.4, folds=8, fold_depth=16))


def parlour(rng: RNG) -> np.ndarray:
    """A framed plate: two ladies in a furnished room."""
    b = Block(1240, 1620, rng, 4.6)
    wall(b, 1130)
    curtains(b, 110, 1130, 330)
    picture_on_wall(b, 800, 230, 300, 240)
    table = Cut(tone=0.3, folds=6, fold_depth=20)
    b.shadow(np.float32([(900, 1300), (1240, 1290), (1240, 1380), (900, 1390)]), Cut(tone=0.7), 16)
    scenes.vase(b, 1090, 940, 200)
    b.part(curve([(950, 950), (1090, 925), (1230, 950), (1226, 1330), (1090, 1350), (950, 1330)], True), table)
    b.part(curve([(940, 945), (1090, 922), (1240, 945), (1090, 975)], True), Cut(tone=0.08, angle=10))
    year = int(rng.choice(YEARS))
    lady(Pose(b, 380, 350, 150, -1), year)
    lady(Pose(b, 830, 390, 149, 1), year)
    frame(b)
    return b.ink


def garden(rng: RNG) -> np.ndarray:
    """A vignette or framed plate: a lady before a villa among trees."""
    b = Block(1240, 1600, rng, 4.8)
    scenes.sky(b, 900, dark=0.34)
    scenes.hills(b, 900, 130, 0.2)
    scenes.ground(b, 880, 0.28)
    if rng.random() < 0.5:
        scenes.house(b, 700, 960, 250)
        scenes.tree(b, 180, 1020, 760)
    else:
        scenes.water(b, 900, 1130)
        scenes.boat(b, 850, 960, 70)
        scenes.ground(b, 1130, 0.25)
        scenes.tree(b, 1040, 1220, 860)
        scenes.fir(b, 180, 1180, 330)
    scenes.grass(b, 0, 1240, 1150, 1590, 240)
    year = int(rng.choice(YEARS))
    lady(Pose(b, 560, 400, 142, int(rng.choice([-1, 1]))), year)
    if rng.random() < 0.5:
        frame(b, double=False)
    else:
        scenes.fray(b, scenes.vignette(b))
    return b.ink


def bust_at(b: Block, x: float, y: float, head: float, mirror: int, form: int) -> None:
    """Draw head and shoulders in a hat, the dress thinning out below (pixels)."""
    rng = b.rng
    pose = Pose(b, x, y, head, mirror)
    tone = float(rng.choice([0.15, 0.4, 0.6]))
    shoulders = [(-0.2, 1.18), (-0.62, 1.36), (-0.95, 1.62), (-1.0, 2.0), (-0.5, 2.2), (0.1, 2.28), (0.7, 2.15), (1.1, 1.9), (1.0, 1.6), (0.66, 1.34), (0.3, 1.18)]
    head_and_hair(pose, float(rng.choice([0.4, 0.6, 0.75])))
    pose.shape(shoulders, Cut(tone=tone, angle=30, contrast=0.8, edge=1.6, bulge=0.6))
    for n in range(7):
        pose.line([(-0.1 + 0.05 * n, 1.32), (-0.2 + 0.08 * n, 1.7), (-0.3 + 0.13 * n, 2.15)], 1.2)
    pose.limb([(-0.16, 1.12), (0.05, 1.2), (0.28, 1.1)], [0.16, 0.2, 0.18], Cut(tone=0.05, edge=1.6, angle=80, pitch=0.7))
    rosette(pose, -0.28, 1.52, 0.26)
    hat(pose, form, float(rng.choice([0.2, 0.4, 0.6])))
    keep = np.ones((b.height, b.width), np.float32)
    ys = np.arange(b.height, dtype=np.float32)[:, None]
    fade = np.clip((y + 2.1 * head - ys) / (0.5 * head), 0, 1)
    x0, x1 = max(int(x - 1.2 * head), 0), int(x + 1.2 * head)
    band = np.s_[int(y + 1.2 * head) : int(y + 2.5 * head), x0:x1]
    keep[band] = np.broadcast_to(fade, keep.shape)[band]
    scenes.fray(b, keep)


def bust(rng: RNG) -> np.ndarray:
    """One head in a new hat."""
    b = Block(900, 1000, rng, 4.6)
    bust_at(b, 440, 340, 270, int(rng.choice([-1, 1])), int(rng.integers(4)))
    return b.ink


def millinery(rng: RNG) -> np.ndarray:
    """A plate of five hats, numbered."""
    b = Block(1240, 1560, rng, 4.6)
    places = ((330, 210), (910, 230), (620, 720), (310, 1130), (930, 1120))
    forms = rng.permutation([0, 1, 2, 3, 2])
    for n, ((x, y), form) in enumerate(zip(places, forms, strict=True)):
        bust_at(b, x, y, 165, 1 if x > 600 else -1, int(form))
        number_below(b, f"No. {n + 1}.", x, y + 395)
    return b.ink


def photograph(rng: RNG) -> np.ndarray:
    """A process block after a photograph: a lady before a painted cloth."""
    b = Block(900, 1240, rng, 4.0)
    ys, xs = np.mgrid[-1 : 1 : b.height * 1j, -1 : 1 : b.width * 1j].astype(np.float32)
    lady(Pose(b, 450, 190, 124, int(rng.choice([-1, 1]))), int(rng.choice((1906, 1911))))
    lines = cv2.GaussianBlur(b.ink.astype(np.float32) / 255, (0, 0), 1.3)
    cloth = 0.5 + 0.2 * xs + 0.14 * smooth_noise(ys.shape, 160, rng) + 0.1 * ys
    cloth = cv2.GaussianBlur(cloth, (0, 0), 9) + 0.14 * (ys > 0.66)
    cloth += 0.25 * np.exp(-(xs**2) * 9 - (ys - 0.9) ** 2 * 90)
    inside = cv2.GaussianBlur(b.cover.astype(np.float32) / 255, (0, 0), 1)
    b.shade = np.clip(cloth * (1 - inside) + (b.shade * 0.7 + 0.08 + 0.3 * lines) * inside, 0.06, 0.93)
    ink = b.halftone()
    if rng.random() < 0.5:
        oval = np.zeros_like(ink)
        cv2.ellipse(oval, (b.width // 2, b.height // 2), (b.width // 2 - 4, b.height // 2 - 4), 0, 0, 360, 255, -1, cv2.LINE_AA)
        return np.minimum(ink, oval)
    cv2.rectangle(ink, (1, 1), (b.width - 2, b.height - 2), 255, 3)
    return ink


def view(rng: RNG) -> np.ndarray:
    """A process block after a photograph: a country house."""
    b = Block(1300, 860, rng, 4.0)
    scenes.hills(b, 520, 160, 0.3)
    scenes.ground(b, 500, 0.35)
    scenes.house(b, 450, 610, 220)
    scenes.tree(b, 260, 650, 430)
    scenes.tree(b, 1080, 640, 380)
    ys = np.linspace(0, 1, b.height, dtype=np.float32)[:, None]
    air = 0.25 - 0.2 * ys + 0.05 * smooth_noise(b.shade.shape, 200, rng)
    lines = cv2.GaussianBlur(b.ink.astype(np.float32) / 255, (0, 0), 1.6)
    b.shade = np.clip(np.where(b.cover > 0, 0.55 * b.shade + 0.4 * lines + 0.08, air), 0.04, 0.94)
    ink = b.halftone()
    cv2.rectangle(ink, (1, 1), (b.width - 2, b.height - 2), 255, 2)
    return ink


def country(rng: RNG) -> np.ndarray:
    """A villa among trees, fraying into the page."""
    b = Block(1300, 900, rng, 4.8)
    scenes.sky(b, 560)
    scenes.hills(b, 560, 120, 0.25)
    scenes.ground(b, 550, 0.33)
    scenes.fir(b, 1040, 620, 260)
    scenes.fir(b, 1130, 640, 200)
    scenes.house(b, 480, 640, 230)
    scenes.tree(b, 300, 680, float(rng.uniform(420, 560)))
    scenes.grass(b, 0, 1300, 660, 890, 170)
    scenes.fray(b, scenes.vignette(b))
    return b.ink


def lake(rng: RNG) -> np.ndarray:
    """A framed view over water."""
    b = Block(1300, 900, rng, 4.8)
    scenes.sky(b, 450)
    scenes.hills(b, 450, 170, 0.3)
    scenes.water(b, 450, 760)
    scenes.boat(b, float(rng.uniform(600, 1000)), 560, 90)
    scenes.boat(b, float(rng.uniform(380, 560)), 500, 42)
    scenes.ground(b, 740, 0.45)
    scenes.tree(b, 180, 810, float(rng.uniform(500, 680)))
    scenes.grass(b, 0, 1300, 770, 890, 160)
    frame(b, double=bool(rng.integers(2)))
    return b.ink


def hats_in_a_row(rng: RNG) -> np.ndarray:
    """Three heads side by side."""
    b = Block(1300, 640, rng, 4.6)
    for n, x in enumerate((230, 650, 1070)):
        bust_at(b, x, 200, 165, -1 if x < 500 else 1, (n + int(rng.integers(2))) % 4)
        number_below(b, f"No. {n + 1}.", x, 610)
    return b.ink


def border(rng: RNG) -> np.ndarray:
    """A lace border."""
    b = Block(1300, 560, rng, 4.4)
    objects.lace(b)
    return b.ink


def easy_chair(rng: RNG) -> np.ndarray:
    """An easy-chair."""
    b = Block(800, 900, rng, 4.6)
    objects.armchair(b)
    return b.ink


def sideboard(rng: RNG) -> np.ndarray:
    """A carved cabinet."""
    b = Block(820, 1150, rng, 4.6)
    objects.cabinet(b)
    return b.ink


def wheel_square(rng: RNG) -> np.ndarray:
    """A square of crochet."""
    b = Block(900, 900, rng, 4.4)
    objects.crochet(b)
    return b.ink


def small_wares(rng: RNG) -> np.ndarray:
    """Boots, a glove, a fan and a feather."""
    b = Block(900, 860, rng, 4.6)
    objects.shoe(b, 270, 60, 270)
    objects.shoe(b, 350, 430, 250)
    objects.glove(b, 680, 160, 230)
    fan(Pose(b, 760, 780, 300, 1), 0.0, 0.0)
    plume(Pose(b, 100, 760, 200), [(0.0, 0.3), (0.7, 0.1), (1.3, 0.25), (1.9, 0.0)], 0.34)
    limb_cut = Cut(tone=0.2, edge=1.6)
    b.part(limb([(560, 600), (620, 560), (700, 600)], [22, 30, 22]), limb_cut)
    return b.ink


Subject = Callable[[RNG], np.ndarray]
SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "tall": (pair, parlour, garden, millinery, photograph, single, sideboard),
    "square": (bust, easy_chair, wheel_square, small_wares, bust, sideboard),
    "wide": (country, lake, hats_in_a_row, border, view, country),
    "narrow": (single, single, single),
}
"""Subjects for each shape of space on a page."""


class Studio:
    """Draws each picture when it is first asked for and keeps it.

    Args:
        seed: the same seed draws the same pictures.
        variants: how many pictures to draw of each subject before using them again.
    """

    def __init__(self, seed: int, variants: int) -> None:
        """Open the studio; nothing is drawn yet."""
        self._seed, self._variants = seed, variants
        self._drawn: dict[tuple[str, int], np.ndarray] = {}
        self._asked: dict[str, int] = {}

    def picture(self, shape: str) -> np.ndarray:
        """Give the next picture of a shape: its ink, (rows, columns) uint8, cropped to the ink.

        Subjects take turns, and none comes back before all its variants have been shown.

        Args:
            shape: tall, square, wide or narrow.
        """
        subjects = SUBJECTS[shape]
        turn = self._asked.get(shape, 0) % (len(subjects) * self._variants)
        self._asked[shape] = turn + 1
        key = shape, turn
        if key not in self._drawn:
            rng = np.random.default_rng([self._seed, sorted(SUBJECTS).index(shape), turn])
            ink = subjects[turn % len(subjects)](rng)
            ys, xs = np.nonzero(ink > 100)
            self._drawn[key] = ink[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
        return self._drawn[key]
