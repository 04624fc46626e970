"""How many loose illustrations are found when they are set into pages, and how much of each.

    python -m benchmarks.pasted --corpus DIR

The illustrations are those beside the pages of a corpus: photographs, fashion plates and patterns,
of which its labelled pages have few. They are set onto empty pages, with margins (plate) and
without (page), and into its pages of text, large and small. The networks were trained on such
pages, made from the same illustrations: what is lost here is lost on known ground.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from benchmarks.selection import PICTURES
from models.records import Detection, RelativeBox
from tasks.detect.corpus import read_labels, render_fit
from tasks.detect.layout import WEIGHTS, LayoutDetector
from tasks.detect.page import Gray, PixelBox, absolute
from tasks.detect.train.pages import load_pictures

PLACES = {
    "plate": (0.1, 0.08, 0.9, 0.92),
    "page": (0.0, 0.0, 1.0, 1.0),
    "large": (0.25, 0.3, 0.8, 0.7),
    "small": (0.15, 0.5, 0.45, 0.8),
}
"""Where on the page, as fractions of it; only for the whole page is an illustration stretched."""
DARK = 150
"""Grey below which a pixel of an illustration must not be lost."""
LOST, WHOLE = 0.02, 0.9
"""Shares of its dark pixels in boxes below which it is lost, and from which it is whole."""
SIDE = 1024
"""Pixels on the longer side of the pages made."""


def main() -> None:
    """Set every illustration into pages, look for it, and print how many were found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of layout's weights")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    detector = LayoutDetector(arguments.weights)
    loose = [picture for _, picture in load_pictures(arguments.corpus)]
    labelled = read_labels(arguments.corpus)
    text = [page for page in labelled if page.label == "text" and not page.boxes]
    print(f"{len(loose)} illustrations        lost   in part   whole")
    for name, place in PLACES.items():
        found = []
        for number, picture in enumerate(loose):
            page = text[number % len(text)]
            under = render_fit(page.file, page.index, SIDE)
            if name in ("plate", "page"):
                under = np.full_like(under, 235)
            made, box = _paste(under, picture, place, stretch=name == "page")
            found.append(_share(made, box, detector(made)))
        shares = np.array(found)
        lost, whole = int((shares < LOST).sum()), int((shares >= WHOLE).sum())
        print(f"{name:<24}{lost:>8}{len(shares) - lost - whole:>10}{whole:>8}")


def _paste(page: Gray, picture: Gray, place: RelativeBox, stretch: bool) -> tuple[Gray, PixelBox]:
    """The page with a picture on white in a place, in its shape or stretched, and where it is."""
    x0, y0, x1, y1 = absolute(place, page.shape)
    if not stretch:
        scale = min((x1 - x0) / picture.shape[1], (y1 - y0) / picture.shape[0])
        x1, y1 = x0 + int(picture.shape[1] * scale), y0 + int(picture.shape[0] * scale)
    made, white = page.copy(), 12
    made[max(0, y0 - white) : y1 + white, max(0, x0 - white) : x1 + white] = np.percentile(page, 90)
    made[y0:y1, x0:x1] = cv2.resize(picture, (x1 - x0, y1 - y0), interpolation=cv2.INTER_AREA)
    return made, (x0, y0, x1, y1)


def _share(page: Gray, box: PixelBox, found: Detection) -> float:
    """The share of what is dark in a box that lies in the pictures found."""
    height, width = page.shape
    inside = np.zeros(page.shape, bool)
    for region in found.regions:
        if region.kind in PICTURES:
            x0, y0, x1, y1 = (
                side * length for side, length in zip(region.box, (width, height) * 2, strict=True)
            )
            inside[int(y0) : int(np.ceil(y1)), int(x0) : int(np.ceil(x1))] = True
    part = (slice(box[1], box[3]), slice(box[0], box[2]))
    dark = page[part] < DARK
    return float(np.mean(inside[part][dark])) if dark.any() else 1.0


if __name__ == "__main__":
    main()
