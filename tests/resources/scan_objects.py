"""Things a fashion paper shows by themselves: furniture, needlework, small wares."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from tests.resources.scan_engrave import Block, Cut, curve, pts
from tests.resources.scan_figures import Pose, limb
from tests.resources.scan_houses import quad, vase

WOOD = Cut(tone=0.42, angle=90, rim=1.0, contrast=0.8, edge=2.0, wander=0.9)


def turned(block: Block, x: float, top: float, bottom: float, width: float) -> None:
    """Turn a leg or post on the lathe, with rings and swellings (pixels)."""
    t = np.linspace(0, 1, 40)
    half = width * (
        0.32 + 0.12 * np.cos(t * 2 * np.pi * 2) + 0.14 * (np.abs((t * 5) % 1 - 0.5) < 0.1)
    )
    half[-4:] = width * 0.3
    ys = top + (bottom - top) * t
    outline = np.vstack([np.stack([x - half, ys], 1), np.stack([x + half, ys], 1)[::-1]])
    block.part(outline.astype(np.float32), replace(WOOD, angle=0, bulge=0.25))
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        y = top + (bottom - top) * share
        block.stroke([(x - width * 0.44, y), (x, y + 3), (x + width * 0.44, y)], 1.8)


def tufting(block: Block, x0: float, y0: float, x1: float, y1: float, step: float) -> None:
    """Button a cushion: a lattice of dimples with creases between (pixels)."""
    rows = int((y1 - y0) / step)
    for r in range(rows + 1):
        y = y0 + r * step
        for x in np.arange(x0 + (r % 2) * step / 2, x1, step):
            block.solid(curve([(x - 3, y), (x, y - 3), (x + 3, y), (x, y + 3)], True))
            for dx, dy in ((-0.5, 1), (0.5, 1)):
                end = x + dx * step, y + dy * step
                if x0 <= end[0] <= x1 and end[1] <= y1:
                    block.stroke([(x, y), ((x + end[0]) / 2 + 3, (y + end[1]) / 2), end], 2.2)


def armchair(block: Block) -> None:
    """Draw an easy-chair with a buttoned back and a fringe."""
    w, h = block.width, block.height
    rng = block.rng
    stuff = Cut(tone=float(rng.uniform(0.15, 0.4)), angle=25, rim=0.5, contrast=0.8)
    block.shadow(
        np.float32(pts("0.1,0.9 0.98,0.88 0.98,0.97 0.15,0.98") * (w, h)),
        Cut(tone=0.6, angle=2),
        20,
    )
    for x in (0.2, 0.8):
        turned(block, w * x, h * 0.8, h * 0.95, w * 0.07)
    back = pts("0.22,0.62 0.17,0.25 0.28,0.08 0.5,0.04 0.72,0.08 0.83,0.25 0.78,0.62") * (w, h)
    block.part(curve(back, True), stuff)
    tufting(block, w * 0.24, h * 0.12, w * 0.77, h * 0.56, w * 0.088)
    block.part(
        curve(pts("0.2,0.6 0.5,0.54 0.8,0.6 0.84,0.72 0.5,0.75 0.16,0.72") * (w, h), True),
        replace(stuff, tone=stuff.tone * 0.6),
    )
    for side in (0, 1):
        corner, size = (w, 0) if side else (0, 0), (-w, h) if side else (w, h)
        arm = pts("0.08,0.46 0.2,0.43 0.27,0.5 0.24,0.8 0.1,0.8") * size + corner
        block.part(curve(arm, True), stuff)
        rest = pts("0.08,0.47 0.14,0.42 0.22,0.43 0.25,0.49 0.17,0.53") * size + corner
        block.part(curve(rest, True), replace(stuff, tone=0.15))
    block.part(
        curve(pts("0.12,0.72 0.5,0.745 0.88,0.72 0.88,0.79 0.5,0.82 0.12,0.79") * (w, h), True),
        replace(stuff, tone=0.5),
    )
    for x in np.linspace(w * 0.11, w * 0.89, 95):
        sag = h * 0.03 * np.sin(np.pi * (x / w))
        block.stroke(
            [
                (x, h * 0.77 + sag),
                (x + rng.normal(0, 2), h * 0.83 + sag),
                (x + rng.normal(0, 3), h * 0.88 + sag),
            ],
            2.4,
        )


def cabinet(block: Block) -> None:
    """Draw a carved cabinet with glazed doors, shelves and a vase on top."""
    w, h = block.width, block.height
    x0, x1 = w * 0.14, w * 0.86
    block.shadow(
        np.float32([(w * 0.1, h * 0.93), (w, h * 0.92), (w, h * 0.98), (w * 0.15, h * 0.98)]),
        Cut(tone=0.6, angle=2),
        16,
    )
    vase(block, w * 0.5, h * 0.2, h * 0.105)
    flat = replace(WOOD, rim=0, tone=0.36)
    for x in (x0 + 24, x1 - 24):
        turned(block, x, h * 0.86, h * 0.96, w * 0.06)
    block.part(quad(x0, h * 0.24, x1, h * 0.88), flat)
    crown = [
        (x0 - 20, h * 0.24),
        (x0 + w * 0.1, h * 0.21),
        (w * 0.5, h * 0.17),
        (x1 - w * 0.1, h * 0.21),
        (x1 + 20, h * 0.24),
    ]
    block.part(
        np.vstack([curve(crown), [(x1 + 20, h * 0.265), (x0 - 20, h * 0.265)]]).astype(np.float32),
        replace(flat, angle=0, tone=0.3),
    )
    for y in (0.6, 0.87):
        block.part(quad(x0 - 14, h * y, x1 + 14, h * (y + 0.022)), replace(WOOD, angle=0, tone=0.2))
    for n in range(2):
        a = x0 + w * 0.05 + n * (x1 - x0) * 0.5 - n * w * 0.01
        b = a + (x1 - x0) * 0.5 - w * 0.085
        block.part(
            quad(a, h * 0.3, b, h * 0.57), Cut(tone=0.6, angle=55, rim=0, edge=2.4, grain=0.2)
        )
        for y in (0.39, 0.48):
            block.part(quad(a, h * y, b, h * y + 6), Cut(tone=0.05, rim=0, edge=1))
            for _ in range(4):
                px = block.rng.uniform(a + 16, b - 16)
                block.part(
                    curve(
                        [
                            (px - 11, h * y),
                            (px - 14, h * y - 24),
                            (px, h * y - 36),
                            (px + 14, h * y - 24),
                            (px + 11, h * y),
                        ],
                        True,
                    ),
                    Cut(tone=float(block.rng.uniform(0, 0.4)), edge=1.3),
                )
        block.part(quad(a, h * 0.65, b, h * 0.84), replace(flat, tone=0.5, angle=60))
        mid = ((a + b) / 2, h * 0.745)
        for k in range(12):
            t = k * np.pi / 6
            petal = [
                (mid[0] + r * np.cos(t + d), mid[1] + r * np.sin(t + d))
                for r, d in ((8, 0), (32, -0.25), (52, 0), (32, 0.25))
            ]
            block.part(curve(petal, True), Cut(tone=0.1, angle=float(np.degrees(t)), edge=1.4))
        block.solid(
            curve(
                [(b - 14, h * 0.7), (b - 8, h * 0.712), (b - 14, h * 0.724), (b - 20, h * 0.712)],
                True,
            )
        )
    for x in (x0 + 8, w * 0.5, x1 - 8):
        turned(block, x, h * 0.27, h * 0.6, w * 0.035)


def lace(block: Block) -> None:
    """Draw a lace border: a net ground, sprays of flowers and a scalloped, picoted edge."""
    w, h, rng = block.width, block.height, block.rng
    scallops = int(rng.integers(4, 7))
    wide = w / scallops
    foot = h * 0.72
    for row, y in enumerate(np.arange(h * 0.06, foot, 8)):
        xs = np.arange(0, w + 9, 8.0)
        mesh = np.stack([xs, y + 8 * ((np.arange(xs.size) + row) % 2)], 1)
        block.ribbon(mesh, np.full(xs.size, 1.7))
    for y in (0.02, 0.05):
        block.stroke([(0, h * y), (w / 2, h * y), (w, h * y)], 4, taper=0)
    for n in range(scallops):
        cx = wide * (n + 0.5)
        a = np.linspace(0, np.pi, 14)
        for grow in (1.0, 0.86):
            path = np.stack(
                [cx - wide * 0.5 * grow * np.cos(a), foot + (h - foot) * 0.82 * grow * np.sin(a)], 1
            )
            block.ribbon(curve(path), np.full((len(path) - 1) * 10 + 1, 4.5))
        for t in np.linspace(0.05, np.pi - 0.05, 17):
            p = (cx - wide * 0.5 * np.cos(t), foot + (h - foot) * 0.82 * np.sin(t))
            cv2.circle(
                block.ink,
                (int(p[0] - 8 * np.cos(t)), int(p[1] + 9 * np.sin(t))),
                7,
                255,
                2,
                cv2.LINE_AA,
            )
        pose = Pose(block, cx, h * 0.42, wide * 0.42)
        stem = pts("0,1.3 -0.15,0.7 0.1,0.2 0,-0.5")
        pose.limb(stem, [0.08, 0.07, 0.06, 0.04], Cut(tone=0.6, angle=60, edge=1.6))
        for side in (-1, 1):
            for y in (-0.2, 0.35, 0.9):
                leaf = [
                    (0, y),
                    (side * 0.3, y - 0.32),
                    (side * 0.72, y - 0.34),
                    (side * 0.45, y + 0.02),
                ]
                pose.shape(leaf, Cut(tone=0.5, angle=side * 55, edge=2.0, contrast=0.4))
        for t in np.arange(0, 6.2, 6.2831 / 8):
            pose.shape(
                [
                    (0.12 * np.cos(t), 0.12 * np.sin(t) - 0.55),
                    (0.4 * np.cos(t - 0.3), 0.4 * np.sin(t - 0.3) - 0.55),
                    (0.52 * np.cos(t), 0.52 * np.sin(t) - 0.55),
                    (0.4 * np.cos(t + 0.3), 0.4 * np.sin(t + 0.3) - 0.55),
                ],
                Cut(tone=0.32, angle=float(np.degrees(t)), edge=2.0),
            )
        pose.shape(
            [(0.12 * np.cos(t), 0.12 * np.sin(t) - 0.55) for t in np.linspace(0, 5.3, 7)],
            Cut(tone=0.02, edge=2.4),
        )
    block.shade = np.maximum(block.shade, block.ink / 255)


def crochet(block: Block) -> None:
    """Draw a square of crochet: rings, wheels and solid stitches, seen close."""
    w, h = block.width, block.height
    cell = w / int(block.rng.integers(4, 6))
    for y in np.arange(cell / 2, h, cell):
        for x in np.arange(cell / 2, w, cell):
            for t in np.arange(0, 6.28, 6.2832 / 16):
                c, s = np.cos(t), np.sin(t)
                block.part(
                    limb(
                        [
                            (x + c * cell * 0.1, y + s * cell * 0.1),
                            (x + c * cell * 0.24, y + s * cell * 0.24),
                            (x + c * cell * 0.39, y + s * cell * 0.39),
                        ],
                        [4, cell * 0.075, 5],
                    ),
                    Cut(tone=0.12, angle=float(np.degrees(t)) + 90, edge=1.8, pitch=0.9),
                )
            for r, k in ((0.1, 10), (0.43, 30)):
                for t in np.arange(0, 6.28, 6.2832 / k):
                    c = (int(x + cell * r * np.cos(t)), int(y + cell * r * np.sin(t)))
                    cv2.circle(block.ink, c, int(cell * 0.042), 255, 2, cv2.LINE_AA)
    for y in np.arange(cell, h - 4, cell):
        for x in np.arange(cell, w - 4, cell):
            block.part(
                curve(
                    [
                        (x - cell * 0.16, y),
                        (x, y - cell * 0.16),
                        (x + cell * 0.16, y),
                        (x, y + cell * 0.16),
                    ],
                    True,
                ),
                Cut(tone=0.4, angle=45, edge=2.0),
            )
    for t in np.arange(0, w, 13.0):
        for y in (6, h - 7):
            cv2.circle(block.ink, (int(t), int(y)), 6, 255, 2, cv2.LINE_AA)
    for t in np.arange(0, h, 13.0):
        for x in (6, w - 7):
            cv2.circle(block.ink, (int(x), int(t)), 6, 255, 2, cv2.LINE_AA)
    block.shade = np.maximum(block.shade, block.ink / 255)


def shoe(block: Block, x: float, y: float, size: float) -> None:
    """Draw a lady's buttoned boot, toe to the left (pixels)."""
    pose = Pose(block, x, y, size)
    pose.shape(
        pts(
            "-0.72,0.92 -0.62,0.74 -0.3,0.6 -0.02,0.36 0,0 0.44,0.02 0.46,0.5 "
            "0.52,0.8 0.3,0.86 -0.1,0.92"
        ),
        Cut(tone=0.6, angle=65, contrast=1.0),
    )
    pose.shape(pts("0.28,0.84 0.52,0.8 0.46,1.02 0.3,1.02"), Cut(tone=0.8))
    pose.limb(pts("-0.74,0.93 -0.3,0.95 0.3,0.87"), [0.04, 0.06, 0.05], Cut(tone=0.2, edge=1.6))
    for n in range(7):
        pose.shape(
            [
                (0.12 + 0.022 * np.cos(t) - n * 0.012, 0.08 + n * 0.085 + 0.022 * np.sin(t))
                for t in np.linspace(0, 5.2, 6)
            ],
            Cut(tone=0.0, edge=1.4),
        )


def glove(block: Block, x: float, y: float, size: float) -> None:
    """Draw a long kid glove laid flat, fingers up (pixels)."""
    pose = Pose(block, x, y, size)
    kid = Cut(tone=0.12, angle=15, contrast=0.8, edge=1.8)
    for n, (dx, top) in enumerate(((-0.2, -0.3), (-0.07, -0.42), (0.07, -0.38), (0.19, -0.22))):
        pose.limb(
            [(dx * 1.3, top), (dx * 1.1, top + 0.25), (dx, 0.2)],
            [0.11, 0.13, 0.14],
            replace(kid, tone=0.1 + 0.04 * n),
            rounded=True,
        )
    pose.limb(pts("0.46,0.05 0.3,0.25 0.12,0.42"), [0.11, 0.14, 0.16], kid, rounded=True)
    pose.shape(
        pts("-0.27,0.05 0,0 0.26,0.08 0.22,0.45 0.18,0.7 0.34,1.5 -0.26,1.5 -0.2,0.7 -0.27,0.4"),
        kid,
    )
    for x in (-0.1, 0.0, 0.1):
        pose.line([(x, 0.1), (x, 0.25), (x, 0.4)], 1.6)
    for n in range(5):
        pose.line([(-0.2, 0.75 + n * 0.14), (0, 0.8 + n * 0.14), (0.24, 0.74 + n * 0.14)], 1.2)
