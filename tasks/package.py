"""Packaging: the dataset, images and manifest, in one ZIP, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import IO

from prefect import task

from models.errors import StorageGone, StorageRefused
from tasks import session
from tasks.dataset import MANIFEST, made_again, read_lines, settle
from tasks.ledger import STATE
from tasks.retry import RETRIED
from tasks.session import Session
from tasks.storage import Storage

DATASET = "dataset.zip"
PACKED = f"{STATE}/packed.json"
"""Which manifest the ZIP was made of, so that an unchanged dataset is not packed again."""
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date a ZIP can hold."""


def package(run: Session) -> int:
    """Pack the dataset, if it is not packed already; dropped samples are left out.

    Returns:
        Size of the ZIP in bytes.

    Raises:
        StopRun: The storage failed or is full, or the manifest is damaged.
    """
    output = run.output
    settle(output)
    if (size := packed_size(output)) is not None:
        return size
    output.remove(PACKED)
    hashes, size = _members(output)
    run.check_space(size)
    with output.writer(DATASET) as target:
        _pack(run, hashes, target)
    packed = output.size(DATASET)
    if packed is None:
        raise StorageGone(f"{output.path(DATASET)} vanished.")
    state = {"manifest_sha256": hashes[MANIFEST], "bytes": packed}
    output.write(PACKED, json.dumps(state).encode())
    return packed


def packed_size(output: Storage) -> int | None:
    """Size of the ZIP if it holds the dataset as it is now, else None."""
    try:
        state = json.loads(output.read(PACKED))
    except (FileNotFoundError, ValueError):
        return None
    size = output.size(DATASET)
    if size is None:
        return None
    now = {"manifest_sha256": _members(output)[0][MANIFEST], "bytes": size}
    return size if state == now else None


def kept_manifest(output: Storage) -> bytes:
    """The lines of the manifest without those of dropped samples."""
    return b"".join(line + b"\n" for line, _ in read_lines(output))


def _members(output: Storage) -> tuple[dict[str, str], int]:
    """The SHA-256 of every file that goes into the ZIP, by name, and their size in bytes."""
    hashes: dict[str, str] = {}
    manifest, size = hashlib.sha256(), 0
    for line, sample in read_lines(output):
        manifest.update(line + b"\n")
        hashes[sample.file_name] = sample.sha256
        size += sample.bytes + len(line) + 1
    hashes[MANIFEST] = manifest.hexdigest()
    return hashes, size


def _pack(run: Session, hashes: dict[str, str], target: IO[bytes]) -> None:
    run.progress.start(len(hashes), "packing")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in sorted(hashes):
            # Never removed: it may be a person's work.
            cure = made_again(run.output)
            try:
                data = kept_manifest(run.output) if name == MANIFEST else run.output.read(name)
            except FileNotFoundError as error:
                raise StorageRefused(f"{run.output.path(name)} vanished.", cure) from error
            if hashlib.sha256(data).hexdigest() != hashes[name]:
                raise StorageRefused(
                    f"{run.output.path(name)} is not the file that was written.", cure
                )
            add_member(archive, name, data)
            run.progress.advance()
    run.progress.stop()


def add_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file; see :func:`new_member`."""
    archive.writestr(new_member(name), data)


def new_member(name: str) -> zipfile.ZipInfo:
    """A file without what differs from run to run: time, system and rights."""
    member = zipfile.ZipInfo(name, FIRST_DATE)
    member.create_system = 3
    member.external_attr = 0o100644 << 16
    return member


@task(name="package", **RETRIED)
def package_task() -> int:
    """Pack the dataset; see :func:`package`."""
    return package(session.current())
