"""A picture of the pages a method got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from benchmarks.selection_metrics import Outcome
from models.records import RelativeBox
from tasks.detect.corpus import render_fit

CELL = (330, 240)
"""Height and width of a page on the sheet, in pixels."""
COLUMNS = 8
DRAWN, FOUND = (0, 0, 255), (0, 200, 0)
"""What a person drew is red, what the method found is green (BGR)."""


def write_sheet(outcomes: Sequence[Outcome], corpus: Path, target: Path) -> None:
    """Write a contact sheet with both kinds of boxes; nothing if there is no page for it."""
    if not outcomes:
        target.unlink(missing_ok=True)
        return
    rows = -(-len(outcomes) // COLUMNS)
    height, width = CELL
    sheet = np.full((rows * (height + 16), COLUMNS * width, 3), 128, np.uint8)
    for number, outcome in enumerate(outcomes):
        path, _, index = outcome.key.rpartition("#")
        gray = render_fit(corpus / path, int(index), height - 4)
        page = cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR)[:, : width - 4]
        _frame(page, gray.shape[1], outcome.truth, DRAWN)
        _frame(page, gray.shape[1], [box for box, _ in outcome.boxes], FOUND)
        y, x = number // COLUMNS * (height + 16), number % COLUMNS * width
        sheet[y : y + page.shape[0], x : x + page.shape[1]] = page
        text = f"{outcome.label} {outcome.score:.3f} {outcome.key[-24:]}"
        cv2.putText(sheet, text, (x + 2, y + height + 10), 0, 0.34, (0, 0, 0), 1, cv2.LINE_AA)
    cv2.imwrite(str(target), sheet)


def _frame(
    page: np.ndarray, width: int, boxes: Sequence[RelativeBox], color: tuple[int, int, int]
) -> None:
    for x0, y0, x1, y1 in boxes:
        start = (round(x0 * width), round(y0 * page.shape[0]))
        end = (round(x1 * width) - 1, round(y1 * page.shape[0]) - 1)
        cv2.rectangle(page, start, end, color, 2)
