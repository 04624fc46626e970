"""A fault at one chosen file operation of a process: it dies there, or the operation fails.

Python tells an audit hook of every file it opens, renames or removes and of every folder it makes,
before it happens, and an error raised in the hook is the operation's. So nothing is wrapped and
nothing of the project knows. Power cuts, which lose what was written and not synced, are not
imitated.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
KINDS = ("kill", "torn", "ENOSPC", "EIO")
"""kill: SIGKILL before the operation; torn: SIGKILL at a rename, with the new file cut to half its
length, as if in the middle of writing it; the others: the operation fails with that error."""


class Strike:
    """Counts the operations that may change something below a folder, and strikes at one of them.

    Args:
        folder: Operations elsewhere do not count.
        kind: One of :data:`KINDS`; for ``torn`` only renames count.
        at: Number of the operation, from 1; 0 strikes nowhere.

    Attributes:
        count: Operations so far.
    """

    def __init__(self, folder: str, kind: str = "kill", at: int = 0) -> None:
        self.folder = os.path.abspath(folder)
        self.kind = kind
        self.at = at
        self.count = 0
        self._lock = threading.Lock()

    def install(self) -> None:
        """From here on until the end of the process: a hook cannot be taken off."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if not arguments[2] & WRITING:
                return
        elif event not in CHANGES:
            return
        path = arguments[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return
        if not os.path.abspath(os.fsdecode(path)).startswith(self.folder):
            return
        if self.kind == "torn" and event != "os.rename":
            return
        if event == "os.mkdir" and os.path.isdir(path):
            return
        with self._lock:
            self.count += 1
            if self.count != self.at:
                return
        self._strike(os.fsdecode(path))

    def _strike(self, path: str) -> None:
        if self.kind == "torn":
            # Behind the hook's back: the count is past its mark.
            os.truncate(path, os.path.getsize(path) // 2)
        if self.kind in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        number = getattr(errno, self.kind)
        raise OSError(number, os.strerror(number), path)
