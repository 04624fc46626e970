"""What paper, age and scanner do to a picture: grey in, colour out."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tasks.detect.page import Gray

Colour = NDArray[np.uint8]
"""(H, W, 3) uint8, RGB."""


def window(picture: Gray, rng: Generator, least: float) -> Gray:
    """A part of a picture at a chance place.

    Args:
        picture: (H, W).
        rng: Chance.
        least: Smallest share of each side.
    """
    height, width = picture.shape
    h, w = (max(8, round(side * rng.uniform(least, 1.0))) for side in (height, width))
    y, x = int(rng.integers(0, max(1, height - h + 1))), int(rng.integers(0, max(1, width - w + 1)))
    return np.ascontiguousarray(picture[y : y + h, x : x + w])


def scan(picture: Gray, rng: Generator) -> Colour:
    """Turn, print, age and scan a picture at chance.

    Args:
        picture: (H, W) uint8, paper light.
        rng: Chance.

    Returns:
        (H, W, 3) uint8 in the colour of some paper.
    """
    gray = _turn(picture, rng).astype(np.float32)
    draw = rng.random()
    if draw < 0.25:
        gray = cv2.GaussianBlur(gray, (0, 0), rng.uniform(0.5, 1.4)).astype(np.float32)
    low, high = np.percentile(gray[::3, ::3], (2, 95))
    if 0.25 <= draw < 0.4 and high - low > 60:
        limit = low + rng.uniform(0.45, 0.8) * (high - low)
        gray = np.where(gray > limit, 255.0, 0.0).astype(np.float32)
    if rng.random() < 0.5:
        gray = (255 * (gray / 255) ** float(np.exp(rng.normal(0, 0.3)))).astype(np.float32)
    ink, paper = (np.float32(level) for level in (rng.uniform(0, 80), rng.uniform(185, 255)))
    gray *= (paper - ink) / np.float32(255)
    gray += ink
    if rng.random() < 0.3:
        shade = np.linspace(1, rng.uniform(0.75, 1.0), gray.shape[1], dtype=np.float32)
        gray *= shade if rng.random() < 0.5 else shade[::-1]
    if rng.random() < 0.6:
        gray += rng.standard_normal(gray.shape, np.float32) * np.float32(rng.uniform(1, 10))
    tint = np.ones(3, np.float32)
    if rng.random() < 0.5:
        yellow = rng.uniform(0.0, 0.28)
        tint -= np.array([0.0, 0.4, 1.0], np.float32) * np.float32(yellow)
    return np.asarray(np.clip(gray[..., None] * tint, 0, 255), np.uint8)


def _turn(picture: Gray, rng: Generator) -> Gray:
    """Up to a few degrees, now and then by a right angle or in a mirror."""
    draw = rng.random()
    if draw < 0.06:
        picture = np.ascontiguousarray(np.rot90(picture, 1 if draw < 0.03 else 3))
    angle = float(rng.normal(0, 1.2))
    height, width = picture.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1)
    turned = cv2.warpAffine(picture, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
    return turned.astype(np.uint8)


def soften(picture: Gray, rng: Generator) -> Gray:
    """An engraving as a wash drawing or a lithograph: lines melted to tones, with a grain."""
    tone = cv2.GaussianBlur(picture, (0, 0), max(picture.shape) * rng.uniform(0.004, 0.009))
    grain = cv2.GaussianBlur(rng.standard_normal(picture.shape, np.float32), (0, 0), 0.7)
    dark = 1 - tone.astype(np.float32) / 255
    soft = tone + grain * rng.uniform(12, 54) * np.sqrt(dark)
    return np.asarray(np.clip(soft, 0, 255), np.uint8)


def screen(picture: Gray, rng: Generator) -> Gray:
    """A picture through a halftone screen: tones to dots in a grid of 45 degrees or so."""
    height, width = picture.shape
    tone = cv2.GaussianBlur(picture, (0, 0), max(picture.shape) * rng.uniform(0.003, 0.007))
    low, high = float(tone.min()), float(tone.max())
    tone = 25 + (tone.astype(np.float32) - low) * (210 / max(1.0, high - low))
    pitch, angle = rng.uniform(2.5, 6.0), np.radians(rng.uniform(30, 60))
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32)
    u = (xs * np.cos(angle) + ys * np.sin(angle)) * (2 * np.pi / pitch)
    v = (ys * np.cos(angle) - xs * np.sin(angle)) * (2 * np.pi / pitch)
    dots = 127.5 + 63 * (np.cos(u) + np.cos(v))
    hard = np.clip((tone - dots) * 3 + 127.5, 0, 255).astype(np.uint8)
    return np.asarray(cv2.GaussianBlur(hard, (0, 0), pitch * 0.35), np.uint8)
