"""Gowns of four decades on standing figures, each with the fashion of its year."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.resources.scan_engrave import Cut, pts
from tests.resources.scan_figures import Points, Pose, bow, dye, hat, head_and_hair, rosette

SKIRTS: dict[int, tuple[Points, Points]] = {
    1887: (
        pts("-0.38,2.75 -0.62,3.3 -0.78,4.4 -0.9,5.8 -1.05,7.5"),
        pts("0.34,2.7 0.95,2.85 1.35,3.3 1.5,4.2 1.52,5.6 1.72,7.4"),
    ),
    1896: (
        pts("-0.36,2.75 -0.66,3.2 -0.92,4.4 -1.3,6 -1.78,7.5"),
        pts("0.38,2.7 0.72,3.15 1.05,4.4 1.5,6 2.05,7.4"),
    ),
    1906: (
        pts("-0.44,2.8 -0.62,3.3 -0.7,4.4 -0.86,6 -1.3,7.5"),
        pts("0.3,2.66 0.74,3.1 0.94,4 1,5.6 1.35,6.7 2.5,7.45"),
    ),
    1911: (
        pts("-0.4,2.3 -0.56,3.2 -0.6,4.4 -0.56,6 -0.58,7.4"),
        pts("0.38,2.3 0.62,3.1 0.68,4.4 0.6,6 0.72,7.35"),
    ),
}
"""Front and back edge of the skirt from waist to hem, in heads."""

_BODICE: Points = pts(
    "-0.2,1.22 -0.5,1.38 -0.6,1.62 -0.62,2 -0.52,2.4 -0.38,2.74 -0.3,2.98 "
    "0,2.9 0.36,2.7 0.44,2.3 0.56,1.95 0.62,1.6 0.5,1.36 0.3,1.2"
)


def hem_of(front: Points, back: Points) -> Points:
    """Close a skirt along its hem, which sags a little in the middle."""
    (x0, y0), (x1, y1) = front[-1], back[-1]
    return [
        (x0 + (x1 - x0) * t, y0 + (y1 - y0) * t + 0.14 * float(np.sin(np.pi * t)))
        for t in (0.2, 0.4, 0.6, 0.8)
    ]


def between(front: Points, back: Points, down: float) -> tuple[np.ndarray, np.ndarray]:
    """Find the points on both edges of a skirt at a share of its length."""
    y = front[0][1] + (front[-1][1] - front[0][1]) * down
    ends = []
    for edge in (front, back):
        xs, ys = np.array(edge).T
        ends.append(np.array([np.interp(y, ys, xs), y]))
    return ends[0], ends[1]


def flounce(pose: Pose, front: Points, back: Points, top: float, bottom: float, cut: Cut) -> None:
    """Sew a gathered band round a skirt between two shares of its length."""
    a, b = between(front, back, top)
    c, d = between(front, back, bottom)
    upper = [tuple(a + (b - a) * t + [0, 0.13 * np.sin(np.pi * t)]) for t in np.linspace(0, 1, 9)]
    wave = [
        tuple(c + (d - c) * t + [0, 0.13 * np.sin(np.pi * t) + 0.035 * (n % 2)])
        for n, t in enumerate(np.linspace(-0.015, 1.015, 21))
    ]
    pose.shape([*upper, *wave[::-1]], cut)
    for t in np.linspace(0.04, 0.96, 18):
        x, y = a + (b - a) * t + [0, 0.13 * np.sin(np.pi * t)]
        drop = (bottom - top) * 4.6 * pose.block.rng.uniform(0.3, 0.8)
        pose.line(
            [(x, y), (x + 0.02 * (t - 0.5), y + drop * 0.5), (x + 0.06 * (t - 0.5), y + drop)], 1.4
        )


def skirt(pose: Pose, year: int, cut: Cut, trim: int) -> None:
    """Hang the skirt, with drapery, flounces or a plain band as trim."""
    front, back = SKIRTS[year]
    shape = [*front, *hem_of(front, back), *back[::-1]]
    rng = pose.block.rng
    ground = [
        (front[-1][0] - 0.5, 7.4),
        (0.2, 7.25),
        (back[-1][0] + 0.4, 7.35),
        (back[-1][0] + 0.6, 7.7),
        (0.3, 7.8),
        (front[-1][0] - 0.2, 7.65),
    ]
    pose.shadow(ground, Cut(tone=0.7, angle=2, grain=0.12, wander=1.2), 0.16)
    if year == 1911:
        for x in (-0.32, 0.12):
            pose.shape(
                [(x - 0.28, 7.62), (x - 0.1, 7.36), (x + 0.2, 7.3), (x + 0.22, 7.6)],
                Cut(tone=0.8, edge=1.5),
            )
    pose.shape(shape, cut)
    for _ in range(cut.folds * 2):
        across, start = rng.uniform(0.08, 0.95), rng.uniform(0.0, 0.6)
        downs = np.linspace(start, min(start + rng.uniform(0.3, 0.6), 0.98), 5)
        fold = [a + (b - a) * across for a, b in (between(front, back, d) for d in downs)]
        pose.line(fold, rng.uniform(1.2, 2.8))
    if trim == 0:
        flounce(
            pose, front, back, 0.86, 1.0, replace(cut, folds=16, fold_depth=6, tone=cut.tone + 0.1)
        )
        flounce(
            pose,
            front,
            back,
            0.74,
            0.88,
            replace(cut, folds=16, fold_depth=6, tone=cut.tone + 0.05),
        )
    elif trim == 1:
        for down in (0.8, 0.86, 0.92):
            a, b = between(front, back, down)
            band = [
                tuple(a + (b - a) * t + [0, 0.13 * np.sin(np.pi * t)])
                for t in np.linspace(0.01, 0.99, 8)
            ]
            pose.line(band, 5, taper=0.1)
    else:
        flounce(
            pose,
            front,
            back,
            0.93,
            1.0,
            replace(cut, folds=20, fold_depth=5, tone=min(cut.tone + 0.3, 0.8)),
        )
    if year == 1887:
        apron = pts(
            "-0.4,2.8 -0.74,3.5 -0.9,4.5 -0.7,5.15 -0.1,5.1 0.6,4.5 1.2,3.7 1.3,3.2 "
            "0.8,2.85 0.3,2.75"
        )
        pose.shadow([(x + 0.02, y + 0.16) for x, y in apron], Cut(tone=0.5, angle=-30), 0.08, shape)
        pose.shape(apron, replace(cut, angle=24, tone=cut.tone * 0.7, folds=5, fold_depth=16))
        for n in range(6):
            s = n / 5
            pose.line(
                [
                    (1.1 - s * 0.3, 3.05 + s * 0.35),
                    (0.3 - s * 0.2, 3.9 + s * 0.5),
                    (-0.72 + s * 0.2, 3.5 + s * 1.45),
                ],
                2.2 - s,
            )
        puff = pts("0.4,2.75 0.95,2.72 1.42,3.1 1.6,3.9 1.45,4.7 1.1,4.3 0.9,3.5")
        pose.shape(puff, replace(cut, angle=70, folds=4, fold_depth=12))
        for n in range(4):
            pose.line([(0.6 + n * 0.14, 2.85), (1.0 + n * 0.12, 3.3), (1.12 + n * 0.1, 4.2)], 2.2)
    if year == 1911:
        tunic = pts("-0.4,2.3 -0.62,3.2 -0.8,4.6 -0.1,5.3 0.85,4.7 0.7,3.2 0.38,2.3")
        pose.shadow([(x, y + 0.14) for x, y in tunic], Cut(tone=0.5, angle=-20), 0.08, shape)
        pose.shape(
            tunic, replace(cut, tone=cut.tone * 0.6, folds=5, stripes=int(rng.integers(0, 2)) * 9)
        )
        a = np.array(tunic[2:5])
        for t in np.linspace(0.05, 0.95, 26):
            x = np.interp(t, [0, 0.5, 1], a[:, 0])
            y = np.interp(t, [0, 0.5, 1], a[:, 1]) + 0.1 * np.sin(np.pi * t)
            pose.line([(x, y), (x + 0.01, y + 0.18)], 1.5)


def bodice(pose: Pose, year: int, cut: Cut) -> None:
    """Fit the bodice with its seams, buttons, collar and belt."""
    waist = 2.3 if year == 1911 else 2.74
    shape = [(x, 1.2 + (y - 1.2) * (waist - 1.2) / 1.54) for x, y in _BODICE]
    if year == 1906:
        shape = [(x - (0.16 if x < 0 and 1.8 < y < 2.9 else 0), y) for x, y in shape]
    pose.shape(shape, replace(cut, folds=0, angle=66, rim=1.0, contrast=0.75, edge=2.0))
    depth = waist - 1.2
    pose.line([(-0.13, 1.25), (-0.22, 1.2 + depth * 0.5), (-0.14, waist + 0.05)], 1.3)
    for x in (0.12, 0.3):
        pose.line([(x + 0.04, 1.2 + depth * 0.45), (x, 1.2 + depth * 0.8), (x - 0.08, waist)], 1.2)
    for n in range(8):
        s = n / 7
        x = -0.16 - 0.07 * np.sin(np.pi * s)
        pose.shape(
            [
                (x + 0.022 * np.cos(a), 1.34 + s * (depth - 0.16) + 0.022 * np.sin(a))
                for a in np.linspace(0, 5.2, 6)
            ],
            Cut(tone=0.5, edge=1.0),
        )
    pose.limb(
        pts("-0.16,1.13 0.05,1.2 0.28,1.1"),
        [0.14, 0.17, 0.15],
        Cut(tone=0.05, edge=1.4, angle=80, pitch=0.7),
    )
    pose.limb(
        [(-0.42, waist), (0.0, waist + 0.09), (0.4, waist - 0.04)],
        [0.11, 0.13, 0.11],
        Cut(tone=0.65, edge=1.6),
    )


def sleeve(pose: Pose, year: int, cut: Cut, spine: Points, near: bool) -> None:
    """Draw an arm in its sleeve, ending in a glove."""
    hand = spine[-1]
    aim = np.array(spine[-1]) - np.array(spine[-2])
    aim = aim / max(float(np.linalg.norm(aim)), 1e-6)
    fingers = [tuple(np.array(hand) + aim * r) for r in (-0.1, 0.1, 0.3)]
    pose.limb(fingers, [0.17, 0.2, 0.08], Cut(tone=0.5 if near else 0.6, edge=1.5, pitch=0.75))
    for n in (-1, 0, 1):
        side = np.array([-aim[1], aim[0]]) * 0.045 * n
        pose.line(
            [
                tuple(np.array(hand) + aim * 0.1 + side),
                tuple(np.array(hand) + aim * 0.27 + side * 0.6),
            ],
            0.9,
        )
    widths = {
        1887: [0.36, 0.34, 0.28, 0.24, 0.2],
        1896: [0.5, 1.0, 0.5, 0.26, 0.2],
        1906: [0.34, 0.34, 0.5, 0.46, 0.2],
        1911: [0.34, 0.34, 0.3, 0.24, 0.2],
    }[year]
    style = replace(
        cut, folds=0, rim=1.0, angle=-30, tone=cut.tone + (0 if near else 0.12), edge=2.0
    )
    pose.limb(spine, widths, style, rounded=True)
    top = np.array(spine[0])
    elbow = np.array(spine[len(spine) // 2])
    for n in range(5):
        away = np.array([(n - 2) * widths[1] * 0.16, 0.12 + 0.03 * abs(n - 2)])
        pose.line([tuple(top + away * [0.6, 0.2]), tuple(top + away + [0, 0.2])], 1.4)
        pose.line(np.add(elbow, [(-0.1, -0.12 + n * 0.05), (0.06, -0.08 + n * 0.05)]), 1.1)
    cuff = [spine[-1], tuple(np.array(spine[-1]) - aim * 0.13)]
    pose.limb(cuff, [0.27, 0.27], Cut(tone=0.05, edge=1.5))


def parasol(pose: Pose, x: float, y: float, cut: Cut) -> None:
    """Lean a furled parasol from the hand to the ground."""
    tip = (x - 0.75, 7.5)
    pose.limb([(x + 0.14, y - 0.75), (x, y), tip], [0.05, 0.05, 0.03], Cut(tone=0.5, edge=1.4))
    mid = [(x - 0.1, y + 0.7), (x - 0.32, y + 2.0), (tip[0] + 0.06, tip[1] - 0.3)]
    pose.limb(mid, [0.12, 0.3, 0.05], replace(cut, tone=0.5, folds=0, angle=70))
    bow(pose, x + 0.03, y - 0.25, 0.25)


def fan(pose: Pose, x: float, y: float) -> None:
    """Open a fan in the hand."""
    spread = np.linspace(-2.75, -1.15, 13)
    rim = [(x + 0.8 * np.cos(a), y + 0.8 * np.sin(a)) for a in spread]
    pose.shape([(x, y), *rim], Cut(tone=0.12, edge=1.6, angle=20), smooth=False)
    for a in spread:
        pose.line([(x, y), (x + 0.78 * np.cos(a), y + 0.78 * np.sin(a))], 1.3, taper=0.2)
    for r in (0.45, 0.7):
        pose.line([(x + r * np.cos(a), y + r * np.sin(a)) for a in spread], 2, taper=0.2)


def lady(pose: Pose, year: int) -> None:
    """Draw a lady dressed in the fashion of 1887, 1896, 1906 or 1911."""
    rng = pose.block.rng
    # Colour carries the darkness on a coloured plate, and the lines leave room for it.
    tones = [0.1, 0.22] if pose.block.coloured else [0.12, 0.3, 0.5, 0.68]
    tone = float(rng.choice(tones))
    cloth = Cut(
        tone=tone,
        folds=int(rng.integers(4, 8)),
        fold_depth=pose.head * 0.11,
        angle=float(rng.uniform(-6, 6)),
        contrast=0.75,
        stripes=int(rng.choice([0, 0, 0, 11])),
        dye=dye(pose.block),
    )
    upper = (
        cloth
        if rng.random() < 0.6
        else replace(cloth, tone=float(rng.choice(tones)), stripes=0, dye=dye(pose.block))
    )
    sleeve(pose, year, upper, pts("-0.4,1.36 -0.74,1.85 -0.82,2.4 -0.6,2.7 -0.36,2.75"), near=False)
    skirt(pose, year, cloth, int(rng.integers(3)))
    head_and_hair(pose, float(rng.choice([0.4, 0.6, 0.75])))
    bodice(pose, year, replace(upper, stripes=0))
    ornament = int(rng.integers(3))
    if ornament == 0:
        rosette(pose, -0.3, 1.62, 0.24)
    elif ornament == 1:
        bow(pose, -0.16, 1.36, 0.3, 0.1)
    held = int(rng.integers(3))
    if held == 0:
        near: Points = pts("0.4,1.34 0.82,2 0.86,2.5 0.5,2.75 0.02,2.72")
        sleeve(pose, year, upper, near, near=True)
        pose.shape(
            pts("-0.4,2.6 -0.1,2.5 0.16,2.6 0.14,2.95 -0.12,3.05 -0.4,2.92"),
            Cut(tone=0.55, grain=0.5, edge=1.4),
        )
    elif held == 1:
        parasol(pose, 1.12, 3.55, cloth)
        sleeve(pose, year, upper, pts("0.4,1.34 0.76,2 0.94,2.5 1.08,3 1.12,3.4"), near=True)
    else:
        fan(pose, -0.3, 2.5)
        sleeve(pose, year, upper, pts("0.4,1.34 0.84,1.95 0.8,2.45 0.3,2.62 -0.16,2.5"), near=True)
    worn = {1887: (0, 0, 3), 1896: (1, 1, 3), 1906: (2, 2, 1), 1911: (2, 3, 0)}[year]
    hat(pose, worn[int(rng.integers(3))], float(rng.choice([0.2, 0.45, 0.65])))
