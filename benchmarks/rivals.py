"""The contestants of ``benchmarks.speed``: the same archive, each in a process of its own.

    python -m benchmarks.rivals NAME ARCHIVE OUTPUT

Rivals differ in the renderer; after it all do what the article does: keep a page if the standard
deviation of its grey is over 45, resize it to 1024×1024 with LANCZOS, write it as JPEG 92. Ours
do what this project does by default: find the illustrations, cut them out at the scan's own
resolution, fit and write them with their records.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from benchmarks.measure import announce, say

if TYPE_CHECKING:
    # Nobody's memory should hold what others need.
    from models.records import Summary
    from models.settings import Settings
    from tasks.session import Session

ZOOM = 2
DPI = 72 * ZOOM
SIGMA = 45.0
SIDE = 1024
QUALITY = 92
CHUNK = 10
"""Pages a process of the plain pool takes at a time."""

Ready = Callable[[], None]
Result = tuple[int, int]
"""Pages, and kept pages."""


def article(archive: Path, output: Path, ready: Ready) -> Result:
    """The article's loop as it stands: PyMuPDF, one process."""
    pymupdf = mupdf()
    ready()
    pages = kept = 0
    for path in pdfs(archive):
        with pymupdf.open(path) as document:
            for page in document:
                pages += 1
                kept += judge(render(page), output / f"{path.stem}-{page.number}.jpg")
    return pages, kept


def pool(archive: Path, output: Path, ready: Ready) -> Result:
    """PyMuPDF in a plain process pool, as its documentation advises."""
    pymupdf = mupdf()
    with multiprocessing.Pool() as workers:
        ready()
        jobs = []
        for path in pdfs(archive):
            with pymupdf.open(path) as document:
                starts = range(0, len(document), CHUNK)
            jobs += [(path, start, output) for start in starts]
        results = list(workers.imap_unordered(some_pages, jobs))
    return sum(pages for pages, _ in results), sum(kept for _, kept in results)


def some_pages(job: tuple[Path, int, Path]) -> Result:
    """A few pages, in a process of the pool."""
    path, start, output = job
    kept = 0
    with mupdf().open(path) as document:
        numbers = range(start, min(start + CHUNK, len(document)))
        for number in numbers:
            kept += judge(render(document[number]), output / f"{path.stem}-{number}.jpg")
    return len(numbers), kept


def pdf2image(archive: Path, output: Path, ready: Ready) -> Result:
    """Poppler through pdf2image, a PDF in one call."""
    from pdf2image import convert_from_path

    ready()
    pages = kept = 0
    for path in pdfs(archive):
        for number, image in enumerate(convert_from_path(path, dpi=DPI)):
            pages += 1
            kept += judge(image, output / f"{path.stem}-{number}.jpg")
    return pages, kept


def pypdfium2(archive: Path, output: Path, ready: Ready) -> Result:
    """PDFium through pypdfium2, one process."""
    import pypdfium2  # type: ignore[import-untyped]

    ready()
    pages = kept = 0
    for path in pdfs(archive):
        with pypdfium2.PdfDocument(path) as document:
            for number in range(len(document)):
                page = document[number]
                image = page.render(scale=ZOOM).to_pil().convert("RGB")
                page.close()
                pages += 1
                kept += judge(image, output / f"{path.stem}-{number}.jpg")
    return pages, kept


def functions(archive: Path, output: Path, ready: Ready) -> Result:
    """Ours: the functions alone, one process."""
    import cv2

    from models.records import Pdf
    from tasks import work
    from tasks.decide import decide
    from tasks.keys import Keys

    cv2.setNumThreads(1)
    settings = settings_of(archive, output)
    recipe = Keys(settings).recipe
    ready()
    pages = kept = 0
    for path in pdfs(archive):
        facts = work.inspect(str(path), ())
        name = path.stem
        pdf = Pdf(name=path.name, path=str(path), facts=facts, volume=name)
        pdf = pdf.model_copy(update={"sha256": work.hash_file(str(path))})
        for index in range(facts.page_count):
            pages += 1
            look = work.look(str(path), (), index, settings.read, settings.triage, "")
            assert look.detection is not None
            regions = decide(look.detection, settings).regions
            if not regions:
                continue
            _, files = work.cut(str(path), (), pdf, look, regions, recipe, "")
            kept += bool(files)
            for number, data in enumerate(files):
                (output / f"{name}-{index}-{number}.jpg").write_bytes(data)
    return pages, kept


def workers(archive: Path, output: Path, ready: Ready) -> Result:
    """Ours: the whole job with its pool of workers, its tasks called by plain threads."""
    from flows import extract as module
    from tasks import session

    with ThreadPoolExecutor(module.THREADS._max_workers) as threads:
        for name in ("discover", "triage", "extract", "publish", "package"):
            task = getattr(module, f"{name}_task")
            setattr(module, f"{name}_task", Plain(task.fn, threads))
        # It tells Prefect of what there is.
        module.report_task = lambda summary: None
        run = session.begin(settings_of(archive, output))
        start_workers(run)
        ready()
        summary = module.run_extract(run)
        session.end()
    return summary.pages.total, summary.pages.kept


class Plain:
    """What the flow uses of a Prefect task, without Prefect.

    Args:
        function: The task's own.
        threads: Where it runs when it is submitted.
    """

    def __init__(self, function: Callable[..., Any], threads: ThreadPoolExecutor) -> None:
        self.function, self.threads = function, threads

    def __call__(self, *arguments: Any) -> Any:
        """Run it here."""
        return self.function(*arguments)

    def submit(self, argument: Any) -> Future[Any]:
        """Run it in a thread."""
        return self.threads.submit(self.function, argument)

    def map(self, arguments: list[Any]) -> list[Future[Any]]:
        """Run it for each of these in a thread."""
        return [self.submit(argument) for argument in arguments]


def flow(archive: Path, output: Path, ready: Ready) -> Result:
    """Ours: the whole Prefect flow, as it is run in a shell."""
    from flows import extract as module

    whole = module.run_extract

    def begun(run: Session) -> Summary:
        # By now Prefect is imported, the server is found, and the flow run has begun.
        start_workers(run)
        ready()
        return whole(run)

    module.run_extract = begun
    summary = module.extract(settings_of(archive, output))
    return summary.pages.total, summary.pages.kept


CONTESTANTS = {
    "article": article,
    "pool": pool,
    "pdf2image": pdf2image,
    "pypdfium2": pypdfium2,
    "functions": functions,
    "workers": workers,
    "flow": flow,
}


def pdfs(archive: Path) -> Iterator[Path]:
    """The PDFs of an archive in the order of their names."""
    return iter(sorted(path for path in archive.rglob("*") if path.suffix.lower() == ".pdf"))


def start_workers(run: Session) -> None:
    """Have all worker processes start and load what they need, before the clock does."""
    from tasks.detect import make_detector

    warm = [run.pool.submit(make_detector, "none", timeout_s=60) for _ in range(run.pool.workers)]
    for future in warm:
        future.exception()


def settings_of(archive: Path, output: Path) -> Settings:
    """The project's defaults."""
    from models.settings import Run, Settings

    return Settings(source=str(archive), output=str(output), run=Run(disk_reserve_mb=0))


def mupdf() -> Any:
    """PyMuPDF, which has no types; imported by those who use it."""
    import pymupdf

    return pymupdf


def render(page: Any) -> Image.Image:
    """A page at twice its size in points, as the article renders it."""
    pixmap = page.get_pixmap(matrix=mupdf().Matrix(ZOOM, ZOOM))
    return Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples)


def judge(image: Image.Image, target: Path) -> bool:
    """Keep a page, or not, by the article's rule."""
    if np.array(image.convert("L")).std() <= SIGMA:
        return False
    image.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(target, "JPEG", quality=QUALITY)
    return True


def main() -> None:
    """Run one contestant."""
    name, archive, output = sys.argv[1:]
    Path(output).mkdir(parents=True, exist_ok=True)
    announce(*CONTESTANTS[name](Path(archive), Path(output), lambda: say("ready")))


if __name__ == "__main__":
    main()
