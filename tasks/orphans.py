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
            # A number given anew since only keeps an orphan alive; that is the harmless mistake.
            if mark and _counts_as_we_do(process.pid) and not psutil.pid_exists(int(mark)):
                process.terminate()
                ended += 1
        except (psutil.Error, OSError, ValueError):
            continue
    return ended


def _counts_as_we_do(pid: int) -> bool:
    """Whether a process has our process numbers; in a container they are others."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except FileNotFoundError:  # not Linux
        return True
