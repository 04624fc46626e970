"""The printed captions of samples, read by the worker processes from the PDFs they came from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import groupby

from models.errors import BadSettings, InputFault
from models.records import Pdf, RelativeBox, Sample
from models.settings import Settings
from tasks import session
from tasks.captions.page import printed_caption
from tasks.discover import discover
from tasks.progress import Progress
from tasks.session import Job, Session
from tasks.storage import Storage
from tasks.verify import settings_of_last_run

logger = logging.getLogger("intaglio.captions")


def printed_captions(
    output: Storage, samples: Sequence[Sample], progress: Progress
) -> Mapping[str, str]:
    """What is printed under each figure; samples without such a caption are left out.

    Raises:
        BadSettings: The PDFs are not where they were.
    """
    # Passwords are written nowhere, so encrypted PDFs stay closed.
    made_with = settings_of_last_run(output)
    settings = Settings.model_validate({**made_with, "output": output.url})
    captions: dict[str, str] = {}
    unread = 0
    try:
        # The caller holds the output.
        run = session.begin(settings, lock=False)
        pdfs = {pdf.sha256: pdf for pdf in discover(run, remember=False)}
        if samples and not pdfs.keys() & {sample.pdf_sha256 for sample in samples}:
            raise BadSettings(
                f"captions.by page: none of the dataset's PDFs is found in {settings.source}.",
                "Put the PDFs back where they were, or take another captioner.",
            )
        progress.start(len(samples), "reading captions")
        for sha256, group in groupby(samples, lambda sample: sample.pdf_sha256):
            figures = list(group)
            pdf = pdfs.get(sha256)
            found = _of_pdf(run, pdf, figures) if pdf and pdf.is_worked else {}
            captions |= {name: text for name, text in found.items() if text}
            unread += len(figures) - len(found)
            progress.advance(len(figures))
    finally:
        progress.stop()
        session.end()
    if unread:
        logger.warning(
            "%s samples get no caption from the page: their PDFs are not where they were, damaged, "
            "or encrypted (passwords are not kept).",
            f"{unread:,}",
        )
    return captions


def _of_pdf(run: Session, pdf: Pdf, samples: list[Sample]) -> dict[str, str]:
    """What is printed under each figure, maybe nothing; those that cannot be read are left out."""
    try:
        path = run.staging.fetch(pdf)
    except InputFault:
        return {}
    try:
        jobs = (
            Job(
                pdf,
                path,
                printed_caption,
                (path, run.passwords(pdf), sample.page_index, _relative(sample)),
                index=sample.page_index,
            )
            for sample in samples
        )
        results = zip(samples, run.map(jobs), strict=True)
        return {s.file_name: text for s, (_, text) in results if isinstance(text, str)}
    finally:
        run.staging.release(pdf)


def _relative(sample: Sample) -> RelativeBox:
    width, height = sample.page_size
    x0, y0, x1, y1 = sample.box
    return x0 / width, y0 / height, x1 / width, y1 / height
