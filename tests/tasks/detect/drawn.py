"""Pages drawn for the tests: lines of text, and pictures of several makes."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from tasks.detect.layout import LONG_SIDE

Gray = NDArray[np.uint8]
SHAPE = (1100, 800)
"""Height and width of the drawn pages."""
LETTERS = tuple("aaabcdeeeeeefghiiiklmnnnoooprrrsssttttuuvwy")


def text_page(seed: int = 0, tone: int = 255) -> Gray:
    """A page of running text: lines of made-up words."""
    page = np.full(SHAPE, tone, np.uint8)
    rng = default_rng(seed)
    for y in range(100, SHAPE[0] - 90, 20):
        line = ""
        while len(line) < 66:
            line += "".join(rng.choice(LETTERS, int(rng.integers(2, 10)))) + " "
        font = cv2.FONT_HERSHEY_COMPLEX_SMALL
        cv2.putText(page, line[:66], (90, y), font, 0.72, 0, 1, cv2.LINE_AA)
    return page


def with_engraving(page: Gray, box: tuple[int, int, int, int], seed: int = 0) -> Gray:
    """A copy with hatched shapes in a frame in place of the text; box in pixels."""
    page = page.copy()
    x0, y0, x1, y1 = box
    rng = default_rng(seed)
    page[y0 - 20 : y1 + 20, x0 - 20 : x1 + 20] = page.max()
    picture = page[y0:y1, x0:x1]
    height, width = picture.shape
    for start in range(-height, width, 5):
        cv2.line(picture, (start, 0), (start + height, height), 60, 1)
    for _ in range(14):
        center = (int(rng.integers(0, width)), int(rng.integers(0, height)))
        axes = (int(rng.integers(10, width // 4)), int(rng.integers(10, height // 4)))
        cv2.ellipse(picture, center, axes, float(rng.integers(0, 180)), 0, 360, 20, 2)
        cv2.ellipse(picture, center, (axes[0] // 2, axes[1] // 2), 0, 0, 360, 40, -1)
    cv2.rectangle(picture, (0, 0), (width - 1, height - 1), 0, 3)
    return page


def printed(seed: int, ink: Gray, box: tuple[int, int, int, int]) -> Gray:
    """A page of text with a block printed into it; box in pixels."""
    page = text_page(seed)
    x0, y0, x1, y1 = box
    page[y0 - 15 : y1 + 15, x0 - 15 : x1 + 15] = 255
    page[y0:y1, x0:x1] = 255 - cv2.resize(ink, (x1 - x0, y1 - y0), interpolation=cv2.INTER_AREA)
    return page


def as_read(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """A box in pixels of a drawn page, in those of the page as the networks read it."""
    x0, y0, x1, y1 = (round(side * LONG_SIDE / SHAPE[0]) for side in box)
    return (x0, y0, x1, y1)


def with_dark_border(page: Gray, depth: int = 40) -> Gray:
    """A copy with a black scanner lid around it."""
    page = page.copy()
    page[:depth] = page[-depth:] = page[:, :depth] = page[:, -depth:] = 8
    return page


def halftone(period: float, shape: tuple[int, int] = (512, 512)) -> Gray:
    """A soft ramp printed through a 45 degree screen of that period in pixels."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float64)
    u, v = (x + y) / np.sqrt(2), (x - y) / np.sqrt(2)
    turn = 2 * np.pi / period
    screen = 0.5 + 0.25 * (np.cos(turn * u) + np.cos(turn * v))
    tone = 0.25 + 0.5 * x / shape[1]
    dots = np.where(tone > screen, 255, 0).astype(np.uint8)
    return cv2.GaussianBlur(dots, (0, 0), 0.8).astype(np.uint8)
