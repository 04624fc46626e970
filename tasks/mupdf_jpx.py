"""A quick look at JPEG 2000 scans.

MuPDF decodes JPEG 2000 whole, however small a picture is wanted, and for such a scan that is nine
tenths of the time triage takes. The format can be decoded at a half, a quarter and so on in a
fraction of that, which this does where the page is provably nothing but one such picture.
"""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pymupdf import mupdf

FIT = 0.002
"""By how much of the page a picture's edges may miss the page's own."""
SRGB, GREY = 16, 17
"""Enumerated colour spaces of JPEG 2000 which need no conversion (ISO 15444-1, table I.10)."""
DEVICE = ("DeviceGray", "DeviceRGB")
_CODESTREAM = b"\xff\x4f\xff\x51"
_CODING_STYLE = b"\xff\x52"


class _OnlyPicture(mupdf.FzDevice2):  # type: ignore[misc]
    """Finds the one picture of a display list that draws nothing else."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__()
        for name in (
            "fill_path", "stroke_path", "clip_path", "clip_stroke_path", "fill_text",
            "stroke_text", "clip_text", "clip_stroke_text", "fill_shade", "fill_image",
            "fill_image_mask", "clip_image_mask", "begin_mask", "begin_group", "begin_tile",
        ):  # fmt: skip
            getattr(self, f"use_virtual_{name}")()
            if name != "fill_image":
                setattr(self, name, self._other)
        self.use_virtual_set_default_colorspaces()
        self.size = (width, height)
        self.image: Any = None
        self.alone = True

    def _other(self, *_: Any) -> None:
        self.alone = False

    def set_default_colorspaces(self, _ctx: Any, spaces: Any) -> None:
        names = (mupdf.ll_fz_default_gray(spaces).name, mupdf.ll_fz_default_rgb(spaces).name)
        if names != DEVICE or mupdf.ll_fz_default_output_intent(spaces) is not None:
            self.alone = False

    def fill_image(self, _ctx: Any, image: Any, ctm: Any, alpha: float, *_: Any) -> None:
        width, height = self.size
        placed = (ctm.a / width, ctm.b / width, ctm.c / height, ctm.d / height,
                  ctm.e / width, ctm.f / height)  # fmt: skip
        fits = all(
            abs(is_at - should) < FIT
            for is_at, should in zip(placed, (1, 0, 0, 1, 0, 0), strict=True)
        )
        plain = not (image.mask or image.use_colorkey or image.use_decode or image.imagemask)
        if self.image is not None or alpha < 1 or not fits or not plain:
            self.alone = False
            return
        if image.colorspace is None or image.colorspace.name not in DEVICE:
            self.alone = False
            return
        self.image = mupdf.FzImage(mupdf.ll_fz_keep_image(image))


def quick_look(
    drawn: Any, width: float, height: float, across: int, down: int, gray: bool
) -> NDArray[np.uint8] | None:
    """Renders a page that is one JPEG 2000 picture, at a half of its resolution or less.

    Args:
        drawn: The page's display list.
        width: Of the page, in points.
        height: Of the page, in points.
        across: Wanted pixels.
        down: Wanted pixels.
        gray: One channel in place of three.

    Returns:
        (down, across) or (down, across, 3); None if the page is not of that kind, or the decoder
        has any difficulty with it.
    """
    device = _OnlyPicture(width, height)
    everywhere = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
    mupdf.fz_run_display_list(drawn, device, mupdf.FzMatrix(), everywhere, mupdf.FzCookie())
    mupdf.fz_close_device(device)
    image = device.image
    if not device.alone or image is None:
        return None
    if mupdf.fz_compressed_image_type(image) != mupdf.FZ_IMAGE_JPX:
        return None
    halvings = min(image.w() // across, image.h() // down).bit_length() - 1
    buffer = mupdf.FzBuffer(
        mupdf.ll_fz_keep_buffer(mupdf.fz_compressed_image_buffer(image).m_internal.buffer)
    )
    data = buffer.fz_buffer_extract_copy()
    halvings = min(halvings, _levels(data))
    if halvings < 1 or not _is_plain(data):
        return None
    pixels = None
    while pixels is None and halvings > 0:
        pixels = _decode(data, halvings)
        halvings -= 1
    if pixels is None:
        return None
    small: Any = cv2.resize(pixels, (across, down), interpolation=cv2.INTER_AREA)
    if small.ndim == 3 and gray:
        small = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    elif small.ndim == 2 and not gray:
        small = cv2.cvtColor(small, cv2.COLOR_GRAY2RGB)
    return np.asarray(small, np.uint8)


def _decode(data: bytes, halvings: int) -> NDArray[np.uint8] | None:
    """A JPEG 2000 picture of 8 bits at a fraction of its size; None if the decoder refuses."""
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG2000"]) as picture:
            if picture.mode not in ("L", "RGB"):
                return None
            # An attribute of this plugin alone, which hides a method of all pictures.
            setattr(picture, "reduce", halvings)  # noqa: B010
            return np.asarray(picture)
    except (OSError, ValueError):
        return None


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
