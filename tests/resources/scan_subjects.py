"""The studio: every kind of picture a fashion paper prints, drawn once and used again."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from tests.resources import scan_objects as objects
from tests.resources import scan_plates as plates
from tests.resources import scan_scenes as scenes
from tests.resources.scan_engrave import Block, pts, smooth_noise
from tests.resources.scan_figures import Pose, plume
from tests.resources.scan_gowns import SKIRTS, fan, lady
from tests.resources.scan_houses import house
from tests.resources.scan_layout import Picture

RNG = np.random.Generator


def backdrop(b: Block, dark: float) -> np.ndarray:
    """Paint the cloth behind a sitter, (height, width) tone 0 to 1."""
    ys, xs = np.mgrid[-1 : 1 : b.height * 1j, -1 : 1 : b.width * 1j].astype(np.float32)
    cloth = dark + 0.2 * xs + 0.1 * ys + 0.06 * smooth_noise(ys.shape, 160, b.rng)
    return cv2.GaussianBlur(cloth, (0, 0), 9)


def process_block(b: Block, ground: np.ndarray, oval: bool) -> np.ndarray:
    """Set what was drawn before a ground, and screen both; returns the ink."""
    inside = cv2.GaussianBlur(b.cover.astype(np.float32) / 255, (0, 0), 1)
    drawn = cv2.GaussianBlur(b.shade, (0, 0), 0.9) * 0.82 + 0.1
    b.shade = np.clip(ground * (1 - inside) + drawn * inside, 0.05, 0.93)
    ink = b.halftone()
    w, h = b.width, b.height
    if oval:
        mask = np.zeros_like(ink)
        cv2.ellipse(mask, ((w / 2, h / 2), (w - 8, h - 8), 0), 255, -1, cv2.LINE_AA)
        return np.minimum(ink, mask)
    cv2.rectangle(ink, (1, 1), (w - 2, h - 2), 255, 3)
    return ink


def photograph(rng: RNG, year: int) -> np.ndarray:
    """A process block after a photograph: a lady before a painted cloth."""
    b = Block(900, 1240, rng, 4.0, photo=True)
    lady(Pose(b, 450, 190, 124, int(rng.choice([-1, 1]))), year)
    cloth = backdrop(b, 0.5)
    cloth[int(b.height * 0.83) :] += 0.14
    return process_block(b, cloth, bool(rng.integers(2)))


def portrait(rng: RNG, year: int) -> np.ndarray:
    """A process block after a photograph: head and shoulders."""
    b = Block(900, 1080, rng, 4.0, photo=True)
    plates.bust_at(b, 450, 380, 290, int(rng.choice([-1, 1])), int(rng.integers(4)))
    return process_block(b, backdrop(b, 0.45), oval=True)


def view(rng: RNG, year: int) -> np.ndarray:
    """A process block after a photograph: a country house."""
    b = Block(1300, 860, rng, 4.0, photo=True)
    scenes.hills(b, 520, 160, 0.3)
    scenes.ground(b, 500, 0.35, grain=0.05)
    scenes.grass(b, 0, 1300, 560, 850, 260)
    house(b, 450, 610, 220)
    scenes.tree(b, 260, 650, 430)
    scenes.tree(b, 1080, 640, 380)
    air = np.linspace(0.25, 0.08, b.height, dtype=np.float32)[:, None]
    air = air + 0.05 * smooth_noise(b.shade.shape, 200, rng)
    return process_block(b, air, oval=False)


def country(rng: RNG, year: int) -> np.ndarray:
    """A villa among trees, fraying into the page."""
    b = Block(1300, 900, rng, 4.8)
    scenes.sky(b, 560)
    scenes.hills(b, 560, 120, 0.25)
    scenes.ground(b, 550, 0.33)
    scenes.fir(b, 1040, 620, 260)
    scenes.fir(b, 1130, 640, 200)
    house(b, 480, 640, 230)
    scenes.tree(b, 300, 680, float(rng.uniform(420, 560)))
    scenes.grass(b, 0, 1300, 660, 890, 170)
    scenes.fray(b, scenes.vignette(b))
    return b.ink


def lake(rng: RNG, year: int) -> np.ndarray:
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
    plates.frame(b, double=bool(rng.integers(2)))
    return b.ink


def border(rng: RNG, year: int) -> np.ndarray:
    """A lace border."""
    b = Block(1300, 560, rng, 4.4)
    objects.lace(b)
    return b.ink


def easy_chair(rng: RNG, year: int) -> np.ndarray:
    """An easy-chair."""
    b = Block(800, 900, rng, 4.6)
    objects.armchair(b)
    return b.ink


def sideboard(rng: RNG, year: int) -> np.ndarray:
    """A carved cabinet."""
    b = Block(820, 1150, rng, 4.6)
    objects.cabinet(b)
    return b.ink


def wheel_square(rng: RNG, year: int) -> np.ndarray:
    """A square of crochet."""
    b = Block(900, 900, rng, 4.4)
    objects.crochet(b)
    return b.ink


def small_wares(rng: RNG, year: int) -> np.ndarray:
    """Boots, a glove, a fan and a feather."""
    b = Block(900, 860, rng, 4.6)
    objects.shoe(b, 250, 40, 280)
    objects.shoe(b, 330, 440, 250)
    objects.glove(b, 690, 130, 220)
    fan(Pose(b, 640, 800, 260, -1), 0.0, 0.0)
    plume(Pose(b, 80, 745, 200), pts("0,0.3 0.7,0.1 1.3,0.25 1.9,0"), 0.34)
    return b.ink


Subject = tuple[Callable[[RNG, int], np.ndarray | Block], str]
DRESS = "{dress} of {colour} {stuff}"
SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "tall": (
        (plates.coloured, "{Adj} {dress} and {dress}"),
        (plates.parlour, "Reception toilettes of {stuff}"),
        (plates.pair, "Figs. 1 and 2.—{Adj} {dress} and {dress}"),
        (plates.garden, DRESS + " for the country"),
        (plates.millinery, "{adj} bonnets and hats"),
        (photograph, "{dress} from a photograph"),
        (plates.single, DRESS),
        (sideboard, "Cabinet in carved oak"),
    ),
    "square": (
        (plates.bust, "{adj} hat with {trim}"),
        (easy_chair, "Easy-chair covered with {stuff}"),
        (wheel_square, "Square in crochet for a {home}"),
        (small_wares, "Boots, glove and fan"),
        (portrait, "Miss E. in a {adj} {thing}"),
        (plates.bust, "{adj} bonnet of {stuff}"),
    ),
    "wide": (
        (country, "A {adj} country house"),
        (lake, "View on the lake"),
        (plates.hats_in_a_row, "{adj} hats of {stuff}"),
        (border, "Lace border for a {dress}"),
        (view, "The house from a photograph"),
    ),
    "narrow": (
        (plates.single, DRESS),
        (plates.single, "{adj} {dress}"),
        (plates.single, "{dress} with {trim}"),
    ),
}
"""Subjects, with the form of their captions, for each shape of space on a page."""


def finish(drawn: np.ndarray | Block, title: str) -> Picture:
    """Crop a picture to its ink, and lay its colours a little out of register."""
    ink, tint = (drawn.ink, drawn.tint) if isinstance(drawn, Block) else (drawn, None)
    rows, columns = np.flatnonzero((ink > 100).any(1)), np.flatnonzero((ink > 100).any(0))
    crop = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    if tint is not None:
        tint = np.roll(cv2.GaussianBlur(tint, (0, 0), 1.5), (3, -3), (0, 1))[crop]
    return Picture(ink[crop], title, tint)


class Studio:
    """Draws each picture when it is first asked for and keeps it.

    Args:
        seed: the same seed draws the same pictures.
        variants: how many pictures to draw of each subject before using them again.
    """

    def __init__(self, seed: int, variants: int) -> None:
        """Open the studio; nothing is drawn yet."""
        self._seed, self._variants = seed, variants
        self._drawn: dict[tuple[str, int], Picture] = {}
        self._asked: dict[str, int] = {}

    def turn(self, name: str, count: int) -> int:
        """Count 0, 1, 2… up to `count` and round again, for each name apart."""
        turn = self._asked.get(name, 0) % count
        self._asked[name] = turn + 1
        return turn

    def picture(self, shape: str, year: int) -> Picture:
        """Give the next picture of a shape.

        Subjects take turns, and none comes back before all its variants have been shown.

        Args:
            shape: tall, square, wide or narrow.
            year: of the fashions, if it has still to be drawn.
        """
        subjects = SUBJECTS[shape]
        turn = self.turn(shape, len(subjects) * self._variants)
        key = shape, turn
        if key not in self._drawn:
            rng = np.random.default_rng([self._seed, sorted(SUBJECTS).index(shape), turn])
            fashion = min(SKIRTS, key=lambda known: abs(known - year))
            draw, title = subjects[turn % len(subjects)]
            self._drawn[key] = finish(draw(rng, fashion), title)
        return self._drawn[key]
