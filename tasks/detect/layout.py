"""The default method: networks that draw maps, judge what is found, and refine its boxes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import Detection, PageFacts
from tasks.detect.judge import KINDS, RegionJudge
from tasks.detect.network import Network
from tasks.detect.page import Gray, fit, normalise, to_gray8
from tasks.detect.refine import Refiner
from tasks.detect.regions import measure

LONG_SIDE = 512
"""Pixels on the longer side of the page as the network reads it."""
STRIDE = 4
"""Pixels of that page for one cell of the network's maps."""
MULTIPLE = 32
"""The network goes down to a thirty-second: sides are filled up to a multiple of this."""
WEIGHTS = Path(__file__).resolve().parents[2] / "models" / "weights"
"""The folder with the weights that come with the project."""
NETWORK = "layout.onnx"
FOLDS = "layout.folds.json"
"""What networks that never saw a page's work found on the pages of the training corpus."""
CODE_VERSION = "8"
"""To be raised whenever the way from maps to regions changes."""


class LayoutDetector:
    """Finds pictures with three networks, by default those that come with the project.

    ``score`` is the summed area of the picture regions (engravings and photographs) as a
    fraction of the page; regions of other kinds are reported and not counted.

    Args:
        folder: Where the weights of the networks lie.

    Raises:
        OSError: They are not there.
        ValueError: They are something else, or some are missing.
    """

    name = "layout"

    def __init__(self, folder: Path = WEIGHTS) -> None:
        blank = np.full((MULTIPLE, MULTIPLE), 255, np.uint8)
        self._net = Network(folder / NETWORK, as_input(blank))
        cells = MULTIPLE // STRIDE
        if (answer := self._net.shape) != (1, KINDS, cells, cells):
            raise ValueError(f"{folder / NETWORK} draws no maps: it answers in the shape {answer}.")
        self._judge, self._refine = RegionJudge(folder), Refiner(folder)
        digests = (part.digest[:12] for part in (self._net, self._judge, self._refine))
        self.version = "-".join([CODE_VERSION, *digests])

    def render_dpi(self, page: PageFacts) -> float:
        """What gives `LONG_SIDE` pixels on the longer side."""
        return LONG_SIDE * 72.0 / max(page.width, page.height)

    def __call__(self, gray: NDArray[np.uint8]) -> Detection:
        """Measure a page, (H, W) uint8, and find its regions."""
        page = fit(to_gray8(gray), LONG_SIDE)
        return measure(page, self.maps(page), self._judge, self._refine)

    def maps(self, page: Gray) -> NDArray[np.float32]:
        """(4, H/4, W/4) probabilities of picture, ornament, ruled matter and text, 0 to 1."""
        height, width = page.shape
        logits = self._net(as_input(page))
        rows, columns = -(-height // STRIDE), -(-width // STRIDE)
        maps = 1.0 / (1.0 + np.exp(-logits[0, :, :rows, :columns]))
        return maps.astype(np.float32, copy=False)


def as_input(page: Gray) -> NDArray[np.float32]:
    """What the network reads of a page: (1, 1, H, W), sides filled up to multiples of 32."""
    height, width = page.shape
    filled = cv2.copyMakeBorder(
        normalise(page), 0, -height % MULTIPLE, 0, -width % MULTIPLE, cv2.BORDER_REPLICATE
    )
    return np.asarray(filled, np.float32)[None, None]


def write_predictions(target: Path, found: Mapping[str, Detection]) -> None:
    """Write detections by ``path#page``, one a line; boxes keep four digits."""
    lines = []
    for key in sorted(found):
        record = found[key].model_dump(mode="json")
        for region in record["regions"]:
            region["box"] = [round(side, 4) for side in region["box"]]
            region["confidence"] = round(region["confidence"], 4)
        record["measures"] = {k: round(v, 5) for k, v in record["measures"].items()}
        lines.append(f"{json.dumps(key)}: {json.dumps(record)}")
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_predictions(source: Path) -> dict[str, Detection]:
    """Detections by ``path#page``; none if there is no such file."""
    if not source.exists():
        return {}
    records = json.loads(source.read_text(encoding="utf-8"))
    return {key: Detection.model_validate(record) for key, record in records.items()}
