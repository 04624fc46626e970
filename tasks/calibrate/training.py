"""``training/labels.csv``: the labelled pages with their boxes, to correct and to train on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from models.calibrate import CalibrateSettings, Label, SeenPage
from models.errors import BadSettings
from models.records import Region, RegionKind, RelativeBox
from tasks.decide import counts
from tasks.detect import table
from tasks.detect.table import Row, label_of, read_page, read_rows

MADE_AS = "made_as"
"""Column for the label that a row was made for, whatever a person then made of the row."""
COLUMNS = ("path", "page", "label", "boxes", "ornaments", "ruled", "work", MADE_AS)
UP = "../"
"""What leads from the table's folder to that of the pictures."""
RULED = (RegionKind.MUSIC, RegionKind.TABLE)
CURE = (
    "Correct the table. Or remove it: it is then made anew, without what was corrected in it by "
    "hand."
)


def parse_training(data: bytes, name: str) -> list[Row]:
    """The rows of a table that an earlier run made and a person may have corrected.

    Args:
        data: The file's bytes.
        name: The file's name, for messages.

    Raises:
        BadSettings: The trainer could not read it; names file and line.
    """
    rows: dict[tuple[str, int], Row] = {}
    try:
        for where, row in read_rows(data, name, (*table.COLUMNS, "boxes")):
            page = read_page(Path(), row, where)
            for said in (page.label, _made_as(row)):
                if said not in list(Label):
                    raise BadSettings(f"{where}: {said!r} is no label.")
            if rows.setdefault((page.path, page.index), row) is not row:
                raise BadSettings(f"{where}: {page.path} has a row already.")
    except BadSettings as error:
        raise BadSettings(error.message, CURE) from error
    return list(rows.values())


def add_pages(
    settings: CalibrateSettings, rows: Sequence[Row], seen: Iterable[SeenPage]
) -> list[Row]:
    """The rows with those of newly labelled pages added.

    A row that is there stays as it is, since a person may have corrected it, unless what is said
    of its page has changed between illustrated, not illustrated and neither, both since the row
    was made and from what the row itself says. Boxes that it has stay if the page is illustrated.
    """
    added = {(row["path"], int(row["page"] or 0)): row for row in rows}
    for page in seen:
        label = page.page.label
        if label is None or not page.detections:
            continue
        made = _make(settings, page, label)
        key = made["path"], 0
        there = added.get(key)
        said = [] if there is None else [_made_as(there), label_of(there)]
        if label.illustrated in [Label(one).illustrated for one in said]:
            continue
        if there and label.illustrated and there["boxes"] not in ("", "[]"):
            made["boxes"] = there["boxes"]
        added[key] = made
    return list(added.values())


def format_training(rows: Sequence[Row]) -> bytes:
    """The table, with columns that a person added after its own."""
    columns = dict.fromkeys((*COLUMNS, *(column for row in rows for column in row)))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def pictures(rows: Iterable[Row]) -> set[str]:
    """The pictures that rows speak of, relative to the sheet."""
    return {row["path"].removeprefix(UP) for row in rows}


def _make(settings: CalibrateSettings, seen: SeenPage, label: Label) -> Row:
    detection = seen.detections["layout"]
    found = [r for r in detection.regions if label.illustrated and counts(r, detection, settings)]
    others = [region for region in detection.regions if region not in found]
    boxes = _show(found)
    if not found and label.illustrated is not False:
        # No boxes are not the same as none to draw: such a page is left out of training.
        boxes = ""
    return {
        "path": f"{UP}{seen.page.picture}",
        "page": "0",
        "label": label,
        "boxes": boxes,
        "ornaments": _show(r for r in others if r.kind is RegionKind.ORNAMENT),
        "ruled": _show(r for r in others if r.kind in RULED),
        "work": seen.page.volume,
        MADE_AS: label,
    }


def _made_as(row: Row) -> str:
    return row.get(MADE_AS, "").strip().lower() or label_of(row)


def _show(regions: Iterable[Region]) -> str:
    boxes: list[RelativeBox] = [region.box for region in regions]
    return json.dumps([[round(side, 4) for side in box] for box in boxes])
