"""Cleaning a crop before it is fitted, as far as one asks: screen, skew and paper.

All off by default. Each step says what it did, with its figures, and does nothing where it cannot
be sure; the PDF is never touched.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from models.settings import Clean
from tasks.clean import descreen, deskew
from tasks.clean.tone import find_paper, set_paper

Pixels = NDArray[np.uint8]

WHITE = (255, 255, 255)


def clean(pixels: Pixels, settings: Clean) -> tuple[Pixels, tuple[str, ...]]:
    """Clean a crop at the resolution of its scan.

    The screen goes first, while its dots are where the press put them; the paper last, so that
    the corners that turning leaves get its tone as well.

    Args:
        pixels: (H, W) grey or (H, W, 3) RGB, with some paper around the illustration.
        settings: What to do.

    Returns:
        The picture, of the same height and width, and what was done to it, in order.
    """
    done: list[str] = []
    if settings.descreen and (screen := descreen.detect(_gray(pixels))):
        pixels = descreen.remove(pixels, screen)
        done.append(f"descreen {screen.period:.2f} px at {screen.angle:.1f} degrees")
    if settings.deskew and max(pixels.shape[:2]) <= deskew.LARGEST:
        angle = deskew.find_skew(_gray(pixels))
        if angle is not None and abs(angle) >= deskew.LEAST:
            paper = find_paper(pixels)
            fill = paper.tone if paper else _edge_tone(pixels)
            pixels = deskew.straighten(pixels, angle, fill)
            done.append(f"rotate by {angle:.2f} degrees filled with {_hex(fill)}")
    if settings.paper != "keep" and (paper := find_paper(pixels)):
        tone = WHITE if settings.paper == "white" else _rgb(settings.paper)
        before, pixels = pixels, set_paper(pixels, paper, tone)
        if not np.array_equal(before, pixels):
            done.append(f"paper {_hex(paper.tone)} to {_hex(tone)}")
    return pixels, tuple(done)


def _gray(pixels: Pixels) -> Pixels:
    if pixels.ndim == 2:
        return pixels
    return cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.uint8, copy=False)


def _edge_tone(pixels: Pixels) -> tuple[int, ...]:
    """The median of a crop's outermost pixels, where no paper was found."""
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    return tuple(int(value) for value in np.atleast_1d(np.median(edge, axis=0)))


def _hex(tone: tuple[int, ...]) -> str:
    return "#" + "".join(f"{value:02x}" for value in (tone * 3 if len(tone) == 1 else tone))


def _rgb(text: str) -> tuple[int, int, int]:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
