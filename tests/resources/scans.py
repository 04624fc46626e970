"""The scan: what paper, press, age and scanner make of a clean printed sheet."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import cv2
import numpy as np

from tests.resources.scan_engrave import curve, smooth_noise
from tests.resources.scan_layout import Box, Sheet


@dataclass(frozen=True)
class Look:
    """How one volume was printed, kept and scanned.

    Attributes:
        paper: colour of the paper, R, G, B.
        grey: whether the scanner saw colour.
        bilevel: whether it kept black and white only.
        tilt: largest slant of a page, degrees.
        border: share of the pages which show the scanner's dark bed on one side.
        foxing: number of brown stains on a page.
    """

    paper: tuple[int, int, int] = (232, 222, 198)
    grey: bool = False
    bilevel: bool = False
    tilt: float = 1.0
    border: float = 0.3
    foxing: int = 8


@dataclass
class Scan:
    """One scanned page.

    Attributes:
        image: (height, width) or (height, width, 3) uint8, R, G, B; bilevel pages hold 0 and 255.
        paper: the same page without its ink, as a layered scan keeps it.
        boxes: pictures, x0, y0, x1, y1 as shares of width and height.
    """

    image: np.ndarray
    paper: np.ndarray
    boxes: list[Box]


@functools.lru_cache(maxsize=4)
def textures(width: int, height: int, fine: float) -> tuple[np.ndarray, np.ndarray]:
    """Make grain and wear larger than a page, for pages to take pieces of at chance places.

    Args:
        width: of the page, pixels.
        height: of the page, pixels.
        fine: size of the wear, 1 at 200 dpi.

    Returns:
        Two arrays, (height + 256, width + 256) uint8: what grain takes from the light, and what
        wear takes from the ink.
    """
    rng = np.random.default_rng([width, height])
    shape = height + 256, width + 256
    grain = cv2.GaussianBlur(rng.standard_normal(shape, np.float32), (0, 0), 0.7)
    wear = smooth_noise(shape, 3 * fine, rng) * 26 + smooth_noise(shape, 90, rng) * 16
    worn = np.clip((wear + 24) * min(fine**2, 1), 0, 255).astype(np.uint8)
    return cv2.convertScaleAbs(grain, alpha=8), worn


class Scanner:
    """Scans the sheets of one volume.

    Textures are made once for the volume, and turned, mirrored and shifted from page to page, so
    that a page costs a few passes over its pixels.

    Args:
        look: what the pages should look like.
        size: width, height of every sheet, pixels.
        dpi: resolution; wear and blur are of the print, and shrink with it.
        rng: source of the textures.
    """

    def __init__(
        self, look: Look, size: tuple[int, int], dpi: int, rng: np.random.Generator
    ) -> None:
        """Make the paper."""
        self._fine = dpi / 200
        self.look, (self.width, self.height) = look, size
        self._papers = [self._paper(rng) for _ in range(2)]
        self._grain, self._wear = textures(self.width, self.height, self._fine)

    def _paper(self, rng: np.random.Generator) -> np.ndarray:
        """Make a sheet of old paper, (height, width, 3) or grey (height, width) uint8."""
        h, w = self.height, self.width
        ys, xs = np.mgrid[-1 : 1 : h // 4 * 1j, -1 : 1 : w // 4 * 1j].astype(np.float32)
        edge = np.maximum(np.abs(xs), np.abs(ys) * 0.97)
        shade = 1 - 0.10 * edge**6 - 0.02 * xs + 0.02 * smooth_noise(edge.shape, 120, rng)
        shade += 0.012 * smooth_noise(edge.shape, 6, rng)
        brown = 0.05 * edge**4 + 0.02 * smooth_noise(edge.shape, 60, rng)
        for _ in range(rng.poisson(self.look.foxing)):
            cy, cx = rng.uniform(-1, 1, 2)
            spread = rng.uniform(0.002, 0.02)
            spot = np.exp(-((xs - cx) ** 2 + (ys - cy) ** 2) / spread**2)
            brown += rng.uniform(0.05, 0.2) * spot
        toned = shade[..., None] - brown[..., None] * np.float32([0.3, 0.7, 1.5])
        toned = np.clip(toned * np.float32(self.look.paper), 0, 255)
        full = cv2.resize(toned.astype(np.uint8), (w, h), interpolation=cv2.INTER_LINEAR)
        return cv2.cvtColor(full, cv2.COLOR_RGB2GRAY) if self.look.grey else full

    def _crop(self, texture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Take a page-sized piece of a larger texture at a chance place."""
        y, x = rng.integers(0, 256, 2)
        return texture[y : y + self.height, x : x + self.width]

    def scan(self, sheet: Sheet, back: np.ndarray | None, rng: np.random.Generator) -> Scan:
        """Scan one sheet.

        Args:
            sheet: the printed page.
            back: ink of the page printed on its other side, as that page reads, or None.
            rng: slant, dirt and shadows of this page.
        """
        angle = float(rng.uniform(-1, 1)) * self.look.tilt
        move = rng.uniform(-0.008, 0.008, 2) * self.width
        matrix = cv2.getRotationMatrix2D((self.width / 2, self.height / 2), angle, 1.0)
        matrix[:, 2] += move
        ink = cv2.warpAffine(sheet.ink, matrix, (self.width, self.height), flags=cv2.INTER_LINEAR)
        self._dirt(ink, rng)
        ink = cv2.GaussianBlur(ink, (0, 0), 0.65 * self._fine)
        ink = cv2.subtract(ink, self._crop(self._wear, rng))
        clear = 255 - cv2.convertScaleAbs(ink, alpha=0.98)
        paper = self._papers[int(rng.integers(len(self._papers)))]
        paper = cv2.flip(paper, int(rng.integers(-1, 2)))
        paper = self._through(paper, back, rng)
        if sheet.tint is not None and not self.look.grey:
            size = self.width, self.height
            washes = cv2.warpAffine(sheet.tint, matrix, size, borderValue=(255, 255, 255))
            paper = cv2.multiply(paper, washes, scale=1 / 255)
        grain = self._crop(self._grain, rng)
        paper = self._tint(paper, self._shadow(rng), grain)
        image = self._tint(paper, clear, None)
        if self.look.bilevel:
            grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
            image = self._threshold(grey, rng)
        boxes = [self._box(points, matrix) for points in sheet.pictures]
        return Scan(image, paper, boxes)

    def _through(
        self, paper: np.ndarray, back: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """Let the print on the other side shine through, mirrored and soft."""
        if back is None:
            return paper
        small = cv2.resize(cv2.flip(back, 1), None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
        small = cv2.GaussianBlur(small, (0, 0), 0.8)
        soft = cv2.resize(small, (self.width, self.height), interpolation=cv2.INTER_LINEAR)
        shade = cv2.convertScaleAbs(soft, alpha=rng.uniform(0.03, 0.09))
        return self._tint(paper, 255 - shade, None)

    def _shadow(self, rng: np.random.Generator) -> np.ndarray:
        """Make the light over the page: gutter shadow, and the scanner's bed beside some pages."""
        row = np.full(self.width, 255, np.float32)
        x = np.arange(self.width, dtype=np.float32) / self.width
        side = x if rng.random() < 0.5 else 1 - x
        row *= 1 - rng.uniform(0.1, 0.35) * np.exp(-side / rng.uniform(0.01, 0.04))
        full = np.repeat(row[None], self.height, 0)
        if rng.random() < self.look.border:
            wide = rng.uniform(0.008, 0.03)
            lean = rng.uniform(-0.006, 0.006)
            y = np.linspace(-1, 1, self.height, dtype=np.float32)[:, None]
            full *= np.clip((side[None] - wide - lean * y) * 130, 0.1, 1)
        return full.astype(np.uint8)

    def _tint(self, base: np.ndarray, filter_: np.ndarray, grain: np.ndarray | None) -> np.ndarray:
        """Lay a grey filter (255 = clear) over an image, and darken it by grain."""
        if base.ndim == 3:
            filter_ = cv2.merge([filter_] * 3)
            grain = None if grain is None else cv2.merge([grain] * 3)
        out = cv2.multiply(base, filter_, scale=1 / 255)
        return out if grain is None else cv2.subtract(out, grain)

    def _dirt(self, ink: np.ndarray, rng: np.random.Generator) -> None:
        """Scatter specks on the sheet, and on some pages a hair."""
        for _ in range(int(rng.integers(15, 70))):
            x, y = int(rng.integers(self.width)), int(rng.integers(self.height))
            axes = tuple(int(v) for v in rng.integers(0, 3, 2))
            cv2.ellipse(
                ink, (x, y), axes, int(rng.integers(180)), 0, 360, int(rng.integers(60, 200)), -1
            )
        if rng.random() < 0.25:
            start = rng.uniform(0.1, 0.9, 2) * (self.width, self.height)
            hair = start + np.cumsum(rng.normal(0, 14, (6, 2)) + rng.normal(0, 9, 2), 0)
            cv2.polylines(ink, [curve(hair).astype(np.int32)], False, 150, 1, cv2.LINE_AA)

    def _threshold(self, grey: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Keep black and white only, with the ragged edges that leaves."""
        return cv2.threshold(grey, int(rng.integers(110, 140)), 255, cv2.THRESH_BINARY)[1]

    def _box(self, points: np.ndarray, matrix: np.ndarray) -> Box:
        """Find where a picture came to lie on the scan, in shares of width and height."""
        moved = points @ matrix[:, :2].T + matrix[:, 2]
        size = self.width, self.height
        x0, y0 = np.clip((moved.min(0) - 1) / size, 0, 1)
        x1, y1 = np.clip((moved.max(0) + 2) / size, 0, 1)
        return tuple(round(float(v), 5) for v in (x0, y0, x1, y1))
