"""``labels.csv``: what a person said of pages, and the form to say it in."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from models.calibrate import JudgedPage, Label
from models.errors import BadSettings
from models.records import Pdf
from tasks.calibrate.sample import PageKey, usable
from tasks.detect.table import Row, label_of, read_rows

COLUMNS = ("pdf", "page_index", "label", "guess")
NEEDED = COLUMNS[:3]
CURE = f"Correct the file: a label is one of {', '.join(Label)}, or empty where unsure."


def parse_labels(data: bytes, name: str, archive: list[Pdf]) -> dict[PageKey, Label]:
    """Read a label file as spreadsheets write it: commas, semicolons or tabs, with or without BOM.

    Rows without a label are skipped; columns other than ``pdf``, ``page_index`` and ``label`` are
    ignored.

    Args:
        data: The file's bytes.
        name: The file's name, for messages.
        archive: All PDFs.

    Raises:
        BadSettings: Naming line and cause.
    """
    pages = {pdf.name: pdf.facts.page_count for pdf in usable(archive) if pdf.facts}
    # What is said of a copy holds for the PDF that is worked in its stead.
    originals = {pdf.name: pdf.duplicate_of for pdf in archive if pdf.duplicate_of}
    labels: dict[PageKey, Label] = {}
    try:
        for where, row in read_rows(data, name, NEEDED):
            if not label_of(row):
                continue
            key, label = _entry(row, where, pages, originals)
            if labels.setdefault(key, label) is not label:
                before = labels[key].value
                raise BadSettings(f"{where}: {key[0]}, page_index {key[1]} was {before!r} before.")
    except BadSettings as error:
        raise BadSettings(error.message, CURE) from error
    return labels


def _entry(
    row: Row, where: str, pages: Mapping[str, int], originals: Mapping[str, str]
) -> tuple[PageKey, Label]:
    said, index = label_of(row), row["page_index"].strip()
    pdf = originals.get(row["pdf"], row["pdf"])
    if said not in list(Label):
        raise BadSettings(f"{where}: {said!r} is no label.")
    if pdf not in pages:
        raise BadSettings(f"{where}: the archive has no readable PDF {pdf!r}.")
    if not (index.isascii() and index.isdigit() and len(index) < 9):
        raise BadSettings(f"{where}: page_index {index!r} is no number from 0.")
    if int(index) >= pages[pdf]:
        raise BadSettings(
            f"{where}: page_index {index} is beyond the {pages[pdf]} pages of {pdf} (0 is the 1st)."
        )
    return (pdf, int(index)), Label(said)


def format_labels(pages: Iterable[JudgedPage]) -> bytes:
    """The form: a row a page, with the labels there are and what the verdict amounts to."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for page in pages:
        if page.kept is not None or page.label is not None:
            writer.writerow([page.pdf, page.page_index, page.label or "", page.guess or ""])
    return stream.getvalue().encode()
