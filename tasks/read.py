"""Reading a PDF: opening it whatever its state, and turning its pages into pixels.

Everything here runs inside worker processes: one page in memory, no Prefect, no torch. The
renderer sits behind :class:`Reader`, and nothing but ``tasks/mupdf*.py`` knows which one it is.
``docs/reading.md`` says what is promised and why.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from errno import EHOSTDOWN, EIO, ENODEV, ENOMEM, ENOTCONN, ENXIO, ESTALE, ETIMEDOUT
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.errors import EmptyFile, NotAPdf, OutOfMemory, StorageGone, UnreadableFile
from models.records import PageFacts, PdfFacts, RelativeBox

HEAD_BYTES = 4096
"""How much of the start of a file is looked at. ISO 32000 implementation note 13 lets ``%PDF-``
stand anywhere in the first 1,024 bytes; servers have been seen to put longer HTTP headers there."""
STORAGE_FAILED = (EIO, ENXIO, ENODEV, ENOTCONN, ETIMEDOUT, EHOSTDOWN, ESTALE)
"""Errors that say nothing of the file asked for: the disk or the mount below it failed."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"),
    (b"AT&TFORM", "a DjVu document"),
    (b"PK\x03\x04", "a ZIP archive (or EPUB, DOCX, CBZ)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"%!PS", "a PostScript file"),
    (b"\xd0\xcf\x11\xe0", "an old Microsoft Office document"),
    (b"{\\rtf", "an RTF document"),
    (b"version https://git-lfs", "a Git LFS pointer"),
)
_MARKUP: tuple[tuple[bytes, str], ...] = (
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<head", "an HTML page"),
    (b"<body", "an HTML page"),
    (b"<?xml", "an XML document"),
    (b"<svg", "an SVG drawing"),
    (b"{", "a JSON answer"),
)


@dataclass(frozen=True)
class Raster:
    """Pixels of a page or of a part of one, as displayed.

    Attributes:
        pixels: (H, W) grey or (H, W, 3) RGB, 0 black to 255 white.
        dpi: True resolution of the pixels on the displayed page.
        transforms: What had to be done that one would not expect, in words, for instance
            ``dpi lowered from 600 to 212: pixel budget``.
    """

    pixels: NDArray[np.uint8]
    dpi: float
    transforms: tuple[str, ...] = ()


class Reader(Protocol):
    """An open PDF.

    Attributes:
        facts: What the PDF says of itself.
    """

    facts: PdfFacts

    def page(self, index: int) -> PageFacts:
        """Looks at a page without rendering it.

        Args:
            index: 0-based.

        Raises:
            DamagedPage: The page cannot be loaded, or its geometry makes no sense.
        """

    def render(
        self,
        index: int,
        dpi: float,
        *,
        gray: bool,
        box: RelativeBox | None = None,
        max_pixels: int,
    ) -> Raster:
        """Renders a page, or a part of it, as a viewer displays it, without annotations.

        Args:
            index: 0-based.
            dpi: Wanted resolution; lowered, and said so, where the budget demands it.
            gray: One channel in place of three.
            box: The part of the displayed page; the whole page if None. Its edges are rounded to
                the whole page's pixel grid: at a scan's own resolution a part is, pixel for
                pixel, a crop of the whole.
            max_pixels: Budget: most pixels (H times W) the raster may have.

        Raises:
            DamagedPage: The page cannot be rendered, or what it shows was lost.
            StorageGone: The storage failed while it was read.
            PageTooLarge: Even the lowest useful resolution exceeds the budget.
            OutOfMemory: The renderer ran out of memory.
        """

    def text(self, index: int, box: RelativeBox | None = None) -> str:
        """The text layer of a page or of a part of it; empty if there is none.

        Raises:
            DamagedPage: The page cannot be loaded.
        """

    def close(self) -> None:
        """Gives the file and the renderer's memory back."""


def open_pdf(path: Path, passwords: Sequence[str] = ()) -> Reader:
    """Opens a PDF, repairing what can be repaired.

    Args:
        path: The file.
        passwords: Tried in turn if the file asks for one; an empty one is always tried.

    Raises:
        EmptyFile: No bytes.
        NotAPdf: Something else under a PDF's name.
        TruncatedPdf: Cut short, and no page could be saved.
        DamagedPdf: Broken beyond repair.
        NoPages: Opens, and has no page.
        EncryptedPdf: None of the passwords opens it.
        UnreadableFile: The operating system refuses, or the file vanished.
        StorageGone: The storage failed while the file was read.
        OutOfMemory: The renderer ran out of memory.
    """
    # The renderer is imported late: most of the project needs only the types above.
    from tasks.mupdf_open import open_document

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            # A pipe would block for ever.
            raise UnreadableFile(f"{path} cannot be read: it is not a regular file.")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if not head:
            raise EmptyFile(f"{path} is empty (0 bytes).")
        if other := _what_else(head):
            raise NotAPdf(f"{path} is not a PDF but {other}.")
        return open_document(path, passwords)
    except MemoryError as error:
        raise OutOfMemory(f"{path}: not enough memory to open it.") from error
    except OSError as error:
        if error.errno == ENOMEM:
            raise OutOfMemory(f"{path}: not enough memory to open it.") from error
        raise unreadable(str(path), error) from error


def unreadable(name: str, error: OSError) -> UnreadableFile:
    """What to say of a file that the system refuses to read.

    Raises:
        StorageGone: It does not lie in the file but in the storage.
    """
    why = error.strerror or str(error)
    if error.errno in STORAGE_FAILED:
        raise storage_failed(name, why) from error
    return UnreadableFile(f"{name} cannot be read: {why}.")


def storage_failed(where: str, why: str) -> StorageGone:
    """A read error of the storage, which is never taken for damage of the PDF."""
    return StorageGone(
        f"Failed while reading {where}: {why}.",
        "Check the disk or the mount that holds it (if only this file fails, fetch it again or "
        "take it out of the source), and run the same command again.",
    )


def _what_else(head: bytes) -> str | None:
    """What a file is if it is not a PDF, in words; None if it may be one."""
    if b"%PDF-" in head:
        return None
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for magic, name in _MARKUP:
        if start.startswith(magic):
            return name
    if not head.strip(b"\x00"):
        return "a file of zero bytes (an interrupted download or a failing disk)"
    return None
