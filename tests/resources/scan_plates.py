"""Plates with figures: ladies alone, in pairs, in rooms and gardens, and heads in new hats."""

from __future__ import annotations

import cv2
import numpy as np

from tests.resources import scan_houses as houses
from tests.resources import scan_scenes as scenes
from tests.resources import scan_text as text
from tests.resources.scan_engrave import Block, Cut, curve, pts, smooth_noise
from tests.resources.scan_figures import Pose, hat, head_and_hair, rosette
from tests.resources.scan_gowns import lady

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


def single(rng: RNG, year: int) -> np.ndarray:
    """One lady, alone on the paper."""
    b = Block(1060, 1400, rng, 4.6)
    mirror = int(rng.choice([-1, 1]))
    lady(Pose(b, 530 - 50 * mirror, 170, 152, mirror), year)
    return b.ink


def pair(rng: RNG, year: int) -> np.ndarray:
    """Two ladies face to face, numbered."""
    b = Block(1440, 1480, rng, 4.7)
    lady(Pose(b, 470, 190, 150, -1), year)
    lady(Pose(b, 970, 210, 148, 1), year)
    number_below(b, "Fig. 1.", 470, 1455)
    number_below(b, "Fig. 2.", 970, 1455)
    return b.ink


def coloured(rng: RNG, year: int) -> Block:
    """Two ladies, washed with colour by hand."""
    b = Block(1440, 1500, rng, 4.7, coloured=True)
    lady(Pose(b, 470, 200, 150, -1), year)
    lady(Pose(b, 970, 220, 148, 1), year)
    return b


def wall(b: Block, floor: float) -> None:
    """Paper the wall of a room down to the floor (pixels) and light it from the window."""
    w, rng = b.width, b.rng
    ys, xs = np.mgrid[0 : 1 : b.height * 1j, 0 : 1 : w * 1j].astype(np.float32)
    tone = 0.24 + 0.28 * xs + 0.18 * (1 - ys) ** 2 + 0.04 * smooth_noise(ys.shape, 90, rng)
    tone[int(floor) :] = 0
    motif = np.sin(xs * w / 27) * np.sin(ys * b.height / 27 + (np.floor(xs * w / 85) % 2) * 3)
    tone += 0.14 * (np.abs(motif) > 0.6) * (tone > 0)
    b.wash(np.clip(tone, 0, 0.85), Cut(angle=90, pitch=0.95, wander=0.12))
    boards = houses.quad(-5, floor, w + 5, b.height + 5)
    b.part(boards, Cut(tone=0.42, angle=0, rim=0, edge=2.4, wander=0.1, grain=0.06, pitch=1.1))
    b.part(houses.quad(-5, floor - 34, w + 5, floor), Cut(tone=0.25, angle=0, rim=0, edge=2))
    deep = b.height - floor
    rug = np.float32(
        [
            (w * 0.1, floor + deep * 0.25),
            (w * 0.92, floor + deep * 0.25),
            (w * 1.05, b.height),
            (-w * 0.05, b.height),
        ]
    )
    b.part(rug, Cut(tone=0.5, angle=35, rim=0, edge=3, stripes=24, pitch=0.9))


def picture_on_wall(b: Block, x: float, y: float, w: float, h: float) -> None:
    """Hang a small framed landscape (pixels)."""
    b.stroke([(x + w / 2, y - h * 0.5), (x + w / 4, y - h * 0.25), (x, y)], 2, taper=0)
    b.stroke([(x + w / 2, y - h * 0.5), (x + w * 0.75, y - h * 0.25), (x + w, y)], 2, taper=0)
    b.part(houses.quad(x, y, x + w, y + h), Cut(tone=0.12, angle=45, rim=0.25, edge=2.4))
    b.part(
        houses.quad(x + 18, y + 18, x + w - 18, y + h - 18), Cut(tone=0.25, angle=0, rim=0, edge=2)
    )
    hill = [
        (x + 20, y + h * 0.6),
        (x + w * 0.4, y + h * 0.45),
        (x + w * 0.7, y + h * 0.6),
        (x + w - 20, y + h * 0.52),
        (x + w - 20, y + h - 20),
        (x + 20, y + h - 20),
    ]
    b.part(np.float32(hill), Cut(tone=0.6, angle=20, rim=0, edge=1.5, grain=0.5))


def curtains(b: Block, x: float, floor: float, w: float) -> None:
    """Hang a tall window with drawn-back curtains (pixels)."""
    b.part(houses.quad(x, 60, x + w, floor - 40), Cut(tone=0.0, rim=0, edge=3))
    houses.window(b, x + 24, 84, x + w - 24, floor - 70, (2, 4))
    b.part(
        houses.quad(x + 24, 84, x + w - 24, floor - 70),
        Cut(tone=0.04, angle=45, rim=0, edge=2, pitch=1.3),
    )
    for t in (0.25, 0.5, 0.75):
        y = 84 + (floor - 154) * t
        b.stroke([(x + 24, y), (x + w / 2, y), (x + w - 24, y)], 7, taper=0)
    b.stroke([(x + w / 2, 84), (x + w / 2, 300), (x + w / 2, floor - 70)], 8, taper=0)
    drape = Cut(tone=0.35, folds=6, fold_depth=22, angle=0, edge=2.4)
    for side in (0, 1):
        edge = pts("-0.15,0 0.5,0 0.42,0.3 0.06,0.62 0.16,0.8 0.2,1 -0.15,1 -0.08,0.6")
        edge[:, 0] = 1 - edge[:, 0] if side else edge[:, 0]
        b.part(curve(edge * (w, floor - 50) + (x, 50), True), drape)
    b.part(
        curve(
            [
                (x - w * 0.15, 30),
                (x + w / 2, 24),
                (x + w * 1.15, 30),
                (x + w * 1.15, 100),
                (x + w * 0.8, 190),
                (x + w / 2, 130),
                (x + w * 0.2, 190),
                (x - w * 0.15, 100),
            ],
            True,
        ),
        Cut(tone=0.4, folds=8, fold_depth=16),
    )


def parlour(rng: RNG, year: int) -> np.ndarray:
    """A framed plate: two ladies in a furnished room."""
    b = Block(1240, 1620, rng, 4.6)
    wall(b, 1130)
    curtains(b, 110, 1130, 330)
    picture_on_wall(b, 800, 230, 300, 240)
    table = Cut(tone=0.3, folds=6, fold_depth=20)
    b.shadow(np.float32(pts("900,1300 1240,1290 1240,1380 900,1390")), Cut(tone=0.7), 16)
    houses.vase(b, 1090, 940, 200)
    b.part(curve(pts("950,950 1090,925 1230,950 1226,1330 1090,1350 950,1330"), True), table)
    b.part(curve(pts("940,945 1090,922 1240,945 1090,975"), True), Cut(tone=0.08, angle=10))
    lady(Pose(b, 380, 350, 150, -1), year)
    lady(Pose(b, 830, 390, 149, 1), year)
    frame(b)
    return b.ink


def garden(rng: RNG, year: int) -> np.ndarray:
    """A vignette or framed plate: a lady before a villa among trees."""
    b = Block(1240, 1600, rng, 4.8)
    scenes.sky(b, 900, dark=0.34)
    scenes.hills(b, 900, 130, 0.2)
    scenes.ground(b, 880, 0.28)
    if rng.random() < 0.5:
        houses.house(b, 700, 960, 250)
        scenes.tree(b, 180, 1020, 760)
    else:
        scenes.water(b, 900, 1130)
        scenes.boat(b, 850, 960, 70)
        scenes.ground(b, 1130, 0.25)
        scenes.tree(b, 1040, 1220, 860)
        scenes.fir(b, 180, 1180, 330)
    scenes.grass(b, 0, 1240, 1150, 1590, 240)
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
    shoulders = pts(
        "-0.2,1.18 -0.55,1.34 -0.84,1.56 -0.95,1.95 -0.92,2.5 0,2.6 1,2.5 "
        "1.04,1.9 0.92,1.54 0.62,1.32 0.3,1.18"
    )
    head_and_hair(pose, float(rng.choice([0.4, 0.6, 0.75])))
    pose.shape(shoulders, Cut(tone=tone, angle=30, contrast=0.8, edge=1.8, bulge=0.25, fade=0.8))
    for n in range(7):
        pose.line([(-0.1 + 0.05 * n, 1.32), (-0.17 + 0.07 * n, 1.55), (-0.24 + 0.1 * n, 1.85)], 1.2)
    pose.limb(
        pts("-0.16,1.12 0.05,1.2 0.28,1.1"),
        [0.16, 0.2, 0.18],
        Cut(tone=0.05, edge=1.6, angle=80, pitch=0.7),
    )
    rosette(pose, -0.28, 1.52, 0.26)
    hat(pose, form, float(rng.choice([0.2, 0.4, 0.6])))


def bust(rng: RNG, year: int) -> np.ndarray:
    """One head in a new hat."""
    b = Block(900, 1000, rng, 4.6)
    bust_at(b, 440, 340, 270, int(rng.choice([-1, 1])), int(rng.integers(4)))
    return b.ink


def millinery(rng: RNG, year: int) -> np.ndarray:
    """A plate of five hats, numbered."""
    b = Block(1240, 1560, rng, 4.6)
    places = ((330, 210), (910, 230), (620, 720), (310, 1130), (930, 1120))
    forms = rng.permutation([0, 1, 2, 3, 2])
    for n, ((x, y), form) in enumerate(zip(places, forms, strict=True)):
        bust_at(b, x, y, 165, 1 if x > 600 else -1, int(form))
        number_below(b, f"No. {n + 1}.", x, y + 395)
    return b.ink


def hats_in_a_row(rng: RNG, year: int) -> np.ndarray:
    """Three heads side by side."""
    b = Block(1300, 640, rng, 4.6)
    for n, x in enumerate((230, 650, 1070)):
        bust_at(b, x, 200, 165, -1 if x < 500 else 1, (n + int(rng.integers(2))) % 4)
        number_below(b, f"No. {n + 1}.", x, 610)
    return b.ink
