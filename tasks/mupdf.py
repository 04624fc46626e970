"""The renderer: MuPDF, through PyMuPDF. No module but ``tasks/mupdf*.py`` imports it.

MuPDF is not thread-safe: one process, one thread. Its warnings go to a buffer which is read after
each step and never reach stderr.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pymupdf
from numpy.typing import NDArray
from pymupdf import mupdf

from models.errors import DamagedPage, OutOfMemory, PageTooLarge, UnreadableFile
from models.records import PageFacts, PdfFacts, RelativeBox
from tasks import mupdf_content, mupdf_damage
from tasks.read import Raster

MIN_DPI = 36.0
"""With less resolution than this, and less than the scan's own, ..."""
MIN_SIDE = 256
"""... and a shorter side of fewer pixels than this, a picture is not worth having."""
REPAIR = "repairing PDF document"
"""What MuPDF says when it mends a file on the way; complaints before that are settled by it."""
WHOLE: RelativeBox = (0.0, 0.0, 1.0, 1.0)

_BUSY = threading.Lock()
TOOLS: Any = pymupdf.TOOLS
"""PyMuPDF's switches (untyped)."""
TOOLS.mupdf_display_errors(False)
TOOLS.mupdf_display_warnings(False)


@dataclass
class _Scene:
    """The page at hand: what MuPDF made of it, and what was found out so far.

    Attributes:
        page: The PyMuPDF page.
        drawn: Its display list, without annotations.
        warnings: MuPDF's messages about it.
        pieces: The pictures on it.
        color: Whether anything may be coloured.
        notes: Notes on damage; None while nothing was rendered.
    """

    page: Any
    drawn: Any
    width: float
    height: float
    warnings: list[str]
    pieces: list[mupdf_content.Piece] = field(default_factory=list)
    color: bool = True
    notes: tuple[str, ...] | None = None


class MuPdfReader:
    """A :class:`tasks.read.Reader` over one MuPDF document."""

    def __init__(
        self, path: Path, document: Any, facts: PdfFacts, order: list[int | None] | None
    ) -> None:
        """Takes over a document.

        Args:
            path: For messages.
            document: An open, unlocked PyMuPDF document.
            facts: What the reader says of it.
            order: The document's own index of each page, None for a page it has not; None if
                its indices are the reader's.
        """
        self.facts = facts
        self._path = path
        self._document = document
        self._order = order
        self._index: int | None = None
        self._scene: _Scene | None = None

    def page(self, index: int) -> PageFacts:
        """See :meth:`tasks.read.Reader.page`."""
        with self._guard(index):
            scene = self._load(index)
            return PageFacts(
                label=_label(scene.page),
                width=scene.width,
                height=scene.height,
                rotation=scene.page.rotation,
                native_dpi=mupdf_content.native_dpi(scene.pieces, scene.width * scene.height),
                color=scene.color,
            )

    def render(
        self,
        index: int,
        dpi: float,
        *,
        gray: bool,
        box: RelativeBox | None = None,
        max_pixels: int,
    ) -> Raster:
        """See :meth:`tasks.read.Reader.render`."""
        with self._guard(index):
            scene = self._load(index)
            grid = _Grid.of(scene.width, scene.height, dpi, box or WHOLE)
            budget: tuple[str, ...] = ()
            if grid.pixels > max_pixels:
                wanted, grid = grid, grid.within(max_pixels)
                self._check_worth(index, scene, wanted, grid, max_pixels)
                budget = (f"dpi lowered from {dpi:.0f} to {grid.dpi:.0f}: pixel budget",)
            pixels = _draw(scene, grid, gray)
            scene.warnings.append(_take_warnings())
            if scene.notes is None:
                scene.notes = self._assess(index, scene, pixels)
            # Nothing of a page is of use to the next one; kept, it fills up to 256 MB.
            TOOLS.store_shrink(100)
            return Raster(pixels, grid.dpi, budget + scene.notes)

    def text(self, index: int, box: RelativeBox | None = None) -> str:
        """See :meth:`tasks.read.Reader.text`."""
        with self._guard(index):
            scene = self._load(index)
            x0, y0, x1, y1 = box or WHOLE
            clip = (x0 * scene.width, y0 * scene.height, x1 * scene.width, y1 * scene.height)
            return str(scene.page.get_text("text", clip=clip))

    def close(self) -> None:
        """See :meth:`tasks.read.Reader.close`."""
        self._index = self._scene = None
        if not self._document.is_closed:
            self._document.close()
        TOOLS.store_shrink(100)

    def _load(self, index: int) -> _Scene:
        """The page at an index; the last one is kept."""
        if self._scene is None or self._index != index:
            self._index = self._scene = None
            self._scene = self._read(index)
            self._index = index
        return self._scene

    def _read(self, index: int) -> _Scene:
        place = self._order[index] if self._order is not None else index
        if place is None:
            raise DamagedPage(
                f"{self._where(index)} is listed, but the file does not hold it.",
                "Fetch the PDF again; it is damaged or was cut short.",
            )
        page = self._document.load_page(place)
        width, height = float(page.rect.width), float(page.rect.height)
        if not (0 < width < math.inf and 0 < height < math.inf):
            raise DamagedPage(f"{self._where(index)} has no area: {width} x {height} pt.")
        # What came up so far is about the file, not about what the page shows.
        _take_warnings()
        drawn = mupdf.fz_new_display_list_from_page_contents(page.this)
        scene = _Scene(page, drawn, width, height, [_take_warnings().rpartition(REPAIR)[2]])
        scene.pieces = mupdf_content.pieces(drawn)
        scene.color = mupdf_content.has_color(drawn, scene.pieces)
        _take_warnings()
        return scene

    def _check_worth(
        self, index: int, scene: _Scene, wanted: _Grid, grid: _Grid, max_pixels: int
    ) -> None:
        """Raises PageTooLarge if what the budget leaves of a page is not worth having."""
        native = mupdf_content.native_dpi(scene.pieces, scene.width * scene.height)
        enough = min(MIN_DPI, native) if native else MIN_DPI
        if grid.dpi < enough and min(grid.right - grid.left, grid.bottom - grid.top) < MIN_SIDE:
            raise PageTooLarge(
                f"{self._where(index)} needs {wanted.pixels / 1e6:.0f} megapixels at "
                f"{wanted.dpi:.0f} dpi and {max_pixels / 1e6:.0f} are allowed, which leaves "
                f"{grid.dpi:.0f} dpi."
            )

    def _assess(self, index: int, scene: _Scene, pixels: NDArray[np.uint8]) -> tuple[str, ...]:
        warnings = "\n".join(scene.warnings)
        if not mupdf_damage.suspicious(pixels, warnings):
            return ()
        area = scene.width * scene.height
        return mupdf_damage.assess(self._where(index), scene.drawn, area, pixels, warnings)

    def _where(self, index: int) -> str:
        return f"{self._path}, page {index + 1}"

    @contextmanager
    def _guard(self, index: int) -> Iterator[None]:
        """Turns what MuPDF raises into the project's own errors, and keeps a second thread out."""
        if not _BUSY.acquire(blocking=False):
            raise RuntimeError("MuPDF is not thread-safe; use a process for each reader.")
        try:
            yield
        except MemoryError as error:
            raise OutOfMemory(f"{self._where(index)}: not enough memory to render it.") from error
        except mupdf.FzErrorSystem as error:
            if "alloc" in str(error):
                raise OutOfMemory(
                    f"{self._where(index)}: not enough memory to render it ({error})."
                ) from error
            raise UnreadableFile(f"{self._where(index)} cannot be read: {error}.") from error
        except (mupdf.FzErrorBase, RuntimeError, ValueError) as error:
            raise DamagedPage(f"{self._where(index)} cannot be rendered: {error}.") from error
        finally:
            _BUSY.release()


@dataclass(frozen=True)
class _Grid:
    """The pixels to make of a page: all ``across`` by ``down`` of it, from which a part is cut."""

    width: float
    height: float
    box: RelativeBox
    across: int
    down: int

    @classmethod
    def of(cls, width: float, height: float, dpi: float, box: RelativeBox) -> _Grid:
        """The grid of a page of a size in points at a resolution.

        A page is a whole number of pixels in both directions, its resolution rounded to suit. So
        no edge is half paper, and at its own resolution a scan is copied pixel by pixel.
        """
        scale = dpi / 72
        return cls(width, height, box, max(1, round(width * scale)), max(1, round(height * scale)))

    @property
    def left(self) -> int:
        return min(self.across - 1, round(self.box[0] * self.across))

    @property
    def top(self) -> int:
        return min(self.down - 1, round(self.box[1] * self.down))

    @property
    def right(self) -> int:
        return max(self.left + 1, round(self.box[2] * self.across))

    @property
    def bottom(self) -> int:
        return max(self.top + 1, round(self.box[3] * self.down))

    @property
    def pixels(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)

    @property
    def dpi(self) -> float:
        return 72 * math.sqrt(self.across * self.down / (self.width * self.height))

    def within(self, max_pixels: int) -> _Grid:
        """The finest grid with no more pixels than that, give or take half a percent."""
        dpi = self.dpi * math.sqrt(max_pixels / self.pixels)
        grid = self
        while grid.pixels > max_pixels:
            grid = _Grid.of(self.width, self.height, dpi, self.box)
            dpi *= 0.995
        return grid


def _draw(scene: _Scene, grid: _Grid, gray: bool) -> NDArray[np.uint8]:
    """Renders into an array of the right shape, without a copy on the way."""
    # MuPDF's own way from colour to grey goes through ICC profiles before it scales down, which
    # takes half as long again as rendering in colour, and differs from everybody else's grey.
    in_gray = gray and not scene.color
    high, wide = grid.bottom - grid.top, grid.right - grid.left
    shape = (high, wide) if in_gray else (high, wide, 3)
    pixels = np.full(shape, 255, np.uint8)
    fixed = mupdf.FzColorspace.Fixed_GRAY if in_gray else mupdf.FzColorspace.Fixed_RGB
    target = mupdf.fz_new_pixmap_with_bbox_and_data(
        mupdf.FzColorspace(fixed),
        mupdf.FzIrect(grid.left, grid.top, grid.right, grid.bottom),
        mupdf.FzSeparations(),
        0,
        mupdf.python_buffer_data(pixels.data.cast("B")),
    )
    matrix = mupdf.FzMatrix(grid.across / scene.width, 0, 0, grid.down / scene.height, 0, 0)
    device = mupdf.fz_new_draw_device(matrix, target)
    everywhere = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
    # With a cookie MuPDF goes on after a picture that fails, and says so in its warnings.
    mupdf.fz_run_display_list(scene.drawn, device, mupdf.FzMatrix(), everywhere, mupdf.FzCookie())
    mupdf.fz_close_device(device)
    if gray and not in_gray:
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), np.uint8)
    return pixels


def _label(page: Any) -> str:
    try:
        return str(page.get_label())
    except (RuntimeError, ValueError, KeyError, IndexError):
        # Broken labels are no reason to lose a page.
        return ""


def _take_warnings() -> str:
    """MuPDF's messages since the last call, one a line."""
    return str(TOOLS.mupdf_warnings())
