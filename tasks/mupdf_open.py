"""Opening a PDF with MuPDF, and telling what is wrong with one that does not open."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pymupdf

from models.errors import DamagedPdf, EncryptedPdf, NoPages, NotAPdf, TruncatedPdf
from models.records import PdfFacts
from tasks.mupdf import (
    FAILURES,
    REPAIR,
    TOOLS,
    MuPdfReader,
    clean,
    steady_storage,
    system_fault,
    take_warnings,
)
from tasks.mupdf_tree import replant
from tasks.read import Reader

TAIL_BYTES = 2048
"""Where ``%%EOF`` must stand: in the last 1,024 bytes by ISO 32000, and some writers pad."""
_NOT_WRITTEN = ("format", "encryption")
"""What PyMuPDF adds to the metadata of its own."""
END_OF_OBJECT = b"endobj"

_document: Any = pymupdf.Document


def open_document(path: Path, passwords: Sequence[str]) -> Reader:
    """Opens a PDF; see :func:`tasks.read.open_pdf`."""
    try:
        with steady_storage(str(path)):
            return _reader(path, passwords)
    except FAILURES as error:
        raise (
            system_fault(str(path), error)
            or DamagedPdf(f"{path} cannot be opened: {clean(error)}.")
        ) from error


def _reader(path: Path, passwords: Sequence[str]) -> Reader:
    document = _open(path, passwords)
    repaired, sound = _examine(document, path)
    order: list[int | None] | None = None
    if not sound:
        document.close()
        document = _open(path, passwords)
        try:
            order = replant(document, path)
        except FAILURES:
            order = []
    count = document.page_count if order is None else len(order)
    if count < 1 or (order is not None and all(place is None for place in order)):
        # Pages that are listed and not there are damage; only an empty list is a PDF of no pages.
        _refuse(path, repaired or bool(order))
    written = document.metadata or {}
    metadata = {
        # Broken strings come with lone surrogates, which no JSON file takes.
        key: value.encode("utf-8", "replace").decode()
        for key, value in written.items()
        if key not in _NOT_WRITTEN and isinstance(value, str) and value
    }
    facts = PdfFacts(
        page_count=count,
        metadata=metadata,
        repaired=repaired or not sound,
        encrypted=bool(written.get("encryption")),
    )
    return MuPdfReader(path, document, facts, order)


def _open(path: Path, passwords: Sequence[str]) -> Any:
    """Opens and unlocks."""
    TOOLS.reset_mupdf_warnings()
    try:
        document: Any = _document(path, filetype="pdf")
    except pymupdf.FileDataError:
        take_warnings(str(path))
        document = _open_start(path)
    if not document.is_pdf:
        raise NotAPdf(f"{path} is not a PDF.")
    # MuPDF has tried the empty password by now.
    if document.needs_pass and not any(document.authenticate(word) for word in passwords):
        tried = f"none of the {len(passwords)} given opens it" if passwords else "none was given"
        raise EncryptedPdf(f"{path} needs a password: {tried}.")
    return document


def _open_start(path: Path) -> Any:
    """Opens a file up to its last whole object: MuPDF's repair gives up on half a dictionary."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = data.rfind(END_OF_OBJECT)
    if end < 0:
        _refuse(path, repaired=True)
    whole = np.memmap(path, np.uint8, "r", shape=(end + len(END_OF_OBJECT),))
    try:
        return _document(stream=whole.data, filetype="pdf")
    except pymupdf.FileDataError:
        _refuse(path, repaired=True)


def _examine(document: Any, path: Path) -> tuple[bool, bool]:
    """Whether MuPDF had to repair a document, and whether its page tree can be trusted.

    Asking for the last page makes MuPDF walk the whole tree and compare it with /Count.
    """
    try:
        count = document.page_count
        if count > 0:
            document.page_xref(count - 1)
        sound = count > 0
    except FAILURES:
        sound = False
    warnings = take_warnings(str(path))
    repaired = bool(document.is_repaired) or REPAIR in warnings
    return repaired, sound and "page tree" not in warnings


def _refuse(path: Path, repaired: bool) -> NoReturn:
    """Raises the error that fits a file in which no page was found."""
    with path.open("rb") as file:
        head = file.read(TAIL_BYTES)
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        ends = b"%%EOF" in file.read()
    if b"%PDF-" not in head and not ends:
        raise NotAPdf(f"{path} is not a PDF: it starts with {head[:16]!r}.")
    if not ends:
        raise TruncatedPdf(f"{path} is cut short, and no page could be saved.")
    if repaired:
        raise DamagedPdf(f"{path} is damaged, and no page could be found in it.")
    raise NoPages(f"{path} has no pages.")
