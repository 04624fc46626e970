"""One run at a time for each output, or several that share it in shards."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from models.errors import BadSettings, OutputInUse
from tasks.lease import Lease, name_of
from tasks.ledger import STATE
from tasks.storage import Storage, named_errors

LEASES = f"{STATE}/leases"
WHOLE = "whole"
"""Name of the lease of a run that works the whole archive."""


@contextmanager
def locked(output: Storage, shard: str = "") -> Iterator[Callable[[], None]]:
    """Hold an output for one run.

    On the disk the operating system frees the lock of a run that was killed; on S3 it is a lease
    that lapses. Other remote outputs are not locked. What killed runs were writing is removed.

    Args:
        output: The output. On S3 its fence is the check below while it is held.
        shard: ``I/N`` if others work the other shards at the same time.

    Yields:
        A check which raises when the output is not ours any more.

    Raises:
        OutputInUse: Another run holds it.
    """
    if output.s3:
        with Lease(output, LEASES, *_role(shard)) as lease:
            if not shard:
                output.sweep()
            before, output.fence = output.fence, lease.check
            try:
                yield lease.check
            finally:
                output.fence = before
    elif shard:
        raise BadSettings(
            f"shard: {output.url} is not on S3.",
            "Shards share their output on S3; on one machine, raise --run.workers instead.",
        )
    elif output.local:
        with _locked_folder(output):
            yield lambda: None
    else:
        yield lambda: None


def _role(shard: str) -> tuple[str, Callable[[str], bool]]:
    """The name of a run's lease, and which others it cannot live with."""
    if not shard:
        return WHOLE, lambda _: True
    index, _, count = shard.partition("/")
    end = f"-of-{count}"
    # Another number of shards would have some PDFs worked twice.
    return f"{index}{end}", lambda other: not other.endswith(end)


@contextmanager
def alone(output: Storage, shard: str) -> Iterator[None]:
    """Let one shard after the other do what is done once for all; no shard need not wait."""
    if not shard:
        yield
        return
    with Lease(output, f"{STATE}/turns", "turn", wait=True):
        yield


@contextmanager
def _locked_folder(output: Storage) -> Iterator[None]:
    folder = Path(output.path(STATE))
    owner = folder / "owner.json"
    with named_errors(f"locking {folder}"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            why = f"output: {output.url} cannot be a folder: {error.strerror}."
            raise BadSettings(why) from error
        lock = FileLock(folder / "lock", timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            told = None
            with suppress(OSError):
                told = owner.read_bytes()
            raise OutputInUse(f"{output.url} is being worked by {name_of(told)}.") from None
        output.sweep("", f"{STATE}/**/")
        owner.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
    try:
        yield
    finally:
        lock.release()
