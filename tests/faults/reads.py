"""A disk that cannot be read for a while, in each stage of a run, which then goes on.

    LD_PRELOAD=BAD_READS.SO BAD_READS=SWITCH python -m tests.faults.reads SOURCE OUTPUT SHARE

Run by ``test_reads.py``. It prints for each stage how many of its calls failed.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from models.errors import StorageGone
from models.records import Pdf
from tasks import session, triage
from tasks.discover import discover
from tasks.extract import Group, extract_pages
from tasks.session import Session
from tests.faults.stages import settings_for, work

T = TypeVar("T")


def main(source: Path, output: Path, share: str) -> None:
    """Each call is made on the bad disk first, and then again by the same worker on a good one."""
    settings = settings_for(source, output)
    switch = Path(os.environ["BAD_READS"])
    failed: Counter[str] = Counter()

    @contextmanager
    def fresh_run() -> Iterator[Session]:
        try:
            yield session.begin(settings)
        finally:
            session.end()

    def twice(stage: str, call: Callable[[], T]) -> T:
        switch.write_text(share)
        try:
            call()
        except StorageGone as error:
            assert "Input/output error" in error.message
            failed[stage] += 1
        finally:
            switch.unlink()
        return call()

    def look(run: Session, pdf: Pdf) -> list[triage.PageToCut]:
        return triage.triage(run, pdf)

    with fresh_run() as run:
        archive = [pdf for pdf in twice("open", lambda: discover(run)) if pdf.is_worked]
    with fresh_run() as run:
        kept = [(pdf, twice("look", lambda pdf=pdf: look(run, pdf))) for pdf in archive]
    with fresh_run() as run:
        for pdf, pages in kept:
            for page in pages:
                group = Group(pdf, [page])
                twice("cut", lambda group=group: extract_pages(run, group))
    work(settings)
    print(json.dumps(failed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
