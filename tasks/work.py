"""What workers do to a PDF: identify it, look at a page, cut illustrations out of a page.

Pure functions of a file and settings. They run in worker processes and import neither Prefect nor
torch; one page is in memory at a time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.errors import InputFault, OutOfMemory, StorageGone
from models.records import Cut, Look, PageFacts, Pdf, PdfFacts, Region, RelativeBox, Sample
from models.settings import Clean, Encode, Fit, Group, Read, Triage
from tasks import spread
from tasks.clean import clean
from tasks.detect import make_detector
from tasks.encode import SUFFIX, encode
from tasks.fit import fit
from tasks.margin import trim
from tasks.read import STORAGE_FAILED, Reader, open_pdf, storage_failed

FALLBACK_DPI = 300.0
"""For pages without a scan, drawn in vectors: the usual resolution of print."""
OPEN_AT_A_TIME = 2
GOOD_PDF = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Count 1/Kids[3 0 R]>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]/Contents 4 0 R>> endobj
4 0 obj <</Length 20>> stream
40 60 200 300 re f

endstream endobj
trailer <</Root 1 0 R>>
%%EOF
"""
"""One page with a black rectangle."""
PROBE_BYTES = 1 << 20
"""Of a PDF in doubt, to see whether its storage answers."""


class Recipe(Group):
    """The settings that decide a sample's pixels, and nothing else."""

    read_dpi: float | None
    max_pixels: int
    margin: float
    clean: Clean
    fit: Fit
    encode: Encode


def hash_file(path: str) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def inspect(path: str, passwords: tuple[str, ...]) -> PdfFacts:
    """Open a PDF and say what it is.

    Raises:
        InputFault: Why it cannot be worked.
    """
    return reader_of(path, passwords).facts


def look(
    path: str, passwords: tuple[str, ...], index: int, read: Read, triage: Triage, key: str
) -> Look:
    """Look at a page at low resolution.

    Args:
        path: The PDF on the local disk.
        passwords: To open it with.
        index: 0-based page.
        read: Reading settings.
        triage: Which detector looks.
        key: The ledger key to write into the record.

    Raises:
        InputFault: Why the page cannot be worked.
    """
    with page_faults(path, index):
        reader = reader_of(path, passwords)
        page = reader.page(index)
        detector = make_detector(triage.method, triage.weights)
        raster = reader.render(
            index,
            detector.render_dpi(page),
            gray=True,
            max_pixels=round(read.max_megapixels * 1e6),
        )
        detection = spread.split(detector(raster.pixels), raster.pixels)
        return Look(page_index=index, key=key, page=page, detection=detection)


def probe(triage: Triage, path: str) -> None:
    """Look at a page that is known to be good: a worker that dies of it is itself the fault.

    Args:
        triage: Which detector looks.
        path: The PDF in doubt, whose beginning is read anew from its storage.

    Raises:
        OSError: It cannot be read.
    """
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(GOOD_PDF)
        file.flush()
        look(file.name, (), 0, Read(), triage, key="")
    with open(path, "rb") as file:
        if hasattr(os, "posix_fadvise"):  # not on macOS
            # From memory even a dead mount could be read.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.read(PROBE_BYTES)


def cut(
    path: str,
    passwords: tuple[str, ...],
    pdf: Pdf,
    seen: Look,
    regions: Sequence[Region],
    recipe: Recipe,
    key: str,
) -> tuple[Cut, list[bytes]]:
    """Cut the illustrations out of a kept page.

    Args:
        path: The PDF on the local disk.
        passwords: To open it with.
        pdf: The PDF's record.
        seen: What triage saw on the page.
        regions: What to cut.
        recipe: Settings of the pixels.
        key: The ledger key to write into the record.

    Returns:
        The page's record, and the bytes of its samples in the same order.

    Raises:
        InputFault: Why the page cannot be worked.
    """
    samples: list[Sample] = []
    files: list[bytes] = []
    with page_faults(path, seen.page_index):
        reader = reader_of(path, passwords)
        for number, region in enumerate(regions, start=1):
            made = _sample(reader, pdf, seen, number, region, recipe)
            if made is not None:
                samples.append(made[0])
                files.append(made[1])
    reason = "" if samples else "too_small"
    return Cut(page_index=seen.page_index, key=key, samples=samples, reason=reason), files


def pixels_of(seen: Look, recipe: Recipe) -> int:
    """Pixels of a page at the resolution it is cut at: all are decoded, whatever is cut."""
    page = seen.page
    assert page is not None
    scale = _dpi(page, recipe) / 72.0
    return min(recipe.max_pixels, round(page.width * scale * page.height * scale))


def _dpi(page: PageFacts, recipe: Recipe) -> float:
    return recipe.read_dpi or page.native_dpi or FALLBACK_DPI


def _sample(
    reader: Reader, pdf: Pdf, seen: Look, number: int, region: Region, recipe: Recipe
) -> tuple[Sample, bytes] | None:
    page, facts = seen.page, pdf.facts
    assert page is not None and facts is not None and pdf.sha256 is not None
    margin = recipe.margin * max(page.width, page.height)
    box = _grown(region.box, page, margin, spread.limits(region.box, seen.detection))
    raster = reader.render(
        seen.page_index,
        _dpi(page, recipe),
        gray=not page.color,
        box=box,
        max_pixels=recipe.max_pixels,
    )
    part, box = _trimmed(raster.pixels, region.box, box)
    if min(part.shape[:2]) < recipe.fit.min_side:
        return None
    pixels, cleaned = clean(part, recipe.clean)
    fitted = fit(pixels, _margin_left(region.box, box, pixels.shape), recipe.fit)
    points = (box[0] * page.width, box[1] * page.height, box[2] * page.width, box[3] * page.height)
    height, width = fitted.pixels.shape[:2]
    transforms = [
        f"render at {raster.dpi:.2f} dpi",
        *raster.transforms,
        *cleaned,
        *fitted.transforms,
    ]
    provenance = {
        "pdf_sha256": pdf.sha256,
        "page_index": str(seen.page_index),
        "page_label": page.label,
        "page_size": f"{page.width:.3f} {page.height:.3f}",
        "box": " ".join(f"{value:.3f}" for value in points),
        "dpi": f"{raster.dpi * fitted.scale:.3f}",
        "transforms": "; ".join(transforms),
        "title": facts.metadata.get("title", ""),
    }
    data = encode(fitted.pixels, raster.dpi * fitted.scale, provenance, recipe.encode)
    stem = f"images/{pdf.volume}/p{seen.page_index + 1:04d}-{number}"
    sample = Sample(
        file_name=f"{stem}.{SUFFIX[recipe.encode.format]}",
        pdf=pdf.name,
        pdf_sha256=pdf.sha256,
        page_index=seen.page_index,
        page_label=page.label,
        page_size=(round(page.width, 3), round(page.height, 3)),
        box=tuple(round(value, 3) for value in points),
        kind=region.kind,
        confidence=round(region.confidence, 4),
        dpi=round(raster.dpi * fitted.scale, 3),
        width=width,
        height=height,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        transforms=transforms,
        metadata=facts.metadata,
    )
    return sample, data


def _grown(box: RelativeBox, page: PageFacts, margin: float, limits: RelativeBox) -> RelativeBox:
    """The box with a margin in points on each side, as far as the limits reach."""
    dx, dy = margin / page.width, margin / page.height
    x0, y0, x1, y1 = box
    return (
        max(limits[0], x0 - dx),
        max(limits[1], y0 - dy),
        min(limits[2], x1 + dx),
        min(limits[3], y1 + dy),
    )


def _trimmed(
    pixels: NDArray[np.uint8], inner: RelativeBox, outer: RelativeBox
) -> tuple[NDArray[np.uint8], RelativeBox]:
    """A crop without what stands in its margin, and its box on the page."""
    height, width = pixels.shape[:2]
    across, down = width / (outer[2] - outer[0]), height / (outer[3] - outer[1])
    x0, y0, x1, y1 = trim(
        pixels,
        (
            round((inner[0] - outer[0]) * across),
            round((inner[1] - outer[1]) * down),
            round((inner[2] - outer[0]) * across),
            round((inner[3] - outer[1]) * down),
        ),
    )
    box = (
        outer[0] + x0 / across,
        outer[1] + y0 / down,
        outer[0] + x1 / across,
        outer[1] + y1 / down,
    )
    return pixels[y0:y1, x0:x1], box


def _margin_left(inner: RelativeBox, outer: RelativeBox, shape: tuple[int, ...]) -> int:
    """The smallest of the four margins in pixels: what may be cut without touching the picture."""
    across = shape[1] / (outer[2] - outer[0])
    down = shape[0] / (outer[3] - outer[1])
    return int(
        min(
            (inner[0] - outer[0]) * across,
            (outer[2] - inner[2]) * across,
            (inner[1] - outer[1]) * down,
            (outer[3] - inner[3]) * down,
        )
    )


@lru_cache(maxsize=OPEN_AT_A_TIME)
def reader_of(path: str, passwords: tuple[str, ...]) -> Reader:
    """The PDF, open; those used last stay open.

    Raises:
        InputFault: Why it cannot be opened.
    """
    return open_pdf(Path(path), passwords)


@contextmanager
def page_faults(path: str, index: int) -> Iterator[None]:
    """Let whatever happens to a page condemn that page alone."""
    try:
        yield
    except StorageGone:
        # What the renderer has of the file now ends where reading failed.
        reader_of.cache_clear()
        raise
    except InputFault:
        raise
    except Exception as error:
        where = f"{path}, page {index + 1}"
        # OpenCV and MuPDF have errors of their own for a failed allocation.
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            raise OutOfMemory(f"{where}: not enough memory for its pixels.") from error
        if isinstance(error, OSError) and error.errno in STORAGE_FAILED:
            raise storage_failed(where, str(error)) from error
        raise InputFault(f"{where}: {type(error).__name__}: {error}") from error
