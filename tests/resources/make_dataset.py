"""Datasets made of given pictures, as extraction would leave them, without any PDF."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from io import BytesIO

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

from models.records import Counts, RegionKind, Sample, Summary
from models.settings import Settings
from tasks.storage import Storage


def make_dataset(output: Storage, files: Iterable[tuple[str, bytes]]) -> list[Sample]:
    """Write samples with their manifest and summary.

    Args:
        output: Where to.
        files: Names below ``images/`` (``volume/p0001-1.jpg``) and bytes, in the manifest's order.
    """
    samples = []
    with output.writer("manifest.jsonl") as manifest:
        for name, data in files:
            sample = make_sample(name, data)
            output.write(sample.file_name, data)
            manifest.write(sample.model_dump_json().encode() + b"\n")
            samples.append(sample)
    summary = Summary(
        pages=Counts(),
        pdfs=Counts(),
        dropped={},
        quarantined={},
        samples=len(samples),
        sample_bytes=sum(sample.bytes for sample in samples),
        settings=Settings(
            source="nowhere", output=output.url, run={"workers": 1, "disk_reserve_mb": 0}
        ).model_dump(mode="json"),
        versions={},
    )
    output.write("summary.json", summary.model_dump_json().encode())
    return samples


def make_sample(name: str, data: bytes) -> Sample:
    """The record of a picture that fills its page."""
    volume, _, base = name.partition("/")
    page = re.search(r"p(\d+)", base)
    assert page is not None
    try:
        with Image.open(BytesIO(data)) as picture:
            width, height = picture.size
    except UnidentifiedImageError:
        width = height = 1
    return Sample(
        file_name=f"images/{name}",
        pdf=f"{volume}.pdf",
        pdf_sha256=hashlib.sha256(volume.encode()).hexdigest(),
        page_index=int(page[1]) - 1,
        page_size=(600, 800),
        box=(60, 80, 540, 720),
        kind=RegionKind.ENGRAVING,
        confidence=0.9,
        dpi=300,
        width=width,
        height=height,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        transforms=[],
    )


def jpeg(picture: np.ndarray, quality: int = 85) -> bytes:
    """A grey picture as the bytes of a file."""
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def read_lines(output: Storage, name: str) -> list[dict]:
    """A file of JSON lines."""
    return [json.loads(line) for line in output.lines(name)]
