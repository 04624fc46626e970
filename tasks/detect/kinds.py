"""What a region shows, told from its pixels.

At the resolution of triage most photographs cannot be told from wood engravings: the screen is
gone, and an engraver's tones are as even as a printer's. Only what is plainly smooth is called a
photograph, and everything else an engraving; users keep both by default.
"""

from __future__ import annotations

import cv2
import numpy as np

from models.records import RegionKind
from tasks.detect.page import Gray, Mask, PixelBox, fit

SMOOTH = 0.25
"""Most fine detail (share of the contrast that a blur of 1.5 pixels takes away) in a photograph.
Of 73 loose illustrations at three sizes and the pictures of the labelled pages, this and `TONED`
together name 23 % of the photographs and 3 % of the engravings."""
TONED = 0.25
"""Least share of pixels between ink and paper that lie in soft transitions."""
FAINT = 0.7
"""Light that the darkest ink of a picture gives back, as a share of the page's paper, above which a
picture without strokes is no print at all: something shows through the paper, or a plate has come
off on the leaf that faces it. Such a ghost among the labelled pages has 0.75; of the woodcuts, the
palest 0.69."""
LEAST_PAPER = 128
"""A page whose 95th percentile of grey is darker shows no paper to compare with."""
SOFT = 0.4
"""Most fine detail in such a ghost (0.26); pale woodcuts have 0.48 to 0.62."""
SYMMETRY_SIZE = 96
"""Pixels on the longer side at which mirror images are compared: shapes count, strokes do not."""
SIZE = 380
"""Pixels on the longer side at which both were set."""


def picture_kind(gray: Gray, box: PixelBox) -> RegionKind:
    """Line art or photograph; other if it is the ghost of a picture on another leaf."""
    x0, y0, x1, y1 = box
    part = fit(gray[y0:y1, x0:x1], SIZE)
    paper = np.percentile(gray[::2, ::2], 95)
    low, ink, high = np.percentile(part, (1, 2, 99))
    tone = np.clip((part - low) / max(40.0, high - low), 0, 1).astype(np.float32)
    detail = float((tone - cv2.GaussianBlur(tone, (0, 0), 1.5)).std())
    contrast = float(tone.std())
    if paper >= LEAST_PAPER and ink > FAINT * paper and detail < SOFT * contrast:
        return RegionKind.OTHER
    if detail >= SMOOTH * contrast:
        return RegionKind.ENGRAVING
    slope = cv2.magnitude(cv2.Sobel(tone, cv2.CV_32F, 1, 0), cv2.Sobel(tone, cv2.CV_32F, 0, 1))
    soft = float(((slope < 0.6) & (tone > 0.12) & (tone < 0.85)).mean())
    return RegionKind.PHOTOGRAPH if soft > TONED else RegionKind.ENGRAVING


def symmetry(flat: Gray, box: PixelBox) -> float:
    """How like its mirror image a region is, left for right, -1 to 1.

    ``flat`` is the page with its paper brought to white. The mirror image may be shifted by a
    few per cent, since boxes and scans are not quite straight.
    """
    x0, y0, x1, y1 = box
    small = fit((255 - flat[y0:y1, x0:x1]).astype(np.uint8), SYMMETRY_SIZE)
    part = cv2.GaussianBlur(small.astype(np.float32), (0, 0), 1.0)
    down, across = max(1, round(0.03 * part.shape[0])), max(2, round(0.06 * part.shape[1]))
    field = cv2.copyMakeBorder(
        part, down, down, across, across, cv2.BORDER_CONSTANT, value=float(part.mean())
    )
    alike = cv2.matchTemplate(field, part[:, ::-1].copy(), cv2.TM_CCOEFF_NORMED)
    return float(np.nan_to_num(alike, nan=-1.0, posinf=-1.0, neginf=-1.0).max())


def ruled_kind(ink: Mask, box: PixelBox) -> RegionKind:
    """Table or music: a table has long lines both ways, staves have them one way."""
    x0, y0, x1, y1 = box
    part = ink[y0:y1, x0:x1]
    down = cv2.morphologyEx(part, cv2.MORPH_OPEN, np.ones((max(8, (y1 - y0) // 4), 1), np.uint8))
    across = cv2.morphologyEx(part, cv2.MORPH_OPEN, np.ones((1, max(8, (x1 - x0) // 4)), np.uint8))
    both = np.any(down) and np.any(across)
    return RegionKind.TABLE if both else RegionKind.MUSIC
