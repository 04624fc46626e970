"""Measuring a command from outside: processor time and memory of it and all its processes."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

EVERY_S = 0.2
"""Seconds between two samples of memory and processor time."""


class Watch:
    """Samples a process and all its descendants until it is told to stop.

    Processor time is that of every process that lives, plus what each one has counted of its
    finished children: nothing is lost as long as processes wait for their children. Memory is the
    proportional set size (PSS): shared pages are divided among those who share them.

    Args:
        pid: The process.

    Attributes:
        peak_bytes: Largest sum of memory seen since the last reset.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._cpu_s = 0.0
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def reset_memory(self) -> None:
        """Forget the peak so far."""
        self.peak_bytes = 0
        self.sample()

    def cpu_s(self) -> float:
        """Seconds of processor time used until now."""
        self.sample()
        return self._cpu_s

    def stop(self) -> None:
        """End the sampling."""
        self._stop.set()
        self._thread.join()

    def sample(self) -> int:
        """Look once; returns the memory in bytes."""
        cpu_s, size = 0.0, 0
        with suppress(psutil.NoSuchProcess):
            for process in (self._root, *self._root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    cpu_s += sum(process.cpu_times()[:4])
                    size += process.memory_full_info().pss
        self._cpu_s = max(self._cpu_s, cpu_s)
        self.peak_bytes = max(self.peak_bytes, size)
        return size

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.sample()


@dataclass(frozen=True)
class Figures:
    """What was measured of one contestant on one archive.

    Attributes:
        pages: Looked at.
        kept: Kept of these.
        seconds: Wall time without start-up.
        cpu_s: Processor time without start-up, all processes.
        startup_s: Wall time of the start-up.
        startup_cpu_s: Processor time of the start-up.
        peak_bytes: Memory of all processes together, start-up not counted.
    """

    pages: int
    kept: int
    seconds: float
    cpu_s: float
    startup_s: float
    startup_cpu_s: float
    peak_bytes: int


class Failed(Exception):
    """A contestant that did not get to its end, and why."""


def measure(command: list[str], environment: dict[str, str]) -> Figures:
    """Run a contestant.

    It writes the line ``ready`` to its output once it has started up, and waits for a line of
    input; then it works, writes a line of JSON with ``pages`` and ``kept``, and waits for another
    line of input before it ends.

    Raises:
        Failed: It ended before.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    watch = Watch(process.pid)
    try:
        _await(process, "ready")
        startup_s, startup_cpu_s = time.monotonic() - begun, watch.cpu_s()
        watch.reset_memory()
        begun = time.monotonic()
        process.stdin.write("go\n")
        process.stdin.flush()
        result = json.loads(_await(process, "{"))
        seconds, cpu_s = time.monotonic() - begun, watch.cpu_s()
        process.stdin.write("end\n")
        process.stdin.flush()
    finally:
        watch.stop()
        with suppress(BrokenPipeError):
            process.stdin.close()
        if process.wait() != 0:
            raise Failed(f"{' '.join(command)} ended with {process.returncode}")
    return Figures(
        pages=result["pages"],
        kept=result["kept"],
        seconds=seconds,
        cpu_s=cpu_s - startup_cpu_s,
        startup_s=startup_s,
        startup_cpu_s=startup_cpu_s,
        peak_bytes=watch.peak_bytes,
    )


def _await(process: subprocess.Popen[str], start: str) -> str:
    """The next line of output with that beginning."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(start):
            return line
    raise Failed("no answer")


def announce(pages: int, kept: int) -> None:
    """Tell the result, as a contestant."""
    say(json.dumps({"pages": pages, "kept": kept}))


def say(line: str) -> Any:
    """Write a line and wait for the answer, as a contestant."""
    print(line, flush=True)
    return input()
