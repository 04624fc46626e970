"""Printers' ornaments: initial letters, head and tail pieces, mastheads.

They are decoration, not illustrations, and so never count as pictures.
"""

from __future__ import annotations

import cv2
import numpy as np

from tests.resources import scan_text as text
from tests.resources.scan_engrave import Block, Cut, curve


def scroll(x: float, y: float, size: float, start: float, turn: int) -> np.ndarray:
    """Trace a spiral from its rim inwards, (n, 2) pixels; `turn` is 1 or -1."""
    t = np.linspace(0, 1, 22)
    a = start + turn * t * 2 * np.pi * 1.4
    r = size * (1 - t) ** 0.9
    return np.stack([x + r * np.cos(a), y + r * np.sin(a)], 1)


def leaf(block: Block, x: float, y: float, size: float, angle: float, ink: int) -> None:
    """Draw a pointed leaf growing from x, y at an angle (radians)."""
    c, s = np.cos(angle), np.sin(angle)
    shape = np.array([(0, 0), (0.4, -0.22), (1, 0), (0.4, 0.22)]) * size
    block.solid(curve(shape @ np.array([[c, s], [-s, c]]) + (x, y), closed=True), ink)


def vine(block: Block, ink: int) -> None:
    """Fill a block with a waving stem, spirals and leaves, mirrored about its middle."""
    w, h, rng = block.width, block.height, block.rng
    waves = max(round(w / h / 1.7), 1)
    step = w / 2 / waves
    for side in (-1, 1):
        mid = w / 2
        stem = [
            (mid + side * step * (k / 6), h / 2 + h * 0.26 * np.sin(k / 6 * np.pi))
            for k in range(6 * waves)
        ]
        block.stroke(stem, h * 0.045, ink, 0.2)
        for k in range(waves):
            cx, up = mid + side * step * (k + 0.5), -1 if k % 2 else 1
            spiral = scroll(cx, h / 2 - up * h * 0.08, h * 0.32, up * np.pi / 2, side * up)
            block.stroke(spiral, h * 0.055, ink, 0.5)
            for n in range(1, 19, 3):
                out = np.arctan2(*(spiral[n] - (cx, h / 2 - up * h * 0.08))[::-1])
                leaf(block, *spiral[n], h * rng.uniform(0.12, 0.2), out + side * 0.6, ink)
            for k2 in range(3):
                block.stroke(
                    [
                        (cx + side * step * 0.4, h * 0.5),
                        (cx + side * step * (0.5 + 0.1 * k2), h * (0.5 + up * 0.2)),
                        (cx + side * step * (0.3 + 0.2 * k2), h * (0.5 + up * 0.36)),
                    ],
                    h * 0.02,
                    ink,
                )
    block.part(
        curve(
            [
                (w / 2 - h * 0.2, h / 2),
                (w / 2, h * 0.18),
                (w / 2 + h * 0.2, h / 2),
                (w / 2, h * 0.82),
            ],
            True,
        ),
        Cut(tone=0.2, angle=45, edge=2),
    )


def headpiece(width: int, height: int, rng: np.random.Generator) -> np.ndarray:
    """Engrave a band of white scrolls on black, (height, width) uint8 ink."""
    block = Block(width, height, rng, 4.0)
    block.ink[:] = 255
    vine(block, 0)
    cv2.rectangle(block.ink, (0, 0), (width - 1, height - 1), 0, 9)
    cv2.rectangle(block.ink, (1, 1), (width - 2, height - 2), 255, 2)
    return block.ink


def tailpiece(width: int, height: int, rng: np.random.Generator) -> np.ndarray:
    """Engrave a small scrolled ornament, (height, width) uint8 ink."""
    block = Block(width, height, rng, 4.0)
    vine(block, 255)
    return block.ink


def initial(letter: str, side: int, rng: np.random.Generator) -> np.ndarray:
    """Cut an initial in white out of a square of scrollwork, (side, side) uint8 ink."""
    block = Block(side, side, rng, 4.0)
    block.ink[:] = 255
    for corner in range(4):
        x, y = side * (0.26 + 0.48 * (corner % 2)), side * (0.26 + 0.48 * (corner // 2))
        spiral = scroll(x, y, side * 0.22, float(rng.uniform(0, 6)), int(rng.choice([-1, 1])))
        block.stroke(spiral, 3, 0, 0.4)
        for n in range(0, 18, 4):
            leaf(block, *spiral[n], side * 0.11, float(rng.uniform(0, 6)), 0)
    mark, _ = text.word_ink(letter, text.BOLD, side * 1.02)
    ys, xs = np.nonzero(mark > 128)
    glyph = mark[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
    plate = np.zeros_like(block.ink)
    text.stamp(plate, glyph, (side - glyph.shape[1]) / 2, (side - glyph.shape[0]) / 2)
    tile = np.maximum(block.ink, cv2.dilate(plate, np.ones((7, 7), np.uint8)))
    tile = np.minimum(tile, 255 - plate)
    cv2.rectangle(tile, (3, 3), (side - 4, side - 4), 0, 2)
    cv2.rectangle(tile, (0, 0), (side - 1, side - 1), 255, 2)
    return tile


def masthead(title: str, width: int, rng: np.random.Generator) -> np.ndarray:
    """Engrave a title in shaded open letters as wide as the type area, (rows, columns) uint8."""
    size = width * 0.13
    mark, _ = text.word_ink(title, text.BOLD, size)
    scale = min(width / mark.shape[1], 1.0)
    mark = cv2.resize(mark, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    deep = max(int(size * scale * 0.07), 4)
    glyph = np.pad(mark, ((4, deep + 6), (4, deep + 6)))
    block = Block(glyph.shape[1], glyph.shape[0], rng, max(size * scale / 34, 3.4))
    cast = np.zeros_like(glyph)
    for step in range(deep + 1):
        moved = np.roll(glyph, (step, step), (0, 1))
        cast = np.maximum(cast, moved)
    down = np.linspace(0.25, 0.85, glyph.shape[0], dtype=np.float32)[:, None]
    face = block.hatch(np.broadcast_to(down, glyph.shape), Cut(wander=0.02), None, (0, 0))
    solid = cast.astype(np.float32)
    face_ink = np.maximum(face * 255, 0)
    inner = cv2.erode(glyph, np.ones((3, 3), np.uint8)).astype(np.float32) / 255
    ring = glyph.astype(np.float32) / 255
    page = solid * (1 - ring) + ring * (255 * (1 - inner) + inner * face_ink)
    return page.astype(np.uint8)
