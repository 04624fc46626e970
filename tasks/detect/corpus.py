"""Reading a labelled folder in the corpus format, for training and for the benchmark.

The format: ``labels.csv`` beside the PDFs and page images it names, with the columns ``path``
(relative to the folder), ``page`` (0-based), ``label`` (text, mixed, illustration, blank or
other), ``boxes`` (JSON list of ``[x0, y0, x1, y1]``, fractions of the displayed page) and
``work`` (what must never be split between training and measuring). Optional columns:
``ornaments`` and ``ruled``, boxes of ornaments and initials, and of music, tables and forms, and
``boxes_source``, how the boxes were drawn (gt: ground truth; eye: read off, to within 2 %).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pymupdf

from models.errors import BadSettings
from tasks.detect.page import Gray
from tasks.detect.table import LabelledPage, read_page, read_rows

UNREADABLE = (IndexError, ValueError, RuntimeError, pymupdf.mupdf.FzErrorBase)
"""What rendering raises of a file that is none of MuPDF's, or of a page that it has not."""


def read_labels(folder: Path, table: Path | None = None) -> list[LabelledPage]:
    """The pages of a labelled folder, in the order of its table.

    Args:
        folder: What paths in the table are relative to.
        table: The table; ``labels.csv`` in the folder if not given.

    Raises:
        BadSettings: The table is not there, lacks a column, or has a row that cannot be read.
    """
    table = table or folder / "labels.csv"
    try:
        data = table.read_bytes()
    except OSError as error:
        raise BadSettings(f"{table} cannot be read: {error}.") from error
    return [read_page(folder, row, where) for where, row in read_rows(data, str(table))]


def render(file: Path, index: int, dpi: float) -> Gray:
    """A page as displayed, (H, W) uint8 grey, at `dpi` pixels per inch."""
    with pymupdf.open(file) as document:
        return _pixels(document[index], dpi)


def render_fit(file: Path, index: int, long_side: int) -> Gray:
    """A page as displayed, (H, W) uint8 grey, with `long_side` pixels on its longer side."""
    with pymupdf.open(file) as document:
        page = document[index]
        return _pixels(page, 72.0 * long_side / max(page.rect.width, page.rect.height))


def page_size(file: Path, index: int) -> tuple[float, float]:
    """Displayed width and height of a page in points."""
    with pymupdf.open(file) as document:
        rect = document[index].rect
        return float(rect.width), float(rect.height)


def scan_type(file: Path, index: int) -> str:
    """bilevel, grey or colour, judged by the largest image and by the pixels of a rendering."""
    with pymupdf.open(file) as document:
        page = document[index]
        largest = max(page.get_image_info(), key=lambda i: i["width"] * i["height"], default=None)
        if largest is not None and largest["bpc"] == 1:
            return "bilevel"
        zoom = min(1.0, 600 / max(page.rect.width, page.rect.height))
        pixmap = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csRGB)
        rows = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)
        pixels = rows[:, : pixmap.width * 3].reshape(-1, 3).astype(np.int16)
    if np.mean(pixels.max(axis=1) - pixels.min(axis=1)) > 6:
        return "colour"
    return "grey" if np.mean((pixels > 40) & (pixels < 215)) > 0.35 else "bilevel"


def by_work(pages: list[LabelledPage]) -> dict[str, list[LabelledPage]]:
    """Pages grouped by work, works in alphabetical order."""
    works: dict[str, list[LabelledPage]] = {}
    for page in sorted(pages, key=lambda page: page.work):
        works.setdefault(page.work, []).append(page)
    return works


def _pixels(page: pymupdf.Page, dpi: float) -> Gray:
    scale = dpi / 72.0
    pixmap = page.get_pixmap(
        matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csGRAY, alpha=False
    )
    rows = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)
    return np.ascontiguousarray(rows[:, : pixmap.width])
