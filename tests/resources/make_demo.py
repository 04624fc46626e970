"""Make a small archive of scan-like periodicals, always the same: PDFs and the truth about them.

    python -m tests.resources.make_demo FOLDER [--pages N] [--seed S]

The PDFs differ in codec, structure and condition, as an archive put together over years does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from tests.resources.scan_layout import Box, Sheet, Style, head
from tests.resources.scan_pages import MAKERS
from tests.resources.scan_pdf import Binder
from tests.resources.scan_subjects import Studio
from tests.resources.scans import Look, Scanner

PASSWORD = "intaglio"
DPI = 200
LONGEST = 40
"""Pages in one PDF at most; a larger archive has more PDFs, not longer ones."""

DECK = {"text": 0.60, "mixed": 0.18, "plate": 0.12, "blank": 0.06, "table": 0.04}
"""Share of each kind of page, a cover apart."""


@dataclass(frozen=True)
class Truth:
    """What is true of one page, or of a file without readable pages.

    Attributes:
        pdf: path within the archive, with forward slashes.
        page: 0-based index, or None for a file none of whose pages can be read.
        kind: text, mixed, plate, blank, table or cover; broken, locked or html without a page.
        boxes: pictures, x0, y0, x1, y1 as shares of the page as displayed, origin top left.
        label: page label as a reader shows it, empty if the PDF has none.
        codec: how the page's pixels are stored.
        duplicate_of: the PDF with the very same bytes, if there is an earlier one.
    """

    pdf: str
    page: int | None
    kind: str
    boxes: list[Box] = field(default_factory=list)
    label: str = ""
    codec: str = ""
    duplicate_of: str = ""


@dataclass(frozen=True)
class Volume:
    """A recipe for one PDF.

    Attributes:
        path: within the archive; `{n}` is the round when the archive needs several.
        weight: its share of the archive's pages.
        title: of the periodical.
        date: as printed.
        codec: how pages are stored.
        look: paper and scanner.
        columns: of text.
        turns: /Rotate of successive pages.
        labelled: whether it has page labels and metadata.
        dpi: resolution of the scan.
        size: width, height of a page, inches.
    """

    path: str
    weight: int
    title: str
    date: str
    codec: str
    look: Look
    columns: int = 3
    turns: tuple[int, ...] = (0,)
    labelled: bool = False
    dpi: int = DPI
    size: tuple[float, float] = (8.25, 11.25)


VOLUMES = (
    Volume("1887/ladies-mirror-1887-03{n}.pdf", 13, "The Ladies’ Mirror", "March 12, 1887.",
           "jpeg", Look(), labelled=True),
    Volume("1887/ladies-mirror-1887-04{n}.pdf", 11, "The Ladies’ Mirror", "April 9, 1887.",
           "jpeg", Look(paper=(226, 222, 214), grey=True, border=0.5)),
    Volume("work-table-1891{n}.PDF", 12, "The Work-Table", "October, 1891.",
           "g4", Look(paper=(225, 220, 205), grey=True, bilevel=True, border=0.6), columns=2),
    Volume("home-and-hearth-1896{n}.pdf", 4, "Home and Hearth", "June, 1896.",
           "jpx", Look(paper=(235, 224, 190), foxing=16), columns=2, dpi=150, size=(6.25, 9.25)),
    Volume("la-toilette-1901{n}.pdf", 8, "La Toilette", "May 18, 1901.",
           "mrc", Look(paper=(236, 226, 200), bilevel=True, border=0.1)),
    Volume("gazette-of-dress-1906{n}.pdf", 8, "Gazette of Dress", "November, 1906.",
           "strips", Look(paper=(238, 232, 220)), columns=2),
    Volume("the-season-1911{n}.pdf", 7, "The Season", "February 4, 1911.",
           "jpeg", Look(paper=(214, 206, 190), grey=True), turns=(90, 270, 0, 180)),
    Volume("modern-gowns-1916{n}.pdf", 8, "Modern Gowns", "September, 1916.",
           "jpeg", Look(paper=(222, 205, 172), foxing=20, tilt=1.4), columns=1, size=(7, 10)),
)  # fmt: skip


def deal(count: int) -> list[str]:
    """Deal the kinds of an archive's pages, covers apart, so that any stretch has its shares."""
    owed = dict.fromkeys(DECK, 0.5)
    kinds: list[str] = []
    for _ in range(count):
        for kind, share in DECK.items():
            owed[kind] += share
        most = max(owed, key=lambda kind: owed[kind])
        owed[most] -= 1
        kinds.append(most)
    return kinds


def plan(pages: int) -> Iterator[tuple[Volume, int]]:
    """Divide an archive's pages among volumes, the last rounds of a long one included."""
    weights = np.array([v.weight for v in VOLUMES], float)
    rounds = max(1, int(np.ceil(pages * weights.max() / weights.sum() / LONGEST)))
    ends = np.round(np.cumsum(np.tile(weights, rounds)) / (weights.sum() * rounds) * pages)
    counts = np.diff(ends, prepend=0).astype(int)
    for number, count in enumerate(counts):
        again, which = divmod(number, len(VOLUMES))
        path = VOLUMES[which].path.format(n=f"-{again + 1}" if again else "")
        if count:
            yield replace(VOLUMES[which], path=path), int(count)


def label_of(index: int, romans: int, first: int) -> str:
    """Give the label a reader shows for a page: i, ii, iii, iv, then figures."""
    return ("i", "ii", "iii", "iv")[index] if index < romans else str(first + index - romans)


def bind(
    volume: Volume, kinds: list[str], folder: Path, studio: Studio, seed: list[int]
) -> list[Truth]:
    """Make one PDF.

    Args:
        volume: its recipe.
        kinds: of its pages.
        folder: the archive.
        studio: where its pictures come from.
        seed: of this volume alone.
    """
    rng = np.random.default_rng(seed)
    width, height = (round(inches * volume.dpi) for inches in volume.size)
    scanner = Scanner(volume.look, (width, height), volume.dpi, rng)
    style = Style(volume.title, volume.columns, volume.date, bool(rng.integers(2)))
    binder = Binder(volume.dpi, volume.codec)
    romans, first = min(4, len(kinds)), int(rng.integers(60, 300))
    truths: list[Truth] = []
    back = None
    for index, kind in enumerate(kinds):
        own = np.random.default_rng([*seed, index])
        sheet = Sheet(width, height)
        label = label_of(index, romans, first) if volume.labelled else ""
        if kind in ("cover", "blank"):
            area = width * 0.085, height * 0.05, width * 0.915, height * 0.945
        else:
            area = head(sheet, style, label or str(first + index), index % 2 == 1)
        MAKERS[kind](sheet, style, area, studio, own, index)
        scan = scanner.scan(sheet, back, own)
        binder.add(scan, volume.turns[index % len(volume.turns)])
        truths.append(Truth(volume.path, index, kind, scan.boxes, label, volume.codec))
        back = sheet.ink
    if volume.labelled:
        binder.label(romans, first)
        binder.describe(f"{volume.title}, {volume.date}", "D:18870312")
    binder.save(folder / volume.path)
    return truths


def add_faults(folder: Path, truths: list[Truth], seed: int) -> list[Truth]:
    """Add what every archive has too: a copy, a torn file, a locked one, a web page."""
    source = VOLUMES[1].path.format(n="")
    copy = "unsorted/scan0042.pdf"
    (folder / copy).parent.mkdir(exist_ok=True)
    shutil.copyfile(folder / source, folder / copy)
    found = [replace(t, pdf=copy, duplicate_of=source) for t in truths if t.pdf == source]
    # Cut within the first page's pixels: neither pages nor a cross-reference are left to repair.
    torn = "unsorted/ladies-mirror-1890-torn.pdf"
    whole = (folder / source).read_bytes()
    (folder / torn).write_bytes(whole[:15] + whole[whole.index(b"stream") - 200 :][:4000])
    web = "unsorted/download.pdf"
    page = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head>\n"
    page += "<body><h1>Not Found</h1><p>The requested volume was not found.</p></body></html>\n"
    (folder / web).write_text(page, encoding="utf-8", newline="\n")
    locked = "unsorted/private-album-1888.pdf"
    binder = Binder(100, "jpeg")
    scanner = Scanner(Look(), (700, 950), 100, np.random.default_rng([seed, 999]))
    binder.add(scanner.scan(Sheet(700, 950), None, np.random.default_rng([seed, 999, 1])))
    binder.save(folder / locked, PASSWORD)
    faults = ((torn, "broken"), (locked, "locked"), (web, "html"))
    return [*found, *(Truth(path, None, kind) for path, kind in faults)]


def make(folder: Path, pages: int = 72, seed: int = 1885) -> list[Truth]:
    """Make the archive.

    Args:
        folder: where to put it; made if missing. The truth goes to `truth.jsonl` in it.
        pages: readable pages, those of the duplicate not counted; 8 or more.
        seed: the same seed gives the same bytes.

    Returns:
        A line for each page, and one for each file that has none to read, sorted by path.
    """
    if pages < len(VOLUMES):
        raise ValueError(f"an archive needs {len(VOLUMES)} pages or more, not {pages}")
    folder.mkdir(parents=True, exist_ok=True)
    studio = Studio(seed, variants=3 if pages < 400 else 4)
    truths: list[Truth] = []
    deck = iter(deal(pages))
    for number, (volume, count) in enumerate(plan(pages)):
        inner = list(itertools.islice(deck, count - 1))
        np.random.default_rng([seed, number, 0]).shuffle(inner)
        truths += bind(volume, ["cover", *inner], folder, studio, [seed, number])
    truths += add_faults(folder, truths, seed)
    truths.sort(key=lambda t: (t.pdf, t.page or 0))
    lines = (json.dumps(asdict(t), ensure_ascii=False) + "\n" for t in truths)
    (folder / "truth.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    return truths


def main(argv: list[str] | None = None) -> None:
    """Run from a shell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where to put the archive")
    parser.add_argument("--pages", type=int, default=72, help="readable pages (default 72)")
    parser.add_argument("--seed", type=int, default=1885, help="another seed, another archive")
    args = parser.parse_args(argv)
    truths = make(args.folder, args.pages, args.seed)
    print(f"{len({t.pdf for t in truths})} PDFs, {len(truths)} entries, in {args.folder}")


if __name__ == "__main__":
    main()
