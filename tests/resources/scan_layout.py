"""Making up pages: running heads, text in columns, pictures with text round them, captions.

Everything is measured in pixels of the sheet, origin at the top left; `Sheet.em` is the size of
the body type, so a sheet of another resolution is made up in the same proportions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from tests.resources import scan_ornament as ornament
from tests.resources import scan_prose as prose
from tests.resources import scan_text as text

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Picture:
    """A finished block, ready for the press.

    Attributes:
        ink: (rows, columns) uint8, cropped to the ink.
        title: form of words for its caption.
        tint: (rows, columns, 3) uint8, R, G, B washes of colour, or None.
    """

    ink: np.ndarray
    title: str
    tint: np.ndarray | None = None


@dataclass
class Sheet:
    """One printed page before it is scanned.

    Attributes:
        width: pixels.
        height: pixels.
        ink: (height, width) uint8, 255 where the press left solid ink.
        pictures: first and last ink of each row of each picture, (n, 2) float32 x, y.
        tint: (height, width, 3) uint8, R, G, B washes of a coloured plate, or None.
    """

    width: int
    height: int
    ink: np.ndarray = field(init=False)
    pictures: list[np.ndarray] = field(default_factory=list)
    tint: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Start with white paper."""
        self.ink = np.zeros((self.height, self.width), np.uint8)

    @property
    def em(self) -> float:
        """Body type size, pixels."""
        return self.width / 66

    def place(self, picture: Picture, slot: Box, anchor: float = 0.5) -> Box:
        """Print a picture as large as a slot allows and note where its ink is.

        Args:
            picture: what to print.
            slot: x0, y0, x1, y1 it must stay within.
            anchor: 0 to hang it at the slot's top, 1 to stand it on its bottom.

        Returns:
            x0, y0, x1, y1 of the printed picture.
        """
        h, w = picture.ink.shape
        scale = min((slot[2] - slot[0]) / w, (slot[3] - slot[1]) / h)
        size = max(int(w * scale), 1), max(int(h * scale), 1)
        print_ = cv2.resize(picture.ink, size, interpolation=cv2.INTER_AREA)
        x = int((slot[0] + slot[2] - size[0]) / 2)
        y = int(slot[1] + (slot[3] - slot[1] - size[1]) * anchor)
        text.stamp(self.ink, print_, x, y)
        if picture.tint is not None:
            self.tint = np.full((self.height, self.width, 3), 255, np.uint8)
            self.tint[y : y + size[1], x : x + size[0]] = cv2.resize(picture.tint, size)
        # A lone hairline running out of a vignette is not where a reader sees the picture end.
        near = int(self.em * 0.6)
        mask = (print_ > 90) & (cv2.blur(print_, (near, near)) > 42)
        rows = np.flatnonzero(mask.any(1))
        ends = mask.argmax(1)[rows], size[0] - 1 - mask[:, ::-1].argmax(1)[rows]
        outline = np.stack([np.concatenate(ends), np.tile(rows, 2)], 1)
        self.pictures.append(outline.astype(np.float32) + np.float32([x, y]))
        return x, y, x + size[0], y + size[1]

    def rule(self, x0: float, y0: float, x1: float, y1: float, thick: float = 2) -> None:
        """Print a level or upright rule."""
        half = thick / 2
        if y0 == y1:
            y0, y1 = y0 - half, y1 + half
        else:
            x0, x1 = x0 - half, x1 + half
        self.ink[
            round(y0) : max(round(y1), round(y0) + 1), round(x0) : max(round(x1), round(x0) + 1)
        ] = 235


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

    @property
    def year(self) -> int:
        """Year of the date."""
        return int(self.date.rstrip(".")[-4:])


def head(sheet: Sheet, style: Style, folio: str, left_hand: bool) -> Box:
    """Print the running head and page number; returns the type area left under it."""
    em = sheet.em
    x0, x1 = sheet.width * 0.085, sheet.width * 0.915
    y = sheet.height * 0.062
    text.put_line(
        sheet.ink,
        style.title.upper(),
        sheet.width / 2,
        y,
        text.ROMAN,
        em * 1.05,
        em * 0.16,
        "center",
    )
    outer, inner = (x0, x1) if left_hand else (x1, x0)
    sides = ("left", "right") if left_hand else ("right", "left")
    text.put_line(sheet.ink, folio, outer, y, text.ROMAN, em * 1.15, 0, sides[0])
    text.put_line(sheet.ink, style.date, inner, y, text.ITALIC, em * 0.9, 0, sides[1])
    sheet.rule(x0, y + em * 0.7, x1, y + em * 0.7, em * 0.07)
    return x0, y + em * 1.9, x1, sheet.height * 0.945


def columns_of(area: Box, count: int, gutter: float) -> list[tuple[float, float]]:
    """Divide a type area into columns; returns the left and right of each."""
    wide = (area[2] - area[0] - gutter * (count - 1)) / count
    return [
        (area[0] + i * (wide + gutter), area[0] + i * (wide + gutter) + wide) for i in range(count)
    ]


def room_beside(
    span: tuple[float, float], top: float, bottom: float, holes: list[Box], gap: float
) -> tuple[float, float]:
    """Find the widest piece of a line which keeps clear of the pictures."""
    pieces = [span]
    for x0, y0, x1, y1 in holes:
        if y1 + gap * 0.7 > top and y0 - gap * 0.7 < bottom:
            cut = []
            for a, b in pieces:
                cut += [(a, min(b, x0 - gap)), (max(a, x1 + gap), b)]
            pieces = [p for p in cut if p[1] > p[0]]
    return max(pieces, key=lambda p: p[1] - p[0], default=(span[0], span[0]))


def flow(
    sheet: Sheet,
    style: Style,
    area: Box,
    holes: list[Box],
    rng: np.random.Generator,
    initial: bool = False,
) -> None:
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
                clear = room_beside(span, y - em, y + em * 8, holes, em * 0.9) == span
                if left_in_article <= 0 and clear and y < area[3] - lead * 9:
                    y = heading(sheet, span, y, rng)
                    left_in_article = int(rng.integers(2, 8))
                words = prose.paragraph(rng, int(rng.integers(2, 6)))
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


def heading(sheet: Sheet, span: tuple[float, float], y: float, rng: np.random.Generator) -> float:
    """Print an article's heading in a column; returns the next baseline."""
    em = sheet.em
    a, b = span
    middle = (a + b) / 2
    sheet.rule(middle - em * 2, y, middle + em * 2, y, em * 0.06)
    y += em * 1.9
    title = prose.HEADINGS[int(rng.integers(len(prose.HEADINGS)))].upper()
    size = em * 1.12
    while text.word_ink(title, text.BOLD, size)[0].shape[1] > b - a:
        size *= 0.9
    text.put_line(sheet.ink, title, middle, y, text.BOLD, size, 0, "center")
    return y + em * 1.7


def initial_letter(
    sheet: Sheet, words: list[str], x: float, y: float, rng: np.random.Generator
) -> Box:
    """Print the first letter of an article three lines high, in a box of ornament.

    Removes the letter from `words` and returns the box which it fills.
    """
    em = sheet.em
    side = int(em * 3.3)
    first = words[0].strip("“")
    words[0] = first[1:].upper() or words.pop(1)
    top = y - em * 0.78
    text.stamp(sheet.ink, ornament.initial(first[0], side, rng), x, top)
    return x, top, x + side, top + side


def captioned(sheet: Sheet, box: Box, title: str, number: int, rng: np.random.Generator) -> Box:
    """Print a caption under a picture; returns the box of both."""
    em = sheet.em
    line = prose.caption(title, number, rng)
    size = em * 0.92
    y = box[3] + em * 1.25
    put = text.put_line(sheet.ink, line, (box[0] + box[2]) / 2, y, text.ROMAN, size, 0, "center")
    middle = (box[0] + box[2]) / 2
    return min(box[0], middle - put / 2), box[1], max(box[2], middle + put / 2), y + em * 0.4
