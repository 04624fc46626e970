"""What a killed run leaves behind is ended by the next one; everything else is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tasks.orphans import end_orphans

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = """
import subprocess, sys, time
from tasks.orphans import mark_children
mark_children()
server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(server.pid, flush=True)
time.sleep(600)
"""


def start_run() -> tuple[subprocess.Popen[str], int]:
    run = subprocess.Popen([sys.executable, "-c", RUN], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert run.stdout
    return run, int(run.stdout.readline())


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_the_server_of_a_killed_run_is_ended_and_that_of_a_living_one_is_not() -> None:
    killed, orphan = start_run()
    living, server = start_run()
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert is_running(orphan) and is_running(server)
        assert end_orphans() >= 1
        for _ in range(200):
            if not is_running(orphan):
                break
            signal.sigtimedwait([], 0.05)
        assert not is_running(orphan)
        assert is_running(server)
    finally:
        for pid in (orphan, server):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        living.kill()
        living.wait()
