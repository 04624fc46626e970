"""Fashion figures: ladies in the dress of four decades, busts and millinery, for the engraver.

Figures are measured in heads: x to the right of the middle of the figure, y down from the crown
of the head. They face left; a mirrored pose faces right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.resources.scan_engrave import Block, Cut, curve, pts

Points = np.ndarray | list[tuple[float, float]]


def limb(spine: object, widths: object, rounded: bool = False) -> np.ndarray:
    """Outline a tapering band along a spine.

    Args:
        spine: control points (n, 2).
        widths: full width at each control point (n,), same unit.
        rounded: end the first point in a round cap, as a shoulder does.

    Returns:
        Closed polygon (m, 2).
    """
    path = curve(spine, steps=8)
    knots = np.linspace(0, 1, len(widths))
    t = np.linspace(0, 1, len(path))
    half = np.interp(t, knots, np.asarray(widths, float)) / 2
    half *= np.sqrt(1 - np.clip(1 - t / 0.12, 0, 1) ** 2) if rounded else 1.0
    along = np.gradient(path, axis=0)
    side = np.stack([-along[:, 1], along[:, 0]], 1)
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-6)
    return np.vstack([path + side * half[:, None], (path - side * half[:, None])[::-1]])


FLESH, BROWN, ROSE = (250, 222, 200), (176, 128, 88), (240, 176, 176)
DYES = ((150, 176, 214), (206, 150, 160), (168, 196, 156), (224, 200, 132), (186, 160, 200))
"""Washes of a coloured plate: skin, hair, flowers, and cloth to choose from, R, G, B."""


def dye(block: Block) -> tuple[int, int, int]:
    """Choose a colour for a piece of cloth."""
    return DYES[int(block.rng.integers(len(DYES)))]


@dataclass
class Pose:
    """Where a figure stands on the block.

    Attributes:
        block: to engrave on.
        x: middle of the figure, pixels.
        y: crown of the head, pixels.
        head: height of the head, pixels.
        mirror: -1 to face right, 1 to face left.
    """

    block: Block
    x: float
    y: float
    head: float
    mirror: int = 1

    def at(self, points: object) -> np.ndarray:
        """Turn points in heads (n, 2) into block pixels."""
        p = np.asarray(points, np.float32)
        return p * np.float32([self.mirror * self.head, self.head]) + np.float32([self.x, self.y])

    def shape(self, points: object, cut: Cut, smooth: bool = True) -> None:
        """Engrave a closed shape given in heads."""
        p = self.at(points)
        self.block.part(curve(p, closed=True) if smooth else p, cut)

    def limb(self, spine: object, widths: object, cut: Cut, rounded: bool = False) -> None:
        """Engrave a band along a spine, both in heads."""
        wide = np.asarray(widths, float) * self.head
        self.block.part(limb(self.at(spine), wide, rounded=rounded), cut)

    def shadow(self, points: object, cut: Cut, soft: float, within: object = None) -> None:
        """Cast a shadow with a soft edge, all in heads, kept within a shape if one is given."""
        bound = None if within is None else curve(self.at(within), closed=True)
        self.block.shadow(curve(self.at(points), closed=True), cut, soft * self.head, bound)

    def line(self, points: object, width: float, ink: int = 255, taper: float = 1.0) -> None:
        """Draw a pen stroke through points in heads, `width` in hundredths of a head."""
        self.block.stroke(self.at(points), max(width * self.head / 100, 1.0), ink, taper)


def tresses(pose: Pose, spine: Points, spread: float, count: int) -> None:
    """Draw strands of hair, dark and light, side by side along a spine (heads)."""
    rng = pose.block.rng
    path = np.asarray(spine, np.float32)
    along = np.gradient(path, axis=0)
    side = np.stack([-along[:, 1], along[:, 0]], 1)
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-6)
    for n in range(count):
        off = (n / max(count - 1, 1) - 0.5) * spread + rng.normal(0, 0.01)
        swell = np.sin(np.linspace(0.3, np.pi - 0.3, len(path)))[:, None]
        ink = 0 if rng.random() < 0.3 else 255
        pose.line(path + side * off * swell, rng.uniform(0.8, 2.2), ink)


FACE = pts(
    "-0.25,0.2 -0.272,0.4 -0.258,0.5 -0.275,0.61 -0.25,0.77 -0.19,0.885 "
    "-0.11,0.95 -0.03,0.94 0.1,0.85 0.2,0.7 0.25,0.42 0.2,0.1 -0.1,0.06"
)
"""Outline of a face, in heads."""


def face(pose: Pose) -> None:
    """Draw a face in three-quarter view."""
    skin = Cut(
        dye=FLESH, tone=0.0, contrast=0.42, angle=50, pitch=0.72, edge=pose.head * 0.007, bulge=0.3
    )
    pose.shape(FACE, skin)
    for x, w in ((-0.19, 0.068), (0.03, 0.085)):
        pose.line([(x - w, 0.405), (x, 0.38), (x + w * 1.3, 0.402)], 1.5)
        pose.line([(x - w * 0.8, 0.462), (x, 0.446), (x + w, 0.464)], 0.6)
        iris = [
            (x - 0.034, 0.48),
            (x - 0.01, 0.468),
            (x + 0.014, 0.48),
            (x + 0.012, 0.506),
            (x - 0.01, 0.52),
            (x - 0.032, 0.508),
        ]
        pose.block.solid(curve(pose.at(iris), closed=True))
        pose.line([(x - 0.022, 0.488), (x - 0.016, 0.496)], 0.8, 0)
        pose.line(
            [(x - w, 0.505), (x - w * 0.3, 0.472), (x + w * 0.5, 0.474), (x + w * 1.15, 0.503)],
            1.9,
            taper=0.7,
        )
        pose.line([(x - w * 0.6, 0.522), (x + w * 0.1, 0.53), (x + w * 0.8, 0.518)], 0.6)
    pose.line(pts("-0.1,0.43 -0.118,0.54 -0.158,0.64 -0.145,0.667 -0.112,0.67"), 0.9)
    pose.line(pts("-0.1,0.662 -0.08,0.656 -0.073,0.636"), 1.1)
    pose.line(pts("-0.163,0.762 -0.13,0.752 -0.112,0.758 -0.088,0.751 -0.03,0.764"), 1.7)
    pose.line(pts("-0.145,0.742 -0.128,0.734 -0.112,0.74 -0.096,0.734 -0.06,0.75"), 0.7)
    pose.line(pts("-0.13,0.802 -0.1,0.81 -0.06,0.798"), 1.0)
    shade = Cut(tone=0.3, angle=50, pitch=0.72)
    pose.shadow(pts("0.02,0.6 0.2,0.45 0.22,0.7 0.08,0.86 0,0.92"), shade, 0.05, FACE)
    pose.shadow(pts("-0.11,0.42 -0.05,0.44 -0.1,0.56 -0.115,0.63"), replace(shade, tone=0.22), 0.02)


def head_and_hair(pose: Pose, dark: float = 0.6, brim: bool = True) -> None:
    """Draw neck, head and hair dressed high at the back.

    Args:
        pose: of the figure.
        dark: darkness of the hair.
        brim: whether a hat throws its shadow on the brow.
    """
    neck = pts("-0.1,0.7 -0.07,1 -0.09,1.18 -0.3,1.34 0.44,1.34 0.24,1.16 0.2,0.95 0.22,0.6")
    pose.shape(
        neck, Cut(dye=FLESH, tone=0.06, angle=-8, pitch=0.72, contrast=0.6, edge=pose.head * 0.008)
    )
    pose.shadow(
        pts("-0.1,0.8 0.25,0.7 0.26,1 0.06,1.04"), Cut(tone=0.6, angle=-8, pitch=0.72), 0.04, neck
    )
    hair = Cut(
        dye=BROWN, tone=dark, angle=60, contrast=0.8, pitch=0.72, edge=pose.head * 0.008, wander=0.8
    )
    pose.shape(pts("0,-0.06 0.3,-0.02 0.44,0.2 0.46,0.48 0.38,0.7 0.24,0.68 0,0.3"), hair)
    tresses(pose, pts("0.12,0.02 0.34,0.14 0.4,0.4 0.31,0.64"), 0.2, 12)
    face(pose)
    pose.shape(
        pts("0.2,0.47 0.25,0.45 0.265,0.52 0.23,0.6 0.205,0.58"),
        Cut(tone=0.1, edge=pose.head * 0.006, pitch=0.7),
    )
    front = pts(
        "-0.27,0.3 -0.24,0.1 -0.05,-0.05 0.2,-0.03 0.34,0.2 0.33,0.44 0.26,0.52 "
        "0.2,0.36 0.1,0.25 -0.05,0.22 -0.18,0.27 -0.25,0.36"
    )
    pose.shape(front, hair)
    tresses(pose, pts("-0.22,0.28 -0.02,0.08 0.2,0.16 0.28,0.46"), 0.17, 13)
    rng = pose.block.rng
    for n in range(9):
        x = -0.23 + n * 0.045
        pose.line(
            [(x, 0.2), (x - 0.03, 0.27), (x + 0.01, 0.3 + 0.02 * rng.random()), (x + 0.025, 0.26)],
            1.2,
        )
    for n in range(4):
        pose.line([(0.3, 0.6), (0.33 + 0.02 * n, 0.72), (0.29 + 0.02 * n, 0.78 + 0.03 * n)], 1.2)
    if brim:
        pose.shadow(
            pts("-0.28,0.24 0.3,0.2 0.28,0.4 0,0.36 -0.27,0.38"),
            Cut(tone=0.5, angle=10, pitch=0.72),
            0.035,
            FACE,
        )


def plume(pose: Pose, spine: Points, width: float, tone: float = 0.25) -> None:
    """Draw an ostrich feather along a spine, its barbs curling away from the light."""
    block, rng = pose.block, pose.block.rng
    path = curve(pose.at(spine), steps=14)
    half = width * pose.head / 2
    t = np.linspace(0, 1, len(path))
    swell = np.sin(np.clip(t * 1.04 + 0.03, 0, 1) * np.pi) ** 0.45
    along = np.gradient(path, axis=0)
    side = np.stack([-along[:, 1], along[:, 0]], 1)
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-6)
    wave = 1 + 0.16 * np.sin(t * 34)
    outline = np.vstack(
        [
            path + side * (half * swell * wave)[:, None],
            (path - side * (half * swell * wave)[:, None])[::-1],
        ]
    )
    block.part(outline, Cut(tone=tone, angle=70, contrast=0.7, edge=1.2, pitch=0.9))
    for i in range(2, len(path) - 1):
        for sign in (-1, 1):
            for _ in range(2):
                reach = half * swell[i] * rng.uniform(0.75, 1.15)
                tip = (
                    path[i] + side[i] * sign * reach + along[i] * rng.uniform(0.4, 1.6) * reach / 8
                )
                bend = (path[i] + tip) / 2 - along[i] * 0.5
                block.stroke(
                    [path[i], bend, tip], rng.uniform(1.0, 2.0), 0 if rng.random() < 0.35 else 255
                )
    block.stroke(path[::6], 2.4, taper=0.6)


def rosette(pose: Pose, x: float, y: float, size: float, tone: float = 0.15) -> None:
    """Draw a silk flower of overlapping petals."""
    rng = pose.block.rng
    for ring, count in ((1.0, 7), (0.6, 5)):
        start = rng.uniform(0, 6.3)
        for n in range(count):
            a = start + n * 2 * np.pi / count
            c = np.array([x + np.cos(a) * size * 0.5 * ring, y + np.sin(a) * size * 0.5 * ring])
            ring_points = [
                tuple(c + size * 0.42 * ring * np.array([np.cos(a + d), np.sin(a + d)]))
                for d in np.linspace(0, 5.4, 6)
            ]
            petal = Cut(tone=tone, angle=float(np.degrees(a)), edge=1.3, pitch=0.8, dye=ROSE)
            pose.shape(ring_points, petal)
    pose.shape(
        [
            (x + size * 0.16 * np.cos(d), y + size * 0.16 * np.sin(d))
            for d in np.linspace(0, 5.3, 6)
        ],
        Cut(tone=0.6, edge=1.2),
    )


def bow(pose: Pose, x: float, y: float, size: float, tone: float = 0.3) -> None:
    """Draw a ribbon bow with two loops and two ends."""
    depth = size * pose.head * 0.08
    cut = Cut(tone=tone, folds=3, fold_depth=depth, edge=1.6, pitch=0.85, dye=ROSE)
    s = size
    pose.shape(
        [
            (x, y),
            (x - 0.1 * s, y + 0.5 * s),
            (x - 0.35 * s, y + 1.0 * s),
            (x - 0.1 * s, y + 0.95 * s),
            (x + 0.08 * s, y + 0.5 * s),
        ],
        cut,
    )
    pose.shape(
        [
            (x, y),
            (x + 0.25 * s, y + 0.45 * s),
            (x + 0.5 * s, y + 0.85 * s),
            (x + 0.2 * s, y + 0.9 * s),
        ],
        cut,
    )
    for side in (-1, 1):
        pose.shape(
            [
                (x, y),
                (x + side * 0.35 * s, y - 0.34 * s),
                (x + side * 0.68 * s, y - 0.2 * s),
                (x + side * 0.6 * s, y + 0.16 * s),
                (x + side * 0.25 * s, y + 0.14 * s),
            ],
            replace(cut, angle=90 - 20 * side),
        )
    pose.shape(
        [
            (x - 0.1 * s, y - 0.1 * s),
            (x + 0.1 * s, y - 0.1 * s),
            (x + 0.1 * s, y + 0.12 * s),
            (x - 0.1 * s, y + 0.12 * s),
        ],
        Cut(tone=0.4, edge=1.4),
    )


def hat(pose: Pose, form: int, tone: float) -> None:
    """Trim one of four hats: high bonnet, sailor, picture hat, toque."""
    straw = Cut(
        dye=dye(pose.block), tone=tone, angle=4, contrast=0.75, pitch=0.85, bulge=0.4, edge=2.0
    )
    if form == 0:
        pose.shape(
            pts("-0.34,0.2 -0.26,-0.28 0,-0.5 0.3,-0.34 0.42,0.12 0.2,0.02 -0.1,0.08"), straw
        )
        pose.limb(
            pts("-0.42,0.24 -0.1,0.07 0.2,0.06 0.46,0.26"),
            [0.05, 0.12, 0.12, 0.06],
            replace(straw, tone=tone + 0.2),
        )
        plume(pose, pts("0.3,-0.1 0.2,-0.55 -0.1,-0.78 -0.35,-0.6"), 0.26)
        bow(pose, 0.02, -0.25, 0.34)
    elif form == 1:
        pose.shape(pts("-0.34,0.06 -0.3,-0.26 0,-0.33 0.32,-0.24 0.34,0.08 0,0.16"), straw)
        pose.shape(pts("-0.7,0.12 -0.3,0 0.3,0 0.66,0.14 0.3,0.26 -0.3,0.25"), straw)
        pose.limb(pts("-0.34,0 0,0.07 0.34,0"), [0.13, 0.13, 0.13], Cut(tone=0.8, edge=1.2))
        bow(pose, 0.34, -0.06, 0.3, 0.6)
        pose.shape(pts("-0.34,0.06 -0.3,-0.26 0,-0.33 0.32,-0.24 0.33,-0.06 0,0"), straw)
    elif form == 2:
        brim = pts(
            "-0.86,0.3 -0.6,-0.02 0,-0.14 0.6,-0.1 0.98,0.1 0.7,0.3 0.3,0.2 -0.2,0.22 -0.6,0.34"
        )
        pose.shape(brim, replace(straw, tone=tone + 0.15))
        pose.shape(pts("-0.38,0.02 -0.34,-0.3 0,-0.42 0.36,-0.3 0.42,0.02 0,0.1"), straw)
        plume(pose, pts("-0.3,-0.05 0.1,-0.5 0.6,-0.45 1.02,0.02"), 0.34, 0.15)
        plume(pose, pts("-0.2,0 -0.4,-0.5 -0.1,-0.75 0.25,-0.6"), 0.28, 0.3)
        for x, y in ((-0.3, 0.0), (-0.12, -0.06), (0.08, 0.0)):
            rosette(pose, x, y, 0.2)
    else:
        pose.shape(
            pts("-0.4,0.24 -0.46,0 -0.2,-0.28 0.2,-0.3 0.5,-0.04 0.46,0.26 0,0.16"),
            replace(straw, folds=7, fold_depth=6),
        )
        plume(pose, pts("-0.2,0.1 -0.3,-0.4 -0.1,-0.8 0.2,-0.95"), 0.24)
        for x in (-0.28, -0.08, 0.12):
            rosette(pose, x, 0.08, 0.17)
