"""``captions.csv``: what is said of each sample, for a person to read and to correct.

The column ``check`` is a hash of the caption as we wrote it. A row whose caption does not match
it was edited, and stays as it is from then on, with ``edited`` as its source; so does a ``.txt``
beside a picture in a bundle. Where both were edited, the table wins.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping

from models.errors import BadSettings
from models.handoff import Caption
from tasks.captions.text import count_tokens, tidy
from tasks.storage import Storage

CAPTIONS = "captions.csv"
COLUMNS = ("file_name", "caption", "source", "check")
EDITED = "edited"
CURE = (
    f"Correct the file, or remove it to have all captions written anew. It needs the columns "
    f"{', '.join(COLUMNS)}."
)


def read_captions(output: Storage) -> dict[str, Caption]:
    """All captions of a dataset by file name; edited ones have ``edited`` as their source.

    The table may have been saved by a spreadsheet: commas, semicolons or tabs, with or without BOM.

    Raises:
        BadSettings: The file is no such table; names line and cause.
    """
    try:
        data = output.read(CAPTIONS)
    except FileNotFoundError:
        return {}
    name = output.path(CAPTIONS)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadSettings(f"{name}, line {line}: it is not UTF-8 text.", CURE) from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    captions: dict[str, Caption] = {}
    try:
        for row in reader:
            if missing := [column for column in COLUMNS[:3] if row.get(column) is None]:
                raise BadSettings(f"{name}, line {reader.line_num}: no {missing[0]}.", CURE)
            written = row["caption"]
            source = row["source"] if row.get("check") == check(written) else EDITED
            # A caption that was emptied is written anew.
            if text := tidy(written):
                captions[row["file_name"]] = caption(text, source)
    except csv.Error as error:
        raise BadSettings(f"{name}, line {reader.line_num}: {error}.", CURE) from error
    return captions


def write_captions(output: Storage, captions: Mapping[str, Caption]) -> None:
    """Write the table, a row for each file name in the order given."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows: Iterable[tuple[str, Caption]] = captions.items()
    writer.writerows((name, c.text, c.source, check(c.text)) for name, c in rows)
    output.write(CAPTIONS, stream.getvalue().encode())


def caption(text: str, source: str) -> Caption:
    """A caption with its length."""
    return Caption(text=text, source=source, tokens=count_tokens(text))


def check(text: str) -> str:
    """What tells a caption that we wrote from one that was changed: 8 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
