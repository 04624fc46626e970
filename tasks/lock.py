"""One run at a time for each output."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from models.errors import BadSettings, OutputInUse
from tasks.ledger import STATE
from tasks.storage import Storage, named_errors


@contextmanager
def locked(output: Storage) -> Iterator[None]:
    """Hold an output for one run.

    The operating system frees the lock of a run that was killed. Remote outputs are not locked.

    Raises:
        OutputInUse: Another run holds it.
    """
    if not output.local:
        yield
        return
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
            raise OutputInUse(f"{output.url} is being worked by {_name(owner)}.") from None
        output.sweep("", f"{STATE}/**/")
        owner.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
    try:
        yield
    finally:
        lock.release()


def _name(owner: Path) -> str:
    try:
        who = json.loads(owner.read_text())
        return f"process {who['pid']} on {who['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
