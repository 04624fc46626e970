"""The kinds of print the small model knows, and how captions name them."""

from __future__ import annotations

from typing import Literal, get_args

from numpy.random import Generator

PrintKind = Literal[
    "line engraving",
    "wood engraving",
    "lithograph or wash",
    "halftone photograph",
    "fashion plate",
    "ornament",
    "map",
    "music",
    "table",
    "printed text",
    "handwriting",
    "blank paper",
    "cover or binding",
    "stamp",
    "advertisement with lettering",
]
KINDS: tuple[PrintKind, ...] = get_args(PrintKind)
ILLUSTRATIONS: tuple[PrintKind, ...] = KINDS[:5]
"""The kinds that are illustrations."""
NOT_PICTURES: tuple[PrintKind, ...] = ("printed text", "blank paper", "cover or binding")
"""What the purity of a dataset is mostly about: these are told from illustrations first."""

NOUNS: dict[PrintKind, tuple[str, ...]] = {
    "line engraving": (
        "a line engraving",
        "a steel engraving",
        "a copper engraving",
        "an etching",
        "a copperplate engraving",
        "an engraved plate with fine hatched lines",
        "a line drawing",
    ),
    "wood engraving": (
        "a wood engraving",
        "a woodcut",
        "a wood-engraved illustration",
        "a woodcut of a scene",
        "a woodcut illustration",
        "a black and white wood engraving",
        "an engraved illustration in black ink",
    ),
    "lithograph or wash": (
        "a lithograph",
        "a wash drawing",
        "a crayon lithograph",
        "a tinted lithograph",
        "a lithograph or wash drawing in soft tones",
        "a tonal illustration",
    ),
    "halftone photograph": (
        "a halftone photograph",
        "a photograph",
        "a printed photograph",
        "a halftone of a painting",
        "a process block of a photograph",
        "a halftone reproduction",
        "a printed black-and-white photograph",
    ),
    "fashion plate": (
        "a fashion plate",
        "a fashion plate of ladies in dresses",
        "an engraving of ladies in gowns",
        "a fashion illustration",
        "an engraving of dresses and costumes",
        "an engraving of ladies in dresses",
    ),
    "ornament": (
        "an ornament",
        "a decorative ornament",
        "a head-piece",
        "a tail-piece",
        "a decorated initial letter",
        "a decorative border",
        "a printer's ornament",
        "a decorated initial",
    ),
    "map": (
        "a map",
        "an engraved map",
        "a geographical map",
        "a town plan",
        "a chart of a coast",
        "a plan of a town",
    ),
    "music": ("sheet music", "printed music", "musical notation", "a page of music", "a score"),
    "table": (
        "a table",
        "a ruled table",
        "a table of figures",
        "a printed form",
        "a table of contents",
        "columns of numbers",
    ),
    "printed text": (
        "printed text",
        "a page of printed text",
        "a column of text",
        "paragraphs of text",
        "letterpress",
        "a page of text without pictures",
        "a title page",
        "lines of type",
        "a column of newspaper text",
        "a paragraph",
    ),
    "handwriting": (
        "handwriting",
        "a handwritten page",
        "a manuscript",
        "a handwritten letter",
        "a signature in ink",
        "a page of handwritten notes",
        "a handwritten note",
    ),
    "blank paper": (
        "blank paper",
        "a blank page",
        "an empty page",
        "empty paper",
        "a sheet with nothing on it",
        "a blank endpaper",
        "stained paper",
    ),
    "cover or binding": (
        "a book cover",
        "a binding",
        "the cover of a book",
        "a cloth binding",
        "a leather binding",
        "marbled paper",
        "the cover of a volume",
        "a cover or binding",
        "a marbled endpaper",
    ),
    "stamp": (
        "a stamp",
        "a library stamp",
        "an ownership stamp",
        "a rubber stamp",
        "a stamp of a library in ink",
        "a bookplate",
    ),
    "advertisement with lettering": (
        "an advertisement",
        "an advertisement with lettering",
        "an advertisement with large lettering",
        "a page of advertisements",
        "display lettering",
        "a trade notice in large letters",
        "a printed advertisement",
    ),
}
TEMPLATES = (
    "{}",
    "{}",
    "{}, Victorian periodical",
    "{} from an old periodical",
    "{} in a nineteenth-century book",
    "a clipping of {}, Victorian print",
    "{} from an old book",
    "{} from a magazine of the nineteenth century",
    "{} in an old newspaper",
    "a scan of {}",
    "a scanned page with {}",
    "a crop of a page: {}",
    "this is {}",
    "{} in black and white",
    "{} on old paper",
    "{}, printed long ago",
)
PICTURE_NOUNS = (
    "an illustration",
    "a picture",
    "an engraving",
    "an illustration from a periodical",
    "a printed illustration",
    "a plate",
)
"""What any illustration may be called."""


def caption(kind: PrintKind, rng: Generator) -> str:
    """A caption of a kind, one of a hundred or so."""
    nouns = NOUNS[kind]
    if kind in ILLUSTRATIONS and rng.random() < 0.2:
        nouns = PICTURE_NOUNS
    return str(rng.choice(TEMPLATES)).format(rng.choice(nouns))


def prompts(kind: PrintKind) -> list[str]:
    """The captions a kind is recognised by: every noun in some of the templates."""
    return [form.format(noun) for noun in NOUNS[kind] for form in TEMPLATES[1:7]]
