"""How long a run takes to see that everything is done already.

    python -m benchmarks.resume [--pages 90000]

Makes the ledger of a finished archive (records and empty sample files, no PDFs of any weight) in a
temporary folder, then does in a fresh process what every run does first: find the PDFs, read the
ledger, compare. Prints seconds and peak memory.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from models.records import Cut, Detection, Look, PageFacts, Pdf, PdfFacts, Region, Sample
from models.settings import Run, Settings
from tasks import session
from tasks.decide import decide
from tasks.discover import ARCHIVE, discover
from tasks.ledger import to_line
from tasks.plan import count_left
from tasks.session import Session

PAGES_PER_PDF = 300
KEPT_EVERY = 4
SAMPLE_BYTES = 100
MEASURES = {f"measure_{number}": 0.123456 * number for number in range(8)}
PAGE = PageFacts(width=600, height=800)
PICTURE = Detection(
    score=0.2, measures=MEASURES, regions=[Region(box=(0.1, 0.1, 0.5, 0.6), kind="engraving")]
)
TEXT = Detection(score=0.0, measures=MEASURES)


def main() -> None:
    """Make the archive, then measure in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=90_000)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), arguments.pages // PAGES_PER_PDF)
        command = [sys.executable, "-m", "benchmarks.resume", "--measure", folder]
        subprocess.run(command, check=True)


def settings_for(folder: Path) -> Settings:
    """Settings of both processes."""
    places = {"source": str(folder / "source"), "output": str(folder / "dataset")}
    return Settings(**places, run=Run(workers=1))


def make(folder: Path, pdfs: int) -> None:
    """Write the ledger of a finished archive."""
    (folder / "source").mkdir()
    run = session.begin(settings_for(folder))
    archive = [_finish(run, folder, number) for number in range(pdfs)]
    run.output.write(ARCHIVE, b"".join(map(to_line, archive)))
    session.end()


def _finish(run: Session, folder: Path, number: int) -> Pdf:
    path = folder / "source" / f"volume-{number:04d}.pdf"
    path.write_bytes(f"%PDF- {number}".encode())
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    status = path.stat()
    pdf = Pdf(
        name=path.name,
        path=str(path),
        size=status.st_size,
        stamp=str(status.st_mtime_ns),
        sha256=sha256,
        facts=PdfFacts(page_count=PAGES_PER_PDF),
        key=run.keys.facts,
        volume=path.stem,
    )
    looks = [
        Look(
            page_index=index,
            key=run.keys.look,
            page=PAGE,
            detection=TEXT if index % KEPT_EVERY else PICTURE,
        )
        for index in range(PAGES_PER_PDF)
    ]
    run.looks.replace(sha256, looks)
    key = run.keys.cut(pdf.volume, decide(PICTURE, run.settings).regions)
    images = folder / "dataset" / "images" / pdf.volume
    images.mkdir(parents=True)
    cuts = []
    for index in range(0, PAGES_PER_PDF, KEPT_EVERY):
        name = f"p{index + 1:04d}-1.jpg"
        (images / name).write_bytes(bytes(SAMPLE_BYTES))
        sample = Sample(
            file_name=f"images/{pdf.volume}/{name}",
            pdf=pdf.name,
            pdf_sha256=sha256,
            page_index=index,
            page_size=(600.0, 800.0),
            box=(60.0, 80.0, 300.0, 480.0),
            kind="engraving",
            confidence=1.0,
            dpi=300.0,
            width=832,
            height=1216,
            bytes=SAMPLE_BYTES,
            sha256=sha256,
            transforms=["render at 300.00 dpi", "resize 1000x1667 to 832x1216 lanczos"],
        )
        cuts.append(Cut(page_index=index, key=key, samples=[sample]))
    run.cuts.replace(sha256, cuts)
    return pdf


def measure(folder: Path) -> None:
    """Do what a run does first, and print what it cost."""
    wall, cpu = time.monotonic(), time.process_time()
    run = session.begin(settings_for(folder))
    archive = discover(run)
    left = sum(count_left(run, pdf) for pdf in archive)
    pages = sum(pdf.facts.page_count for pdf in archive if pdf.facts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{pages:,} pages checked, {left} left to do: {time.monotonic() - wall:.1f} s "
        f"({time.process_time() - cpu:.1f} s of processor time), {peak:.0f} MB"
    )
    session.end()


if __name__ == "__main__":
    main()
