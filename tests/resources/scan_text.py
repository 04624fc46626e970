"""Letterpress: pseudo-prose about dress and household, set in justified lines.

The types are the Times cuts which MuPDF carries inside itself, so nothing is downloaded and the
same page comes out on every machine.
"""

from __future__ import annotations

import functools
import io
import re

import numpy as np
import pymupdf
from PIL import Image, ImageDraw, ImageFont

ROMAN, ITALIC, BOLD, FLOWERS = "tiro", "tiit", "tibo", "zadb"

_WORDS = {
    "adj": "charming graceful simple elegant costly fashionable becoming novel dainty sombre rich "
    "plain pretty durable stylish quaint modest superb serviceable picturesque",
    "colour": "black ivory dove-gray prune-colored bronze moss-green navy-blue cream garnet "
    "tobacco-brown pale-blue heliotrope silver-gray old-rose olive",
    "stuff": "cashmere faille surah velvet foulard serge muslin India-silk nun's-veiling brocade "
    "crêpe-de-Chine alpaca satin poplin organdy cloth étamine plush",
    "dress": "walking costume|house dress|evening toilette|visiting gown|tea gown|travelling cloak|"
    "wrap|polonaise|mantle|bodice|redingote|morning wrapper|carriage dress|ball gown|jacket",
    "trim": "jet passementerie|Chantilly lace|narrow braid|a pleated ruche|bands of fur|moiré ribbon|"
    "steel beads|silk cord|box-pleated flounces|embroidered galloon|tortoise-shell buttons|"
    "ostrich tips|loops of velvet|Valenciennes edging",
    "place": "collar wrists shoulders waist hem front back belt throat hips",
    "verb": "finished trimmed edged bordered faced adorned completed relieved enriched ornamented",
    "cut": "gathered pleated draped shirred laced folded caught fastened arranged carried",
    "who": "our lady readers|young girls|the Parisienne|every careful housewife|the hostess|"
    "matrons of taste|the best houses|a well-known modiste|the bride|her younger sister",
    "time": "this season|in early spring|for the autumn|during the past month|at present|"
    "on cool evenings|for the country|at the sea-side|in the morning|after Easter",
    "thing": "bonnet parasol fan glove slipper muff sash sleeve hat girdle skirt veil pelerine",
    "home": "work-basket|lamp-shade|table-cover|foot-stool|curtain|toilette cushion|screen|cabinet|"
    "easy-chair|sideboard|mantel|sofa pillow",
    "num": "two three four six eight nine twelve",
}
_BANK = {k: v.split("|") if "|" in v else v.split() for k, v in _WORDS.items()}

_FORMS = (
    "The skirt of this {adj} {dress} is of {colour} {stuff}, {cut} at the {place} and {verb} with {trim}.",
    "Nothing could be more {adj} than the {thing} worn {time}; it is made of {stuff} and {verb} with {trim}.",
    "For {who} a {dress} of {colour} {stuff} is considered {adj}, especially when the {place} is {verb} with {trim}.",
    "{Time} {who} will prefer {colour} to {colour2}, and {stuff} to the {adj} {stuff2} so lately in favor.",
    "The {place} is {cut} in {num} deep pleats, which are held by {trim} and fall loosely over the {place2}.",
    "Cut from the pattern {num} pieces of {stuff}, and line each with {colour} {stuff2} before they are {cut}.",
    "It was remarked {time} that {who} had quite given up the {thing}, and that the {adj} {thing2} had taken its place.",
    "A {adj} {home} may be covered with {stuff} and {verb} with {trim}, at a cost of not more than {num} dollars.",
    "The {thing} matches the {dress}, and is of {colour} {stuff} {verb} with {trim}.",
    "Work {num} rows of chain stitch along the {place}, and repeat from * until the {home} is {verb}.",
    "“I have never,” said she, “seen so {adj} a {dress}; the {thing} alone must have cost her {num} weeks of labor.”",
    "The {adj} effect is due to the {place}, {cut} with {trim}, and to the absence of any other ornament.",
    "See illustration on this page. The original is of {colour} {stuff}, the {place} {cut} and {verb} with {trim}.",
    "With it is worn a {adj} {thing} of {stuff2}, and long gloves of {colour} kid.",
    "We are indebted to {who} for the model, which is both {adj} and {adj2}.",
    "In answer to many inquiries, {who} may be told that the {dress} is still worn {time}.",
)  # fmt: skip

HEADINGS = (
    "New York Fashions", "Paris Gossip", "Answers to Correspondents", "The Work-Table",
    "Household Hints", "Spring Wraps and Mantles", "Notes of the Season", "The Toilette",
    "Manners and Social Usages", "Gowns for the Sea-side", "A Lady of the Old School",
    "Millinery", "Evening Dress", "Our Paris Letter", "Useful Recipes", "Description of the Plates",
    "Furniture and Decoration", "Embroidery Designs", "The Tea Table", "What Women Are Doing",
)  # fmt: skip


def pick(kind: str, rng: np.random.Generator) -> str:
    """Choose one word or phrase of a kind of the vocabulary."""
    bank = _BANK[kind]
    return bank[int(rng.integers(len(bank)))]


def sentence(rng: np.random.Generator) -> str:
    """Write one sentence of pseudo-prose."""
    form = _FORMS[int(rng.integers(len(_FORMS)))]
    text = re.sub(
        r"\{(\w+?)2?\}",
        lambda m: pick(m[1].lower(), rng).capitalize() if m[1][0].isupper() else pick(m[1], rng),
        form,
    )
    return re.sub(r"\b([Aa]) (?=[aeiouAEIOUé])", r"\1n ", text)


def paragraph(rng: np.random.Generator, sentences: int) -> list[str]:
    """Write a paragraph as a list of words."""
    return " ".join(sentence(rng) for _ in range(sentences)).split()


def caption(rng: np.random.Generator, number: int) -> str:
    """Write the line under a picture."""
    words = f"{pick('adj', rng)} {pick('dress', rng)} of {pick('stuff', rng)}".title()
    return f"Fig. {number}.—{words.replace(' Of ', ' of ').replace(chr(39) + 'S', chr(39) + 's')}."


@functools.cache
def font(name: str, size: float) -> ImageFont.FreeTypeFont:
    """Load one of MuPDF's own fonts at a size in pixels."""
    return ImageFont.truetype(io.BytesIO(pymupdf.Font(name).buffer), size)


@functools.lru_cache(maxsize=6000)
def word_ink(word: str, name: str, size: float, tracking: float = 0.0) -> tuple[np.ndarray, int]:
    """Print a word.

    Args:
        word: characters, no line break.
        name: one of the fonts above.
        size: pixels.
        tracking: extra space after each letter, pixels.

    Returns:
        Its ink, (rows, columns) uint8, and the row of its baseline.
    """
    face = font(name, size)
    ascent, descent = face.getmetrics()
    width = int(np.ceil(face.getlength(word) + tracking * len(word))) + 3
    image = Image.new("L", (width, ascent + descent), 0)
    draw = ImageDraw.Draw(image)
    if tracking:
        x = 0.0
        for letter in word:
            draw.text((x, 0), letter, fill=255, font=face)
            x += face.getlength(letter) + tracking
    else:
        draw.text((0, 0), word, fill=255, font=face)
    return np.asarray(image), ascent


def stamp(ink: np.ndarray, mark: np.ndarray, x: float, y: float) -> None:
    """Print a mark's ink with its corner at x, y (pixels), cut off at the sheet's edges."""
    x, y = round(x), round(y)
    h, w = mark.shape
    y0, x0 = max(y, 0), max(x, 0)
    y1, x1 = min(y + h, ink.shape[0]), min(x + w, ink.shape[1])
    if y1 > y0 and x1 > x0:
        view = ink[y0:y1, x0:x1]
        np.maximum(view, mark[y0 - y : y1 - y, x0 - x : x1 - x], out=view)


def put_line(
    ink: np.ndarray, text: str, x: float, baseline: float, name: str, size: float,
    tracking: float = 0.0, align: str = "left",
) -> float:  # fmt: skip
    """Print one line of text; `x` is its left, middle or right end. Returns its width, pixels."""
    mark, ascent = word_ink(text, name, size, tracking)
    width = mark.shape[1] - 3
    left = x - {"left": 0, "center": width / 2, "right": width}[align]
    stamp(ink, mark, left, baseline - ascent)
    return width


class Setter:
    """Sets words line by line, justified, into whatever width each line offers."""

    def __init__(self, ink: np.ndarray, name: str, size: float) -> None:
        """Take a sheet (rows, columns) uint8, a font name and its size in pixels."""
        self.ink, self.name, self.size = ink, name, size
        self.space = size * 0.25

    def line(self, words: list[str], left: float, right: float, baseline: float) -> list[str]:
        """Set one line between two margins and return the words which did not fit."""
        room = right - left
        widths: list[float] = []
        for word in words:
            wide = word_ink(word, self.name, self.size)[0].shape[1] - 3.0
            if widths and sum(widths) + wide + self.space * 0.8 * len(widths) > room:
                break
            widths.append(wide)
        count = len(widths)
        last = count == len(words)
        gap = self.space
        if count > 1 and not last:
            gap = (room - sum(widths)) / (count - 1)
        for word, wide in zip(words, widths, strict=False):
            mark, ascent = word_ink(word, self.name, self.size)
            stamp(self.ink, mark, left, baseline - ascent)
            left += wide + gap
        return words[count:]
