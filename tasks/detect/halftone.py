"""Recognising a halftone screen, on a picture at the full resolution of its scan."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.detect.page import Gray

TILE = 256
"""Side, in pixels, of the squares whose spectra are taken."""
PERIODS = (2.0, 14.0)
"""Screen periods looked for, in pixels: 85 to 150 lines an inch scanned at 200 to 1200 dpi."""
ANGLES = (25.0, 65.0)
"""Screens of one ink are laid at 45 degrees, where the eye sees them least; scans are askew."""
PEAK = 6.0
"""How far a screen stands out of the spectrum at its distance from the centre; hatching and
letters stay under it in the second direction, which a screen must have."""


@dataclass(frozen=True)
class Screen:
    """A halftone screen.

    Attributes:
        period: Distance of its dots in pixels.
        angle: Direction of its rows in degrees, 0 to 90.
        strength: By how much the weaker of its two directions stands out of the spectrum.
    """

    period: float
    angle: float
    strength: float


def find_screen(gray: Gray) -> Screen | None:
    """The halftone screen of a picture, (H, W) uint8, or None.

    A screen is periodic in two directions at right angles with the same period; engraved
    hatching is so in one, and patterns of nets and cloth are so along the page's own axes, where
    a screen of one ink is not laid. The spectra of the tiles with most tone are averaged.
    """
    spectrum = _spectrum(gray)
    if spectrum is None:
        return None
    center = TILE // 2
    y, x = np.mgrid[-center:center, -center:center]
    distance = np.hypot(x, y)
    low, high = TILE / PERIODS[1], TILE / PERIODS[0]
    band = (distance >= low) & (distance <= high)
    relief = np.where(band, spectrum / _ring_median(spectrum, distance), 0.0)
    peak_y, peak_x = np.unravel_index(int(np.argmax(relief)), relief.shape)
    first = np.array([peak_x - center, peak_y - center], np.float64)
    across = np.array([-first[1], first[0]])
    radius = max(2, round(0.08 * float(np.hypot(*first))))
    at = np.rint(across).astype(int) + center
    window = relief[
        max(0, at[1] - radius) : at[1] + radius + 1, max(0, at[0] - radius) : at[0] + radius + 1
    ]
    strength = float(min(relief[peak_y, peak_x], window.max(initial=0.0)))
    angle = float(np.degrees(np.arctan2(first[1], first[0]))) % 90.0
    if strength < PEAK or not ANGLES[0] <= angle <= ANGLES[1]:
        return None
    length = float(np.hypot(*first))
    return Screen(period=TILE / length, angle=angle, strength=strength)


def _spectrum(gray: Gray) -> NDArray[np.float64] | None:
    """The mean amplitude spectrum, zero frequency in the middle, of up to four tiles."""
    height, width = gray.shape
    tiles = [
        gray[y : y + TILE, x : x + TILE]
        for y in range(0, height - TILE + 1, TILE)
        for x in range(0, width - TILE + 1, TILE)
    ]
    if not tiles:
        return None
    toned = sorted(tiles, key=lambda tile: -float(cv2.blur(tile, (15, 15)).std()))[:4]
    window = np.outer(np.hanning(TILE), np.hanning(TILE))
    amplitudes = [np.abs(np.fft.fft2((tile - tile.mean()) * window)) for tile in toned]
    return np.asarray(np.fft.fftshift(np.mean(amplitudes, axis=0)), np.float64)


def _ring_median(
    spectrum: NDArray[np.float64], distance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For every frequency the median of those as far from the centre (never 0)."""
    ring = np.rint(distance).astype(int)
    order = np.argsort(ring, axis=None)
    parts = np.split(spectrum.ravel()[order], np.cumsum(np.bincount(ring.ravel()))[:-1])
    medians = np.array([np.median(part) if part.size else 0.0 for part in parts])
    return np.asarray(np.maximum(medians[ring], 1e-6), np.float64)
