"""Packaging: images and manifest in one ZIP, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from typing import IO

from prefect import task

from models.errors import StorageGone
from tasks import session
from tasks.ledger import STATE
from tasks.publish import MANIFEST
from tasks.retry import RETRIED
from tasks.session import Session
from tasks.storage import Storage, named_errors

DATASET = "dataset.zip"
PACKED = f"{STATE}/packed.json"
"""Which manifest the ZIP was made of, so that an unchanged dataset is not packed again."""
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date a ZIP can hold."""


def package(run: Session) -> int:
    """Pack the dataset, if it is not packed already.

    Returns:
        Size of the ZIP in bytes.

    Raises:
        StopRun: The storage failed or is full.
    """
    output = run.output
    if (size := packed_size(output)) is not None:
        return size
    manifest = output.read(MANIFEST)
    samples = [json.loads(line) for line in manifest.splitlines()]
    run.check_space(sum(sample["bytes"] for sample in samples) + len(manifest))
    names = sorted([MANIFEST, *(sample["file_name"] for sample in samples)])
    if output.local:
        with output.writer(DATASET) as target:
            _pack(run, names, target)
    else:
        scratch = run.settings.run.scratch or tempfile.gettempdir()
        with named_errors(f"packing in {scratch}"):
            os.makedirs(scratch, exist_ok=True)
            with tempfile.TemporaryFile(dir=scratch) as local:
                _pack(run, names, local)
                local.seek(0)
                with output.writer(DATASET) as target:
                    shutil.copyfileobj(local, target, 1 << 20)
    size = output.names(DATASET)[DATASET]
    state = {"manifest_sha256": hashlib.sha256(manifest).hexdigest(), "bytes": size}
    output.write(PACKED, json.dumps(state).encode())
    return size


def packed_size(output: Storage) -> int | None:
    """Size of the ZIP if it holds the dataset as it is now, else None."""
    try:
        state = json.loads(output.read(PACKED))
        manifest = hashlib.sha256(output.read(MANIFEST)).hexdigest()
        size: int = output.names(DATASET)[DATASET]
    except (FileNotFoundError, KeyError, ValueError):
        return None
    return size if state == {"manifest_sha256": manifest, "bytes": size} else None


def _pack(run: Session, names: list[str], target: IO[bytes]) -> None:
    run.progress.start(len(names), "packing")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in names:
            member = zipfile.ZipInfo(name, FIRST_DATE)
            member.create_system = 3
            member.external_attr = 0o100644 << 16
            try:
                archive.writestr(member, run.output.read(name))
            except FileNotFoundError as error:
                raise StorageGone(f"{run.output.path(name)} vanished.") from error
            run.progress.advance()
    run.progress.stop()


@task(name="package", **RETRIED)
def package_task() -> int:
    """Pack the dataset; see :func:`package`."""
    return package(session.current())
