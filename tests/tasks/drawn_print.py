"""Prints drawn for the tests: halftones, hatching, toned paper, frames and spreads."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from tests.tasks.detect.drawn import text_page

Gray = NDArray[np.uint8]


def scene(shape: tuple[int, int] = (480, 400), seed: int = 0) -> Gray:
    """Something like a photograph: soft shapes in many tones."""
    rng = default_rng(seed)
    picture = np.full(shape, 128, np.float32)
    for _ in range(24):
        center = (int(rng.integers(0, shape[1])), int(rng.integers(0, shape[0])))
        axes = (int(rng.integers(20, shape[1] // 3)), int(rng.integers(20, shape[0] // 3)))
        tone = float(rng.uniform(30, 230))
        cv2.ellipse(picture, center, axes, float(rng.integers(0, 180)), 0, 360, tone, -1)
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), 4), np.uint8)


def through_screen(
    photograph: Gray, period: float, angle: float, rng: Generator, soft: float = 0.5
) -> Gray:
    """A photograph printed in black dots and scanned.

    Args:
        photograph: (H, W) uint8.
        period: Distance of the dots in pixels.
        angle: Of their rows, in degrees.
        rng: For the scanner's noise.
        soft: Standard deviation in pixels of the scanner's blur.
    """
    height, width = photograph.shape
    fine = 3
    big = cv2.resize(photograph, None, fx=fine, fy=fine, interpolation=cv2.INTER_CUBIC)
    y, x = np.mgrid[: height * fine, : width * fine].astype(np.float32) / fine
    turn, a = 2 * np.pi / period, np.radians(angle)
    spot = np.cos(turn * (x * np.cos(a) + y * np.sin(a)))
    spot += np.cos(turn * (y * np.cos(a) - x * np.sin(a)))
    # Thresholds spread evenly, so that the share of ink is the tone.
    ranks = np.sort(spot.ravel()[::37])
    threshold = np.searchsorted(ranks, spot).astype(np.float32) / len(ranks)
    dots = np.where(big / 255.0 < threshold * 0.92 + 0.04, 25, 228).astype(np.float32)
    scan = cv2.resize(dots, (width, height), interpolation=cv2.INTER_AREA)
    scan = cv2.GaussianBlur(scan, (0, 0), soft) + rng.normal(0, 4, scan.shape)
    return np.clip(scan, 0, 255).astype(np.uint8)


def hatched(angles: tuple[float, ...], pitch: float, shape: tuple[int, int] = (480, 400)) -> Gray:
    """Engraver's lines: sets of parallels, swelling with the tone, over parts of the block."""
    tone = scene(shape, seed=5) / 255.0
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float64)
    block = np.full(shape, 255.0)
    for number, angle in enumerate(angles):
        a = np.radians(angle)
        wander = 2.0 * np.sin(x / 60 + number) + 2.0 * np.cos(y / 75)
        wave = np.cos(2 * np.pi / pitch * (x * np.sin(a) + y * np.cos(a) + wander))
        lines = (wave > 2 * tone - 0.8 + 0.45 * number) * 220.0
        block = np.minimum(block, 255 - lines)
    return np.asarray(cv2.GaussianBlur(block, (0, 0), 0.6), np.uint8)


def on_paper(ink: Gray, paper: tuple[int, int, int], margin: int = 24) -> NDArray[np.uint8]:
    """(H, W, 3): a print on toned paper which is a little darker towards the right."""
    white = cv2.copyMakeBorder(ink, *(margin,) * 4, cv2.BORDER_CONSTANT, value=[255.0])
    shade = np.linspace(1.0, 0.92, white.shape[1])[None, :, None]
    toned = white[..., None] / 255.0 * np.array(paper) * shade
    return np.clip(np.rint(toned), 0, 255).astype(np.uint8)


def framed(shape: tuple[int, int], skew: float) -> Gray:
    """A picture in a double frame, askew by so many degrees, clockwise positive."""
    height, width = shape
    page = np.full((height + 200, width + 200), 255, np.uint8)
    picture = hatched((30.0,), 7.0, (height, width))
    cv2.rectangle(picture, (0, 0), (width - 1, height - 1), 30, 3)
    cv2.rectangle(picture, (10, 10), (width - 11, height - 11), 30, 1)
    page[100:-100, 100:-100] = picture
    middle = ((width + 199) / 2, (height + 199) / 2)
    turn = cv2.getRotationMatrix2D(middle, -skew, 1.0)
    size = (width + 200, height + 200)
    turned = cv2.warpAffine(page, turn, size, flags=cv2.INTER_CUBIC, borderValue=[255.0])
    sine = abs(np.sin(np.radians(skew)))
    across, down = round(height * sine / 2 + 12), round(width * sine / 2 + 12)
    return np.ascontiguousarray(turned[100 - down : down - 100, 100 - across : across - 100])


def spread(left: Gray, right: Gray, shadow: float, paper: int = 235) -> Gray:
    """Two pages side by side; `shadow` is how much darker the paper is in the gutter, 0 to 1."""
    both = np.hstack([left, right]).astype(np.float32) * (paper / 255.0)
    away = np.abs(np.arange(both.shape[1]) - left.shape[1])
    both *= 1.0 - shadow * np.exp(-away / (0.008 * both.shape[1]))
    return np.asarray(both, np.uint8)


def two_pages(shadow: float) -> Gray:
    """A spread of two pages of text."""
    return spread(text_page(1), text_page(2), shadow)
