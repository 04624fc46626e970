"""``captions.csv``: what is said of each sample, for a person to read and to correct.

The column ``check`` is a hash of the caption as we wrote it. A row whose caption does not match
it was edited, and stays as it is from then on, with ``edited`` as its source; so does a ``.txt``
beside a picture in a bundle. Where both were edited since the last run, the table wins. The column
``picture`` is of the picture's own hash: the same file name may be another picture after other
settings.

Both hashes begin with a letter that no number begins with: a spreadsheet would rewrite 12e45678.
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
COLUMNS = ("file_name", "caption", "source", "check", "picture")
EDITED = "edited"
CURE = (
    f"Correct the file, or remove it to have all captions written anew. It needs the columns "
    f"{', '.join(COLUMNS[:3])}."
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
            if None in row:
                raise BadSettings(
                    f"{name}, line {reader.line_num}: too many columns; a caption with a comma "
                    "needs quotes around it.",
                    CURE,
                )
            if missing := [column for column in COLUMNS[:3] if row.get(column) is None]:
                raise BadSettings(f"{name}, line {reader.line_num}: no {missing[0]}.", CURE)
            written = row["caption"]
            new = row.get("check") != check(written)
            # A caption that was emptied is written anew.
            if text := tidy(written):
                captions[row["file_name"]] = Caption(
                    text=text,
                    source=EDITED if new else row["source"],
                    tokens=count_tokens(text),
                    picture=row.get("picture") or "",
                    new=new,
                )
    except csv.Error as error:
        raise BadSettings(f"{name}, line {reader.line_num}: {error}.", CURE) from error
    return captions


def write_captions(output: Storage, captions: Mapping[str, Caption]) -> None:
    """Write the table, a row for each file name in the order given."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows: Iterable[tuple[str, Caption]] = captions.items()
    writer.writerows((name, c.text, c.source, check(c.text), c.picture) for name, c in rows)
    output.write(CAPTIONS, stream.getvalue().encode())


def caption(text: str, source: str, sha256: str) -> Caption:
    """A caption with its length, of a picture with this hash."""
    return Caption(text=text, source=source, tokens=count_tokens(text), picture=mark(sha256))


def mark(sha256: str) -> str:
    """A picture in the table: ``s`` and 16 hexadecimal digits."""
    return f"s{sha256[:16]}"


def check(text: str) -> str:
    """What tells a caption that we wrote from one that was changed: ``c`` and 7 digits."""
    return f"c{hashlib.sha256(text.encode()).hexdigest()[:7]}"
