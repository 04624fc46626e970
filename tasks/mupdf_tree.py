"""Broken page trees: finding the pages that exist and hanging them on a new, flat tree.

MuPDF trusts /Count and /Kids. Where they lie it refuses the file, hides pages, or shows a missing
page as an empty one in US letter; all three would lose pages in silence.
"""

from __future__ import annotations

import math
import mmap
import re
from pathlib import Path
from typing import Any

from tasks.mupdf import FAILURES

_REFERENCE = re.compile(r"(\d+)\s+\d+\s+R|null")
_OBJECT = re.compile(rb"(?<![0-9])(\d{1,9})\s+\d{1,5}\s+obj\b")
MAX_OBJECTS = 100_000
"""Highest object number at which compressed pages are looked for; it takes 13 microseconds each."""
_INHERITED = ("Resources", "MediaBox", "CropBox", "Rotate")
"""The attributes a page takes from its ancestors (ISO 32000-1, table 30)."""

Leaf = tuple[int | None, dict[str, str]]
"""A page's object (None if the file does not hold it) and what it inherits."""


def replant(document: Any, path: Path) -> list[int | None]:
    """Gives a document whose pages have not been touched yet a flat tree of its true pages.

    Pages come in the order of the old tree as far as that can be followed, then those which the
    tree has lost, in the order in which they stand in the file.

    Args:
        document: A PyMuPDF document, just opened: MuPDF remembers the first tree it sees.
        path: Its file.

    Returns:
        For every page of the document as the reader sees it, its index in the new tree; None for
        a page which the old tree lists and the file does not hold.
    """
    listed, whole = _walk(document)
    # In a whole tree, pages outside of it are those which somebody deleted.
    if not whole:
        listed += [(xref, {}) for xref in _lost(document, path, listed)]
    root = document.get_new_xref()
    kids: list[int] = []
    order: list[int | None] = []
    for xref, inherited in listed:
        if xref is None:
            order.append(None)
            continue
        order.append(len(kids))
        kids.append(xref)
        for key, value in inherited.items():
            if _key(document, xref, key) is None:
                document.xref_set_key(xref, key, value)
        document.xref_set_key(xref, "Type", "/Page")
        document.xref_set_key(xref, "Parent", f"{root} 0 R")
    references = " ".join(f"{xref} 0 R" for xref in kids)
    document.update_object(root, f"<</Type/Pages/Count {len(kids)}/Kids[{references}]>>")
    catalog = document.pdf_catalog()
    if not catalog:
        catalog = document.get_new_xref()
        document.update_object(catalog, "<</Type/Catalog>>")
        document.xref_set_key(-1, "Root", f"{catalog} 0 R")
    document.xref_set_key(catalog, "Pages", f"{root} 0 R")
    return order


def _walk(document: Any) -> tuple[list[Leaf], bool]:
    """The leaves of the page tree, and whether the tree is whole."""
    leaves: list[Leaf] = []
    catalog = document.pdf_catalog()
    start = _references(_key(document, catalog, "Pages")) if catalog else []
    whole = any(xref and _key(document, xref, "Kids") for xref in start)
    stack: list[Leaf] = [(xref, {}) for xref in start] if whole else []
    seen: set[int] = set()
    while stack:
        xref, inherited = stack.pop()
        if xref is None or not 0 < xref < document.xref_length():
            leaves.append((None, {}))
            continue
        if xref in seen:
            whole = False
            continue
        seen.add(xref)
        own = {key: value for key in _INHERITED if (value := _key(document, xref, key))}
        inherited = inherited | own
        kids = _key(document, xref, "Kids")
        if kids is not None:
            stack += [(kid, inherited) for kid in reversed(_references(kids))]
        elif _is_page(document, xref):
            leaves.append((xref, inherited))
        elif _key(document, xref, "Type") != "/Pages":
            leaves.append((None, {}))
    return leaves, whole and all(xref is not None for xref, _ in leaves)


def _lost(document: Any, path: Path, listed: list[Leaf]) -> list[int]:
    """The pages which hang on no tree, in the order in which they stand in the file."""
    found = {xref for xref, _ in listed}
    place = _offsets(path)
    # Objects within compressed streams have no place of their own: they are found by number, and
    # come last. A damaged file may claim any count of them.
    numbers = set(range(1, min(document.xref_length(), MAX_OBJECTS)))
    numbers.update(xref for xref in place if 0 < xref < document.xref_length())
    lost = [xref for xref in numbers - found if _key(document, xref, "Type") == "/Page"]
    return sorted(lost, key=lambda xref: (place.get(xref, math.inf), xref))


def _is_page(document: Any, xref: int) -> bool:
    kind = _key(document, xref, "Type")
    if kind is not None:
        return kind == "/Page"
    return not document.xref_is_stream(xref) and _key(document, xref, "Contents") is not None


def _key(document: Any, xref: int, key: str) -> str | None:
    """A value of an object as PDF source; None if there is none or the object is no dictionary."""
    try:
        kind, value = document.xref_get_key(xref, key)
    except FAILURES:
        return None
    return None if kind == "null" else str(value)


def _references(value: str | None) -> list[int | None]:
    """The objects that an array (or a single reference) names; None for a null."""
    return [int(match[1]) if match[1] else None for match in _REFERENCE.finditer(value or "")]


def _offsets(path: Path) -> dict[int, int]:
    """Where each object stands in a file; of several versions the last."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {int(match[1]): match.start() for match in _OBJECT.finditer(data)}
