"""Scenery for the engraver: skies, trees, hills and water, and edges which fray into the page."""

from __future__ import annotations

import cv2
import numpy as np

from tests.resources.scan_engrave import Block, Cut, curve, smooth_noise
from tests.resources.scan_figures import limb
from tests.resources.scan_houses import quad


def vignette(block: Block) -> np.ndarray:
    """Make an oval mask which frays at its edge, (height, width) float32, 1 inside."""
    h, w = block.height, block.width
    ys, xs = np.mgrid[-1 : 1 : h * 1j, -1 : 1 : w * 1j].astype(np.float32)
    r = (xs**4 + ys**4) ** 0.25 + 0.05 * smooth_noise((h, w), w / 9, block.rng)
    r += 0.03 * smooth_noise((h, w), w / 40, block.rng)
    return np.clip((0.98 - r) / 0.2, 0, 1)


def fray(block: Block, mask: np.ndarray) -> None:
    """Take the ink away outside a vignette, lines thinning out rather than fading to grey."""
    h, w = mask.shape
    # Noise drawn out sideways, so that lines break off in strokes and not in specks.
    noise = smooth_noise((h, w // 7 + 1), block.pitch * 0.9, block.rng)
    noise = 0.5 + 0.32 * cv2.resize(noise, (w, h), interpolation=cv2.INTER_LINEAR)
    keep = np.clip((mask - noise * (mask < 0.999)) * 6 + 0.5, 0, 1)
    keep[mask <= 0] = 0
    block.ink = (block.ink * keep).astype(np.uint8)
    block.shade *= mask


def sky(block: Block, horizon: float, cloud: float = 1.0, dark: float = 0.42) -> None:
    """Rule a sky down to the horizon (pixels), its lines swelling between the clouds."""
    h, w = block.height, block.width
    ys = np.arange(h, dtype=np.float32)[:, None] / horizon
    # Clouds lie flat: noise made for a taller sky is pressed down to this one.
    heap = smooth_noise((h * 2, w), w / 4, block.rng) + 0.6 * smooth_noise(
        (h * 2, w), w / 12, block.rng
    )
    heap = cv2.resize(heap, (w, h), interpolation=cv2.INTER_AREA)
    heap = cv2.GaussianBlur(heap, (0, 0), w / 160)
    tone = dark * (1.05 - 0.75 * ys) + 0.2 * cloud * np.clip(heap, -1.4, 0.9) - 0.03
    block.wash(np.clip(tone, 0, 0.7) * (ys < 1), Cut(angle=0, pitch=1.05, wander=0.25))


def foliage(block: Block, x: float, y: float, size: float, tone: float) -> None:
    """Draw one clump of leaves, lobed, dark beneath."""
    rng = block.rng
    a = np.linspace(0, 2 * np.pi, 46, endpoint=False)
    r = size * (
        0.82
        + 0.13 * np.abs(np.sin(a * rng.uniform(4, 7) + rng.uniform(0, 6)))
        + rng.normal(0, 0.05, a.size)
    )
    edge = np.stack([x + r * np.cos(a), y + r * np.sin(a) * 0.78], 1).astype(np.float32)
    block.part(
        edge,
        Cut(
            tone=tone,
            grain=0.32,
            angle=float(rng.uniform(20, 70)),
            wander=2.2,
            edge=0,
            contrast=0.75,
            pitch=0.95,
        ),
    )
    for _ in range(int(size * 0.9)):
        d, t = size * np.sqrt(rng.random()), rng.uniform(0, 2 * np.pi)
        px, py = x + d * np.cos(t), y + d * np.sin(t) * 0.78
        lit = (np.cos(t) + np.sin(t)) * d / size
        s = rng.uniform(4, 9)
        ink = 255 if rng.random() < 0.55 + 0.35 * lit else 0
        block.stroke(
            [
                (px - s, py + s * 0.3),
                (px - s * 0.3, py - s * 0.5),
                (px + s * 0.5, py - s * 0.2),
                (px + s, py + s * 0.5),
            ],
            rng.uniform(1.2, 2.4),
            ink,
        )


def tree(block: Block, x: float, base: float, height: float, tone: float = 0.4) -> None:
    """Draw a broad-leaved tree standing at x, base (pixels)."""
    rng = block.rng
    bark = Cut(tone=0.5, angle=80, contrast=0.9, edge=1.8, wander=1.0)
    lean = rng.uniform(-0.06, 0.06) * height
    block.part(
        limb(
            [(x, base), (x + lean * 0.4, base - height * 0.3), (x + lean, base - height * 0.7)],
            [height * 0.09, height * 0.055, height * 0.02],
        ),
        bark,
    )
    for side in (-1, 1):
        block.part(
            limb(
                [
                    (x + lean * 0.4, base - height * 0.35),
                    (x + side * height * 0.14, base - height * 0.55),
                ],
                [height * 0.04, height * 0.012],
            ),
            bark,
        )
    spots = []
    for _ in range(22):
        t, d = rng.uniform(0, 2 * np.pi), rng.random() ** 0.7
        spots.append(
            (
                x + lean + d * np.cos(t) * height * 0.3,
                base - height * 0.68 + d * np.sin(t) * height * 0.27,
            )
        )
    for px, py in sorted(spots, key=lambda p: -p[1]):
        foliage(
            block,
            px,
            py,
            height * rng.uniform(0.11, 0.16),
            tone + 0.25 * (py - base + height) / height - 0.1,
        )


def fir(block: Block, x: float, base: float, height: float) -> None:
    """Draw a fir with drooping boughs."""
    rng = block.rng
    block.stroke([(x, base), (x, base - height * 0.5), (x, base - height)], height * 0.03)
    for t in np.linspace(0.06, 0.95, int(height / 7)):
        y, reach = base - height * (1 - t), height * 0.24 * t
        for side in (-1, 1):
            r = reach * rng.uniform(0.6, 1.1)
            for k in range(4):
                block.stroke(
                    [
                        (x, y - 2 * k),
                        (x + side * r * 0.5, y + r * 0.1 + k),
                        (x + side * r * (1 - 0.12 * k), y + r * 0.4 + k * 3),
                    ],
                    rng.uniform(1.3, 2.8),
                )


def grass(block: Block, x0: float, x1: float, y0: float, y1: float, count: int) -> None:
    """Tuft a strip of ground (pixels) with grass, larger towards the viewer."""
    rng = block.rng
    for _ in range(count):
        near = rng.random()
        x, y = rng.uniform(x0, x1), y0 + (y1 - y0) * near
        for _ in range(int(rng.integers(3, 7))):
            s, lean = (5 + 14 * near) * rng.uniform(0.6, 1.2), rng.uniform(-0.7, 0.7)
            block.stroke(
                [(x, y), (x + lean * s * 0.3, y - s * 0.6), (x + lean * s, y - s)],
                rng.uniform(1.1, 2.0),
            )


def ground(block: Block, top: float, tone: float = 0.35, grain: float = 0.22) -> None:
    """Lay rolling ground from a line (pixels) to the foot of the block, and cover what is there."""
    w, h = block.width, block.height
    xs = np.linspace(-10, w + 10, 9)
    crest = [(x, top + block.rng.normal(0, h * 0.012)) for x in xs]
    shape = np.vstack([curve(crest), [(w + 10, h + 10), (-10, h + 10)]]).astype(np.float32)
    block.part(shape, Cut(tone=tone, angle=4, grain=grain, rim=0, edge=0, wander=1.6, pitch=1.15))


def hills(block: Block, base: float, height: float, tone: float) -> None:
    """Raise a range of distant hills on a line (pixels)."""
    w, rng = block.width, block.rng
    xs = np.linspace(-20, w + 20, 12)
    crest = [(x, base - height * rng.uniform(0.25, 1.0)) for x in xs]
    shape = np.vstack([curve(crest), [(w + 20, base + 4), (-20, base + 4)]]).astype(np.float32)
    block.part(
        shape, Cut(tone=tone, angle=-38, rim=0.8, contrast=1.0, edge=1.2, pitch=0.9, bulge=0.8)
    )


def water(block: Block, top: float, bottom: float) -> None:
    """Draw still water between two levels (pixels) in broken level strokes."""
    rng, w = block.rng, block.width
    block.part(
        quad(-5, top, w + 5, bottom),
        Cut(tone=0.2, angle=0, rim=0, edge=0, grain=0.3, wander=0.15, pitch=1.0),
    )
    for _ in range(170):
        near = rng.random() ** 0.7
        y, x, s = (
            top + (bottom - top) * near,
            rng.uniform(0, w),
            (20 + 90 * near) * rng.uniform(0.5, 1.5),
        )
        block.stroke(
            [(x - s, y), (x, y + rng.uniform(-2, 2)), (x + s, y)],
            rng.uniform(1.2, 3.2),
            int(rng.choice([0, 255, 255])),
        )


def boat(block: Block, x: float, y: float, size: float) -> None:
    """Float a sailing boat at x, y (pixels)."""
    hull = curve(
        [
            (x - size, y - size * 0.16),
            (x - size * 0.7, y + size * 0.1),
            (x + size * 0.6, y + size * 0.1),
            (x + size * 0.95, y - size * 0.22),
            (x, y - size * 0.1),
        ],
        True,
    )
    block.stroke([(x, y), (x, y - size), (x, y - size * 2.2)], size * 0.05, taper=0.3)
    block.part(
        curve(
            [
                (x + 4, y - size * 2.1),
                (x + size * 0.5, y - size * 1.3),
                (x + size * 0.9, y - size * 0.25),
                (x + 4, y - size * 0.3),
            ],
            True,
        ),
        Cut(tone=0.08, angle=80),
    )
    block.part(
        curve(
            [
                (x - 4, y - size * 1.9),
                (x - size * 0.4, y - size * 1.0),
                (x - size * 0.8, y - size * 0.3),
                (x - 4, y - size * 0.3),
            ],
            True,
        ),
        Cut(tone=0.3, angle=80),
    )
    block.part(hull, Cut(tone=0.75, angle=5))
    block.shadow(
        np.float32(
            [
                (x - size * 0.9, y + size * 0.1),
                (x + size * 0.9, y + size * 0.1),
                (x + size * 0.5, y + size * 0.7),
                (x - size * 0.5, y + size * 0.7),
            ]
        ),
        Cut(tone=0.6, wander=0.1),
        size * 0.1,
    )
