"""The renderer: MuPDF, through PyMuPDF. No module but ``tasks/mupdf*.py`` imports it.

MuPDF is not thread-safe: one process, one thread. Its warnings go to a buffer which is read after
each step and never reach stderr.
"""

from __future__ import annotations

import math
import re
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

from models.errors import DamagedPage, IntaglioError, OutOfMemory, PageTooLarge, UnreadableFile
from models.records import PageFacts, PdfFacts, RelativeBox
from tasks import mupdf_content, mupdf_damage, mupdf_sole
from tasks.mupdf_direct import Direct
from tasks.mupdf_grid import WHOLE, Grid
from tasks.read import Raster, storage_failed

MIN_DPI = 36.0
"""With less resolution than this, and less than the scan's own, ..."""
MIN_SIDE = 256
"""... and a shorter side of fewer pixels than this, a picture is not worth having."""
STORE_BYTES = 48 << 20
"""MuPDF's store is emptied when this much may be in it (left alone it takes 256 MB). Emptied after
every page, pages of text take ten times as long, since their fonts are loaded anew."""
PAGE_BYTES = 1 << 20
"""What a page leaves there besides pictures, as measured on a manual of 400 pages: 0.6 MB."""
REPAIR = "repairing PDF document"
"""What MuPDF says when it mends a file on the way; complaints before that are settled by it."""
READ_ERROR = re.compile(r"^system error: read error: (.*)$", re.MULTILINE)
"""What MuPDF says when the system cannot read the file; it then goes on as if the file ended
there. Broken compression is a "read error", too, but no "system error"."""

MESSAGE_LENGTH = 160
FAILURES = (mupdf.FzErrorBase, RuntimeError, ValueError)
"""What MuPDF raises, by itself and through PyMuPDF."""
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
        width: In points, as displayed.
        height: In points, as displayed.
        warnings: MuPDF's messages about it.
        pieces: The pictures on it.
        color: Whether anything may be coloured.
        direct: Decodes the picture that is all of the page, if there is one.
        notes: Notes on damage; None while the page was not judged.
    """

    page: Any
    drawn: Any
    width: float
    height: float
    warnings: str
    pieces: list[mupdf_content.Piece] = field(default_factory=list)
    color: bool = True
    direct: Direct | None = None
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
        self._stored = 0

    def page(self, index: int) -> PageFacts:
        """See :meth:`tasks.read.Reader.page`."""
        with self._guard(index):
            scene = self._load(index)
            return PageFacts(
                label=_label(scene.page),
                width=scene.width,
                height=scene.height,
                rotation=_rotation(scene.page),
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
            grid = Grid.of(scene.width, scene.height, dpi, box or WHOLE)
            budget: tuple[str, ...] = ()
            if grid.pixels > max_pixels:
                wanted, grid = grid, grid.within(max_pixels)
                self._check_worth(index, scene, wanted, grid, max_pixels)
                budget = (f"dpi lowered from {dpi:.0f} to {grid.dpi:.0f}: pixel budget",)
            pixels = _decode(scene, grid, gray)
            left = scene.direct.encoded_bytes if scene.direct else 0
            if pixels is None:
                pixels = _draw(scene, grid, gray)
                if scene.notes is None:
                    scene.warnings += take_warnings(self._where(index))
                    self._assess(index, scene, grid, pixels)
                # Pictures are decoded at less than twice the resolution of the raster.
                left = sum(min(piece.size, 4 * pixels.nbytes) for piece in scene.pieces)
            self._tidy(left)
            return Raster(pixels, grid.dpi, budget + (scene.notes or ()))

    def text(self, index: int, box: RelativeBox | None = None) -> str:
        """See :meth:`tasks.read.Reader.text`."""
        with self._guard(index):
            scene = self._load(index)
            x0, y0, x1, y1 = box or WHOLE
            area = mupdf.FzRect(
                x0 * scene.width, y0 * scene.height, x1 * scene.width, y1 * scene.height
            )
            # From the display list, as PyMuPDF's own text is placed on the unrotated page.
            layer = mupdf.FzStextPage(scene.drawn, mupdf.FzStextOptions())
            return str(mupdf.fz_copy_rectangle(layer, area, 0))

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
        where = self._where(index)
        take_warnings(where)
        drawn = mupdf.fz_new_display_list_from_page_contents(page.this)
        scene = _Scene(page, drawn, width, height, take_warnings(where).rpartition(REPAIR)[2])
        scene.pieces = mupdf_content.pieces(drawn, width, height)
        scene.color = mupdf_content.has_color(drawn, scene.pieces)
        if len(scene.pieces) == 1:
            sole = mupdf_sole.find(page, drawn, width, height)
            scene.direct = Direct(sole) if sole else None
        take_warnings(where)
        return scene

    def _tidy(self, left: int) -> None:
        """Empties MuPDF's store once there may be much in it.

        It keeps fonts, which the next page needs, and pictures, which it does not, and cannot be
        asked for its size.

        Args:
            left: Bytes of pictures, decoded or not, which the page at hand may leave there.
        """
        self._stored += PAGE_BYTES + left
        if self._stored > STORE_BYTES:
            TOOLS.store_shrink(100)
            self._stored = 0

    def _check_worth(
        self, index: int, scene: _Scene, wanted: Grid, grid: Grid, max_pixels: int
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

    def _assess(self, index: int, scene: _Scene, grid: Grid, pixels: NDArray[np.uint8]) -> None:
        """Looks for damage, and notes what was found; raises DamagedPage if it is too much."""
        if not mupdf_damage.suspicious(pixels, scene.warnings):
            # A part says nothing of the rest of the page.
            scene.notes = () if grid.box == WHOLE else None
            return
        if grid.box != WHOLE:
            whole = Grid.of(scene.width, scene.height, MIN_DPI, WHOLE).within(MIN_SIDE * MIN_SIDE)
            pixels = _draw(scene, whole, gray=True)
        area = scene.width * scene.height
        scene.notes = mupdf_damage.assess(
            self._where(index), scene.drawn, area, pixels, scene.warnings
        )

    def _where(self, index: int) -> str:
        return f"{self._path}, page {index + 1}"

    @contextmanager
    def _guard(self, index: int) -> Iterator[None]:
        """Turns what MuPDF raises into the project's own errors, and keeps a second thread out."""
        if not _BUSY.acquire(blocking=False):
            raise RuntimeError("MuPDF is not thread-safe; use a process for each reader.")
        try:
            with steady_storage(self._where(index)):
                yield
        except MemoryError as error:
            raise OutOfMemory(f"{self._where(index)}: not enough memory to render it.") from error
        except FAILURES as error:
            raise (
                system_fault(self._where(index), error)
                or DamagedPage(f"{self._where(index)} cannot be rendered: {clean(error)}.")
            ) from error
        finally:
            _BUSY.release()


@contextmanager
def steady_storage(where: str) -> Iterator[None]:
    """Raises StorageGone if the file could not be read meanwhile, whatever MuPDF made of that."""
    try:
        yield
    finally:
        take_warnings(where)


def system_fault(where: str, error: Exception) -> IntaglioError | None:
    """The error that fits if MuPDF failed for want of memory or of a readable file; else None."""
    if not isinstance(error, mupdf.FzErrorSystem):
        return None
    if "alloc" in str(error):
        return OutOfMemory(f"{where}: not enough memory to render it ({clean(error)}).")
    if "read error: " in str(error):
        return storage_failed(where, clean(error))
    return UnreadableFile(f"{where} cannot be read: {clean(error)}.")


def _decode(scene: _Scene, grid: Grid, gray: bool) -> NDArray[np.uint8] | None:
    """A page that is one picture, decoded directly; None if it must be rendered.

    Whatever looks as if it might be damaged is rendered, and judged there.
    """
    if scene.direct is None or scene.notes:
        return None
    pixels = scene.direct.render(grid, gray)
    if pixels is None or mupdf_damage.suspicious(pixels, scene.warnings):
        return None
    return pixels


def _draw(scene: _Scene, grid: Grid, gray: bool) -> NDArray[np.uint8]:
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


def _rotation(page: Any) -> int:
    """The turn that MuPDF really gives a page; it rounds values which are no multiple of 90."""
    box, turn = mupdf.FzRect(), mupdf.FzMatrix()
    mupdf.pdf_page_transform(mupdf.pdf_page_from_fz_page(page.this), box, turn)
    return round(math.degrees(math.atan2(turn.b, turn.a)) / 90) * 90 % 360


def _label(page: Any) -> str:
    try:
        return str(page.get_label())
    except (*FAILURES, LookupError, TypeError):
        # Broken labels are no reason to lose a page.
        return ""


def take_warnings(where: str) -> str:
    """MuPDF's messages since the last call, each with its line end.

    Raises:
        StorageGone: The system could not read the file.
    """
    lines = TOOLS.mupdf_warnings().split("\n")
    warnings = "".join(f"{clean(line)}\n" for line in lines if line)
    if failed := READ_ERROR.search(warnings):
        raise storage_failed(where, failed[1])
    return warnings


def clean(message: object) -> str:
    """A message that quotes from a damaged file, fit for a log: printable and not too long."""
    text = str(message)[:MESSAGE_LENGTH]
    return "".join(letter if letter.isprintable() else "?" for letter in text)
