"""The records: what is known of a PDF, a page, a region and a sample.

Boxes come in two coordinate systems, both as the page is *displayed* (after /Rotate), with the
origin at the top left and y downwards: ``RelativeBox`` in fractions of the page's width and
height, and ``PointBox`` in PDF points.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_serializer

from models.errors import InputFault, UnreadableFile, WorkerKilled

RelativeBox = tuple[float, float, float, float]
"""x0, y0, x1, y1 as fractions (0 to 1) of the displayed page."""
PointBox = tuple[float, float, float, float]
"""x0, y0, x1, y1 in PDF points (1/72 inch) on the displayed page."""


def _encodable(text: Any) -> Any:
    r"""Text that UTF-8 can hold: stray bytes from file names and broken PDFs become \\udcXX."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


def _short(text: Any) -> Any:
    text = _encodable(text)
    return text[: LONGEST - 1] + "…" if isinstance(text, str) and len(text) > LONGEST else text


def _inside(name: str) -> str:
    steps = name.split("/")
    if len(steps) < 2 or steps[0] != "images" or {"", ".", ".."} & set(steps):
        raise ValueError("a sample lies below images/")
    if "\0" in name or "\\" in name:
        raise ValueError("no name of a sample file")
    return name


LONGEST = 2000
"""Characters of a short text at most."""
Text = Annotated[str, BeforeValidator(_encodable)]
"""Text from outside, which may hold bytes that are no characters."""
ShortText = Annotated[str, BeforeValidator(_short)]
"""Text from inside a PDF, cut to a length that can be repeated in the record of every page."""
SampleName = Annotated[str, AfterValidator(_inside)]
"""Path of a sample relative to the output, from which it cannot escape, nor from a ZIP."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Record(BaseModel):
    """Base of all records: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Outcome(StrEnum):
    """Where a page of the archive ended."""

    KEPT = "kept"
    DROPPED = "dropped"
    QUARANTINED = "quarantined"


class RegionKind(StrEnum):
    """What a region shows."""

    ENGRAVING = "engraving"
    """Engraving, woodcut, lithograph or other line art."""
    PHOTOGRAPH = "photograph"
    """Photograph or halftone."""
    ORNAMENT = "ornament"
    """Ornament, vignette without a subject, or decorated initial."""
    MAP = "map"
    MUSIC = "music"
    TABLE = "table"
    """Table or form."""
    OTHER = "other"


class Fault(Record):
    """Why a PDF or a page is in the quarantine."""

    kind: str
    message: Text
    cure: Text

    @classmethod
    def of(cls, error: InputFault) -> Fault:
        """The record of an error."""
        return cls(kind=error.kind, message=error.message, cure=error.cure)

    @property
    def passing(self) -> bool:
        """Whether it lay not in the file but in reaching it, so that the next run tries again."""
        return self.kind in (UnreadableFile.kind, WorkerKilled.kind)


class PdfFacts(Record):
    """What a PDF says of itself.

    Attributes:
        page_count: Number of pages.
        metadata: Title, author, dates and so on, as written in the PDF; empty values left out.
        repaired: Whether the renderer had to repair the structure.
        encrypted: Whether the file is encrypted (it may still open without a password).
    """

    page_count: int = Field(ge=1)
    metadata: dict[str, ShortText] = {}
    repaired: bool = False
    encrypted: bool = False


class PageFacts(Record):
    """The geometry of a page and what is on it, before anything is rendered.

    Attributes:
        label: The page label as a viewer shows it; empty if the PDF has none.
        width: Displayed width in points (after /Rotate, CropBox and UserUnit).
        height: Displayed height in points.
        rotation: /Rotate in degrees: 0, 90, 180 or 270.
        native_dpi: Resolution of the scan: pixels per inch along the finest image that covers a
            large part of the page; None for a page without such an image.
        color: Whether anything on the page may be coloured.
    """

    label: ShortText = ""
    width: float = Field(gt=0)
    height: float = Field(gt=0)
    rotation: int = 0
    native_dpi: float | None = None
    color: bool = True


class Region(Record):
    """A part of a page that shows something other than running text."""

    box: RelativeBox
    kind: RegionKind = RegionKind.OTHER
    confidence: float = Field(default=1.0, ge=0, le=1)


class Detection(Record):
    """What a triage method saw on a page.

    Attributes:
        score: The one number the verdict is taken from; what it means depends on the method
            (``sigma``: standard deviation of grey, 0 to 127.5; ``layout``: summed area of the
            illustrations as a fraction of the page).
        measures: All figures the method took, by name.
        regions: What was found, in reading order; empty for methods that judge whole pages.
        blank: Whether the page is blank (no ink to speak of).
    """

    score: float
    measures: dict[str, float] = {}
    regions: list[Region] = []
    blank: bool = False


class Sample(Record):
    """A finished image of the dataset: one line of ``manifest.jsonl``.

    Attributes:
        file_name: Path relative to the output, with forward slashes.
        pdf: The PDF's path relative to the source.
        page_index: 0-based.
        page_size: Width and height of the displayed page in points.
        box: What was cut from the page.
        dpi: Resolution of the finished image: its pixels per inch of paper.
        width: Pixels.
        height: Pixels.
        sha256: Of the image file's bytes.
        transforms: Everything done to the pixels, in order.
        metadata: The PDF's own metadata.
    """

    file_name: SampleName
    pdf: str
    pdf_sha256: Sha256
    page_index: int = Field(ge=0)
    page_label: Text = ""
    page_size: tuple[float, float]
    box: PointBox
    kind: RegionKind
    confidence: float
    dpi: float
    width: int
    height: int
    bytes: int
    sha256: Sha256
    transforms: list[str]
    metadata: dict[str, Text] = {}


class DroppedLine(Record):
    """One line of ``dropped.jsonl``: a sample that is not part of the dataset, and why.

    Attributes:
        file_name: As in the manifest.
        sha256: Of the file that was judged. Cut again with other settings, it counts as unjudged.
        reason: ``unreadable``, ``impure``, ``text``, ``duplicate`` or ``not_selected``.
    """

    file_name: str
    sha256: Sha256
    reason: str


class PageLine(Record):
    """One line of ``pages.jsonl``: where a page ended and why.

    Attributes:
        repaired: Whether the PDF's structure had to be mended: a page is worth a second look.
    """

    pdf: str
    page_index: int
    outcome: Outcome
    reason: str
    measures: dict[str, Any] = {}
    samples: list[str] = []
    repaired: bool = False


class Pdf(Record):
    """A PDF of the archive, as discovery left it.

    Attributes:
        name: Path relative to the source, with forward slashes; what the user sees.
        path: Where to open it: a local path or an fsspec URL.
        size: Bytes.
        stamp: Changes when the file does (modification time, or the storage's ETag).
        key: Key of the facts, or of the fault.
        volume: Name of its folder below ``images/``.
        duplicate_of: Name of the PDF with the same bytes that is worked in its stead.
    """

    name: Text
    path: str
    size: int = 0
    stamp: str = ""
    sha256: Sha256 | None = None
    facts: PdfFacts | None = None
    fault: Fault | None = None
    key: str = ""
    volume: str = ""
    duplicate_of: str | None = None

    @property
    def is_worked(self) -> bool:
        """Whether its pages are looked at: it could be read, and is no copy of another."""
        return self.facts is not None and self.fault is None and self.duplicate_of is None

    @field_serializer("path", when_used="json")
    def _write_path(self, path: str) -> str:
        """A path may hold bytes that are no characters; discovery finds it anew in every run."""
        return str(_encodable(path))


class PageRecord(Record):
    """Base of the ledger's records.

    Attributes:
        page_index: 0-based.
        key: Fingerprint of everything that decides the record's content; a record with another
            key is not valid for this run.
    """

    page_index: int = Field(ge=0)
    key: str
    fault: Fault | None = None


class Look(PageRecord):
    """What triage saw on a page."""

    page: PageFacts | None = None
    detection: Detection | None = None


class Cut(PageRecord):
    """What extraction made of a kept page.

    Attributes:
        samples: The samples cut from it; their files were written before this record.
        reason: Why nothing was cut, if nothing was.
    """

    samples: list[Sample] = []
    reason: str = ""


class QuarantineLine(Record):
    """One line of ``quarantine.jsonl``; without a page index it is about the whole PDF."""

    pdf: str
    page_index: int | None = None
    kind: str
    message: Text
    cure: str


class Counts(Record):
    """How many there are, and where they ended."""

    total: int = 0
    kept: int = 0
    dropped: int = 0
    quarantined: int = 0


class Summary(Record):
    """``summary.json``: what a run found and made.

    Attributes:
        pages: Sums over every page of the archive: kept + dropped + quarantined = total.
        pdfs: The PDFs; ``kept`` are those worked, ``dropped`` duplicates by content.
        dropped: Dropped pages by reason.
        quarantined: Quarantined PDFs and pages by kind of fault.
        samples: Finished images.
        sample_bytes: Their size.
        zip_bytes: Size of ``dataset.zip``.
        lists: SHA-256 of ``manifest.jsonl``, ``pages.jsonl`` and ``quarantine.jsonl``.
        settings: All settings of the run; passwords are not shown.
        versions: Of what decides pixels.
        started: UTC, ISO 8601.
        seconds: Wall time of this run; earlier, interrupted ones not counted.
        pages_worked: Pages this run looked at or cut, for its speed.
        peak_parent_bytes: Largest resident size of the main process.
        peak_worker_bytes: Largest resident size of any worker.
    """

    pages: Counts
    pdfs: Counts
    dropped: dict[str, int]
    quarantined: dict[str, int]
    samples: int
    sample_bytes: int
    zip_bytes: int = 0
    lists: dict[str, Sha256] = {}
    settings: dict[str, Any]
    versions: dict[str, str]
    started: str = ""
    seconds: float = 0.0
    pages_worked: int = 0
    peak_parent_bytes: int = 0
    peak_worker_bytes: int = 0
