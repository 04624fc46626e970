"""Taking a halftone screen out of a picture, and out of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.detect.halftone import Screen, find_screen

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]

REACH = 1.5
"""Standard deviation, in periods, of the window in which a screen's strength is measured."""
AMPLITUDE = 4.0
"""Grey levels by which a screen must swing, half of what one sees at arm's length; weaker ones
are mostly too fine for the scan and gone with the first downsizing."""
DOTS = 0.65
"""The weaker of the two directions against the stronger, at least. Dots swing alike in both (0.75
to 0.95 measured), hatching in one, nets and cross-hatching now in one, now in the other (0.5)."""
SHARE = 0.18
"""What the screen must be of all fine contrast; nets reach 0.1, screens 0.25 to 0.8."""
CUTOFF = 0.5
"""Cut-off of the low-pass filter, as a share of the screen's frequency. A screen carries no detail
finer than two of its dots. Of Gaussians, tents and windowed sines at several cut-offs this came
nearest to the photograph beneath without a trace of the screen (``docs/cleaning.md``)."""
LOBES = 3
"""Lobes of the windowed sine (Lanczos)."""
WINDOW = 512
"""Side, in pixels, of the nine parts of a picture on which the screen is judged."""
STRIP = 512
"""Rows worked at a time, so that a large crop needs no copies in floating point."""


def detect(gray: Pixels) -> Screen | None:
    """The screen of a picture, (H, W) uint8 at the scan's resolution, if one is to be taken out.

    Where the spectrum shows a lattice, its two directions are measured in place: a screen swings
    equally in both, everywhere between black and white.
    """
    screen = find_screen(gray)
    if screen is None:
        return None
    weak, strong, spread = [], [], []
    for part in _parts(gray):
        first, second, deviation, toned = _swing(part, screen)
        weak.append(np.minimum(first, second)[toned])
        strong.append(np.maximum(first, second)[toned])
        spread.append(deviation[toned])
    lower, upper, all_of_it = (np.concatenate(values) for values in (weak, strong, spread))
    if lower.size == 0 or np.median(lower) < AMPLITUDE:
        return None
    dots = np.median(lower / (upper + 1.0)) >= DOTS
    share = np.median(lower / (all_of_it + 1.0)) >= SHARE
    return screen if dots and share else None


def remove(pixels: Pixels, screen: Screen) -> Pixels:
    """Even the dots out to tones, only where the screen is: (H, W) or (H, W, 3) uint8.

    Line drawings around and between the halftones keep their pixels.
    """
    kernel = _low_pass(screen.period)
    halo = round(8 * screen.period) + len(kernel)
    done = pixels.copy()
    for top in range(0, len(pixels), STRIP):
        bottom = min(len(pixels), top + STRIP)
        above, below = max(0, top - halo), min(len(pixels), bottom + halo)
        part = pixels[above:below]
        gray = part if part.ndim == 2 else cv2.cvtColor(part, cv2.COLOR_RGB2GRAY).astype(np.uint8)
        mask = _mask(gray, screen)
        if not mask.any():
            continue
        smooth = cv2.sepFilter2D(part, -1, kernel, kernel, borderType=cv2.BORDER_REFLECT_101)
        if part.ndim == 3:
            mask = mask[..., None]
        mixed = part + mask * (smooth.astype(np.float32) - part)
        done[top:bottom] = np.rint(mixed)[top - above : bottom - above]
    return done


def _mask(gray: Pixels, screen: Screen) -> Floats:
    """Where the screen is, 0 to 1: (H, W), with soft edges."""
    height, width = gray.shape
    # A coarse screen is as plain at a fraction of the size, and there it costs a fraction.
    shrink = max(1, int(screen.period // 3))
    size = (max(1, width // shrink), max(1, height // shrink))
    small = cv2.resize(gray, size, interpolation=cv2.INTER_AREA).astype(np.uint8)
    period = screen.period / shrink
    first, second, _, _ = _swing(small, replace(screen, period=period))
    weak, strong = np.minimum(first, second), np.maximum(first, second)
    there = ((weak >= AMPLITUDE / 2) & (weak >= DOTS * strong)).astype(np.uint8)
    side = 2 * round(2 * period) + 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    # Specks of lines that cross at right angles go; highlights and shadows, where the dots are
    # all but gone, are filled in.
    opened = cv2.morphologyEx(there, cv2.MORPH_OPEN, disc)
    closed = cv2.morphologyEx(opened, cv2.MORPH_CLOSE, disc)
    soft = cv2.GaussianBlur(closed.astype(np.float32), (0, 0), period)
    return cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.float32)


def _swing(gray: Pixels, screen: Screen) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """How strongly a screen swings at every pixel.

    Returns:
        Its amplitude in grey levels along either direction, the standard deviation of all that
        is finer than the window, and a mask of where there is tone: neither black nor white.
    """
    sigma = REACH * screen.period
    radius = int(np.ceil(3 * sigma))
    at = np.arange(-radius, radius + 1, dtype=np.float64)
    bell = np.exp(-at * at / (2 * sigma * sigma))
    bell /= bell.sum()
    mean = cv2.sepFilter2D(gray.astype(np.float32), -1, bell, bell)
    detail = gray - mean
    angle = np.radians(screen.angle)
    amplitudes = []
    for x, y in ((np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))):
        # exp(i(a + b)) = exp(ia)·exp(ib): the window's wave falls apart into rows and columns.
        across, down = (2 * np.pi / screen.period * part * at for part in (x, y))
        cos_x, sin_x, cos_y, sin_y = (
            bell * wave for wave in (np.cos(across), np.sin(across), np.cos(down), np.sin(down))
        )
        real = cv2.sepFilter2D(detail, -1, cos_x, cos_y) - cv2.sepFilter2D(detail, -1, sin_x, sin_y)
        imag = cv2.sepFilter2D(detail, -1, cos_x, sin_y) + cv2.sepFilter2D(detail, -1, sin_x, cos_y)
        amplitudes.append((2.0 * np.hypot(real, imag)).astype(np.float32))
    deviation = np.sqrt(cv2.sepFilter2D(detail * detail, -1, bell, bell)).astype(np.float32)
    low, high = np.percentile(mean[::4, ::4], (2, 98))
    toned = (mean > low + 0.15 * (high - low)) & (mean < high - 0.15 * (high - low))
    return amplitudes[0], amplitudes[1], deviation, toned


def _low_pass(period: float) -> NDArray[np.float64]:
    """One row of a separable Lanczos filter that passes what is slower than two dots."""
    step = 2.0 * CUTOFF / period
    radius = int(np.ceil(LOBES / step))
    at = np.arange(-radius, radius + 1) * step
    kernel = np.where(np.abs(at) < LOBES, np.sinc(at) * np.sinc(at / LOBES), 0.0)
    return np.asarray(kernel / kernel.sum(), np.float64)


def _parts(gray: Pixels) -> Iterator[Pixels]:
    """Nine squares spread over the picture, or fewer where they would overlap."""
    height, width = gray.shape
    for top in _starts(height):
        for left in _starts(width):
            yield gray[top : top + WINDOW, left : left + WINDOW]


def _starts(length: int) -> list[int]:
    count = min(3, -(-length // WINDOW))
    return [round(i * max(0, length - WINDOW) / max(1, count - 1)) for i in range(count)]
