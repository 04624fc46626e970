"""Things made up for training: ornaments, initials, staves, tables, as black on white patches.

Real pages of these kinds are rare in any labelled set, and without them a network takes them for
pictures. Patches are (H, W) uint8 with white paper.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tasks.detect.page import Gray


def paper(height: int, width: int) -> Gray:
    """An empty white patch."""
    return np.full((max(8, height), max(8, width)), 255, np.uint8)


def flourish(rng: Generator, height: int, width: int) -> Gray:
    """A symmetric ornament of spirals, leaves and dots: a head- or tailpiece."""
    half = paper(height, width // 2)
    rows, columns = half.shape
    size = min(rows, columns)
    for _ in range(int(rng.integers(4, 14))):
        center = (rng.uniform(0, columns), rng.uniform(0.1 * rows, 0.9 * rows))
        radius = rng.uniform(0.08, 0.35) * size
        curve = _spiral(rng, center, radius)
        thickness = int(rng.integers(1, max(2, size // 30) + 1))
        cv2.polylines(half, [curve], False, 0, thickness, cv2.LINE_AA)
        if rng.random() < 0.6:
            _leaves(rng, half, curve, radius)
    if rng.random() < 0.5:
        for _ in range(int(rng.integers(3, 12))):
            spot = (int(rng.uniform(0, columns)), int(rng.uniform(0, rows)))
            cv2.circle(half, spot, int(rng.integers(1, max(2, size // 25) + 1)), 0, -1)
    whole = np.hstack([half, half[:, ::-1]])
    if rng.random() < 0.35:  # a tailpiece narrows downwards
        _taper(whole)
    elif rng.random() < 0.3:  # a block: white line on black ground
        whole = 255 - whole
    return np.ascontiguousarray(whole)


def fleurons(rng: Generator, height: int, width: int) -> Gray:
    """A band of one small ornament repeated."""
    count = int(np.clip(round(width / max(8, height) * rng.uniform(0.8, 2.0)), 2, 40))
    unit = flourish(rng, height, max(8, width // count))
    return np.ascontiguousarray(np.tile(unit, (1, count)))


def initial(rng: Generator, size: int) -> Gray:
    """A square decorated initial: foliage, a frame and a large letter."""
    patch = flourish(rng, size, size)
    patch = cv2.resize(patch, (size, size), interpolation=cv2.INTER_AREA).astype(np.uint8)
    letter = chr(int(rng.integers(ord("A"), ord("Z") + 1)))
    scale = size / 30.0 * rng.uniform(0.7, 1.0)
    weight = max(2, int(size * rng.uniform(0.05, 0.14)))
    font = int(rng.choice([cv2.FONT_HERSHEY_TRIPLEX, cv2.FONT_HERSHEY_COMPLEX]))
    (w, h), _ = cv2.getTextSize(letter, font, scale, weight)
    at = ((size - w) // 2, (size + h) // 2)
    cv2.putText(patch, letter, at, font, scale, 255, weight * 2 + 1, cv2.LINE_AA)
    cv2.putText(patch, letter, at, font, scale, 0, weight, cv2.LINE_AA)
    if rng.random() < 0.8:
        cv2.rectangle(patch, (1, 1), (size - 2, size - 2), 0, int(rng.integers(1, 4)))
    return patch


def staves(rng: Generator, height: int, width: int) -> Gray:
    """Sheet music: staves of five lines with notes, beams and bars."""
    patch = paper(height, width)
    gap = max(2.5, height / rng.uniform(40, 90))
    y = gap * 2
    while y + 6 * gap < height:
        for line in range(5):
            cv2.line(patch, (2, round(y + line * gap)), (width - 3, round(y + line * gap)), 40, 1)
        x = 4 * gap
        while x < width - 3 * gap:
            note = (round(x), round(y + rng.uniform(-0.5, 4.5) * gap))
            axes = (max(1, round(gap * 0.65)), max(1, round(gap * 0.5)))
            filled = -1 if rng.random() < 0.7 else 1
            cv2.ellipse(patch, note, axes, -20, 0, 360, 0, filled)
            stem = round(gap * 3.2) * (1 if rng.random() < 0.5 else -1)
            cv2.line(patch, (note[0] + axes[0], note[1]), (note[0] + axes[0], note[1] + stem), 0, 1)
            if rng.random() < 0.3:
                end = (round(x + 3 * gap), note[1] + stem)
                cv2.line(patch, (note[0] + axes[0], note[1] + stem), end, 0, max(2, round(gap / 2)))
            if rng.random() < 0.12:
                bar = round(x + gap)
                cv2.line(patch, (bar, round(y)), (bar, round(y + 4 * gap)), 0, 1)
            x += gap * rng.uniform(2.0, 4.5)
        y += gap * rng.uniform(8, 13)
    return patch


def table(rng: Generator, height: int, width: int, text: Gray) -> Gray:
    """A ruled table whose cells hold snippets of `text`, a page of running text."""
    patch = paper(height, width)
    columns = np.sort(rng.uniform(0, width, int(rng.integers(2, 9))))
    pitch = rng.uniform(9, 22)
    for row in np.arange(pitch, height - pitch, pitch):
        for left in columns[:-1]:
            if rng.random() < 0.7:
                _snippet(rng, patch, text, int(left) + 3, int(row), int(pitch * 0.8))
        if rng.random() < 0.5:
            cv2.line(patch, (0, int(row)), (width, int(row)), 60, 1)
    for x in columns:
        cv2.line(patch, (int(x), 0), (int(x), height), 30, int(rng.integers(1, 3)))
    cv2.rectangle(patch, (0, 0), (patch.shape[1] - 1, patch.shape[0] - 1), 0, 1)
    return patch


def display(rng: Generator, height: int, width: int, text: Gray) -> Gray:
    """Display lettering: a strip of a page of running text, enlarged."""
    rows, columns = text.shape
    zoom = rng.uniform(2.0, 5.0)
    h, w = min(rows - 1, int(height / zoom) + 4), min(columns - 1, int(width / zoom) + 4)
    y, x = int(rng.integers(0, rows - h)), int(rng.integers(0, columns - w))
    strip = text[y : y + h, x : x + w]
    size = (max(8, width), max(8, height))
    return cv2.resize(strip, size, interpolation=cv2.INTER_CUBIC).astype(np.uint8)


def _snippet(rng: Generator, patch: Gray, text: Gray, x: int, y: int, height: int) -> None:
    rows, columns = text.shape
    width = min(int(rng.integers(10, 60)), patch.shape[1] - x, columns - 1)
    height = min(height, patch.shape[0] - y, rows - 1)
    if width > 4 and height > 4:
        top, left = int(rng.integers(0, rows - height)), int(rng.integers(0, columns - width))
        patch[y : y + height, x : x + width] = text[top : top + height, left : left + width]


def _spiral(rng: Generator, center: tuple[float, float], radius: float) -> NDArray[np.int32]:
    turn = np.linspace(0, rng.uniform(2.5, 14.0), 60) * (1 if rng.random() < 0.5 else -1)
    grow = radius * np.linspace(rng.uniform(0.05, 0.3), 1.0, 60)
    angle = turn + rng.uniform(0, 6.3)
    points = np.stack([center[0] + grow * np.cos(angle), center[1] + grow * np.sin(angle)], 1)
    return np.rint(points).astype(np.int32)


def _leaves(rng: Generator, patch: Gray, curve: NDArray[np.int32], radius: float) -> None:
    size = max(2, int(radius * rng.uniform(0.15, 0.4)))
    fill = -1 if rng.random() < 0.6 else 1
    for point in curve[:: int(rng.integers(6, 15))]:
        axes = (size, max(1, int(size * rng.uniform(0.3, 0.6))))
        tilt = float(rng.uniform(0, 360))
        cv2.ellipse(patch, (int(point[0]), int(point[1])), axes, tilt, 0, 360, 0, fill, cv2.LINE_AA)


def _taper(patch: Gray) -> None:
    height, width = patch.shape
    for y in range(height):
        cut = int(0.45 * width * y / height)
        patch[y, :cut] = 255
        patch[y, width - cut :] = 255
