"""One run at a time for each output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings, OutputInUse
from tasks.lock import locked
from tasks.storage import Storage

ROOT = Path(__file__).resolve().parent.parent.parent
HOLDER = """
import sys
from tasks.lock import locked
from tasks.storage import Storage
with locked(Storage(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_run_is_free(tmp_path: Path) -> None:
    output = Storage(str(tmp_path / "out put"))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, output.path()],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    try:
        with pytest.raises(OutputInUse, match=f"process {holder.pid} on "), locked(output):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with locked(output):
        pass


def test_within_a_process_too(tmp_path: Path) -> None:
    output = Storage(str(tmp_path))
    refused: list[BaseException] = []

    def second() -> None:
        try:
            with locked(Storage(str(tmp_path))):
                pass
        except OutputInUse as error:
            refused.append(error)

    with locked(output):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(refused) == 1 and str(os.getpid()) in str(refused[0])
    second()
    assert len(refused) == 1


def test_an_error_inside_lets_the_lock_go(tmp_path: Path) -> None:
    output = Storage(str(tmp_path))
    for _ in range(2):
        with pytest.raises(KeyError), locked(output):
            raise KeyError


@pytest.mark.parametrize("owner", ["", "[]", "{}", "{", '{"pid": 1}', "\x00"])
def test_whoever_holds_it_the_message_stands(tmp_path: Path, owner: str) -> None:
    output = Storage(str(tmp_path))
    with locked(output):
        (tmp_path / ".intaglio" / "owner.json").write_text(owner)
        with pytest.raises(OutputInUse, match="another run"), locked(output):
            pass


def test_an_output_that_cannot_be_a_folder_is_a_bad_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BadSettings, match="cannot be a folder"),
        locked(Storage(str(tmp_path / "file"))),
    ):
        pass


def test_remote_outputs_are_not_locked(memory: Any) -> None:
    output = Storage("memory://out")
    with locked(output), locked(output):
        pass
    assert output.names("") == {}


def test_what_a_killed_run_was_writing_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / ".dataset.zip.partial").write_bytes(b"half a ZIP")
    (tmp_path / "dataset.zip").write_bytes(b"a whole one")
    with locked(Storage(str(tmp_path))):
        pass
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["dataset.zip"]
