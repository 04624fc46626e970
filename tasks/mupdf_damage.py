"""Pictures that cannot be decoded: how much of a page is lost.

MuPDF shows a page whatever happens to its pictures. What could not be decoded becomes white
(JPEG 2000), black (a broken header, bilevel and Flate data) or grey (the rest of a JPEG), mostly
with a warning and for JPEG and JBIG2 without one. A page which looks blank because its scan is
broken would be dropped as blank, so every suspicion is checked by decoding the pictures again,
one at a time.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymupdf import mupdf

from models.errors import DamagedPage, OutOfMemory

LARGE_PIECE = 0.02
"""Share of the page from which a picture is looked at."""
MOST = 0.5
"""A picture that lost more than this share of its rows counts as lost."""
LAYER = 0.25
"""Share of the page from which a lost picture condemns the page, whatever else is on it."""
NOTICEABLE = 0.02
"""Smaller losses are not told from a scan's own even margin."""
PROBE_SIDE = 400
"""Pictures are decoded at about this many pixels along each side (MuPDF halves until near it)."""
EMPTY_BILEVEL_BYTES = 2048
"""An even JBIG2 picture of any size takes some hundred bytes; more than this was a picture."""
FLAT_GRAY = (127, 129)
"""What JPEG decoders fill in for lost blocks: zero coefficients, which is the middle grey."""
FLAT_SHARE = 0.03
"""Share of such pixels from which a page is suspicious. A scan has about 1 % of them."""
FAINT = 0.02
"""A page on which fewer pixels than this differ from the paper shows nothing to speak of."""
_LOST = re.compile(
    r"(content stream is not a stream.*|cannot load content stream.*|cannot find XObject .*"
    r"|cannot (?:load|parse) object .*|.*page may not be correct)"
)
"""What MuPDF says of content, pictures included, which it could not even place on the page."""
_ERROR = re.compile(
    r"error: (.*)|(padding truncated image|premature end .*)|" + _LOST.pattern, re.MULTILINE
)
"""What it says of anything that may be missing from what it shows."""


@dataclass(frozen=True)
class _Picture:
    image: Any
    area: float


class _Collector(mupdf.FzDevice2):  # type: ignore[misc]
    """Keeps the large pictures of a display list."""

    def __init__(self, least_area: float) -> None:
        super().__init__()
        self.use_virtual_fill_image()
        self.use_virtual_fill_image_mask()
        self.use_virtual_clip_image_mask()
        self.least_area = least_area
        self.pictures: list[_Picture] = []

    def fill_image(self, _ctx: Any, image: Any, ctm: Any, *_: Any) -> None:
        area = abs(ctm.a * ctm.d - ctm.b * ctm.c)
        if area >= self.least_area:
            kept = mupdf.FzImage(mupdf.ll_fz_keep_image(image))
            self.pictures.append(_Picture(kept, area))

    fill_image_mask = fill_image
    clip_image_mask = fill_image


def suspicious(pixels: NDArray[np.uint8], warnings: str) -> bool:
    """Whether a rendered page may have lost a picture.

    Args:
        pixels: (H, W) or (H, W, 3), the page or a part of it.
        warnings: What MuPDF had to say, one message a line.
    """
    if _ERROR.search(warnings):
        return True
    step = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // 40_000))
    sample = pixels[::step, ::step]
    if int(sample.max()) == int(sample.min()):
        return True
    flat = (sample >= FLAT_GRAY[0]) & (sample <= FLAT_GRAY[1])
    return float(flat.mean()) > FLAT_SHARE


def assess(
    where: str, drawn: Any, page_area: float, pixels: NDArray[np.uint8], warnings: str
) -> tuple[str, ...]:
    """Judges a suspicious page.

    Args:
        where: File and page, for messages.
        drawn: The page's display list.
        page_area: Square points.
        pixels: The page as rendered.
        warnings: What MuPDF had to say, one message a line.

    Returns:
        Notes for the page's transforms; empty if nothing is wrong.

    Raises:
        DamagedPage: A picture that makes up much of the page is lost, or everything is.
        OutOfMemory: A picture could not be decoded for want of memory.
    """
    collector = _Collector(LARGE_PIECE * page_area)
    everywhere = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
    mupdf.fz_run_display_list(drawn, collector, mupdf.FzMatrix(), everywhere, mupdf.FzCookie())
    mupdf.fz_close_device(collector)
    found = _ERROR.search(warnings)
    why = found[found.lastindex or 0] if found else "no message from the decoder"

    total = lost = 0.0
    for picture in collector.pictures:
        share = _lost_share(where, picture.image, found is not None)
        if share > MOST and picture.area >= LAYER * page_area:
            raise DamagedPage(f"{where}: {share:.0%} of its picture cannot be decoded ({why}).")
        total += picture.area
        lost += picture.area * share
    if total and lost > MOST * total:
        raise DamagedPage(f"{where}: its pictures cannot be decoded ({why}).")
    if found and lost == 0 and _shows_nothing(pixels, _LOST.search(warnings) is not None):
        raise DamagedPage(f"{where} shows nothing, and what is on it is damaged ({why}).")
    if lost > NOTICEABLE * total:
        return (f"picture damaged: about {lost / total:.0%} missing ({why})",)
    if found:
        return (f"damaged content: {why}",)
    return ()


def _lost_share(where: str, image: Any, told: bool) -> float:
    """The share of a picture's rows, from 0 to 1, that could not be decoded.

    What cannot be decoded ends a picture: from there on every row is the same even filling.

    Args:
        where: File and page, for messages.
        image: The MuPDF image.
        told: Whether MuPDF gave a warning; without one, only the fillings that come without
            warning count.
    """
    try:
        pixmap, _, _ = mupdf.fz_get_pixmap_from_image(
            image,
            mupdf.FzIrect(0, 0, image.w(), image.h()),
            mupdf.FzMatrix(PROBE_SIDE, 0, 0, PROBE_SIDE, 0, 0),
        )
    except mupdf.FzErrorBase as error:
        _check_memory(where, image, error)
        return 1.0
    rows = np.frombuffer(mupdf.fz_pixmap_samples_memoryview(pixmap), np.uint8)
    rows = rows.reshape(pixmap.h(), pixmap.stride())[:, : pixmap.w() * pixmap.n()]
    rows = rows.reshape(pixmap.h(), pixmap.w(), pixmap.n())
    same = (rows == rows[-1, -1]).all(axis=(1, 2))
    even = pixmap.h() if same.all() else int(np.argmin(same[::-1]))
    filling = rows[-1, -1]
    kind = mupdf.fz_compressed_image_type(image)
    if not told:
        if kind == mupdf.FZ_IMAGE_JBIG2:
            big = mupdf.fz_image_size(image) > EMPTY_BILEVEL_BYTES
            return 1.0 if big and even == pixmap.h() else 0.0
        middle = FLAT_GRAY[0] <= filling.min() and filling.max() <= FLAT_GRAY[1]
        if kind != mupdf.FZ_IMAGE_JPEG or not middle:
            return 0.0
    return float(even / pixmap.h())


def _check_memory(where: str, image: Any, error: Exception) -> None:
    """Tells a picture that is broken from one that found no memory: OpenJPEG does not.

    Raises:
        OutOfMemory: The memory which decoding takes at the least is not to be had.
    """
    # OpenJPEG holds 32 bits a component, and MuPDF the finished pixels besides.
    wanted = image.w() * image.h() * max(1, image.n()) * 5
    try:
        np.empty(wanted, np.uint8)
    except MemoryError:
        raise OutOfMemory(
            f"{where}: a picture of {image.w()} x {image.h()} pixels needs more memory to "
            "decode than the worker may have."
        ) from error


def _shows_nothing(pixels: NDArray[np.uint8], faint: bool) -> bool:
    """Whether all pixels are as bright as each other; if ``faint``, all but a few."""
    gray = pixels if pixels.ndim == 2 else pixels[..., 1]
    if not faint:
        return int(gray.max()) == int(gray.min())
    paper = int(np.bincount(gray.ravel(), minlength=256).argmax())
    differing = np.abs(gray.astype(np.int16) - paper) > 16
    return float(differing.mean()) < FAINT
