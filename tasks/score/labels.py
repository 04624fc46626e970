"""``labels.csv`` of scoring: what a person said of samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection

from models.errors import BadSettings
from tasks.places import filesystem
from tasks.score.prompts import Prompts
from tasks.storage import named_errors

ILLUSTRATION = "illustration"
OTHERS = ("other", "text", "blank", "cover")
"""Labels of what is no illustration, besides the negative classes of the prompts."""
ENCODING = "Save it again as UTF-8 (in a spreadsheet program: CSV UTF-8)."


def read_labels(
    place: str, prompts: Prompts, names: Collection[str] | None = None
) -> dict[str, bool]:
    """What a person said: by file name, whether a sample is an illustration.

    Args:
        place: Path or fsspec URL of a CSV with commas, semicolons or tabs; empty for none.
        prompts: Their classes may stand as labels, too.
        names: Samples of the manifest; None where there is none yet.

    Raises:
        BadSettings: Naming line and cause.
    """
    if not place:
        return {}
    fs, path = filesystem(place)
    with named_errors(f"reading {place}"):
        if not fs.isfile(path):
            raise BadSettings(f"labels: there is no file {place}.")
        data: bytes = fs.cat_file(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSettings(f"labels: {place} is not UTF-8 text.", ENCODING) from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise BadSettings(f"labels: {place}, line {reader.line_num + 1}: {error}.") from error
    if not {"file_name", "label"} <= set(reader.fieldnames or ()):
        raise BadSettings(f"labels: {place} needs the columns file_name and label.")
    # Classes last: a person's own prompts may want maps, or text.
    meaning = {ILLUSTRATION: True} | dict.fromkeys(OTHERS, False)
    meaning |= dict.fromkeys(prompts.positive, True) | dict.fromkeys(prompts.negative, False)
    of_label = {name.casefold(): is_wanted for name, is_wanted in meaning.items()}
    labels: dict[str, bool] = {}
    for line, row in rows:
        said, name = (row["label"] or "").strip(), (row["file_name"] or "").strip()
        if not said:
            continue
        where = f"labels: {place}, line {line}"
        if said.casefold() not in of_label:
            cure = f"A label is one of {', '.join(meaning)}, or empty where unsure."
            raise BadSettings(f"{where}: {said!r} is no label.", cure)
        if names is not None and name not in names:
            raise BadSettings(f"{where}: the manifest has no sample {name!r}.")
        is_wanted = of_label[said.casefold()]
        if labels.setdefault(name, is_wanted) is not is_wanted:
            raise BadSettings(f"{where}: {name} was said to be something else before.")
    if not labels:
        raise BadSettings(f"labels: {place} has no label filled in.")
    return labels
