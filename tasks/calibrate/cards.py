"""What the sheet shows of each page: its boxes, its tags, its place in the order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from models.calibrate import CalibrateSettings, Calibration, JudgedPage, SeenPage
from tasks.calibrate import thresholds
from tasks.calibrate.figures import as_array, keeps
from tasks.calibrate.words import show_percent
from tasks.decide import counts

SMALLEST_AREA = 1e-3
"""Picture area, as a fraction of the page, below which pages count as equally sure."""


@dataclass(frozen=True)
class Box:
    """A region as the sheet draws it.

    Attributes:
        style: Its place within the page, in CSS.
        title: Kind, confidence and area.
        counted: Whether it is of a kind and size to keep.
    """

    kind: str
    style: str
    title: str
    counted: bool


@dataclass(frozen=True)
class Card:
    """A page as the sheet shows it.

    Attributes:
        tags: What the filters go by: kept, dropped, uncertain, disputed, wrong, flips, labelled.
        why: What happened to it and why, in words.
        ratio: Width over height.
    """

    page: JudgedPage
    seen: SeenPage
    boxes: list[Box]
    tags: list[str]
    why: str
    others: str
    ratio: float

    @property
    def picture(self) -> str:
        """Where its picture is."""
        return quote(self.seen.page.picture)

    @property
    def thumbnail(self) -> str:
        """Where its small picture is."""
        return quote(self.seen.page.thumbnail)


@dataclass(frozen=True)
class Volume:
    """What became of one PDF's pages."""

    pdf: str
    pages: int
    kept: int
    uncertain: int
    wrong: int


def make_cards(
    settings: CalibrateSettings, result: Calibration, seen: Sequence[SeenPage]
) -> list[Card]:
    """The readable pages in the order of the sheet."""
    cards = [
        _card(settings, result, page, look)
        for page, look in zip(result.pages, seen, strict=True)
        if look.detections
    ]
    return sorted(cards, key=lambda card: _rank(result, card))


def make_volumes(cards: Sequence[Card]) -> list[Volume]:
    """The readable pages by PDF, sorted by name."""
    by_pdf: dict[str, list[Card]] = {}
    for card in cards:
        by_pdf.setdefault(card.page.pdf, []).append(card)
    return [
        Volume(
            pdf=pdf,
            pages=len(own),
            kept=sum("kept" in card.tags for card in own),
            uncertain=sum("uncertain" in card.tags for card in own),
            wrong=sum("wrong" in card.tags for card in own),
        )
        for pdf, own in sorted(by_pdf.items())
    ]


def filters(cards: Sequence[Card]) -> list[tuple[str, str, int]]:
    """The filters that let anything through: tag, what it is called, pages."""
    names = {
        "wrong": "wrong by your labels",
        "uncertain": "uncertain",
        "kept": "kept",
        "dropped": "dropped",
        "flips": "changed by the suggestion",
        "disputed": "layout and blobs differ",
        "labelled": "labelled",
    }
    counted = [(tag, name, sum(tag in card.tags for card in cards)) for tag, name in names.items()]
    return [("all", "all", len(cards)), *(line for line in counted if line[2])]


def kept_by(method: str, page: JudgedPage, threshold: float) -> bool:
    """Whether a method keeps a readable page at a threshold."""
    return bool(keeps(method, as_array([page.figures[method]]), threshold)[0])


def _card(
    settings: CalibrateSettings, result: Calibration, page: JudgedPage, seen: SeenPage
) -> Card:
    # sigma judges whole pages and has no boxes of its own.
    shown = "layout" if result.method == "sigma" else result.method
    boxes = []
    for region in seen.detections[shown].regions:
        x0, y0, x1, y1 = region.box
        share = (x1 - x0) * (y1 - y0)
        style = ";".join(
            f"{side}:{100 * value:.2f}%"
            for side, value in (("left", x0), ("top", y0), ("width", x1 - x0), ("height", y1 - y0))
        )
        boxes.append(
            Box(
                kind=region.kind.value,
                style=style,
                title=f"{region.kind.value}, confidence {region.confidence:.2f}, "
                f"{show_percent(share)} of the page",
                counted=counts(region, seen.detections[shown], settings),
            )
        )
    verdicts = {m.name: kept_by(m.name, page, m.threshold) for m in result.methods}
    suggested = {m.name: m.suggestion.threshold for m in result.methods}[result.method]
    flips = suggested is not None and kept_by(result.method, page, suggested) != page.kept
    tags = {
        "kept": bool(page.kept),
        "dropped": not page.kept,
        "uncertain": page.uncertain,
        "disputed": verdicts["layout"] != verdicts["blobs"],
        "flips": flips,
        "wrong": page.wrong,
        "labelled": page.label is not None,
    }
    others = [
        f"{m.name} {thresholds.show(m.name, page.figures[m.name])}"
        for m in result.methods
        if m.name != result.method
    ]
    width, height = seen.size
    return Card(
        page=page,
        seen=seen,
        boxes=boxes,
        tags=[name for name, holds in tags.items() if holds],
        why="kept" if page.kept else f"dropped: {page.reason.replace('_', ' ')}",
        others=" · ".join(others),
        ratio=round(width / height, 4),
    )


def _rank(result: Calibration, card: Card) -> tuple[Any, ...]:
    """Errors first, then uncertain pages, then those the methods dispute; least sure first."""
    page = card.page
    threshold = next(m.threshold for m in result.methods if m.name == result.method)
    value = page.figures[result.method]
    if result.method == "sigma":
        distance = abs(value - threshold)
    else:
        floor = SMALLEST_AREA
        distance = abs(math.log(max(value, floor) / max(threshold, floor)))
    regions = card.seen.detections["layout"].regions
    if page.kept and regions:
        distance *= sum(region.confidence for region in regions) / len(regions)
    tags = card.tags
    return (
        "wrong" not in tags,
        "uncertain" not in tags,
        "disputed" not in tags,
        round(distance, 3),
        -len(regions),
        page.pdf,
        page.page_index,
    )
