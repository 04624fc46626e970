"""Straightening a picture by its frame."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

LONG_SIDE = 1200
"""Pixels of the longer side on which the angle is measured: a hundredth of a degree is a fifth of
a pixel there."""
MOST, LEAST = 5.0, 0.15
"""Degrees: more is no skew but a slanting picture; less is not seen, and turning blurs a little."""
STEP = 0.1
"""Degrees between the angles tried; the best is refined by a fit."""
BAND = 0.22
"""How far inside the crop's edge a frame is looked for, as a share of the side."""
SUPPORT = 0.5
"""Share of a side along which its frame must be seen, in one straight line."""
AGREE = 0.35
"""Degrees by which two sides of a frame may differ; paper stretches, and so do hand-set rules."""
EDGE = 0.2
"""Contrast of an edge, as a share of the picture's own."""
LARGEST = 32766
"""OpenCV turns no picture with a longer side than this."""


def find_skew(gray: Pixels) -> float | None:
    """The angle by which a picture with a frame lies askew, (H, W) uint8.

    The frame, or the edge of a photograph, is looked for along each of the four sides; at least
    two must agree. Straight lines within the picture say nothing: roofs and floors slant.

    Returns:
        Degrees, clockwise positive, at most 5 either way; None without a frame to be sure of.
    """
    height, width = gray.shape
    scale = min(1.0, LONG_SIDE / max(height, width))
    size = (round(width * scale), round(height * scale))
    if min(size) < 64:
        return None
    small = cv2.resize(gray, size, interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (3, 3), 0)
    low, high = np.percentile(small[::2, ::2], (5, 95))
    if high - low < 24:
        return None
    angles = sorted(
        angle
        for band in _bands(small)
        if (angle := _line(band, EDGE * float(high - low))) is not None
    )
    # The largest group of sides that agree; of equal ones the one that agrees best.
    groups = [
        angles[i : j + 1]
        for i in range(len(angles))
        for j in range(i + 1, len(angles))
        if angles[j] - angles[i] <= AGREE
    ]
    if not groups:
        return None
    best = max(groups, key=lambda group: (len(group), group[0] - group[-1]))
    return float(np.mean(best))


def straighten(pixels: Pixels, angle: float, paper: tuple[int, ...]) -> Pixels:
    """Turn a picture by `angle` degrees counter-clockwise about its middle, same shape.

    What comes in at the corners is filled with the tone of the paper. What goes out lay in the
    corners of the box, outside of the frame: a box drawn round a slanting picture is larger than
    the picture.

    Args:
        pixels: (H, W) or (H, W, 3) uint8.
        angle: What :func:`find_skew` found.
        paper: Tone of the paper, one value a channel.
    """
    height, width = pixels.shape[:2]
    turn = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0)
    turned = cv2.warpAffine(
        pixels,
        turn,
        (width, height),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=[float(value) for value in paper],
    )
    return turned.astype(np.uint8, copy=False)


def _bands(gray: NDArray[np.generic]) -> Iterator[NDArray[np.float32]]:
    """The four sides, each turned so that its frame runs from left to right, as edge strengths."""
    upright = gray.astype(np.float32)
    # Seen from the right-hand side, a picture turned clockwise is turned clockwise still.
    for quarter in range(4):
        side = np.rot90(upright, quarter)
        rows = max(8, round(BAND * side.shape[0]))
        band = np.ascontiguousarray(side[:rows])
        strength = np.abs(cv2.Sobel(band, cv2.CV_32F, 0, 1, ksize=3)) / 4.0
        yield strength.astype(np.float32, copy=False)


def _line(edges: NDArray[np.float32], least: float) -> float | None:
    """The angle in degrees, clockwise positive, of the straightest long edge in a band."""
    # Edge pixels are the crests: the strongest of their neighbours above and below.
    above, below = np.roll(edges, 1, axis=0), np.roll(edges, -1, axis=0)
    crest = (edges >= least) & (edges > above) & (edges >= below)
    crest[[0, -1]] = False
    y, x = np.nonzero(crest)
    height, width = edges.shape
    if len(x) < SUPPORT * width:
        return None
    offset = height + width
    best_count, best_angle, best_row = 0, 0.0, 0
    for angle in np.arange(-MOST - STEP, MOST + 1.5 * STEP, STEP):
        rows = np.rint(y - x * np.tan(np.radians(angle))).astype(np.int64) + offset
        counts = np.bincount(rows)
        row = int(counts.argmax())
        if counts[row] > best_count:
            best_count, best_angle, best_row = int(counts[row]), float(angle), row - offset
    off = y - x * np.tan(np.radians(best_angle)) - best_row
    near = np.abs(off) <= 1.5
    if len(np.unique(x[near])) < SUPPORT * width:
        return None
    # Where a parabola through the three strengths has its top: whole rows would give a step of a
    # tenth of a degree on a small picture.
    bend = above[y, x] - 2 * edges[y, x] + below[y, x]
    exact = y + 0.5 * (above[y, x] - below[y, x]) / np.minimum(bend, -1e-3)
    slope = float(np.polyfit(x[near], exact[near], 1)[0])
    angle = float(np.degrees(np.arctan(slope)))
    return angle if abs(angle) <= MOST else None
