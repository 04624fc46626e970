"""Letterpress: words set in justified lines, and single lines of display.

The types are the Times cuts which MuPDF carries inside itself, so nothing is downloaded and the
same page comes out on every machine.
"""

from __future__ import annotations

import functools
import io

import numpy as np
import pymupdf
from PIL import Image, ImageDraw, ImageFont

ROMAN, ITALIC, BOLD = "tiro", "tiit", "tibo"

_VOWELS = "aeiouyé"


@functools.cache
def font(name: str, size: float) -> ImageFont.FreeTypeFont:
    """Load one of MuPDF's own fonts at a size in pixels."""
    return ImageFont.truetype(io.BytesIO(pymupdf.Font(name).buffer), size)


@functools.lru_cache(maxsize=6000)
def word_ink(word: str, name: str, size: float, tracking: float = 0.0) -> tuple[np.ndarray, int]:
    """Print a word.

    Args:
        word: characters, no line break.
        name: one of the fonts above.
        size: pixels.
        tracking: extra space after each letter, pixels.

    Returns:
        Its ink, (rows, columns) uint8, and the row of its baseline.
    """
    face = font(name, size)
    ascent, descent = face.getmetrics()
    width = int(np.ceil(face.getlength(word) + tracking * len(word))) + 3
    image = Image.new("L", (width, ascent + descent), 0)
    draw = ImageDraw.Draw(image)
    if tracking:
        x = 0.0
        for letter in word:
            draw.text((x, 0), letter, fill=255, font=face)
            x += face.getlength(letter) + tracking
    else:
        draw.text((0, 0), word, fill=255, font=face)
    return np.asarray(image), ascent


def stamp(ink: np.ndarray, mark: np.ndarray, x: float, y: float) -> None:
    """Print a mark's ink with its corner at x, y (pixels), cut off at the sheet's edges."""
    x, y = round(x), round(y)
    h, w = mark.shape
    y0, x0 = max(y, 0), max(x, 0)
    y1, x1 = min(y + h, ink.shape[0]), min(x + w, ink.shape[1])
    if y1 > y0 and x1 > x0:
        view = ink[y0:y1, x0:x1]
        np.maximum(view, mark[y0 - y : y1 - y, x0 - x : x1 - x], out=view)


def put_line(
    ink: np.ndarray, text: str, x: float, baseline: float, name: str, size: float,
    tracking: float = 0.0, align: str = "left",
) -> float:  # fmt: skip
    """Print one line of text; `x` is its left, middle or right end. Returns its width, pixels."""
    mark, ascent = word_ink(text, name, size, tracking)
    width = mark.shape[1] - 3
    left = x - {"left": 0, "center": width / 2, "right": width}[align]
    stamp(ink, mark, left, baseline - ascent)
    return width


class Setter:
    """Sets words line by line, justified, into whatever width each line offers."""

    def __init__(self, ink: np.ndarray, name: str, size: float) -> None:
        """Take a sheet (rows, columns) uint8, a font name and its size in pixels."""
        self.ink, self.name, self.size = ink, name, size
        self.space = size * 0.25

    def width(self, word: str) -> float:
        """Measure a word, pixels."""
        return word_ink(word, self.name, self.size)[0].shape[1] - 3.0

    def line(self, words: list[str], left: float, right: float, baseline: float) -> list[str]:
        """Set one line between two margins and return the words which did not fit."""
        room = right - left
        take: list[str] = []
        used = 0.0
        while len(take) < len(words):
            wide = self.width(words[len(take)])
            if take and used + wide + self.space * 0.8 * len(take) > room:
                break
            take.append(words[len(take)])
            used += wide
        rest = words[len(take) :]
        if rest and take:
            spare = room - used - self.space * len(take)
            head, tail = self.hyphenate(rest[0], spare)
            if head:
                take.append(head)
                used += self.width(head)
                rest = [tail, *rest[1:]]
        gap = (room - used) / (len(take) - 1) if rest and len(take) > 1 else self.space
        for word in take:
            mark, ascent = word_ink(word, self.name, self.size)
            stamp(self.ink, mark, left, baseline - ascent)
            left += mark.shape[1] - 3 + gap
        return rest

    def hyphenate(self, word: str, room: float) -> tuple[str, str]:
        """Divide a word so that its head fits the room, or give an empty head."""
        for cut in range(len(word) - 3, 2, -1):
            before, after = word[:cut], word[cut:]
            if before[-1] == "-":
                head = before
            elif before[-2:-1] in _VOWELS and before[-1] not in _VOWELS and after[0] not in _VOWELS:
                head = before + "-"
            else:
                continue
            if before.strip("“-").isalpha() and after[:3].isalpha() and self.width(head) <= room:
                return head, after
        return "", word
