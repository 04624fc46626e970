"""The ledger: what has been done is what is on the disk.

Records of finished pages lie in small files named after their own content, below one folder for
each stage and PDF, each written in one atomic step after the files it vouches for. When a PDF is
finished its records are put together in one file, so that 90,000 pages are read back in seconds.
The order of writing never matters and a record read twice counts once.

Each line begins with a checksum of the rest: a damaged one is as a missing one, and its work is
done again, instead of another dataset being made of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Generic, TypeVar
from zlib import crc32

from pydantic import ValidationError

from models.records import PageRecord, Record
from tasks.storage import Storage

STATE = ".intaglio"
"""Folder below the output that holds the ledger."""

R = TypeVar("R", bound=PageRecord)
L = TypeVar("L", bound=Record)


class Ledger(Generic[R]):
    """The records of one stage.

    Args:
        storage: The output.
        stage: Name of the stage: ``looks`` or ``cuts``.
        record: Type of the stage's records.
    """

    def __init__(self, storage: Storage, stage: str, record: type[R]) -> None:
        self._storage = storage
        self._folder = f"{STATE}/{stage}"
        self._record = record
        self._files: dict[str, list[str]] = {}
        for name in sorted(storage.names(self._folder)):
            if name.endswith(".jsonl"):
                self._files.setdefault(name[len(self._folder) + 1 :][:64], []).append(name)

    def load(self, pdf_sha256: str) -> dict[int, R]:
        """All records of a PDF, by page index.

        A line that cannot be read (damaged, or written by another version) is no record: its page
        is simply worked again.
        """
        records: dict[int, R] = {}
        for name in self._files.get(pdf_sha256, []):
            for line in self._storage.lines(name):
                if record := from_line(line, self._record):
                    records[record.page_index] = record
        return records

    def add(self, pdf_sha256: str, records: Iterable[R]) -> None:
        """Write finished pages down, in one atomic step."""
        data = _encode(records)
        name = f"{self._folder}/{pdf_sha256}/{hashlib.sha256(data).hexdigest()[:16]}.jsonl"
        self._storage.write(name, data)
        self._files.setdefault(pdf_sha256, []).append(name)

    def replace(self, pdf_sha256: str, records: Iterable[R]) -> None:
        """Let these be the PDF's only records, in one file."""
        whole = f"{self._folder}/{pdf_sha256}.jsonl"
        old = [name for name in self._files.get(pdf_sha256, []) if name != whole]
        self._storage.write(whole, _encode(sorted(records, key=lambda r: r.page_index)))
        for name in old:
            self._storage.remove(name)
        self._files[pdf_sha256] = [whole]

    def scattered(self, pdf_sha256: str) -> bool:
        """Whether the PDF's records lie in more than one file."""
        return len(self._files.get(pdf_sha256, [])) > 1


def to_line(record: Record) -> bytes:
    """A record as a line of the ledger: CRC-32 in hex, a space, JSON."""
    data = record.model_dump_json().encode()
    return b"%08x %b\n" % (crc32(data), data)


def from_line(line: bytes, kind: type[L]) -> L | None:
    """The record of a line; None if it is not as it was written, or another version wrote it."""
    checksum, _, data = line.partition(b" ")
    if checksum != b"%08x" % crc32(data):
        return None
    try:
        return kind.model_validate_json(data)
    except ValidationError:
        return None


def _encode(records: Iterable[R]) -> bytes:
    return b"".join(map(to_line, records))
