"""What a worker does to a page that the report shows. Imports neither Prefect nor torch."""

from __future__ import annotations

from tasks import work
from tasks.calibrate.page import to_jpeg

LONG_SIDE = 800
"""Pixels on the longer side of a page's picture."""
QUALITY = 60


def page_picture(path: str, passwords: tuple[str, ...], index: int, max_pixels: int) -> bytes:
    """A page as JPEG.

    Args:
        path: The PDF on the local disk.
        passwords: To open it with.
        index: 0-based page.
        max_pixels: Budget of pixels.

    Raises:
        InputFault: Why the page cannot be drawn.
    """
    with work.page_faults(path, index):
        reader = work.reader_of(path, passwords)
        facts = reader.page(index)
        dpi = LONG_SIDE * 72.0 / max(facts.width, facts.height)
        raster = reader.render(index, dpi, gray=not facts.color, max_pixels=max_pixels)
        return to_jpeg(raster.pixels, QUALITY)
