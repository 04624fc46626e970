"""Making up pages: text in columns, pictures with text round them, plates, tables, covers.

Everything is measured in pixels of the sheet, origin at the top left; `Sheet.em` is the size of
the body type, so a sheet of another resolution is made up in the same proportions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np

from tests.resources import scan_text as text
from tests.resources.scan_subjects import Studio

Box = tuple[float, float, float, float]


@dataclass
class Sheet:
    """One printed page before it is scanned.

    Attributes:
        width: pixels.
        height: pixels.
        kind: text, mixed, plate, blank, cover or table.
        ink: (height, width) uint8, 255 where the press left solid ink.
        pictures: outline of each picture's ink, (n, 2) float32 x, y.
    """

    width: int
    height: int
    kind: str = "blank"
    ink: np.ndarray = field(init=False)
    pictures: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with white paper."""
        self.ink = np.zeros((self.height, self.width), np.uint8)

    @property
    def em(self) -> float:
        """Body type size, pixels."""
        return self.width / 66

    def place(self, picture: np.ndarray, slot: Box, anchor: float = 0.5) -> Box:
        """Print a picture as large as a slot allows and note where its ink is.

        Args:
            picture: ink, (rows, columns) uint8.
            slot: x0, y0, x1, y1 it must stay within.
            anchor: 0 to hang it at the slot's top, 1 to stand it on its bottom.

        Returns:
            x0, y0, x1, y1 of the printed picture.
        """
        h, w = picture.shape
        scale = min((slot[2] - slot[0]) / w, (slot[3] - slot[1]) / h)
        size = max(int(w * scale), 1), max(int(h * scale), 1)
        print_ = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
        x = int((slot[0] + slot[2] - size[0]) / 2)
        y = int(slot[1] + (slot[3] - slot[1] - size[1]) * anchor)
        text.stamp(self.ink, print_, x, y)
        points = cv2.findNonZero((print_ > 90).astype(np.uint8))
        hull = cv2.convexHull(points).reshape(-1, 2).astype(np.float32)
        self.pictures.append(hull + np.float32([x, y]))
        return x, y, x + size[0], y + size[1]

    def rule(self, x0: float, y0: float, x1: float, y1: float, thick: float = 2) -> None:
        """Print a level or upright rule."""
        half = thick / 2
        if y0 == y1:
            y0, y1 = y0 - half, y1 + half
        else:
            x0, x1 = x0 - half, x1 + half
        self.ink[round(y0) : max(round(y1), round(y0) + 1), round(x0) : max(round(x1), round(x0) + 1)] = 235


@dataclass
class Style:
    """What the pages of one periodical have in common.

    Attributes:
        title: running head.
        columns: columns of text on a page.
        date: printed in the running head.
        ruled: whether a rule stands between columns.
    """

    title: str
    columns: int
    date: str
    ruled: bool


def head(sheet: Sheet, style: Style, folio: str, left_hand: bool) -> Box:
    """Print the running head and page number; returns the type area left under it."""
    em = sheet.em
    x0, x1 = sheet.width * 0.085, sheet.width * 0.915
    y = sheet.height * 0.062
    text.put_line(sheet.ink, style.title.upper(), sheet.width / 2, y, text.ROMAN, em * 1.05, em * 0.16, "center")
    outer, inner = (x0, x1) if left_hand else (x1, x0)
    sides = ("left", "right") if left_hand else ("right", "left")
    text.put_line(sheet.ink, folio, outer, y, text.ROMAN, em * 1.15, 0, sides[0])
    text.put_line(sheet.ink, style.date, inner, y, text.ITALIC, em * 0.9, 0, sides[1])
    sheet.rule(x0, y + em * 0.7, x1, y + em * 0.7, em * 0.07)
    return x0, y + em * 1.9, x1, sheet.height * 0.945


def columns_of(area: Box, count: int, gutter: float) -> list[tuple[float, float]]:
    """Divide a type area into columns; returns the left and right of each."""
    wide = (area[2] - area[0] - gutter * (count - 1)) / count
    return [(area[0] + i * (wide + gutter), area[0] + i * (wide + gutter) + wide) for i in range(count)]


def room_beside(span: tuple[float, float], top: float, bottom: float, holes: list[Box], gap: float) -> tuple[float, float]:
    """Find the widest piece of a line which keeps clear of the pictures."""
    pieces = [span]
    for x0, y0, x1, y1 in holes:
        if y1 + gap * 0.7 > top and y0 - gap * 0.7 < bottom:
            cut = []
            for a, b in pieces:
                cut += [(a, min(b, x0 - gap)), (max(a, x1 + gap), b)]
            pieces = [p for p in cut if p[1] > p[0]]
    return max(pieces, key=lambda p: p[1] - p[0], default=(span[0], span[0]))


def flow(sheet: Sheet, style: Style, area: Box, holes: list[Box], rng: np.random.Generator, initial: bool = False) -> None:
    """Fill an area with articles in columns, running round the pictures.

    Args:
        sheet: where to print.
        style: columns and rules.
        area: x0, y0, x1, y1 of the type area.
        holes: boxes to keep clear.
        rng: chooses the words.
        initial: begin with a large initial letter.
    """
    em = sheet.em
    lead = em * 1.17
    gutter = em * (1.7 if style.ruled else 1.5)
    spans = columns_of(area, style.columns, gutter)
    setter = text.Setter(sheet.ink, text.ROMAN, em)
    words: list[str] = []
    left_in_article = int(rng.integers(2, 7))
    fresh = True
    for number, span in enumerate(spans):
        if style.ruled and number:
            ruled_gutter(sheet, span[0] - gutter / 2, area, holes)
        y = area[1] + em
        while y < area[3]:
            if not words:
                if left_in_article <= 0 and y < area[3] - lead * 9:
                    y = heading(sheet, span, y, holes, rng)
                    left_in_article = int(rng.integers(2, 8))
                words = text.paragraph(rng, int(rng.integers(2, 6)))
                left_in_article -= 1
                fresh = True
            a, b = room_beside(span, y - em, y + em * 0.3, holes, em * 0.9)
            if b - a < em * 7:
                y += lead
                continue
            if initial and not number and y == area[1] + em and b - a > em * 12:
                holes = [*holes, initial_letter(sheet, words, a, y, rng)]
                a, b = room_beside(span, y - em, y, holes, em * 0.25)
                fresh = False
            words = setter.line(words, a + (em if fresh else 0), b, y)
            fresh = False
            y += lead


def ruled_gutter(sheet: Sheet, x: float, area: Box, holes: list[Box]) -> None:
    """Print the rule between two columns, broken where a picture stands across it."""
    em = sheet.em
    ends = [area[1]]
    for x0, y0, x1, y1 in sorted(holes, key=lambda b: b[1]):
        if x0 < x < x1:
            ends += [y0 - em, y1 + em]
    ends.append(area[3])
    for y0, y1 in zip(ends[::2], ends[1::2], strict=True):
        if y1 - y0 > em * 3:
            sheet.rule(x, y0, x, y1, em * 0.05)


def heading(sheet: Sheet, span: tuple[float, float], y: float, holes: list[Box], rng: np.random.Generator) -> float:
    """Print an article's heading in a column; returns the next baseline."""
    em = sheet.em
    while y < sheet.height * 0.9:
        a, b = room_beside(span, y - em, y + em * 4, holes, em * 0.9)
        if b - a > (span[1] - span[0]) * 0.9:
            break
        y += em
    else:
        return y
    middle = (a + b) / 2
    sheet.rule(middle - em * 2, y, middle + em * 2, y, em * 0.06)
    y += em * 1.9
    title = text.HEADINGS[int(rng.integers(len(text.HEADINGS)))].upper()
    size = em * 1.12
    while text.word_ink(title, text.BOLD, size)[0].shape[1] > b - a:
        size *= 0.9
    text.put_line(sheet.ink, title, middle, y, text.BOLD, size, 0, "center")
    return y + em * 1.7


def initial_letter(sheet: Sheet, words: list[str], x: float, y: float, rng: np.random.Generator) -> Box:
    """Print the first letter of an article three lines high, in a box of ornament.

    Removes the letter from `words` and returns the box which it fills.
    """
    em = sheet.em
    side = em * 3.35
    letter = words[0].strip("“")[0]
    words[0] = words[0].strip("“")[1:].upper() or words.pop(1)
    top = y - em * 0.78
    tile = np.zeros((int(side), int(side)), np.uint8)
    tile[:] = 255
    for _ in range(7):
        centre = tuple(int(v) for v in rng.uniform(0, side, 2))
        for radius in range(3, int(side * 0.33), 5):
            cv2.circle(tile, centre, radius, int(rng.choice([0, 255])), 1, cv2.LINE_AA)
    mark, ascent = text.word_ink(letter, text.BOLD, em * 3.6)
    ys, xs = np.nonzero(mark > 128)
    glyph = mark[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
    gy, gx = int((side - glyph.shape[0]) / 2), int((side - glyph.shape[1]) / 2)
    view = tile[max(gy, 0) : gy + glyph.shape[0], max(gx, 0) : gx + glyph.shape[1]]
    halo = cv2.dilate(glyph, np.ones((5, 5), np.uint8))[: view.shape[0], : view.shape[1]]
    view[:] = np.maximum(view, halo)
    view[:] = np.minimum(view, 255 - glyph[: view.shape[0], : view.shape[1]])
    cv2.rectangle(tile, (0, 0), (tile.shape[1] - 1, tile.shape[0] - 1), 255, 2)
    text.stamp(sheet.ink, tile, x, top)
    return x, top, x + side, top + side


def captioned(sheet: Sheet, box: Box, rng: np.random.Generator, number: int) -> Box:
    """Print a caption under a picture; returns the box of both."""
    em = sheet.em
    line = text.caption(rng, number)
    size = em * 0.92
    y = box[3] + em * 1.25
    put = text.put_line(sheet.ink, line, (box[0] + box[2]) / 2, y, text.ROMAN, size, 0, "center")
    middle = (box[0] + box[2]) / 2
    return min(box[0], middle - put / 2), box[1], max(box[2], middle + put / 2), y + em * 0.4


Maker = Callable[[Sheet, Style, Box, Studio, np.random.Generator, int], None]


def text_page(sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int) -> None:
    """Print a page of reading, now and then with an initial or an ornament."""
    flow(sheet, style, area, [], rng, initial=number % 3 == 0)


def plate_page(sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int) -> None:
    """Print a full-page picture, framed or open, with a caption."""
    em = sheet.em
    picture = studio.picture("tall")
    box = sheet.place(picture, (area[0] + em, area[1], area[2] - em, area[3] - em * 3))
    captioned(sheet, box, rng, number)


def mixed_page(sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int) -> None:
    """Print one or two pictures among the text."""
    em = sheet.em
    middle = (area[0] + area[2]) / 2
    height = area[3] - area[1]
    form = number % 4
    if form == 0:
        slot = (area[0] + em * 8, area[1] + height * 0.2, area[2] - em * 8, area[1] + height * 0.68)
        slots = [("square", slot)]
    elif form == 1:
        span = columns_of(area, style.columns, em * 1.5)[-1]
        slots = [("narrow", (span[0], area[1] + height * 0.25, span[1], area[1] + height * 0.75))]
    elif form == 2:
        slots = [
            ("square", (area[0], area[1], middle - em, area[1] + height * 0.33)),
            ("narrow", (middle + em, area[1] + height * 0.5, area[2], area[3] - em * 2)),
        ]
    else:
        slots = [("wide", (area[0], area[1], area[2], area[1] + height * 0.45))]
    holes = []
    for n, (shape, slot) in enumerate(slots):
        box = sheet.place(studio.picture(shape), slot)
        holes.append(captioned(sheet, box, rng, number + n))
    flow(sheet, style, area, holes, rng)


def blank_page(sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int) -> None:
    """Leave the page empty."""


def table_page(sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int) -> None:
    """Print a ruled table of prices."""
    em = sheet.em
    text.put_line(sheet.ink, "TABLE OF QUANTITIES AND PRICES", sheet.width / 2, area[1] + em * 2, text.BOLD, em * 1.2, 1, "center")
    top, rows, cols = area[1] + em * 4, int(rng.integers(24, 34)), int(rng.integers(4, 6))
    first = (area[2] - area[0]) * 0.36
    lines = [area[0], *np.linspace(area[0] + first, area[2], cols)]
    step = em * 1.75
    for r in range(rows + 1):
        y = top + r * step
        sheet.rule(area[0], y, area[2], y, em * (0.12 if r in (0, 1, rows) else 0.05))
        if r == rows:
            break
        name = "Material." if r == 0 else f"{text.pick('colour', rng)} {text.pick('stuff', rng)}".capitalize()
        text.put_line(sheet.ink, name, lines[0] + em * 0.5, y + em * 1.2, text.ROMAN, em)
        for c in range(1, cols):
            x = (lines[c] + lines[c + 1]) / 2
            cell = ("Yards.", "Width.", "Price.", "Lining.", "Total.")[c - 1] if r == 0 else f"{rng.integers(1, 30)} {rng.choice(['¼', '½', '¾', ''])}"
            text.put_line(sheet.ink, cell.strip(), x, y + em * 1.2, text.ROMAN, em, 0, "center")
    for x in lines:
        sheet.rule(x, top, x, top + rows * step, em * 0.06)


def cover_page(sheet: Sheet, style: Style, area: Box, studio: Studio, rng: np.random.Generator, number: int) -> None:
    """Print a title page with a picture under the masthead."""
    em = sheet.em
    middle = sheet.width / 2
    size = em * 4.4
    while text.word_ink(style.title, text.BOLD, size)[0].shape[1] > area[2] - area[0]:
        size *= 0.95
    text.put_line(sheet.ink, style.title, middle, area[1] + em * 4, text.BOLD, size, 0, "center")
    y = area[1] + em * 7
    sheet.rule(area[0], y - em * 1.2, area[2], y - em * 1.2, em * 0.1)
    text.put_line(sheet.ink, f"Vol. {number}.", area[0], y, text.ROMAN, em)
    text.put_line(sheet.ink, f"NEW YORK, {style.date.upper()}", middle, y, text.ROMAN, em, 1, "center")
    text.put_line(sheet.ink, "Ten Cents a Copy.", area[2], y, text.ROMAN, em, 0, "right")
    sheet.rule(area[0], y + em * 0.7, area[2], y + em * 0.7, em * 0.1)
    box = sheet.place(studio.picture("tall"), (area[0], y + em * 2, area[2], area[3] - em * 3))
    captioned(sheet, box, rng, 1)


MAKERS: dict[str, Maker] = {
    "text": text_page, "plate": plate_page, "mixed": mixed_page,
    "blank": blank_page, "table": table_page, "cover": cover_page,
}  # fmt: skip
