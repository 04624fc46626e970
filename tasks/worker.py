"""What runs in a worker process: a loop that answers calls until its pipe closes."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import cv2
import psutil

from models.errors import InputFault, OutOfMemory

GRACE_S = 10
"""Seconds beyond a job's time limit after which a worker whose parent was killed ends itself."""


def serve(pipe: Connection, memory_mb: int) -> None:
    """Answer calls ``(function, args, timeout_s)`` with ``(value, error, peak bytes)``.

    Args:
        pipe: The worker's own end of its pipe.
        memory_mb: Address space allowed beyond what the process starts with.
    """
    # Ctrl-C reaches the whole process group; the parent decides what happens to its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # SIGALRM ends the process even inside C code, and even when no parent is left to kill it.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _limit_memory(memory_mb)
    cv2.setNumThreads(1)
    while True:
        try:
            function, args, timeout_s = pipe.recv()
        except (EOFError, OSError):
            return
        signal.alarm(int(timeout_s) + GRACE_S)
        value, error = _call(function, args)
        signal.alarm(0)
        try:
            pipe.send_bytes(_packed(value, error))
        except (BrokenPipeError, ConnectionResetError):
            return


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        return function(*args), None
    except SystemExit as error:
        return None, InputFault(f"SystemExit: {error}")
    except Exception as error:
        # The traceback cannot travel through the pipe; the parent records kind and message.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        return None, error


def _packed(value: Any, error: Exception | None) -> bytes:
    """The answer as bytes that the parent can read, whatever the function returned or raised."""
    try:
        if error is not None:
            # Errors with arguments of their own may pack well and not unpack.
            ForkingPickler.loads(ForkingPickler.dumps(error))
        return bytes(ForkingPickler.dumps((value, error, peak_bytes())))
    except MemoryError:
        error = OutOfMemory("not enough memory for its answer")
    except Exception as reason:
        told = error or reason
        error = InputFault(f"{type(told).__name__}: {told}")
    return bytes(ForkingPickler.dumps((None, error, peak_bytes())))


def _limit_memory(memory_mb: int) -> None:
    limit = psutil.Process().memory_info().vms + memory_mb * 1024 * 1024
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def peak_bytes() -> int:
    """Peak resident size of this process so far; ru_maxrss is in kilobytes on Linux."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
