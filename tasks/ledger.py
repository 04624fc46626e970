"""The ledger: what has been done is what is on the disk.

Records of finished pages lie in small files named after their own content, below one folder for
each stage and PDF, each written in one atomic step after the files it vouches for. When a PDF is
finished its records are put together in one file, so that 90,000 pages are read back in seconds.
The order of writing never matters and a record read twice counts once.

Each line begins with a checksum of the rest and of the PDF it is about: one that is damaged, or
lies in another PDF's file, is as a missing one, and its work is done again, instead of another
dataset being made of it.
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

        A line that cannot be read (damaged, of another PDF, or written by another version) is no
        record: its page is simply worked again.
        """
        records: dict[int, R] = {}
        for name in self._files.get(pdf_sha256, []):
            for line in self._storage.lines(name):
                if record := from_line(line, self._record, pdf_sha256):
                    records[record.page_index] = record
        return records

    def add(self, pdf_sha256: str, records: Iterable[R]) -> None:
        """Write finished pages down, in one atomic step."""
        data = _encode(records, pdf_sha256)
        name = f"{self._folder}/{pdf_sha256}/{hashlib.sha256(data).hexdigest()[:16]}.jsonl"
        self._storage.write(name, data)
        self._files.setdefault(pdf_sha256, []).append(name)

    def replace(self, pdf_sha256: str, records: Iterable[R]) -> None:
        """Let these be the PDF's only records, in one file."""
        whole = f"{self._folder}/{pdf_sha256}.jsonl"
        old = [name for name in self._files.get(pdf_sha256, []) if name != whole]
        ordered = sorted(records, key=lambda r: r.page_index)
        self._storage.write(whole, _encode(ordered, pdf_sha256))
        for name in old:
            self._storage.remove(name)
        self._files[pdf_sha256] = [whole]

    def scattered(self, pdf_sha256: str) -> bool:
        """Whether the PDF's records lie in more than one file."""
        return len(self._files.get(pdf_sha256, [])) > 1


def to_line(record: Record, pdf_sha256: str = "") -> bytes:
    """A record as a line of the ledger: CRC-32 in hex, a space, JSON.

    Args:
        record: The record.
        pdf_sha256: Of the PDF whose file the line is for, if it is one PDF's; the checksum covers
            it.
    """
    data = record.model_dump_json().encode()
    return b"%08x %b\n" % (_checksum(data, pdf_sha256), data)


def from_line(line: bytes, kind: type[L], pdf_sha256: str = "") -> L | None:
    """The record of a line.

    Returns:
        None if it is not as it was written, for another PDF, or if another version wrote it.
    """
    checksum, _, data = line.partition(b" ")
    if checksum != b"%08x" % _checksum(data, pdf_sha256):
        return None
    try:
        return kind.model_validate_json(data)
    except ValidationError:
        return None


def _encode(records: Iterable[R], pdf_sha256: str) -> bytes:
    return b"".join(to_line(record, pdf_sha256) for record in records)


def _checksum(data: bytes, pdf_sha256: str) -> int:
    return crc32(data, crc32(pdf_sha256.encode()))
