"""``labels.csv``: what a person said of pages, and the form to say it in."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping

from models.calibrate import JudgedPage, Label
from models.errors import BadSettings
from models.records import Pdf
from tasks.calibrate.sample import PageKey, usable

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
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _bad(name, line, "it is not UTF-8 text") from error
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    if missing := [column for column in NEEDED if column not in (reader.fieldnames or ())]:
        raise _bad(name, 1, f"there is no column {missing[0]!r}")
    pages = {pdf.name: pdf.facts.page_count for pdf in usable(archive) if pdf.facts}
    # What is said of a copy holds for the PDF that is worked in its stead.
    originals = {pdf.name: pdf.duplicate_of for pdf in archive if pdf.duplicate_of}
    labels: dict[PageKey, Label] = {}
    for line, row in _rows(reader, name):
        if not (row["label"] or "").strip():
            continue
        key, label = _entry(row, name, line, pages, originals)
        if labels.setdefault(key, label) is not label:
            raise _bad(
                name, line, f"{key[0]}, page_index {key[1]} was {labels[key].value!r} before"
            )
    return labels


def _rows(reader: csv.DictReader[str], name: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Rows with the number of the line they end on."""
    try:
        for row in reader:
            yield reader.line_num, dict(row)
    except csv.Error as error:
        raise _bad(name, reader.line_num, str(error)) from error


def _entry(
    row: dict[str, str | None],
    name: str,
    line: int,
    pages: Mapping[str, int],
    originals: Mapping[str, str],
) -> tuple[PageKey, Label]:
    said = (row["label"] or "").strip()
    try:
        label = Label(said.lower())
    except ValueError:
        raise _bad(name, line, f"{said!r} is no label") from None
    pdf, index = row["pdf"] or "", (row["page_index"] or "").strip()
    pdf = originals.get(pdf, pdf)
    if pdf not in pages:
        raise _bad(name, line, f"the archive has no readable PDF {pdf!r}")
    if not (index.isascii() and index.isdigit() and len(index) < 9):
        raise _bad(name, line, f"page_index {index!r} is no number from 0")
    if int(index) >= pages[pdf]:
        raise _bad(
            name,
            line,
            f"page_index {index} is beyond the {pages[pdf]} pages of {pdf} (0 is the 1st)",
        )
    return (pdf, int(index)), label


def format_labels(pages: Iterable[JudgedPage]) -> bytes:
    """The form: a row a page, with the labels there are and what the verdict amounts to."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for page in pages:
        if page.kept is not None or page.label is not None:
            writer.writerow([page.pdf, page.page_index, page.label or "", page.guess or ""])
    return stream.getvalue().encode()


def _bad(name: str, line: int, cause: str) -> BadSettings:
    return BadSettings(f"{name}, line {line}: {cause}.", CURE)
