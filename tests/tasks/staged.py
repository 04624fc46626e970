"""All stages one after the other without Prefect, and what they published."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from models.records import Summary
from tasks import package, triage
from tasks.discover import discover
from tasks.extract import Group, extract_pages
from tasks.plan import remember_published
from tasks.publish import SUMMARY, publish
from tasks.session import Session
from tasks.storage import Storage

PUBLISHED = ("dataset.zip", "manifest.jsonl", "pages.jsonl", "quarantine.jsonl")


def work(run: Session, pages_per_task: int = 2) -> Summary:
    """What the flow does."""
    archive = discover(run)
    for pdf in archive:
        if not pdf.fault and not pdf.duplicate_of:
            pages = triage.triage(run, pdf)
            for start in range(0, len(pages), pages_per_task):
                extract_pages(run, Group(pdf, pages[start : start + pages_per_task]))
    summary = publish(run, archive)
    package.package(run)
    run.output.write(SUMMARY, summary.model_dump_json().encode())
    remember_published(run, archive)
    return summary


def read_published(output: Storage) -> dict[str, str]:
    return {name: hashlib.sha256(output.read(name)).hexdigest() for name in PUBLISHED}


def lines(output: Storage, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.lines(name)]
