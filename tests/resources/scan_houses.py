"""Houses and what stands in them, for the engraver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.resources.scan_engrave import Block, Cut, pts
from tests.resources.scan_figures import Pose, limb, rosette


def quad(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    """Outline an upright rectangle, (4, 2) pixels."""
    return np.float32([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])


def window(
    block: Block, x0: float, y0: float, x1: float, y1: float, panes: tuple[int, int]
) -> None:
    """Cut a sashed window into a wall (pixels)."""
    block.part(quad(x0 - 6, y0 - 6, x1 + 6, y1 + 8), Cut(tone=0.02, rim=0, edge=1.6))
    block.part(
        quad(x0, y0, x1, y1), Cut(tone=0.78, rim=0, angle=90, edge=1.4, grain=0.15, pitch=0.9)
    )
    block.shadow(np.float32([(x0, y0), (x1, y0), (x1, y0 + 9), (x0, y0 + 9)]), Cut(tone=0.9), 2)
    for n in range(1, panes[0]):
        x = x0 + (x1 - x0) * n / panes[0]
        block.stroke([(x, y0), (x, (y0 + y1) / 2), (x, y1)], 3.4, 0, 0)
    for n in range(1, panes[1]):
        y = y0 + (y1 - y0) * n / panes[1]
        block.stroke([(x0, y), ((x0 + x1) / 2, y), (x1, y)], 3.4, 0, 0)
    block.part(quad(x0 - 10, y1 + 6, x1 + 10, y1 + 14), Cut(tone=0.1, rim=0, edge=1.4))


def house(block: Block, x: float, base: float, size: float) -> None:
    """Build a gabled villa with its front lit and its side in shade (pixels)."""
    rng = block.rng
    front, deep, wall, ridge = size, size * 0.85, size * 0.85, size * 0.62
    wall_cut = Cut(tone=0.1, angle=0, rim=0, edge=2.0, wander=0.06, pitch=1.5)
    side = np.float32(
        [
            (x + front, base),
            (x + front + deep, base - size * 0.12),
            (x + front + deep, base - wall + size * 0.02),
            (x + front, base - wall),
        ]
    )
    block.part(side, replace(wall_cut, tone=0.5, angle=-3, pitch=1.1))
    apex = (x + front / 2, base - wall - ridge)
    roof = np.float32(
        [
            apex,
            (apex[0] + deep, apex[1] + size * 0.02),
            (x + front + deep + size * 0.08, base - wall + size * 0.06),
            (x + front + size * 0.08, base - wall + size * 0.07),
        ]
    )
    for n in (0.3, 0.72):
        cx = apex[0] + deep * n
        top = apex[1] - size * 0.2
        block.part(
            quad(cx, top, cx + size * 0.13, apex[1] + size * 0.18),
            Cut(tone=0.45, angle=0, rim=0, pitch=1.2),
        )
        block.part(quad(cx - 5, top - 10, cx + size * 0.13 + 5, top + 4), Cut(tone=0.2, rim=0))
    block.part(roof, Cut(tone=0.5, angle=1, rim=0, pitch=1.6, wander=0.1, edge=2.2))
    for _ in range(380):
        u, v = rng.random(), rng.random()
        top_e, low_e = apex[0] + deep * u, x + front + size * 0.08 + deep * u
        px, py = top_e + (low_e - top_e) * v, apex[1] + (base - wall + size * 0.06 - apex[1]) * v
        block.stroke([(px, py), (px + 2, py + 5), (px + 4, py + 8)], 1.3)
    gable = np.float32(
        [(x, base), (x, base - wall), apex, (x + front, base - wall), (x + front, base)]
    )
    block.part(gable, wall_cut)
    for end in (
        (x - size * 0.08, base - wall + size * 0.1),
        (x + front + size * 0.08, base - wall + size * 0.1),
    ):
        block.part(
            limb([apex, ((apex[0] + end[0]) / 2, (apex[1] + end[1]) / 2), end], [size * 0.07] * 3),
            Cut(tone=0.2, edge=1.8),
        )
    for u in (0.16, 0.62):
        window(
            block,
            x + front * u,
            base - wall * 0.92,
            x + front * (u + 0.2),
            base - wall * 0.58,
            (2, 2),
        )
    window(
        block,
        x + front * 0.4,
        base - wall - ridge * 0.5,
        x + front * 0.6,
        base - wall - ridge * 0.16,
        (2, 2),
    )
    window(block, x + front * 0.62, base - wall * 0.44, x + front * 0.86, base - wall * 0.1, (2, 3))
    for u in (0.2, 0.6):
        wx, wy = x + front + deep * u, base - size * 0.12 * u
        window(block, wx, wy - wall * 0.88, wx + deep * 0.17, wy - wall * 0.58, (2, 2))
        window(block, wx, wy - wall * 0.42, wx + deep * 0.17, wy - wall * 0.12, (2, 2))
    door = x + front * 0.2
    block.part(
        quad(door, base - wall * 0.46, door + front * 0.2, base), Cut(tone=0.7, angle=90, rim=0)
    )
    block.part(
        np.float32(
            [
                (door - size * 0.1, base - wall * 0.46),
                (door + front * 0.1, base - wall * 0.56),
                (door + front * 0.2 + size * 0.1, base - wall * 0.46),
            ]
        ),
        Cut(tone=0.35, rim=0),
    )
    for px in (door - size * 0.07, door + front * 0.2 + size * 0.04):
        block.part(quad(px, base - wall * 0.46, px + size * 0.03, base), Cut(tone=0.05, edge=1.4))
    block.shadow(
        np.float32(
            [
                (x, base - wall * 0.99),
                (x + front, base - wall * 0.99),
                (x + front, base - wall * 0.93),
                (x, base - wall * 0.93),
            ]
        ),
        Cut(tone=0.6, angle=60),
        5,
    )


def vase(block: Block, x: float, base: float, size: float) -> None:
    """Stand a vase of flowers at x, base (pixels)."""
    pose = Pose(block, x, base - size, size)
    rng = block.rng
    for _ in range(9):
        a, r = rng.uniform(-2.6, -0.5), rng.uniform(0.4, 0.8)
        tip = (r * np.cos(a), 0.2 + r * np.sin(a))
        pose.line([(0, 0.3), (tip[0] * 0.4, tip[1] * 0.5), tip], 2)
        rosette(pose, tip[0], tip[1], 0.3, float(rng.uniform(0.05, 0.4)))
    pose.shape(
        pts(
            "-0.12,0.22 -0.1,0.34 -0.26,0.58 -0.2,0.85 -0.12,0.98 0.12,0.98 0.2,0.85 "
            "0.26,0.58 0.1,0.34 0.12,0.22"
        ),
        Cut(tone=0.25, contrast=1.0),
    )
