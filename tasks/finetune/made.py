"""Prints made up where labelled scans are rare: maps, handwriting, stamps, covers, advertisements.

Patches are (H, W) uint8 with white paper. Running text is taken from real pages.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tasks.detect.page import Gray
from tasks.detect.train import synth

FONTS = (
    cv2.FONT_HERSHEY_TRIPLEX,
    cv2.FONT_HERSHEY_COMPLEX,
    cv2.FONT_HERSHEY_DUPLEX,
    cv2.FONT_HERSHEY_SCRIPT_COMPLEX,
)
WORDS = (
    *("SOAP", "PILLS", "COCOA", "TEA", "SEEDS", "CORSETS", "PIANOS", "HATS", "BOOTS", "GLOVES"),
    *("SILKS", "PATENT", "BEST", "CHEAP", "SALE", "LONDON", "PARIS", "NEW YORK", "FREE", "CURE"),
    *("HAIR", "STOVES", "CLOCKS", "BICYCLES", "INK", "PENS", "LINEN", "LACE"),
)


def noise(shape: tuple[int, int], cell: float, rng: Generator) -> NDArray[np.float32]:
    """Smooth noise with features of about `cell` pixels, mean 0 and deviation 1."""
    coarse = (max(3, round(shape[0] / cell) + 2), max(3, round(shape[1] / cell) + 2))
    seed = rng.standard_normal(coarse, np.float32)
    smooth = cv2.resize(seed, shape[::-1], interpolation=cv2.INTER_CUBIC)
    return np.asarray((smooth - smooth.mean()) / (smooth.std() + 1e-6), np.float32)


def chart(rng: Generator, height: int, width: int) -> Gray:
    """A map: coasts, rivers, hachures or contours, roads, names and a graticule."""
    patch = synth.paper(height, width)
    land = noise(patch.shape, rng.uniform(0.2, 0.6) * max(patch.shape), rng)
    land += 0.35 * noise(patch.shape, 25, rng)
    for level in np.arange(-0.5, 1.6, rng.uniform(0.4, 1.2)) if rng.random() < 0.5 else (0.0,):
        found, _ = cv2.findContours(
            (land > level).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE
        )
        cv2.drawContours(patch, found, -1, int(rng.integers(0, 90)), 1, cv2.LINE_AA)
    if rng.random() < 0.6:  # water lines along the coast
        away = cv2.distanceTransform((land <= 0).astype(np.uint8), cv2.DIST_L2, 3)
        lines = (away > 1) & (away < 16) & (np.mod(away, 4) < 1)
        patch[lines] = 110
    for _ in range(int(rng.integers(3, 12))):
        steps = np.cumsum(rng.normal(0, 5, (60, 2)) + rng.normal(0, 3, 2), axis=0)
        river = np.rint(rng.uniform(0, 1, 2) * patch.shape[::-1] + steps).astype(np.int32)
        cv2.polylines(patch, [river], False, 40, 1, cv2.LINE_AA)
    for _ in range(int(rng.integers(8, 40))):
        spot = (int(rng.uniform(0, width)), int(rng.uniform(0, height)))
        word = "".join(rng.choice(list("aeiourstlnmcdhb"), int(rng.integers(3, 9)))).title()
        cv2.putText(patch, word, spot, FONTS[1], rng.uniform(0.25, 0.7), 0, 1, cv2.LINE_AA)
        cv2.circle(patch, spot, 2, 0, -1)
    if rng.random() < 0.6:
        step = int(rng.integers(40, 120))
        patch[::step] = np.minimum(patch[::step], 120)
        patch[:, ::step] = np.minimum(patch[:, ::step], 120)
    if rng.random() < 0.7:
        cv2.rectangle(patch, (2, 2), (width - 3, height - 3), 0, int(rng.integers(1, 4)))
    return patch


def script(rng: Generator, height: int, width: int) -> Gray:
    """Handwriting: slanted lines of joined loops, words apart, some with a flourish below."""
    patch = synth.paper(height, width)
    pitch = height / rng.uniform(1.5, 26)
    size = pitch * rng.uniform(0.16, 0.26)
    slant, thick = rng.uniform(0.1, 0.9), max(1, round(size * rng.uniform(0.1, 0.35)))
    shade = int(rng.integers(0, 110))
    for row in np.arange(pitch * 0.7, height, pitch):
        x = width * rng.uniform(0.02, 0.15)
        while x < width * rng.uniform(0.7, 0.98):
            letters = int(rng.integers(2, 11))
            t = np.linspace(0, letters * 2 * np.pi, letters * 14)
            tall = np.repeat(rng.choice([1.0, 1.0, 1.0, 2.3, -1.8], letters), 14)
            loop = size * (np.sin(t) * np.where(tall > 0, tall, 1))
            loop = np.where((tall < 0) & (np.sin(t) < 0), loop * 1.9, loop)
            advance = x + t * size * rng.uniform(0.16, 0.3) + size * 0.55 * np.cos(t)
            wave = row + rng.normal(0, 0.05) * pitch - loop
            points = np.stack([advance + slant * loop, wave], axis=1)
            cv2.polylines(
                patch, [np.rint(points).astype(np.int32)], False, shade, thick, cv2.LINE_AA
            )
            x = float(advance[-1]) + size * rng.uniform(1.0, 2.2)
    if rng.random() < 0.25:
        for row in np.arange(pitch, height, pitch):
            cv2.line(patch, (0, int(row)), (width, int(row)), 190, 1)
    return patch


def stamp(rng: Generator, height: int, width: int) -> Gray:
    """A library's stamp: a ring or an oval with letters round it, worn and askew."""
    patch = synth.paper(height, width)
    center = (width / 2, height / 2)
    long = min(height, width) * rng.uniform(0.55, 0.95)
    flat = rng.uniform(0.55, 1.0)
    shade = int(rng.integers(0, 120))
    thick = max(1, round(long * rng.uniform(0.01, 0.03)))
    if rng.random() < 0.75:
        for share in (1.0, 0.93, 0.6)[: int(rng.integers(1, 4))]:
            box = (center, (long * share, long * share * flat), 0.0)
            cv2.ellipse(patch, box, shade, thick, cv2.LINE_AA)
        letters = int(rng.integers(10, 24))
        for index in range(letters):
            angle = 2 * np.pi * index / letters
            x = center[0] + 0.39 * long * np.cos(angle)
            y = center[1] + 0.39 * long * flat * np.sin(angle)
            _letter(patch, rng, (x, y), long * 0.09, shade, np.degrees(angle) + 90)
    else:
        half = (long / 2, long * flat * rng.uniform(0.15, 0.45))
        corners = [
            (int(center[0] + s * half[0]), int(center[1] + s * half[1])) for s in (-1.0, 1.0)
        ]
        cv2.rectangle(patch, corners[0], corners[1], shade, thick)
    for line in range(int(rng.integers(1, 4))):
        scale = long / 330 * rng.uniform(0.6, 1.2)
        word = " ".join(rng.choice(WORDS, int(rng.integers(1, 3))))[:12]
        (w, h), _ = cv2.getTextSize(word, FONTS[2], scale, thick)
        at = (int(center[0] - w / 2), int(center[1] + (line - 0.5) * h * 1.7))
        cv2.putText(patch, word, at, FONTS[2], scale, shade, thick, cv2.LINE_AA)
    worn = noise(patch.shape, 6, rng) > rng.uniform(0.6, 2.0)
    patch[worn] = 255
    turn = cv2.getRotationMatrix2D(center, rng.normal(0, 12), 1)
    whole = (patch.shape[1], patch.shape[0])
    return np.asarray(cv2.warpAffine(patch, turn, whole, borderValue=255), np.uint8)


def cover(rng: Generator, height: int, width: int) -> Gray:
    """A binding seen from outside: cloth, leather or marbled paper, perhaps with a title."""
    shape = synth.paper(height, width).shape
    base = rng.uniform(25, 150)
    if rng.random() < 0.35:  # marbled
        swirl = noise(shape, rng.uniform(12, 40), rng) + noise(shape, 60, rng)
        veins = np.sin(swirl * rng.uniform(3, 8))
        patch = base + 45 * veins + 12 * noise(shape, 3, rng)
    else:
        patch = base + rng.uniform(3, 14) * noise(shape, rng.uniform(1.5, 5), rng)
        patch += 10 * noise(shape, 80, rng)
        if rng.random() < 0.4:  # the weave of cloth
            ys, xs = np.mgrid[0 : shape[0], 0 : shape[1]]
            patch += 7 * np.sin(ys * rng.uniform(0.8, 2)) * np.sin(xs * rng.uniform(0.8, 2))
    cloth: Gray = np.asarray(np.clip(patch, 0, 255), np.uint8)
    gilt = int(np.clip(base + rng.choice([-1, 1]) * rng.uniform(50, 120), 0, 255))
    if rng.random() < 0.55:
        inset = int(min(shape) * rng.uniform(0.03, 0.12))
        far = (shape[1] - inset, shape[0] - inset)
        cv2.rectangle(cloth, (inset, inset), far, gilt, int(rng.integers(1, 5)))
    if rng.random() < 0.35:  # a paper label
        x, y = int(shape[1] * rng.uniform(0.2, 0.35)), int(shape[0] * rng.uniform(0.1, 0.3))
        cv2.rectangle(cloth, (x, y), (shape[1] - x, y + shape[0] // 5), 225, -1)
        gilt = 20
    for line in range(int(rng.integers(0, 4))):
        scale = shape[1] / 420 * rng.uniform(0.6, 1.5)
        word = str(rng.choice(WORDS))
        (w, h), _ = cv2.getTextSize(word, FONTS[0], scale, 2)
        at = ((shape[1] - w) // 2, int(shape[0] * 0.18 + line * h * 2))
        cv2.putText(cloth, word, at, FONTS[0], scale, gilt, 2, cv2.LINE_AA)
    if rng.random() < 0.5:  # spine or worn edges
        edge = int(shape[1] * rng.uniform(0.02, 0.1))
        cloth[:, :edge] = (cloth[:, :edge] * rng.uniform(0.3, 0.8)).astype(np.uint8)
    return cloth


def advertisement(rng: Generator, height: int, width: int, text: Gray) -> Gray:
    """An advertisement: large lettering, rules and borders, small type from a page of text."""
    patch = synth.paper(height, width)
    y = height * 0.05
    while y < height * 0.9:
        if rng.random() < 0.65:
            words = " ".join(rng.choice(WORDS, int(rng.integers(1, 4))))
            thick = int(rng.integers(1, 9))
            font = int(rng.choice(FONTS))
            (w, h), _ = cv2.getTextSize(words, font, 1.0, thick)
            scale = min(width * rng.uniform(0.5, 0.9) / w, height * 0.25 / h)
            (w, h), _ = cv2.getTextSize(words, font, scale, thick)
            at = (int((width - w) / 2), int(y + h))
            cv2.putText(patch, words, at, font, scale, 0, thick, cv2.LINE_AA)
            y += h * 1.6 + 6
        else:
            rows = int(height * rng.uniform(0.05, 0.18))
            _small_type(rng, patch, text, int(y), rows)
            y += rows + 8
        if rng.random() < 0.25:
            cv2.line(patch, (width // 4, int(y)), (3 * width // 4, int(y)), 0, 2)
            y += 8
    if rng.random() < 0.7:
        cv2.rectangle(patch, (4, 4), (width - 5, height - 5), 0, int(rng.integers(1, 6)))
    return 255 - patch if rng.random() < 0.12 else patch


def _small_type(rng: Generator, patch: Gray, text: Gray, y: int, rows: int) -> None:
    height, width = patch.shape
    rows = min(rows, height - y - 1, text.shape[0] - 1)
    columns = min(int(width * 0.85), text.shape[1] - 1)
    if rows > 4:
        top = int(rng.integers(0, text.shape[0] - rows))
        left = int(rng.integers(0, text.shape[1] - columns))
        x = (width - columns) // 2
        patch[y : y + rows, x : x + columns] = text[top : top + rows, left : left + columns]


def _letter(
    patch: Gray, rng: Generator, at: tuple[float, float], size: float, shade: int, turn: float
) -> None:
    """One letter, turned about its middle."""
    side = max(6, round(size * 2))
    tile = np.full((side, side), 255, np.uint8)
    letter = chr(int(rng.integers(ord("A"), ord("Z") + 1)))
    scale = size / 22
    (w, h), _ = cv2.getTextSize(letter, FONTS[2], scale, 1)
    where = ((side - w) // 2, (side + h) // 2)
    cv2.putText(tile, letter, where, FONTS[2], scale, shade, 1, cv2.LINE_AA)
    matrix = cv2.getRotationMatrix2D((side / 2, side / 2), -turn, 1)
    tile = cv2.warpAffine(tile, matrix, (side, side), borderValue=255).astype(np.uint8)
    y, x = int(at[1] - side / 2), int(at[0] - side / 2)
    if y >= 0 and x >= 0 and y + side <= patch.shape[0] and x + side <= patch.shape[1]:
        spot = patch[y : y + side, x : x + side]
        np.minimum(spot, tile, out=spot)
