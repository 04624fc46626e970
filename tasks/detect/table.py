"""The table of a labelled folder: its rows, and what each says of a page.

Knows nothing of the files themselves; :mod:`tasks.detect.corpus` describes the columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from models.errors import BadSettings
from models.records import RelativeBox

ILLUSTRATED = ("mixed", "illustration")
PLAIN = ("text", "blank")
COLUMNS = ("path", "page", "label", "work")
"""Columns that every table has."""

Row = dict[str, str]
"""A line of a table, by column."""


@dataclass(frozen=True)
class LabelledPage:
    """A page and what a person saw on it.

    Attributes:
        file: The PDF or page image.
        path: The same as written in ``labels.csv``.
        boxes: Pictures; None if nobody drew them.
        ornaments: Ornaments and initials; None if nobody drew them.
        ruled: Music, tables and forms; None if nobody drew them.
        boxes_source: How the boxes were drawn; empty if the table does not say.
    """

    file: Path
    path: str
    index: int
    label: str
    work: str
    note: str
    boxes: tuple[RelativeBox, ...] | None
    ornaments: tuple[RelativeBox, ...] | None
    ruled: tuple[RelativeBox, ...] | None
    boxes_source: str = ""

    @property
    def illustrated(self) -> bool:
        """Whether the page should be kept."""
        return self.label in ILLUSTRATED

    @property
    def judged(self) -> bool:
        """Whether the page counts in precision and recall."""
        return self.label in ILLUSTRATED + PLAIN


def read_rows(
    data: bytes, name: str, columns: Sequence[str] = COLUMNS
) -> Iterator[tuple[str, Row]]:
    """The rows of a table as spreadsheets write it: commas, semicolons or tabs, with BOM or not.

    Args:
        data: The file's bytes.
        name: The file's name, for messages.
        columns: Those it must have.

    Yields:
        Where a row stands, for messages, and the row.

    Raises:
        BadSettings: It is no such table; names file and line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadSettings(f"{name}, line {line}: it is not UTF-8 text.") from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        head = list(rows.fieldnames or ())
        if missing := [column for column in columns if column not in head]:
            raise BadSettings(f"{name}, line 1: it has no column {', '.join(missing)}.")
        if twice := [column for column in head if head.count(column) > 1]:
            raise BadSettings(f"{name}, line 1: two of its columns are called {twice[0]!r}.")
        for row in rows:
            where = f"{name}, line {rows.line_num}"
            if None in row or None in [row[column] for column in columns]:
                raise BadSettings(f"{where}: it has more or fewer cells than line 1.")
            yield where, {column: cell or "" for column, cell in row.items()}
    except csv.Error as error:
        raise BadSettings(f"{name}, line {rows.line_num}: {error}.") from error


def read_page(folder: Path, row: Row, where: str) -> LabelledPage:
    """What a row says.

    Args:
        folder: What paths in the table are relative to.
        row: The row.
        where: Where it stands, for messages.

    Raises:
        BadSettings: A cell cannot be read.
    """
    try:
        return _page(folder, row)
    except ValueError as error:
        raise BadSettings(f"{where}: {error}.") from error


def label_of(row: Row) -> str:
    """What a row says that is on its page."""
    return row["label"].strip().lower()


def _page(folder: Path, row: Row) -> LabelledPage:
    label, index = label_of(row), int(row["page"] or 0)
    if not row["path"] or index < 0:
        raise ValueError("it names no page: path is a file, and page its number from 0")
    boxes = _boxes(row.get("boxes"))
    if boxes is None and label in PLAIN:
        boxes = ()
    return LabelledPage(
        file=folder / row["path"],
        path=row["path"],
        index=index,
        label=label,
        work=row["work"],
        note=row.get("note") or "",
        boxes=boxes,
        ornaments=_boxes(row.get("ornaments")),
        ruled=_boxes(row.get("ruled")),
        boxes_source=row.get("boxes_source") or "",
    )


def _boxes(text: str | None) -> tuple[RelativeBox, ...] | None:
    if not text:
        return None
    try:
        boxes = _BOXES.validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(f"{text[:80]!r} is no list of boxes [x0, y0, x1, y1]") from error
    for x0, y0, x1, y1 in boxes:
        if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
            raise ValueError(f"{text[:80]!r}: sides are from 0 to 1, x0 before x1, y0 before y1")
    return tuple(boxes)


_BOXES = TypeAdapter(list[RelativeBox])
