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
    me = psutil.Process()
    os.environ[MARK] = f"{me.pid} {me.create_time()}"


def end_orphans() -> int:
    """End the processes whose run is no more.

    Returns:
        How many there were.
    """
    ended = 0
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK)
            if mark and process.pid != os.getpid() and not _alive(*mark.split()):
                process.terminate()
                ended += 1
        except (psutil.Error, OSError, ValueError, TypeError):
            continue
    return ended


def _alive(pid: str, started: str) -> bool:
    try:
        return psutil.Process(int(pid)).create_time() == float(started)
    except psutil.NoSuchProcess:
        return False
