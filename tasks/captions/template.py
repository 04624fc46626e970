"""The caption that needs nothing but the record: medium, decade and title."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from models.handoff import Captions
from models.records import Sample

MEDIUM = {
    "engraving": "engraving",
    "photograph": "halftone photograph",
    "ornament": "printed ornament",
    "map": "printed map",
    "music": "printed music",
    "table": "printed table",
    "other": "printed illustration",
}
"""What a kind of region is called in a caption."""
_YEAR = re.compile(r"(?<!\d)(1[4-9]\d\d|20[0-2]\d)(?!\d)")
FIRST_PDF = 1993
"""The year of the first PDF: an earlier date in the metadata is that of the print."""


def template(sample: Sample, settings: Captions) -> str:
    """Medium and decade of a sample, as "engraving, 1880s"; without a known year no decade."""
    medium = settings.medium or MEDIUM[sample.kind]
    year = year_of(sample)
    return f"{medium}, {year // 10 * 10}s" if year else medium


def year_of(sample: Sample) -> int | None:
    """The year of the print: from the PDF's title and name, else from a date older than PDFs."""
    metadata = sample.metadata
    for text in _said(sample):
        if years := [int(year) for year in _YEAR.findall(text)]:
            return years[0]
    for field in ("creationDate", "modDate"):
        found = re.match(r"(?:D:)?(\d{4})", metadata.get(field, ""))
        if found and 1450 <= int(found[1]) < FIRST_PDF:
            return int(found[1])
    return None


def _said(sample: Sample) -> Iterator[str]:
    for field in ("title", "subject", "keywords"):
        yield sample.metadata.get(field, "")
    # The file's own name says more than that of its folder.
    yield from reversed(PurePosixPath(sample.pdf).parts)
