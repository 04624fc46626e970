"""From a page image to what every method starts from: a sane grey array, its paper, its ink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import RelativeBox

Gray = NDArray[np.uint8]
Mask = NDArray[np.uint8]
"""0 or 255, the form OpenCV takes and gives."""
PixelBox = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels of a working image, x1 and y1 exclusive."""

BLANK_INK = 0.0004
"""Below this share of ink a page is blank; one line of body text has about five times that."""
DARKEST_PAPER = 64
"""Darkest grey (0 to 255) still taken for paper: what is darker all around is a border, a cover
or a black page, and must not be stretched to white."""
DARK_BORDER = 90
"""Areas of at most this grey that run into the image's edge are scan border, not ink."""
FAINTEST_INK, DARKEST_INK = 0.10, 0.25
"""Bounds of the ink threshold, as a share of the paper's grey below the paper. Paper grain and
most show-through stay under the first; the second holds on pages of pure black and white."""


@dataclass(frozen=True)
class InkPage:
    """A page reduced to its ink.

    Attributes:
        gray: (H, W) uint8, the page at its working size.
        flat: (H, W) uint8, the page with its paper brought to white and shadows evened out.
        ink: (H, W) mask of ink, dark scan borders left out.
        border: (H, W) mask of dark areas that run into the edge of the image.
    """

    gray: Gray
    flat: Gray
    ink: Mask
    border: Mask

    @property
    def ink_share(self) -> float:
        """Ink as a share of the page, 0 to 1."""
        return float(np.count_nonzero(self.ink)) / self.ink.size

    @property
    def blank(self) -> bool:
        """Whether there is no ink to speak of on a page that is not mostly dark.

        A dark plate that runs to the edges counts as border altogether, and is not blank.
        """
        bright = np.count_nonzero(self.border) < 0.5 * self.ink.size
        return bool(self.ink_share < BLANK_INK and bright)


def to_gray8(image: NDArray[np.generic]) -> Gray:
    """Any image array as a contiguous (H, W) uint8 array with at least one pixel.

    Workers hand over uint8 pages; this catches what else may come: 16-bit scans (scaled by the
    range of their type), floating-point and bilevel ones (0 to 1), colour, and arrays without
    pixels, which become one white pixel.
    """
    if image.size == 0 or image.ndim not in (2, 3):
        return np.full((1, 1), 255, np.uint8)
    if image.dtype == np.uint8 and image.ndim == 2:
        return np.ascontiguousarray(image, dtype=np.uint8)
    values = np.nan_to_num(image.astype(np.float64))
    if values.ndim == 3:
        values = values[..., :3].mean(axis=2)
    full = float(2 ** (8 * image.dtype.itemsize) - 1) if image.dtype.kind == "u" else 1.0
    return np.clip(np.rint(values / full * 255.0), 0, 255).astype(np.uint8)


def fit(gray: Gray, long_side: int) -> Gray:
    """The page shrunk so that its longer side has at most `long_side` pixels."""
    height, width = gray.shape
    scale = long_side / max(height, width)
    if scale >= 1:
        return gray
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return cv2.resize(gray, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def normalise(gray: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
    """Grey 0 to 255 brought to about 0 for the page's ink and 1 for its paper.

    The 1st and 95th percentiles stand for ink and paper; at least 48 grey levels are put between
    them, so that the grain of a blank page is not blown up to ink.
    """
    low, high = np.percentile(gray[::2, ::2], (1, 95))
    return ((gray - np.float32(low)) / np.float32(max(48.0, high - low))).astype(np.float32)


def flatten(gray: Gray) -> Gray:
    """The page divided by its own paper: paper becomes 255, shadows and toning go.

    The paper's grey is the median of local maxima, taken on an image of at most 128 pixels, so
    that pictures smaller than about a tenth of the page do not count as paper.
    """
    height, width = gray.shape
    small = fit(gray, 128)
    paper = cv2.medianBlur(cv2.dilate(small, np.ones((5, 5), np.uint8)), 9)
    paper = cv2.resize(paper, (width, height), interpolation=cv2.INTER_LINEAR)
    return cv2.divide(gray, np.maximum(paper, DARKEST_PAPER), scale=255).astype(np.uint8)


def read_ink(gray: Gray) -> InkPage:
    """Separate ink from paper and from dark scan borders.

    The threshold follows the page's own darkest ink (its 97th percentile of darkness), so that
    pale woodcuts keep their lines and grain on dark paper does not become ink.
    """
    flat = flatten(gray)
    darkness = 255 - flat
    strong = float(np.percentile(darkness[::2, ::2], 97))
    threshold = float(np.clip(0.4 * strong, FAINTEST_INK * 255, DARKEST_INK * 255))
    border = find_border(gray)
    ink = cv2.threshold(darkness, threshold, 255, cv2.THRESH_BINARY)[1].astype(np.uint8, copy=False)
    ink[border > 0] = 0
    return InkPage(gray=gray, flat=flat, ink=ink, border=border)


def components(mask: Mask, connectivity: int = 8) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Number the connected pieces of a mask.

    Returns:
        (H, W) numbers, 0 where the mask is 0; and (pieces, 5) left, top, width, height and pixels
        of every piece, the first row being the rest.
    """
    # Numbers of 16 bits take half the time. No more than a quarter of the pixels, and with sides
    # for neighbours half of them, can be pieces of their own.
    most = mask.size // (4 if connectivity == 8 else 2)
    kind = cv2.CV_16U if most < np.iinfo(np.uint16).max else cv2.CV_32S
    _, labels, stats, _ = cv2.connectedComponentsWithStats(
        mask, connectivity=connectivity, ltype=kind
    )
    return labels, stats.astype(np.int32, copy=False)


def find_border(gray: Gray) -> Mask:
    """Dark areas that run into the edge of the image: scanner lid, book edge, black frame.

    Found at half the size, which is fine enough for areas and four times as fast.
    """
    height, width = gray.shape
    half = gray[::2, ::2]
    dark = np.where(half < DARK_BORDER, 255, 0).astype(np.uint8)
    dark = cv2.morphologyEx(dark, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)).astype(np.uint8)
    if not (dark[[0, -1]].any() or dark[:, [0, -1]].any()):
        return np.zeros_like(gray)
    labels, stats = components(dark, connectivity=4)
    x, y, w, h = (stats[:, i] for i in range(4))
    outer = (x == 0) | (y == 0) | (x + w >= half.shape[1]) | (y + h >= half.shape[0])
    outer[0] = False
    if not outer.any():
        return np.zeros_like(gray)
    border = (outer * np.uint8(255))[labels]
    border = cv2.dilate(border, np.ones((5, 5), np.uint8)).astype(np.uint8)
    return cv2.resize(border, (width, height), interpolation=cv2.INTER_NEAREST).astype(np.uint8)


def relative(box: PixelBox, shape: tuple[int, int]) -> RelativeBox:
    """A pixel box as fractions of an image of `shape` (H, W)."""
    height, width = shape
    return (box[0] / width, box[1] / height, box[2] / width, box[3] / height)


def absolute(box: RelativeBox, shape: tuple[int, ...]) -> PixelBox:
    """The opposite of `relative`, to the nearest pixel."""
    height, width = shape
    return (
        round(box[0] * width),
        round(box[1] * height),
        round(box[2] * width),
        round(box[3] * height),
    )


def area(box: RelativeBox) -> float:
    """The area of a box as a fraction of the page."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
