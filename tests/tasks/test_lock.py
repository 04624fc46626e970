"""One run at a time for each output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.errors import OutputInUse
from tasks.lock import locked
from tasks.storage import Storage

ROOT = Path(__file__).resolve().parent.parent.parent
HOLDER = """
import sys, time
from tasks.lock import locked
from tasks.storage import Storage
with locked(Storage(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_held_output_is_refused_with_its_owner(holder, tmp_path: Path) -> None:
    with pytest.raises(OutputInUse, match=str(holder.pid)), locked(Storage(str(tmp_path))):
        pass


def test_the_lock_of_a_killed_run_is_free(holder, tmp_path: Path) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with locked(Storage(str(tmp_path))):
        owner = json.loads((tmp_path / ".intaglio" / "owner.json").read_text())
        assert owner["pid"] == os.getpid()
