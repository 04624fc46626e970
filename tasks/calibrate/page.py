"""What a worker does to a sampled page: every method's look, and two pictures for the sheet.

Imports neither Prefect nor torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from models.errors import DamagedPage
from models.records import Detection, PageFacts
from models.settings import Read, Triage
from tasks import work
from tasks.detect import METHODS

PICTURE, THUMBNAIL = 1100, 300
"""Pixels on the longer side of a page's picture and of its thumbnail."""
PICTURE_QUALITY, THUMBNAIL_QUALITY = 65, 70


@dataclass(frozen=True)
class Views:
    """A page as every method sees it, and as a person does.

    Attributes:
        detections: By method.
        size: Width and height of the picture in pixels.
        picture: JPEG.
        thumbnail: JPEG.
    """

    facts: PageFacts
    detections: dict[str, Detection]
    size: tuple[int, int]
    picture: bytes
    thumbnail: bytes


def view(path: str, passwords: tuple[str, ...], index: int, read: Read, triage: Triage) -> Views:
    """Look at a page with every method, just as triage would, and make its pictures.

    Args:
        path: The PDF on the local disk.
        passwords: To open it with.
        index: 0-based page.
        read: Reading settings.
        triage: Whose weights ``layout`` has.

    Raises:
        InputFault: Why the page cannot be worked.
    """
    each = {m: triage.model_copy(update={"method": m}) for m in METHODS}
    looks = {m: work.look(path, passwords, index, read, each[m], key="") for m in METHODS}
    facts = looks[METHODS[0]].page
    assert facts is not None
    budget = round(read.max_megapixels * 1e6)
    with work.page_faults(path, index):
        dpi = PICTURE * 72.0 / max(facts.width, facts.height)
        reader = work.reader_of(path, passwords)
        pixels = reader.render(index, dpi, gray=not facts.color, max_pixels=budget).pixels
        height, width = pixels.shape[:2]
        return Views(
            facts=facts,
            detections={m: look.detection for m, look in looks.items() if look.detection},
            size=(width, height),
            picture=to_jpeg(pixels, PICTURE_QUALITY),
            thumbnail=to_jpeg(_small(pixels), THUMBNAIL_QUALITY),
        )


def _small(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    scale = min(1.0, THUMBNAIL / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8)


def to_jpeg(pixels: NDArray[np.uint8], quality: int) -> bytes:
    """A picture, grey or RGB, as JPEG."""
    if pixels.ndim == 3:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR).astype(np.uint8)
    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise DamagedPage(f"a picture of {pixels.shape[1]} x {pixels.shape[0]} cannot be written")
    return data.tobytes()
