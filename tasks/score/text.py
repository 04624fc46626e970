"""How much of a picture is lettering: lines of letters among its connected pieces of ink.

No model and no reading: letters stand in rows, about equally high and close together, and what an
engraver cuts does not. A cheap second opinion, independent of CLIP.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.detect.blobs import Pieces, read_pieces
from tasks.detect.page import Gray, fit, read_ink

LONG_SIDE = 768
"""Pixels on the longer side: a letter of a crop is then 6 to 30 pixels high."""
LETTER = (5, 40)
"""Lowest and highest letter looked for, in pixels."""
LINE = 5
"""Letters next to each other that make a line."""


def text_area(gray: Gray) -> float:
    """The fraction of a picture that lines of letters cover.

    Args:
        gray: (H, W) uint8.
    """
    page = read_ink(fit(gray, LONG_SIDE))
    boxes = text_lines(read_pieces(page.ink))
    covered = np.zeros(page.ink.shape, bool)
    for x0, y0, x1, y1 in boxes:
        # The white between lines belongs to the text.
        rise = (y1 - y0) // 3
        covered[max(0, y0 - rise) : y1 + rise, x0:x1] = True
    return float(covered.mean())


def text_lines(pieces: Pieces) -> list[tuple[int, int, int, int]]:
    """Boxes (x0, y0, x1, y1) of rows of letters, in pixels.

    A letter is followed by the next piece to its right that is about as high, stands at about the
    same height and no further away than the letter is high, twice.
    """
    letters = _letters(pieces)
    if len(letters) < LINE:
        return []
    follower = np.array([_next(letters, i) for i in range(len(letters))])
    started = np.ones(len(letters), bool)
    started[follower[follower >= 0]] = False
    lines = []
    for first in np.flatnonzero(started):
        row = [int(first)]
        while (after := int(follower[row[-1]])) >= 0:
            row.append(after)
        if len(row) >= LINE and _even(letters[row]):
            x, y, w, h = letters[row].T
            lines.append((int(x.min()), int(y.min()), int((x + w).max()), int((y + h).max())))
    return lines


def _letters(pieces: Pieces) -> NDArray[np.int32]:
    """(n, 4) left, top, width and height of what may be a letter, from left to right."""
    x, y, w, h, pixels = pieces.stats.T
    fill = pixels / np.maximum(w * h, 1)
    fit_for = (h >= LETTER[0]) & (h <= LETTER[1]) & (w <= 3 * h) & (fill > 0.15) & (fill < 0.95)
    fit_for[0] = False
    letters = np.stack([x, y, w, h], axis=1)[fit_for]
    return np.asarray(letters[np.argsort(letters[:, 0], kind="stable")], np.int32)


def _next(letters: NDArray[np.int32], at: int) -> int:
    """The letter that follows one in its row; -1 if none does."""
    x, y, w, h = letters[at]
    end = np.searchsorted(letters[:, 0], x + w + 2 * h, side="right")
    after = letters[at + 1 : end]
    if not len(after):
        return -1
    gap = after[:, 0] - (x + w)
    bottom = np.abs(after[:, 1] + after[:, 3] - (y + h))
    ratio = after[:, 3] / h
    fits = (gap > -0.3 * h) & (bottom <= 0.3 * h) & (ratio > 0.6) & (ratio < 1.7)
    found = np.flatnonzero(fits)
    return int(at + 1 + found[0]) if len(found) else -1


def _even(row: NDArray[np.int32]) -> bool:
    """Whether a row is of one size and wider than hatching is."""
    heights = row[:, 3]
    long = row[-1, 0] + row[-1, 2] - row[0, 0] > 3 * np.median(heights)
    return bool(long and heights.std() < 0.35 * heights.mean())
