"""The one settings tree: the command line, the YAML file, the environment and the Prefect form.

Every field has a bound, a unit where it has one, and a sentence that becomes its ``--help`` and
its label in the Prefect UI. A group is one step of the work.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

Kind = Literal["engraving", "photograph", "ornament", "map", "music", "table", "other"]
"""The values of :class:`models.records.RegionKind`, as a choice for command line and form."""


_PASSWORD = re.compile(
    r"\s*[a-z][\w.+-]+:/{1,2}[^/]*?(:|%3a)([^/]*@|\S*@|[^/]*%40)", re.IGNORECASE | re.DOTALL
)
"""After a scheme, a colon before the first slash, and an @ after it: the password in between may
hold anything, slashes and numbers included."""
IN_URL = "a URL with a password would be written into logs and results"


def holds_password(place: str) -> bool:
    """Whether a place is a URL in which a password may stand, or a chain with such a one."""
    return any(_PASSWORD.match(link) for link in place.split("::"))


class Group(BaseModel):
    """Base of all groups: immutable, and an unknown name is an error, never ignored."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        # A default must be what it becomes when it is written down and read again: 60 is 60.0.
        validate_default=True,
        hide_input_in_errors=True,
    )

    @field_validator("*")
    @classmethod
    def _without_password(cls, value: Any) -> Any:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and holds_password(each):
                raise ValueError(f"{IN_URL}; give credentials by environment or profile")
        return value

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Let every description state its field's bounds, so that ``--help`` shows them."""
        super().__pydantic_init_subclass__(**kwargs)
        for field in cls.model_fields.values():
            bounds = {type(m).__name__: m for m in field.metadata}
            if "Ge" in bounds and "Le" in bounds and field.description:
                low, high = bounds["Ge"].ge, bounds["Le"].le
                # A field comes by again with every class that inherits it.
                stated = field.description.removesuffix(f" [{low} to {high}]")
                field.description = f"{stated} [{low} to {high}]"


class Read(Group):
    """Reading PDFs."""

    passwords: list[SecretStr] = []
    """Passwords to try on encrypted PDFs, one after the other."""
    password_of: dict[str, SecretStr] = {}
    """Passwords of single PDFs, tried before the others: names or patterns relative to the source
    (1887/a.pdf, 1887/*) and the password of each; on the command line NAME=PASSWORD, repeated."""
    dpi: Annotated[float, Field(ge=36, le=1200)] | Literal["native"] = "native"
    """Resolution at which kept pages are read, in dots per inch: the scan's own (native), or a
    number from 36 to 1200."""
    max_megapixels: float = Field(default=60, ge=1, le=400)
    """Largest picture of a page held in memory, in millions of pixels; above it the resolution
    is lowered and the manifest says so."""


class Triage(Group):
    """Telling pages with illustrations from all others."""

    method: Literal["layout", "blobs", "sigma"] = "layout"
    """layout finds the illustrations and is the best; blobs does so by classical means; sigma is
    the original article's rule (standard deviation of grey), which is poor on real scans."""
    weights: str = ""
    """layout only: folder with weights of your own, as `python -m tasks.detect.train` writes them;
    those that come with the project if empty."""
    sigma_threshold: float = Field(default=45.0, ge=0, le=127.5)
    """sigma only: a page is kept above this standard deviation of its grey values (0 to 255) at
    144 dpi."""
    min_area: float = Field(default=0.075, ge=0, le=1)
    """layout and blobs: a page is kept when its illustrations cover at least this fraction of
    it."""


class Regions(Group):
    """Cutting illustrations out of the page."""

    unit: Literal["illustration", "page"] = "illustration"
    """One sample per illustration, or the whole page with the text around it."""
    keep_kinds: list[Kind] = Field(default=["engraving", "photograph"], min_length=1)
    """Kinds of region that count as illustrations; repeat the flag for several."""
    min_area: float = Field(default=0.01, ge=0, le=1)
    """Smallest illustration, as a fraction of the page; smaller ones are ornaments and stamps."""
    margin: float = Field(default=0.012, ge=0, le=0.2)
    """Paper left around an illustration, as a fraction of the page's longer side."""


class Clean(Group):
    """Cleaning the crops; all off by default."""

    descreen: bool = False
    """Take the halftone screen out of pictures that have one, before they are made smaller;
    engravings and all others stay as they are."""
    deskew: bool = False
    """Straighten pictures that lie askew by up to 5 degrees, where their frame shows it."""
    paper: Annotated[str, Field(pattern=r"^(keep|white|#[0-9a-fA-F]{6})$")] = "keep"
    """Bring the paper to white or to a tone (#rrggbb); faint show-through goes with it. Crops in
    which no paper shows stay as they are."""


class Fit(Group):
    """Bringing crops to their final size."""

    mode: Literal["bucket", "pad", "crop", "long-side", "stretch"] = "bucket"
    """bucket: an SDXL size (sides in steps, area up to side², never enlarged); pad: a square
    filled with paper; crop: a square from the middle; long-side: longer side to `side`, never
    enlarged; stretch: a square, proportions lost, as the article did."""
    side: int = Field(default=1024, ge=64, le=8192)
    """Side of the square whose area a sample has, or of the square itself, in pixels."""
    step: int = Field(default=64, ge=8, le=256)
    """bucket: sides are multiples of this many pixels."""
    max_side: int = Field(default=2048, ge=64, le=8192)
    """bucket: no side is longer than this many pixels."""
    min_side: int = Field(default=256, ge=1, le=8192)
    """Crops whose shorter side has fewer pixels than this are dropped as too small."""

    @model_validator(mode="after")
    def _sides_agree(self) -> Fit:
        if self.mode == "bucket" and not self.step <= self.side <= self.max_side:
            raise ValueError("bucket needs step ≤ side ≤ max_side")
        return self


class Encode(Group):
    """Writing the samples."""

    format: Literal["jpeg", "png", "webp"] = "jpeg"
    """File format."""
    quality: int = Field(default=92, ge=1, le=100)
    """JPEG and WebP quality."""
    keep_gray: bool = False
    """Write grey pictures with one channel instead of three (smaller; some trainers want
    three)."""


class Run(Group):
    """Machine and limits; nothing here changes a pixel."""

    workers: int = Field(default=0, ge=0, le=256)
    """Worker processes; 0 takes one for each processor this process may use."""
    worker_memory_mb: int = Field(default=1500, ge=256, le=262144)
    """Memory a worker may take for its pages, in MB of address space."""
    pages_per_worker: int = Field(default=2000, ge=1, le=1_000_000)
    """A worker is replaced by a fresh one after about this many pages."""
    page_timeout_s: float = Field(default=60, ge=1, le=3600)
    """Seconds a page may take before its worker is killed and the page quarantined."""
    pages_per_task: Annotated[int, Field(ge=1, le=10_000)] | Literal["auto"] = "auto"
    """Kept pages in one Prefect task run: a number from 1 to 10000, or auto (one while the
    archive is small, then groups, to keep the run fit for Prefect's UI and database). On top of
    these comes one task run for each PDF with something left to look at."""
    runner: Literal["thread", "dask"] = "thread"
    """Where PDFs are worked: in this process's own workers (thread), or on a Dask cluster, a PDF
    at a time."""
    dask_address: str = ""
    """dask only: scheduler of the cluster (tcp://host:8786); a cluster of this machine's own,
    made for the run, if empty."""
    disk_reserve_mb: int = Field(default=500, ge=0, le=10_000_000)
    """Free disk space, in MB, below which a run stops cleanly and resumable."""
    scratch: str = ""
    """Folder for downloaded PDFs and a remote output's ZIP in the making; the system's own
    temporary folder if empty."""
    scratch_budget_mb: int = Field(default=4000, ge=10, le=10_000_000)
    """Most disk space, in MB, that downloaded PDFs may take at a time."""


class Settings(Group):
    """Turn an archive of scanned periodicals (PDFs) into an image dataset of its illustrations."""

    source: str = Field(min_length=1)
    """A PDF, a folder (searched recursively), a glob, a text file of paths, or an fsspec URL."""
    output: str = Field(min_length=1)
    """Folder or fsspec URL of the dataset. Running again on the same output resumes."""
    read: Read = Read()
    triage: Triage = Triage()
    regions: Regions = Regions()
    clean: Clean = Clean()
    fit: Fit = Fit()
    encode: Encode = Encode()
    run: Run = Run()
    strict: bool = False
    """End with exit code 4 when anything was quarantined."""
    shard: str = Field(default="", pattern=r"^([1-9]\d{0,2}/[1-9]\d{0,2})?$")
    """I/N: work the I-th of N shares of the archive while other machines work the others; source
    and output are on S3. A run without it then publishes the dataset."""

    @field_validator("shard")
    @classmethod
    def _one_of_them(cls, value: str) -> str:
        index, _, count = value.partition("/")
        if value and int(index) > int(count):
            raise ValueError("I of I/N must not be larger than N")
        return value

    @field_validator("source", "output")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value


PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "article": {
        "read": {"dpi": 144.0},
        "triage": {"method": "sigma", "sigma_threshold": 45.0},
        "regions": {"unit": "page"},
        "fit": {"mode": "stretch", "side": 1024, "min_side": 1},
        "encode": {"format": "jpeg", "quality": 92},
    },
}


def with_preset(data: dict[str, Any]) -> dict[str, Any]:
    """What was given, over the preset that it names.

    Args:
        data: Settings as read, not validated yet.
    """
    preset = data.get("preset")
    if not isinstance(preset, str) or preset not in PRESETS:
        return data
    merged = dict(data)
    for group, values in PRESETS[preset].items():
        given = data.get(group, {})
        # Anything but a group of settings is left for the validation to refuse.
        merged[group] = {**values, **given} if isinstance(given, dict) else given
    return merged


def fingerprint(*parts: Any) -> str:
    """A short hash of settings, for the keys of the ledger.

    Args:
        *parts: Pydantic models, or anything whose ``repr`` is stable.

    Returns:
        16 hexadecimal digits.
    """
    text = "\n".join(
        part.model_dump_json() if isinstance(part, BaseModel) else repr(part) for part in parts
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]
