"""Ending what killed runs left behind.

Prefect's temporary server is a process of its own: when its run is killed it stays for ever, with
190 MB of memory and a hand on Prefect's database.
"""

from __future__ import annotations

import os

import psutil

MARK = "_INTAGLIO_RUN"
"""Environment variable that names the run a process belongs to; child processes inherit it."""


def mark_children() -> None:
    """Let every process started from here on be recognised as this run's."""
    os.environ[MARK] = str(os.getpid())


def end_orphans() -> int:
    """End the processes whose run is no more.

    Returns:
        How many there were.
    """
    ended = 0
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK)
            if mark and process.pid != os.getpid() and not _is_run(int(mark)):
                process.terminate()
                ended += 1
        except (psutil.Error, OSError, ValueError):
            continue
    return ended


def _is_run(pid: int) -> bool:
    """Whether a process is one of our commands; a number may have been given anew since."""
    try:
        return any("flows." in word for word in psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess:
        return False
