"""Pages that are provably one picture and nothing else: the picture may be decoded directly.

Judged by MuPDF's display list, that is by everything that is displayed: one picture which covers
the page, upright or turned or mirrored, without mask, transparency, clipping, inverted values or
colour management, under no line, letter or second picture.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymupdf import mupdf

from tasks.mupdf_content import run

FIT = 0.002
"""By how much of the page a picture's edges may miss the page's own."""
DEVICE = ("DeviceGray", "DeviceRGB")
SAME_COLOR = 1.5 / 255
"""Colour values that a profile changes by less than this, everywhere, need no conversion."""
MOST_IMAGES = 40
"""Images named by a page's resources up to which they are looked through, at 10 microseconds."""
_SIDES = ("Width", "Height")

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels, the last two exclusive."""


@dataclass(frozen=True)
class Sole:
    """The one picture of a page.

    Attributes:
        data: The encoded picture, JPEG or JPEG 2000, without outer filters or encryption.
        kind: MuPDF's number of its format.
        width: Pixels across, as stored.
        height: Pixels down, as stored.
        channels: 1 grey or 3 RGB.
        turned: Whether rows of the picture are columns of the page.
        flip_x: Whether it is mirrored left to right, after turning.
        flip_y: Whether it is mirrored top to bottom, after turning.
    """

    data: bytes
    kind: int
    width: int
    height: int
    channels: int
    turned: bool
    flip_x: bool
    flip_y: bool

    def stored(self, box: Box, across: int, down: int) -> Box:
        """A part of the page, of ``across`` by ``down`` pixels, as a part of the picture."""
        left, top, right, bottom = box
        if self.flip_x:
            left, right = across - right, across - left
        if self.flip_y:
            top, bottom = down - bottom, down - top
        return (top, left, bottom, right) if self.turned else (left, top, right, bottom)

    def displayed(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The pixels of a part of the picture as they lie on the page."""
        if self.turned:
            pixels = pixels.swapaxes(0, 1)
        if self.flip_x:
            pixels = pixels[:, ::-1]
        if self.flip_y:
            pixels = pixels[::-1]
        return np.ascontiguousarray(pixels)


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
        self.placed: tuple[bool, bool, bool] | None = None
        self.alone = True

    def _other(self, *_: Any) -> None:
        self.alone = False

    def set_default_colorspaces(self, _ctx: Any, spaces: Any) -> None:
        names = (mupdf.ll_fz_default_gray(spaces).name, mupdf.ll_fz_default_rgb(spaces).name)
        if names != DEVICE or mupdf.ll_fz_default_output_intent(spaces) is not None:
            self.alone = False

    def fill_image(self, _ctx: Any, image: Any, ctm: Any, alpha: float, *_: Any) -> None:
        plain = not (image.mask or image.use_colorkey or image.use_decode or image.imagemask)
        self.placed = _placement(ctm, *self.size)
        if self.image is not None or alpha < 1 or not plain or self.placed is None:
            self.alone = False
            return
        if image.bpc != 8 or not _needs_no_conversion(image.colorspace):
            self.alone = False
            return
        self.image = mupdf.FzImage(mupdf.ll_fz_keep_image(image))


def find(page: Any, drawn: Any, width: float, height: float) -> Sole | None:
    """The picture which is all that a page shows; None if in doubt.

    Args:
        page: The PyMuPDF page.
        drawn: The page's display list.
        width: Of the page, in points.
        height: Of the page, in points.
    """
    device = _OnlyPicture(width, height)
    run(drawn, device, mupdf.FzCookie())
    image = device.image
    if not device.alone or image is None or device.placed is None:
        return None
    kind = mupdf.fz_compressed_image_type(image)
    if kind not in (mupdf.FZ_IMAGE_JPEG, mupdf.FZ_IMAGE_JPX):
        return None
    if (
        kind == mupdf.FZ_IMAGE_JPEG
        and image.n() == 3
        and not _usual_colors(page, image.w(), image.h())
    ):
        return None
    buffer = mupdf.FzBuffer(
        mupdf.ll_fz_keep_buffer(mupdf.fz_compressed_image_buffer(image).m_internal.buffer)
    )
    data = buffer.fz_buffer_extract_copy()
    return Sole(data, kind, image.w(), image.h(), image.n(), *device.placed)


def _placement(ctm: Any, width: float, height: float) -> tuple[bool, bool, bool] | None:
    """How a picture lies that covers the page: turned, flipped in x, in y; None if it does not."""
    turned = abs(ctm.a) < abs(ctm.b)
    x, skew_x, y, skew_y = (ctm.c, ctm.a, ctm.b, ctm.d) if turned else (ctm.a, ctm.c, ctm.d, ctm.b)
    misses = (
        (abs(x) - width) / width,
        (abs(y) - height) / height,
        skew_x / width,
        skew_y / height,
        (ctm.e - (width if x < 0 else 0)) / width,
        (ctm.f - (height if y < 0 else 0)) / height,
    )
    if max(map(abs, misses)) >= FIT:
        return None
    return turned, x < 0, y < 0


def _needs_no_conversion(space: Any) -> bool:
    """Whether the values of a colour space are already those of the screen, in grey or RGB."""
    if space is None:
        return False
    if space.name in DEVICE:
        return True
    # Profiles of sRGB change nothing, whatever they are called; a grid of colours shows it.
    if not mupdf.ll_fz_colorspace_is_icc(space) or not mupdf.ll_fz_colorspace_is_rgb(space):
        return False
    rgb = mupdf.ll_fz_device_rgb()
    for color in itertools.product((0.0, 0.2, 0.5, 0.8, 1.0), repeat=3):
        shown = mupdf.ll_fz_convert_color(space, color, rgb, None, mupdf.fz_default_color_params)
        if max(abs(a - b) for a, b in zip(color, shown[:3], strict=True)) > SAME_COLOR:
            return False
    return True


def _usual_colors(page: Any, width: int, height: int) -> bool:
    """Whether a page's JPEG of a size is not said to store its colours in an unusual way.

    /ColorTransform may say so (ISO 32000-1, table 13), and PyMuPDF does not let one ask a picture
    for it. A picture that is not found among the page's own images counts as unusual.
    """
    own = mupdf.pdf_page_from_fz_page(page.this)
    images = mupdf.pdf_dict_gets(mupdf.pdf_page_resources(own), "XObject")
    count = mupdf.pdf_dict_len(images)
    if count > MOST_IMAGES:
        return False
    found = False
    for i in range(count):
        image = mupdf.pdf_dict_get_val(images, i)
        if mupdf.pdf_is_null(mupdf.pdf_resolve_indirect(image)):
            continue
        if mupdf.pdf_to_name(mupdf.pdf_dict_gets(image, "Subtype")) != "Image":
            return False
        size = tuple(mupdf.pdf_dict_get_int(image, mupdf.pdf_new_name(n)) for n in _SIDES)
        found = found or size == (width, height)
        parms = mupdf.pdf_dict_getsa(image, "DecodeParms", "DP")
        steps = [parms]
        if mupdf.pdf_is_array(parms):
            steps = [mupdf.pdf_array_get(parms, k) for k in range(mupdf.pdf_array_len(parms))]
        if any(not mupdf.pdf_is_null(mupdf.pdf_dict_gets(s, "ColorTransform")) for s in steps):
            return False
    return found
