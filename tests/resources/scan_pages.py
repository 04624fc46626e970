"""The kinds of page in a periodical: reading, plates, both together, tables, covers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.resources import scan_ornament as ornament
from tests.resources import scan_prose as prose
from tests.resources import scan_text as text
from tests.resources.scan_layout import Box, Sheet, Style, captioned, flow
from tests.resources.scan_subjects import Studio

Maker = Callable[[Sheet, Style, Box, Studio, np.random.Generator, int], None]


def text_page(
    sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int
) -> None:
    """Print a page of reading, now and then with an initial or an ornament."""
    em = sheet.em
    if number % 5 == 1:
        band = ornament.headpiece(int(area[2] - area[0]), int(em * 4.2), rng)
        text.stamp(sheet.ink, band, area[0], area[1])
        area = area[0], area[1] + em * 6, area[2], area[3]
    if number % 4 == 2:
        wide = int((area[2] - area[0]) * 0.3)
        piece = ornament.tailpiece(wide, int(em * 3.4), rng)
        text.stamp(sheet.ink, piece, sheet.width / 2 - wide / 2, area[3] - em * 3.2)
        area = area[0], area[1], area[2], area[3] - em * 4.6
    flow(sheet, style, area, [], rng, initial=number % 3 == 1)


def plate_page(
    sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int
) -> None:
    """Print a full-page picture, framed or open, with a caption."""
    em = sheet.em
    picture = studio.picture("tall", style.year)
    box = sheet.place(picture, (area[0] + em, area[1], area[2] - em, area[3] - em * 3))
    captioned(sheet, box, picture.title, number, rng)


def mixed_page(
    sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int
) -> None:
    """Print one or two pictures among the text."""
    x0, y0, x1, y1 = area
    wide, high = x1 - x0, y1 - y0
    forms: tuple[tuple[tuple[str, tuple[float, float, float, float]], ...], ...] = (
        (("square", (0.16, 0.2, 0.84, 0.66)),),
        (("narrow", (0.62, 0.22, 1.0, 0.78)),),
        (("square", (0.0, 0.0, 0.48, 0.36)), ("narrow", (0.56, 0.5, 1.0, 0.96))),
        (("wide", (0.0, 0.0, 1.0, 0.44)),),
        (("wide", (0.0, 0.54, 1.0, 0.96)),),
        (("square", (0.0, 0.28, 0.49, 0.66)), ("square", (0.51, 0.28, 1.0, 0.66))),
        (("tall", (0.0, 0.1, 0.6, 0.72)),),
        (("narrow", (0.0, 0.04, 0.4, 0.5)), ("square", (0.5, 0.56, 1.0, 0.94))),
    )
    holes = []
    for n, (shape, slot) in enumerate(forms[studio.turn("mixed", len(forms))]):
        picture = studio.picture(shape, style.year)
        a, b, c, d = slot
        box = sheet.place(picture, (x0 + a * wide, y0 + b * high, x0 + c * wide, y0 + d * high))
        holes.append(captioned(sheet, box, picture.title, number + n, rng))
    flow(sheet, style, area, holes, rng)


def blank_page(
    sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int
) -> None:
    """Leave the page empty."""


def table_page(
    sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int
) -> None:
    """Print a ruled table of prices."""
    em = sheet.em
    text.put_line(
        sheet.ink,
        "TABLE OF QUANTITIES AND PRICES",
        sheet.width / 2,
        area[1] + em * 2,
        text.BOLD,
        em * 1.2,
        1,
        "center",
    )
    top, rows, cols = area[1] + em * 4, int(rng.integers(28, 42)), int(rng.integers(4, 6))
    first = (area[2] - area[0]) * 0.36
    lines = [area[0], *np.linspace(area[0] + first, area[2], cols)]
    step = em * 1.75
    for r in range(rows + 1):
        y = top + r * step
        sheet.rule(area[0], y, area[2], y, em * (0.12 if r in (0, 1, rows) else 0.05))
        if r == rows:
            break
        name = (
            "Material."
            if r == 0
            else f"{prose.pick('colour', rng)} {prose.pick('stuff', rng)}".capitalize()
        )
        text.put_line(sheet.ink, name, lines[0] + em * 0.5, y + em * 1.2, text.ROMAN, em)
        for c in range(1, cols):
            x = (lines[c] + lines[c + 1]) / 2
            cell = (
                ("Yards.", "Width.", "Price.", "Lining.", "Total.")[c - 1]
                if r == 0
                else f"{rng.integers(1, 30)} {rng.choice(['¼', '½', '¾', ''])}"
            )
            text.put_line(sheet.ink, cell.strip(), x, y + em * 1.2, text.ROMAN, em, 0, "center")
    for x in lines:
        sheet.rule(x, top, x, top + rows * step, em * 0.06)


def cover_page(
    sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int
) -> None:
    """Print a title page with a picture under the masthead."""
    em = sheet.em
    middle = sheet.width / 2
    title = ornament.masthead(style.title, int(area[2] - area[0]), rng)
    text.stamp(sheet.ink, title, middle - title.shape[1] / 2, area[1])
    y = area[1] + title.shape[0] + em * 2
    sheet.rule(area[0], y - em * 1.2, area[2], y - em * 1.2, em * 0.1)
    text.put_line(sheet.ink, f"Vol. XX., No. {rng.integers(1, 53)}.", area[0], y, text.ROMAN, em)
    text.put_line(
        sheet.ink, f"NEW YORK, {style.date.upper()}", middle, y, text.ROMAN, em, 1, "center"
    )
    text.put_line(sheet.ink, "Ten Cents a Copy.", area[2], y, text.ROMAN, em, 0, "right")
    sheet.rule(area[0], y + em * 0.7, area[2], y + em * 0.7, em * 0.1)
    picture = studio.picture("tall", style.year)
    box = sheet.place(picture, (area[0], y + em * 2, area[2], area[3] - em * 3))
    captioned(sheet, box, picture.title, 1, rng)


MAKERS: dict[str, Maker] = {
    "text": text_page, "plate": plate_page, "mixed": mixed_page,
    "blank": blank_page, "table": table_page, "cover": cover_page,
}  # fmt: skip
