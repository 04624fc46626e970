"""Ending another program and all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

GRACE_S = 30.0
"""Seconds a program has to end when it is told to."""


def end(process: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """End a process that leads a group of its own, and the whole group; it may have ended already.

    Args:
        process: Started with ``start_new_session``.
        grace_s: Seconds until what does not end is killed.
    """
    _signal(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace_s)
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
