"""Decoding the one picture of a page directly, at the resolution that is wanted.

MuPDF decodes JPEG with a library two to four times as slow as libjpeg-turbo, and JPEG 2000 always
whole, however small a picture is wanted. Both formats can be decoded at a half, a quarter and so
on in a fraction of the time. The decoders used here are silent and strict: whatever they complain
of, and whatever else is unusual, gives None, and the page is rendered.
"""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Jpeg2KImagePlugin
from pymupdf import mupdf

from tasks.mupdf_grid import Grid
from tasks.mupdf_sole import Sole

MOST_HALVINGS = 3
"""libjpeg decodes at 1/1, 1/2, 1/4 and 1/8 of the size by leaving out frequencies."""
LARGEST = 64_000_000
"""Pixels decoded at a time, of three bytes each. MuPDF can do with a part of a larger picture."""
SRGB, GREY = 16, 17
"""Enumerated colour spaces of JPEG 2000 which need no conversion (ISO 15444-1, table I.10)."""
_CODESTREAM = b"\xff\x4f\xff\x51"
_CODING_STYLE = b"\xff\x52"
_ADOBE_MARKER = b"\xff\xee"
_ADOBE = b"Adobe"


class Direct:
    """Decodes one picture; the last decoding at full size is kept for further parts of the page.

    Args:
        sole: The picture.
    """

    def __init__(self, sole: Sole) -> None:
        self._sole = sole
        self._jpeg = sole.kind == mupdf.FZ_IMAGE_JPEG
        self._whole: NDArray[np.uint8] | None = None

    @property
    def encoded_bytes(self) -> int:
        """Size of the picture as it lies in the file."""
        return len(self._sole.data)

    def render(self, grid: Grid, gray: bool) -> NDArray[np.uint8] | None:
        """The pixels of a grid.

        Args:
            grid: No finer than the picture: enlarging is left to the renderer.
            gray: One channel in place of three.

        Returns:
            (H, W) or (H, W, 3); None if the page must be rendered.
        """
        sole = self._sole
        size = (grid.down, grid.across) if sole.turned else (grid.across, grid.down)
        if size[0] > sole.width or size[1] > sole.height:
            return None
        halvings = min(sole.width // size[0], sole.height // size[1]).bit_length() - 1
        if sole.width * sole.height >> 2 * halvings > LARGEST:
            return None
        pixels: Any = self._decode(halvings, gray)
        if pixels is None:
            return None
        if pixels.shape[:2] != size[::-1]:
            pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
        box = (grid.left, grid.top, grid.right, grid.bottom)
        left, top, right, bottom = sole.stored(box, grid.across, grid.down)
        part = sole.displayed(pixels[top:bottom, left:right])
        # Nobody who writes into it may spoil the next part.
        kept = self._whole is not None and np.may_share_memory(part, self._whole)
        return part.copy() if kept else part

    def _decode(self, halvings: int, gray: bool) -> NDArray[np.uint8] | None:
        if not self._jpeg:
            return _decode_jpx(self._sole, halvings, gray)
        if halvings:
            return _decode_jpeg(self._sole, min(halvings, MOST_HALVINGS), gray)
        if self._whole is None or (self._whole.ndim == 2) != gray:
            self._whole = _decode_jpeg(self._sole, 0, gray)
        return self._whole


def _decode_jpeg(sole: Sole, halvings: int, gray: bool) -> NDArray[np.uint8] | None:
    """A JPEG at a fraction of its size; in grey its colour is not even computed."""
    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(sole.data)
        expected = "Gray" if sole.channels == 1 else "YCbCr"
        if (width, height, space) != (sole.width, sole.height, expected) or _is_rgb(sole.data):
            return None
        pixels = simplejpeg.decode_jpeg(
            sole.data,
            "GRAY" if gray else "RGB",
            min_width=-(-width >> halvings),
            min_height=-(-height >> halvings),
        )
    except ValueError:
        return None
    return np.asarray(pixels[..., 0] if gray else pixels, np.uint8)


def _is_rgb(data: bytes) -> bool:
    """Whether an Adobe marker says that a JPEG does not store luminance and colour differences.

    libjpeg believes a JFIF marker more, MuPDF this one.
    """
    at = data.find(_ADOBE)
    while at >= 0:
        # Marker, length (2), "Adobe", version (2), flags (4), transform.
        if data[at - 4 : at - 2] == _ADOBE_MARKER:
            return data[at + 11 : at + 12] == b"\x00"
        at = data.find(_ADOBE, at + 1)
    return False


def _decode_jpx(sole: Sole, halvings: int, gray: bool) -> NDArray[np.uint8] | None:
    """A JPEG 2000 picture of 8 bits at a half of its size or less.

    At its full size nothing is gained: MuPDF has the same decoder.
    """
    halvings = min(halvings, _levels(sole.data))
    if halvings < 1 or not _is_plain(sole.data):
        return None
    try:
        picture = Jpeg2KImagePlugin.Jpeg2KImageFile(io.BytesIO(sole.data))
        mode = "L" if sole.channels == 1 else "RGB"
        if picture.mode != mode or picture.size != (sole.width, sole.height):
            return None
        # An attribute of this plugin alone, which hides a method of all pictures.
        setattr(picture, "reduce", halvings)  # noqa: B010
        pixels: Any = np.asarray(picture)
    except (OSError, ValueError, SyntaxError):
        return None
    if pixels.ndim == 3 and gray:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    elif pixels.ndim == 2 and not gray:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB)
    return np.asarray(pixels, np.uint8)


def _levels(data: bytes) -> int:
    """How often a JPEG 2000 picture can be halved while decoding."""
    start = data.find(_CODESTREAM)
    style = data.find(_CODING_STYLE, start)
    if start < 0 or style < 0 or len(data) < style + 10:
        return 0
    # Marker, length (2), style (1), progression (1), layers (2), transform (1), levels.
    return data[style + 9]


def _is_plain(data: bytes) -> bool:
    """Whether a JPEG 2000 file says of itself no more than that it is sRGB or grey."""
    boxes = data[: data.find(_CODESTREAM)]
    if any(kind in boxes for kind in (b"pclr", b"cdef")):
        return False
    at = boxes.find(b"colr")
    if at < 0:
        # A bare codestream; the PDF's colour space counts.
        return not boxes
    return boxes[at + 4] == 1 and int.from_bytes(boxes[at + 7 : at + 11], "big") in (SRGB, GREY)
