"""A small finished dataset, and bundles of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from models.handoff import TRAINERS, HandoffSettings
from models.records import RegionKind, Sample
from tasks.dataset import MANIFEST, read_samples
from tasks.handoff.bundle import make_bundle
from tasks.handoff.place import name_samples
from tasks.handoff.preflight import preflight
from tasks.handoff.run import hand_over, write_all_captions
from tasks.progress import Progress
from tasks.storage import Storage

SIZES = ((832, 1216), (1024, 1024), (1216, 832), (640, 896), (832, 1216))
MakeDataset = Callable[..., Storage]
HandOver = Callable[..., Path]


def picture(width: int, height: int, seed: int, suffix: str = "jpg") -> bytes:
    """Hatching, as an image file."""
    down, across = np.mgrid[:height, :width]
    tone = 128 + 100 * np.sin((across + (seed + 2) * down) / (3 + seed % 5))
    stream = BytesIO()
    kind = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}[suffix]
    Image.fromarray(tone.astype(np.uint8)).convert("RGB").save(stream, kind)
    return stream.getvalue()


def make_dataset(
    place: object,
    sizes: Sequence[tuple[int, int]] = SIZES,
    volume: str = "ladies-mirror-1887-03",
    suffix: str = "jpg",
    **fields: Any,
) -> Storage:
    """A finished dataset with a picture of each size."""
    output = Storage(str(place))
    lines = []
    for number, (width, height) in enumerate(sizes):
        data = picture(width, height, number, suffix)
        sample = Sample(
            file_name=f"images/{volume}/p{number + 1:04d}-1.{suffix}",
            **{
                "pdf": "1887/ladies-mirror-1887-03.pdf",
                "pdf_sha256": "0" * 64,
                "page_index": number,
                "page_size": (594.0, 810.0),
                "box": (60.0, 80.0, 500.0, 700.0),
                "kind": RegionKind.ENGRAVING,
                "confidence": 0.9,
                "dpi": 150.0,
                "width": width,
                "height": height,
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "transforms": [],
                "metadata": {"title": "The Ladies’ Mirror, March 12, 1887."},
                **fields,
            },
        )
        output.write(sample.file_name, data)
        lines.append(sample.model_dump_json() + "\n")
    output.write(MANIFEST, "".join(lines).encode())
    return output


def hand_over_all(dataset: Storage, **settings: Any) -> Path:
    """Make all bundles as the flow does, without Prefect; the folder they are in."""
    chosen = HandoffSettings(dataset=dataset.url, **settings)
    samples = list(read_samples(dataset))
    captions = write_all_captions(chosen, dataset, samples, Progress())
    found = preflight(chosen.plan, chosen.trainers, samples, captions)
    hand_over(chosen, dataset, samples, captions, found)
    for trainer in chosen.trainers:
        make_bundle(chosen, dataset, name_samples(samples, captions), trainer, Progress())
    return Path(chosen.place)


@pytest.fixture(scope="package")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for each trainer, read only."""
    dataset = make_dataset(tmp_path_factory.mktemp("handoff") / "dataset")
    place = hand_over_all(dataset, license="cc0-1.0", notes="Scans of a library.")
    assert {path.name for path in place.iterdir() if path.is_dir()} == {*TRAINERS}
    return place


def sidecar(place: Path, trainer: str, number: int) -> Path:
    return place / trainer / "images" / f"ladies-mirror-1887-03-p{number:04d}-1.txt"
