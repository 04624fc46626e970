"""What is drawn on a page: its pictures, their resolution, and whether anything has a colour.

Works on MuPDF's display list, that is on what is *displayed*: hidden layers are not in it, and
images within forms, inline images and masks are, which lists of a page's resources get wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pymupdf import mupdf

LARGE_PART = 0.10
"""Share of the page which the pieces at a resolution must cover to count as the scan's."""
SMALL_PART = 0.02
"""Pictures which together cover less than this share of a page do not make it a scan."""
MIN_PIECE_POINTS = 0.5
"""Thinner pictures are dots and rules; their resolution means nothing."""
MAX_DRAWINGS = 2000
"""Drawing operations looked at for a colour before a page counts as coloured."""

NEUTRAL = 1.5 / 255
"""Channels closer to each other than this are the same grey: one step of 8 bits, rounded."""


@dataclass(frozen=True)
class Piece:
    """One picture, or mask, as displayed.

    Attributes:
        area: Square points, as far as it lies on the page.
        dpi: Pixels per inch along its finer axis.
        color: Whether it may show a colour.
        size: Bytes of its pixels, decoded.
    """

    area: float
    dpi: float
    color: bool
    size: int


class _Pictures(mupdf.FzDevice2):  # type: ignore[misc]
    """Collects the pictures of a display list."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__()
        self.size = (width, height)
        self.use_virtual_fill_image()
        self.use_virtual_fill_image_mask()
        self.use_virtual_clip_image_mask()
        self.pieces: list[Piece] = []

    def fill_image(self, _ctx: Any, image: Any, ctm: Any, *_: Any) -> None:
        self._add(image, ctm, not _is_gray(image.colorspace, image.bpc))

    def fill_image_mask(
        self, _ctx: Any, image: Any, ctm: Any, space: Any, values: Any, *_: Any
    ) -> None:
        self._add(image, ctm, _is_tinted(space, values))

    def clip_image_mask(self, _ctx: Any, image: Any, ctm: Any, *_: Any) -> None:
        self._add(image, ctm, False)

    def _add(self, image: Any, ctm: Any, color: bool) -> None:
        across, down = math.hypot(ctm.a, ctm.b), math.hypot(ctm.c, ctm.d)
        dpi = 0.0
        if min(across, down) >= MIN_PIECE_POINTS:
            dpi = 72 * max(image.w / across, image.h / down)
        area = abs(ctm.a * ctm.d - ctm.b * ctm.c)
        area *= _inside(self.size[0], (ctm.e, ctm.e + ctm.a, ctm.e + ctm.c, ctm.e + ctm.a + ctm.c))
        area *= _inside(self.size[1], (ctm.f, ctm.f + ctm.b, ctm.f + ctm.d, ctm.f + ctm.b + ctm.d))
        size = image.w * image.h * max(1, image.n)
        self.pieces.append(Piece(area, dpi, color, size))


def _inside(side: float, corners: tuple[float, float, float, float]) -> float:
    """The share of an extent, given by its corners, that lies between 0 and a page's side."""
    low, high = min(corners), max(corners)
    if low == high:
        return 0.0
    return max(0.0, min(side, high) - max(0.0, low)) / (high - low)


class _Drawings(mupdf.FzDevice2):  # type: ignore[misc]
    """Looks for a colour among lines, fills, visible text and shadings."""

    def __init__(self, cookie: Any) -> None:
        super().__init__()
        self.use_virtual_fill_path()
        self.use_virtual_stroke_path()
        self.use_virtual_fill_text()
        self.use_virtual_stroke_text()
        self.use_virtual_fill_shade()
        self.cookie = cookie
        self.color = False
        self.seen = 0

    def fill_path(
        self, _c: Any, _p: Any, _e: Any, _m: Any, space: Any, values: Any, *_: Any
    ) -> None:
        self._look(_is_tinted(space, values))

    def stroke_path(
        self, _c: Any, _p: Any, _s: Any, _m: Any, space: Any, values: Any, *_: Any
    ) -> None:
        self._look(_is_tinted(space, values))

    def fill_text(self, _c: Any, _t: Any, _m: Any, space: Any, values: Any, *_: Any) -> None:
        self._look(_is_tinted(space, values))

    def stroke_text(
        self, _c: Any, _t: Any, _s: Any, _m: Any, space: Any, values: Any, *_: Any
    ) -> None:
        self._look(_is_tinted(space, values))

    def fill_shade(self, *_: Any) -> None:
        self._look(True)

    def _look(self, color: bool) -> None:
        self.seen += 1
        if color or self.seen > MAX_DRAWINGS:
            self.color = True
            self.cookie.m_internal.abort = 1


def pieces(drawn: Any, width: float, height: float) -> list[Piece]:
    """The pictures of a display list, in the order they are drawn.

    Args:
        drawn: The display list.
        width: Of the page, in points.
        height: Of the page, in points.
    """
    device = _Pictures(width, height)
    run(drawn, device, mupdf.FzCookie())
    return device.pieces


def native_dpi(found: list[Piece], page_area: float) -> float | None:
    """The resolution of the scan: of the finest pictures that make up a large part of the page.

    Strips, tiles and the layers of a compound page count together, so that the answer is the
    resolution of the pieces, and of the finest layer.

    Args:
        found: The pictures of the page.
        page_area: Square points.

    Returns:
        Pixels per inch; None for a page which is not made of pictures.
    """
    scans = sorted((p for p in found if p.dpi > 0), key=lambda p: -p.dpi)
    total = sum(p.area for p in scans)
    if total < SMALL_PART * page_area:
        return None
    wanted = min(LARGE_PART * page_area, total / 2)
    covered = 0.0
    for piece in scans:
        covered += piece.area
        if covered >= wanted:
            return piece.dpi
    return None


def has_color(drawn: Any, found: list[Piece]) -> bool:
    """Whether anything of a display list may be coloured.

    Judged by colour spaces and colour values, not by the pixels of pictures: a grey scan stored
    as RGB counts as coloured.
    """
    if any(piece.color for piece in found):
        return True
    cookie = mupdf.FzCookie()
    device = _Drawings(cookie)
    run(drawn, device, cookie)
    return device.color


def run(drawn: Any, device: Any, cookie: Any) -> None:
    """Runs a display list through a device."""
    everywhere = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
    mupdf.fz_run_display_list(drawn, device, mupdf.FzMatrix(), everywhere, cookie)
    mupdf.fz_close_device(device)


def _is_gray(space: Any, bits: int = 8) -> bool:
    """Whether a colour space holds nothing but grey.

    Args:
        space: A raw MuPDF pointer; None for a stencil.
        bits: Bits per component of the picture in that space.
    """
    if space is None or mupdf.ll_fz_colorspace_is_gray(space):
        return True
    if space.n != 1:
        return False
    # A palette or a single ink: all its colours can be looked at.
    levels = 2 ** min(bits, 8)
    top = 255 if mupdf.ll_fz_colorspace_is_indexed(space) else levels - 1
    return all(_is_neutral(space, level / top) for level in range(levels))


def _is_neutral(space: Any, value: float) -> bool:
    rgb = mupdf.ll_fz_convert_color(
        space, value, mupdf.ll_fz_device_rgb(), None, mupdf.fz_default_color_params
    )[:3]
    return bool(max(rgb) - min(rgb) < NEUTRAL)


def _is_tinted(space: Any, values: Any) -> bool:
    """Whether a colour, given by its space and a C array of floats, may be other than grey."""
    if _is_gray(space):
        return False
    if not mupdf.ll_fz_colorspace_is_rgb(space):
        return True
    red, green, blue = (mupdf.floats_getitem(values, i) for i in range(3))
    return not (red == green == blue)
