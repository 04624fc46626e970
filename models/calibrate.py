"""The nouns of calibration: its settings, the labels a person gives, and what came of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from models.records import Detection, Fault, PageFacts, Record, Sha256
from models.settings import Settings


class CalibrateSettings(Settings):
    """Show on a sample of your own pages what would be kept, and which threshold suits them."""

    sample: int = Field(default=200, ge=1, le=2000)
    """Pages to look at, spread over all PDFs. The same archive gives the same pages."""
    labels: str = ""
    """A labels.csv with its column "label" filled in (text, mixed, illustration, blank or other;
    empty where unsure): the methods are then measured against it."""


class Label(StrEnum):
    """What a person sees on a page."""

    TEXT = "text"
    MIXED = "mixed"
    """Text with a picture worth keeping."""
    ILLUSTRATION = "illustration"
    """A picture that fills the page."""
    BLANK = "blank"
    OTHER = "other"
    """Covers, forms, music, maps: counted neither way."""

    @property
    def illustrated(self) -> bool | None:
        """Whether the page should be kept; None if it does not count."""
        if self is Label.OTHER:
            return None
        return self in (Label.MIXED, Label.ILLUSTRATION)


class SampledPage(Record):
    """A page to look at.

    Attributes:
        pdf: The PDF's path relative to the source.
        page_index: 0-based.
        drawn: Whether the sample holds it; if not, it is looked at because it has a label.
        label: What a person said of it.
    """

    pdf: str
    pdf_sha256: Sha256
    volume: str
    page_index: int = Field(ge=0)
    drawn: bool = True
    label: Label | None = None

    @property
    def picture(self) -> str:
        """Name of its picture, relative to the sheet."""
        return f"pages/{self.volume}/p{self.page_index + 1:04d}.jpg"

    @property
    def thumbnail(self) -> str:
        """Name of its small picture, relative to the sheet."""
        return f"thumbnails/{self.volume}/p{self.page_index + 1:04d}.jpg"


class SeenPage(Record):
    """What every method saw on a page.

    Attributes:
        detections: By method; empty if the page cannot be worked.
        size: Width and height of its picture in pixels.
    """

    page: SampledPage
    facts: PageFacts | None = None
    detections: dict[str, Detection] = Field(default={})
    size: tuple[int, int] = (0, 0)
    fault: Fault | None = None


class Rate(Record):
    """A share with its 95 % interval; None where nothing can be said."""

    value: float | None
    low: float | None
    high: float | None


class Measured(Record):
    """A method at a threshold against the labels.

    Attributes:
        kept_right: Illustrated pages kept.
        kept_wrong: Other pages kept.
        missed: Illustrated pages dropped.
        dropped_right: Other pages dropped.
    """

    threshold: float
    kept_right: int
    kept_wrong: int
    missed: int
    dropped_right: int
    precision: Rate
    recall: Rate
    f1: Rate


class Suggestion(Record):
    """A threshold and why.

    Attributes:
        threshold: None if there is no better one than the present.
        reason: A sentence for a person.
        held_out_f1: With labels, F1 on PDFs that had no say in choosing the threshold.
    """

    threshold: float | None
    reason: str
    held_out_f1: float | None = None


class Method(Record):
    """One method on the sample.

    Attributes:
        setting: The setting that holds its threshold.
        threshold: The present one.
        kept: Sampled pages it keeps at present.
        uncertain: Sampled pages whose figure lies within `band`.
        band: Lowest and highest uncertain figure.
        measured: At the present threshold, with labels.
        measured_suggested: At the suggested one, with labels.
    """

    name: str
    setting: str
    threshold: float
    kept: int
    uncertain: int
    band: tuple[float, float]
    suggestion: Suggestion
    measured: Measured | None = None
    measured_suggested: Measured | None = None


class JudgedPage(Record):
    """A page and the verdict on it at the present settings; one line of ``calibration.json``.

    Attributes:
        kept: None if the page cannot be worked.
        figures: What each method compares with its threshold.
        guess: What the verdict amounts to as a label.
    """

    pdf: str
    page_index: int
    page_label: str = ""
    drawn: bool
    kept: bool | None
    reason: str
    uncertain: bool = False
    figures: dict[str, float] = Field(default={})
    guess: Label | None = None
    label: Label | None = None

    @property
    def wrong(self) -> bool:
        """Whether the label contradicts the verdict."""
        if self.label is None or self.label.illustrated is None or self.kept is None:
            return False
        return self.label.illustrated != self.kept


class Calibration(Record):
    """``calibration.json``.

    Attributes:
        archive_pages: Pages of the archive that could be drawn.
        kept: Drawn pages kept at the present settings, by the method in use.
        kept_share: The share of the archive's pages that this stands for.
        method: The method in use.
        unreadable_pdfs: PDFs that cannot be worked, with their faults.
        settings: All settings of the run; passwords are not shown.
    """

    archive_pages: int
    drawn: int
    kept: int
    dropped: int
    uncertain: int
    unreadable: int
    labelled: int
    kept_share: Rate
    method: str
    methods: list[Method]
    pages: list[JudgedPage]
    unreadable_pdfs: dict[str, Fault]
    settings: dict[str, Any]
