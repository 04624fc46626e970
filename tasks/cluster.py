"""Work on a Dask cluster: a PDF is a task, and every Dask worker has a session of its own.

What a Dask worker makes goes to the output, as everywhere; only numbers of pages come back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from prefect import task

from models.errors import BadSettings
from models.records import Pdf
from models.settings import Settings
from tasks import session
from tasks.extract import Group, extract_pages
from tasks.places import is_s3
from tasks.retry import RETRIED
from tasks.session import Session
from tasks.triage import is_done, triage, valid_looks

DAEMON = "distributed.worker.daemon"
"""Dask's setting that keeps its workers from having processes of their own, as ours do."""
ONE_EACH = {"workers": 1}
_changing = threading.Lock()
_run = ""
"""The run this process's session was opened for, in a Dask worker."""


class Errand:
    """A PDF to be worked elsewhere.

    Not a dataclass on purpose: Prefect would search each one for futures.
    """

    def __init__(self, pdf: Pdf, settings: Settings, run: str) -> None:
        self.pdf = pdf
        self.settings = settings
        self.run = run


def run_errand(errand: Errand) -> tuple[int, int]:
    """Look at a PDF's pages and cut those that are kept, in this process's own session.

    Returns:
        Pages looked at and pages cut just now.

    Raises:
        StopRun: The storage failed or is full.
    """
    global _run
    with _changing:
        if _run != errand.run:
            # What an earlier run's session knew of the output is out of date.
            session.end()
            _run = errand.run
        # The run that sent the errand holds the output.
        mine = session.begin(errand.settings, lock=False)
    pdf = errand.pdf
    assert pdf.sha256 is not None and pdf.facts is not None
    looked = pdf.facts.page_count - len(valid_looks(mine, pdf.sha256))
    pages = triage(mine, pdf)
    if pages:
        extract_pages(mine, Group(pdf, pages))
    return looked, len(pages)


@task(name="work", task_run_name="work {errand.pdf.name}", **RETRIED)
def work_task(errand: Errand) -> tuple[int, int]:
    """Work a PDF in a Dask worker; see :func:`run_errand`."""
    # Dask sends this function by value, and with it whatever globals it names.
    return run_errand(errand)


def work_on_dask(run: Session, pdfs: list[Pdf]) -> None:
    """Have a Dask cluster work PDFs, and look at what it did.

    Raises:
        BadSettings: Its machines could not reach source or output.
        StopRun: The storage failed or is full.
    """
    if run.settings.run.dask_address:
        _check_shared(run, pdfs)
    name, settings = uuid4().hex, run.settings
    if not settings.run.dask_address:
        # This machine's processors are shared among its Dask workers.
        settings = settings.model_copy(update={"run": settings.run.model_copy(update=ONE_EACH)})
    todo = [pdf for pdf in pdfs if not is_done(run, pdf)]
    with _runner(run) as runner:
        futures = [
            runner.submit(work_task, {"errand": Errand(pdf, settings, name)}) for pdf in todo
        ]
        for pdf, future in zip(todo, futures, strict=True):
            looked, cut = future.result()
            run.count(looked=looked, cut=cut)
            run.progress.advance(pdf.facts.page_count if pdf.facts else 0)
        if settings.run.dask_address:
            # The cluster stays; our processes and copies on it do not.
            runner.client.run(session.end)
    run.reread()


def _check_shared(run: Session, pdfs: list[Pdf]) -> None:
    """Refuse what only this machine can read or write, before pages are condemned for it.

    Raises:
        BadSettings: Source or output is not on S3.
    """
    places = [run.settings.output, *(pdf.path for pdf in pdfs)]
    if elsewhere := [place for place in places if not is_s3(place)]:
        raise BadSettings(
            f"run.dask_address: {elsewhere[0]} is not on S3.",
            "The machines of a Dask cluster share source and output on S3; on one machine, leave "
            "the address out.",
        )


@contextmanager
def _runner(run: Session) -> Iterator[Any]:
    try:
        import dask
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise BadSettings(f"run.runner: {error}.", "pip install 'intaglio[dask]'.") from error
    address = run.settings.run.dask_address
    if address:
        with DaskTaskRunner(address=address) as runner:
            yield runner
        return
    workers = {"n_workers": run.pool.workers, "threads_per_worker": 1}
    cluster = DaskTaskRunner(cluster_kwargs={**workers, "dashboard_address": None})
    with dask.config.set({DAEMON: False}), cluster as runner:
        yield runner
