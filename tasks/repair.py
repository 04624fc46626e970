"""Repair: what is wrong in a dataset is taken away, so that extraction makes it again.

Nothing is taken away that cannot be made again.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.errors import BadSettings, EncryptedPdf, InputFault
from models.records import Pdf, Sample
from tasks import work
from tasks.dataset import ASIDE, IMAGES, MANIFEST, aside_name, image_name
from tasks.discover import ask, discover, last_time
from tasks.package import PACKED
from tasks.publish import PAGES, PUBLISHED, SUMMARY
from tasks.session import Session
from tasks.storage import Storage
from tasks.verify import Problem, sound_records

PUT_BACK = (
    "Put what is missing back, as it was, and run the same command again; or run "
    "python -m flows.extract, which makes the dataset of what the source holds now."
)
PASSWORD = "Give its password with --password and run the same command again."
SHOWN = 20
"""PDFs named one by one."""


def repair(output: Storage, problems: list[Problem]) -> None:
    """Take away what is wrong, so that the next run of extraction makes it again.

    The records of finished pages stay; only files that are not what they should be go, and not the
    summary, whose settings an interrupted repair needs again.
    """
    for problem in problems:
        if problem.file_name != SUMMARY:
            output.remove(problem.file_name)
    for name in (PUBLISHED, PACKED):
        output.remove(name)


def not_made_again(output: Storage, problems: list[Problem]) -> list[Problem]:
    """The samples that were taken away and did not come back.

    Args:
        output: The dataset after its repair.
        problems: What was wrong before.
    """
    samples, _ = sound_records(output, MANIFEST, Sample)
    back = {sample.file_name for sample in samples}
    what = f"could not be made again; {PAGES} says why"
    return [
        Problem(file_name=problem.file_name, what=what)
        for problem in problems
        if problem.file_name.startswith((f"{IMAGES}/", f"{ASIDE}/"))
        and image_name(problem.file_name) not in back
    ]


def check_sources(run: Session, problems: list[Problem]) -> None:
    """Make sure that every PDF with samples is in the source, and that those to be cut again open.

    Extraction leaves out of the dataset what the source does not hold, and passwords are written
    nowhere: the samples would be gone for good.

    Args:
        run: A session with the settings of the last run.
        problems: What is wrong.

    Raises:
        BadSettings: One is gone, another file, or does not open. Nothing was changed.
        StorageGone: It cannot be read.
    """
    samples, _ = sound_records(run.output, MANIFEST, Sample)
    wrong = {problem.file_name for problem in problems}
    needed = {s.pdf_sha256 for s in samples if wrong & {s.file_name, aside_name(s.file_name)}}
    # The manifest, too: the ledger may be gone.
    before = {s.pdf_sha256: Pdf(name=s.pdf, path="", sha256=s.pdf_sha256) for s in samples}
    before |= {pdf.sha256 or "": pdf for pdf in last_time(run.output) if pdf.is_worked}
    try:
        now = discover(run, remember=False)
    except BadSettings as error:
        place = "".join(f" {pdf.path} was in it." for pdf in [*before.values()][:1] if pdf.path)
        raise BadSettings(f"{error.message}{place} Nothing was changed.", PUT_BACK) from error
    lost = list(_lost(run, before, now, needed))
    if lost:
        more = f"\n... and {len(lost) - SHOWN:,} more." if len(lost) > SHOWN else ""
        told = "\n".join(fault.message for fault in lost[:SHOWN]) + more
        locked = any(isinstance(fault, EncryptedPdf) for fault in lost)
        raise BadSettings(f"{told}\nNothing was changed.", PASSWORD if locked else PUT_BACK)


def _lost(
    run: Session, before: dict[str, Pdf], now: list[Pdf], needed: set[str]
) -> Iterator[InputFault]:
    """Why PDFs that samples were made of cannot be worked any more."""
    worked = {pdf.sha256: pdf for pdf in now if pdf.is_worked}
    named = {pdf.name: pdf for pdf in now}
    for sha256, old in before.items():
        if pdf := worked.get(sha256):
            if sha256 in needed and (fault := _trouble(run, pdf)):
                yield fault
        elif not (pdf := named.get(old.name)):
            at = f" (it was {old.path})" if old.path else ""
            yield InputFault(f"{old.name} is gone from the source{at}.")
        elif pdf.fault and pdf.fault.kind == EncryptedPdf.kind:
            yield EncryptedPdf(pdf.fault.message)
        elif pdf.fault:
            yield InputFault(pdf.fault.message)
        else:
            yield InputFault(f"{old.name} is not the file its samples were made of.")


def _trouble(run: Session, pdf: Pdf) -> InputFault | None:
    """What is wrong with a PDF whose pages are to be cut again."""
    try:
        path = run.staging.fetch(pdf)
        try:
            if ask(run, pdf, work.hash_file, path) != pdf.sha256:
                return InputFault(f"{pdf.name} is not the file its samples were made of.")
            if pdf.facts and pdf.facts.encrypted:
                ask(run, pdf, work.inspect, path, run.passwords(pdf))
        finally:
            run.staging.release(pdf)
    except InputFault as error:
        return error
    return None
