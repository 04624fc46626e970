"""Archives to measure on: PDFs like a magazine of the 1880s, scanned in colour at 300 dpi.

A page is one colour JPEG on toned paper, of about 1 MB, and 27 pages in 100 hold illustrations.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pikepdf
from numpy.typing import NDArray

from tests.resources.make_demo import VOLUMES, bind
from tests.resources.scan_pdf import Binder
from tests.resources.scan_subjects import Studio
from tests.resources.scans import Scan

DPI = 300
SHARES = {"text": 64, "mixed": 15, "plate": 12, "blank": 5, "table": 4}
"""Pages of each kind in a hundred."""
PAGES_PER_PDF = 300
BASES = 96
"""Pages composed for a large archive; the others are these, moved and toned anew."""
MOST_MOVED = 24
"""Pixels a page is moved by at most: a fiftieth of an inch, as pages lie in a scanner."""


def compose(folder: Path, pages: int, seed: int) -> list[Path]:
    """Make PDFs of pages that were each composed for themselves; 0.3 s a page."""
    studio = Studio(seed, variants=3)
    deck = _deal(pages, seed)
    made: list[Path] = []
    for start in range(0, pages, PAGES_PER_PDF):
        path = f"magazine-{start // PAGES_PER_PDF + 1:02d}.pdf"
        volume = replace(VOLUMES[0], path=path, dpi=DPI, labelled=False)
        bind(volume, deck[start : start + PAGES_PER_PDF], folder, studio, [seed, start])
        made.append(folder / path)
    return made


def multiply(folder: Path, size: float, processes: int) -> int:
    """Make a large archive out of few composed pages; 0.1 s a page.

    Every page is decoded, moved by some pixels, given its own contrast and paper, and encoded
    anew: no two have the same bytes or pixels.

    Args:
        folder: Where the PDFs go.
        size: Wanted size of the archive in bytes; reached within a page.
        processes: To share the work.

    Returns:
        The number of pages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        (source,) = compose(Path(scratch), BASES, seed=1885)
        bytes_per_page = source.stat().st_size / BASES
        pages = max(1, round(size / bytes_per_page))
        starts = range(0, pages, PAGES_PER_PDF)
        counts = [min(PAGES_PER_PDF, pages - start) for start in starts]
        jobs = [
            (source, folder / f"volume-{number + 1:03d}.pdf", number * PAGES_PER_PDF, count)
            for number, count in enumerate(counts)
        ]
        # Forked processes would wait for threads of OpenCV that exist in this one alone.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context) as pool:
            for _ in pool.map(_vary, *zip(*jobs, strict=True)):
                pass
    return pages


def _deal(pages: int, seed: int) -> list[str]:
    """The kinds of pages, in a chance order in which each hundred has its shares."""
    hundred = [kind for kind, share in SHARES.items() for _ in range(share)]
    rng = np.random.default_rng(seed)
    return [str(kind) for _ in range(0, pages, 100) for kind in rng.permutation(hundred)][:pages]


def _vary(source: Path, target: Path, first: int, count: int) -> None:
    """Write one PDF of the large archive."""
    cv2.setNumThreads(1)
    bases = list(_jpegs(source))
    binder = Binder(DPI, "jpeg")
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        image: Any = cv2.imdecode(bases[number % len(bases)], cv2.IMREAD_COLOR_RGB)
        dx, dy = (int(v) for v in rng.integers(-MOST_MOVED, MOST_MOVED + 1, 2))
        image = np.roll(image, (dy, dx), axis=(0, 1))
        levels = np.arange(256)[:, None] * rng.uniform(0.96, 1.0, 3) + rng.uniform(0, 6)
        image = cv2.LUT(image, levels.astype(np.uint8)[None])
        binder.add(Scan(image=image, paper=image, boxes=[]))
    binder.save(target)


def _jpegs(path: Path) -> Iterator[NDArray[np.uint8]]:
    """The encoded pictures of a PDF of which each page is one."""
    with pikepdf.open(path) as pdf:
        for page in pdf.pages:
            (picture,) = page.Resources.XObject.values()
            yield np.frombuffer(picture.read_raw_bytes(), np.uint8)
