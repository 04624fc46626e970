"""How sure the cleaning of crops is: screens, skew, paper and gutters, on a labelled corpus.

    python -m benchmarks.cleaning --corpus DIR

Prints a table. Real photographs are printed through drawn screens, so that what should come out is
known; framed pictures are turned by known angles; pages are put side by side to known spreads.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from models.settings import Clean
from tasks.clean import clean, descreen, deskew
from tasks.clean.tone import find_paper, set_paper
from tasks.spread import NARROWEST, find_gutter
from tests.tasks.drawn_print import spread, through_screen

Gray = NDArray[np.uint8]
PHOTOGRAPHS = ("photo", "painting_halftone")
PERIODS = (2.2, 3.0, 4.5, 7.0)
ANGLES = (-4.0, -2.2, -0.7, 1.3, 3.1)
PAGE_HEIGHT = 800


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    corpus: Path = parser.parse_args().corpus
    cv2.setNumThreads(1)
    with open(corpus / "engravings" / "labels.csv") as stream:
        kinds = {corpus / row["path"]: row["kind"] for row in csv.DictReader(stream)}
    pictures = {path: read(path) for path in kinds}
    photographs = [pictures[path] for path, kind in kinds.items() if kind in PHOTOGRAPHS]
    others = [pictures[path] for path, kind in kinds.items() if kind not in PHOTOGRAPHS]
    screens(photographs, others)
    skews(list(pictures.values()))
    papers(photographs)
    gutters(sorted((corpus / "pages" / "dta").glob("*.png")), list(pictures.values()))
    speed(photographs[0])


def screens(photographs: list[Gray], others: list[Gray]) -> None:
    """False screens on line art and hits on halftones, and what is left of the screen."""
    false = sum(descreen.detect(gray) is not None for gray in others)
    print(f"screens found on {len(others)} engravings and other line art: {false}")
    rng = default_rng(1)
    for period in PERIODS:
        found, before, after = 0, [], []
        for photograph in photographs:
            part = photograph[:500, :500]
            angle, soft = 45 + rng.uniform(-6, 6), rng.uniform(0.3, 0.6)
            screened = through_screen(part, period, angle, rng, soft)
            screen = descreen.detect(screened)
            found += screen is not None
            if screen is not None:
                before.append(likeness(screened, part))
                after.append(likeness(descreen.remove(screened, screen), part))
        print(
            f"screens of {period} px found on {found} of {len(photographs)} halftones;"
            f" PSNR to the photograph {np.mean(before):.1f} dB, descreened {np.mean(after):.1f} dB"
        )


def likeness(picture: Gray, original: Gray) -> float:
    """Peak signal to noise ratio in dB, after the contrast of the print is allowed for."""
    terms = np.stack([picture.ravel().astype(np.float64), np.ones(picture.size)], axis=1)
    fit = np.linalg.lstsq(terms, original.ravel().astype(np.float64), rcond=None)[0]
    return float(10 * np.log10(255**2 / np.mean((terms @ fit - original.ravel()) ** 2)))


def skews(pictures: list[Gray]) -> None:
    """Error of the angle: pictures with a frame turned further by known angles."""
    errors, missed, framed = [], 0, 0
    for picture in pictures:
        around = round(0.13 * max(picture.shape))
        paper = [float(np.percentile(picture, 97))]
        page = cv2.copyMakeBorder(picture, *(around,) * 4, cv2.BORDER_CONSTANT, value=paper)
        start = deskew.find_skew(cropped(page.astype(np.uint8), around, 0.0))
        framed += start is not None
        for angle in ANGLES if start is not None else ():
            if start is None or abs(start + angle) > deskew.MOST - 0.1:
                continue
            turned = deskew.straighten(page.astype(np.uint8), -angle, (round(paper[0]),))
            found = deskew.find_skew(cropped(turned, around, angle))
            missed += found is None
            if found is not None:
                errors.append(abs(found - start - angle))
    print(
        f"skew: {framed} of {len(pictures)} pictures have a frame to go by; turned"
        f" {len(errors) + missed} times, not found {missed} times; error in degrees"
        f" {np.median(errors):.3f} median, {np.percentile(errors, 95):.3f} 95th percentile,"
        f" {max(errors):.2f} worst"
    )


def cropped(page: Gray, around: int, angle: float) -> Gray:
    """A box with a small margin round a turned picture, as detection would draw it."""
    height, width = (side - 2 * around for side in page.shape)
    sine = abs(np.sin(np.radians(angle)))
    x = max(0, round(around * 0.8 - height * sine / 2))
    y = max(0, round(around * 0.8 - width * sine / 2))
    return np.ascontiguousarray(page[y : page.shape[0] - y, x : page.shape[1] - x])


def papers(photographs: list[Gray]) -> None:
    """Photographs cut without a margin have no paper; with one they keep their tones."""
    burnt = sum(find_paper(middle(picture)) is not None for picture in photographs)
    print(f"paper found on {burnt} of {len(photographs)} photographs cut without a margin")


def middle(picture: Gray) -> Gray:
    """The middle three quarters of a picture, on paper of 85 % brightness."""
    height, width = picture.shape
    part = picture[height // 8 : -height // 8, width // 8 : -width // 8]
    return (part * 0.85).astype(np.uint8)


def gutters(paths: list[Path], pictures: list[Gray]) -> None:
    """Found, missed and false gutters; pages side by side in pairs, and landscape pictures."""
    rng = default_rng(0)
    pages = [scaled(read(path)) for path in paths]
    for name, shadow in (("dark", lambda: rng.uniform(0.2, 0.7)), ("white", lambda: 0.0)):
        count, errors = 0, []
        for both, at in spreads(pages, shadow):
            count += 1
            found = find_gutter(both)
            if found is not None:
                errors.append(abs(found - at))
        print(
            f"{name} gutters found on {len(errors)} of {count} spreads, off by"
            f" {np.median(errors):.4f} of the width (median), {max(errors):.3f} at worst"
        )
    wide = [picture for picture in pictures if picture.shape[1] >= NARROWEST * picture.shape[0]]
    false = sum(find_gutter(picture) is not None for picture in wide)
    print(f"gutters found on {len(wide)} landscape pictures: {false}")


def spreads(pages: list[Gray], shadow: Callable[[], float]) -> Iterator[tuple[Gray, float]]:
    """Neighbouring pages as spreads, and where the gutter is."""
    for left, right in pairwise(pages):
        width = left.shape[1] + right.shape[1]
        yield spread(left, right, shadow()), left.shape[1] / width


def speed(photograph: Gray) -> None:
    """Milliseconds for a million pixels, each step by itself."""
    tiled = np.tile(photograph[:500, :400], (4, 5))
    screened = through_screen(tiled, 4.5, 45.0, default_rng(2))
    page = cv2.copyMakeBorder(screened, *(40,) * 4, cv2.BORDER_CONSTANT, value=[228.0])
    color = np.dstack([page] * 3).astype(np.uint8)
    paper, screen = find_paper(color), descreen.detect(page.astype(np.uint8))
    assert paper is not None and screen is not None
    steps: dict[str, Callable[[], object]] = {
        "find the paper": lambda: find_paper(color),
        "set the paper": lambda: set_paper(color, paper, (255, 255, 255)),
        "detect a screen": lambda: descreen.detect(page),
        "remove a screen": lambda: descreen.remove(color, screen),
        "find the skew": lambda: deskew.find_skew(page),
        "turn": lambda: deskew.straighten(color, 1.0, (228, 228, 228)),
        "all": lambda: clean(color, Clean(descreen=True, deskew=True, paper="white")),
    }
    for name, step in steps.items():
        begun = time.process_time()
        step()
        took = (time.process_time() - begun) * 1000
        print(f"{name:<16}{took:6.0f} ms on {page.size / 1e6:.1f} megapixels in colour")


def scaled(gray: Gray) -> Gray:
    """A page at the height of all others."""
    size = (round(gray.shape[1] * PAGE_HEIGHT / gray.shape[0]), PAGE_HEIGHT)
    return cv2.resize(gray, size, interpolation=cv2.INTER_AREA).astype(np.uint8)


def read(path: Path) -> Gray:
    """A picture of the corpus in grey."""
    gray = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    assert gray is not None, path
    return gray.astype(np.uint8)


if __name__ == "__main__":
    main()
