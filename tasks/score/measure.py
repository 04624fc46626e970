"""What a worker does to a sample: decode it, hash it, measure its lettering, make it small.

Imports neither Prefect nor torch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from io import BytesIO

import cv2
import numpy as np
from numpy.typing import NDArray

from models.clip.pixels import decode
from models.errors import InputFault
from models.score import Measure
from tasks.detect.page import Gray, fit, flatten
from tasks.score.text import text_area

VERSION = 1
"""Raised when what is measured changes, so that nothing older is taken for it."""
THUMBNAIL = 220
"""Pixels on a thumbnail's longer side."""
LARGEST = 1 << 20
"""A side no sample has: decoding keeps every pixel."""
WORKING = 256
"""Pixels on the longer side where the margin is looked for."""
FAINTEST = 25
"""Grey levels below paper white that count as print; specks and grain are blurred below it."""
MARGIN_INK = 0.01
"""The share of a picture's darkness that may lie outside each side of its box."""


@dataclass(frozen=True)
class Seen:
    """A sample, looked at.

    Attributes:
        thumbnail: JPEG.
    """

    measure: Measure
    thumbnail: bytes


def look(name: str, data: bytes, sha256: str) -> Seen:
    """Measure a sample.

    Args:
        name: Of the file, for messages.
        data: Its bytes.
        sha256: What the manifest says they hash to.

    Raises:
        InputFault: It cannot be decoded, or is not the file that was written.
    """
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ChangedFile(f"{name} is not the file that was written.")
    picture = decode(name, data, LARGEST)
    pixels = np.asarray(picture)
    gray = np.asarray(picture.convert("L"))
    measure = Measure(
        sha256=sha256,
        pixels_sha256=hashlib.sha256(f"{pixels.shape}".encode() + pixels.tobytes()).hexdigest(),
        phash=perceptual_hash(gray),
        text_area=round(text_area(gray), 4),
    )
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    stream = BytesIO()
    picture.save(stream, "JPEG", quality=72)
    return Seen(measure, stream.getvalue())


class ChangedFile(InputFault):
    """The file is not the one the manifest speaks of."""

    kind = "changed_file"
    cure = "Make it again (python -m flows.verify --repair)."


def perceptual_hash(gray: Gray) -> str:
    """64 bits of a picture's coarse shapes, in hexadecimal.

    pHash: which of the 8 × 8 lowest frequencies of a picture of 32 × 32 pixels exceed their
    median (Zauner, 2010; ImageHash, which does the same, loads SciPy into every worker). Paper is
    brought to white and the margin cut off first: the same plate scanned twice differs most in
    these two.

    Args:
        gray: (H, W) uint8.
    """
    low = np.asarray(cv2.dct(square(gray, 32)))[:8, :8]
    return np.packbits(low > np.median(low)).tobytes().hex()


def trim(gray: Gray, side: int = WORKING) -> Gray:
    """A picture on white paper without its margin: at least the middle third each way.

    Args:
        gray: (H, W) uint8.
        side: Pixels on the longer side, margin included, of what is returned; not enlarged.
    """
    flat = flatten(fit(gray, side))
    small = fit(flat, WORKING)
    dark = np.clip(255.0 - cv2.GaussianBlur(small, (0, 0), WORKING / 100) - FAINTEST, 0, None)
    (top, bottom), (left, right) = (
        _extent(dark.sum(axis=axis), length)
        for axis, length in zip((1, 0), flat.shape, strict=True)
    )
    return np.ascontiguousarray(flat[top:bottom, left:right])


def _extent(darkness: NDArray[np.float64], length: int) -> tuple[int, int]:
    """First and last (exclusive) pixel of the picture along an axis of `length` pixels."""
    first, last = 0.0, 1.0
    if total := float(darkness.sum()):
        share = np.cumsum(darkness) / total
        first = float(np.searchsorted(share, MARGIN_INK)) / len(share)
        last = float(np.searchsorted(share, 1 - MARGIN_INK) + 1) / len(share)
    return round(min(first, 1 / 3) * length), max(1, round(max(last, 2 / 3) * length))


def small_picture(data: bytes, name: str, side: int) -> NDArray[np.float32]:
    """A sample as :mod:`tasks.score.duplicates` compares it.

    Returns:
        (side, side), without margin, paper 1 and black 0, proportions lost.
    """
    gray = np.asarray(decode(name, data, 2 * side).convert("L"))
    return square(gray, side)


def square(gray: Gray, side: int) -> NDArray[np.float32]:
    """A picture without its margin, brought to (side, side), 0 to 1."""
    small = cv2.resize(
        trim(gray, max(2 * side, WORKING)), (side, side), interpolation=cv2.INTER_AREA
    )
    return np.asarray(small, np.float32) / np.float32(255)
