"""How a command ends: interrupted, hurried, or with nobody reading what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

Run = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program that uses our commands, in a process of its own."""

    def start(program: str, **pipes: Any) -> subprocess.Popen[str]:
        (tmp_path / "program.py").write_text(program)
        return subprocess.Popen(
            [sys.executable, "-m", "program"],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            cwd=tmp_path,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes},
        )

    return start


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    "where",
    [
        "strike()",
        'exec("strike()")',
        """
    try:
        strike()
    finally:
        raise AssertionError("a library left in the middle of something")""",
    ],
)
def test_an_interrupt_ends_with_130_wherever_it_falls(number: str, where: str, run: Run) -> None:
    ended = run(
        f"""import signal, sys
from flows.command import run_command
def strike():
    signal.raise_signal(signal.{number})
def main(arguments):
    {where}
sys.exit(run_command(main))
"""
    )
    _, errors = ended.communicate()
    assert ended.returncode == 130, errors
    assert "goes on from here" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("where", ["strike()", "atexit.register(strike)", "late = Late()"])
def test_an_interrupt_after_the_end_changes_no_exit_code(where: str, number: str, run: Run) -> None:
    ended = run(
        f"""import atexit, os, signal, sys, time
from flows.command import run_command
def strike(kill=os.kill, pid=os.getpid(), sleep=time.sleep):
    kill(pid, {signal.Signals[number]})
class Late:
    __del__ = lambda self, strike=strike: strike()
code = run_command(lambda arguments: print("done") or 4)
{where}
sys.exit(code)
"""
    )
    printed, errors = ended.communicate()
    assert (ended.returncode, printed, errors) == (4, "done\n", "")


def test_what_libraries_still_do_at_the_end_need_not_be_waited_for(run: Run) -> None:
    process = run(
        """import atexit, sys, time
from flows.command import run_command
code = run_command(lambda arguments: 4)
atexit.register(lambda: (print("ending", flush=True), time.sleep(60)))
sys.exit(code)
"""
    )
    assert process.stdout is not None and process.stdout.readline() == "ending\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 4


@pytest.mark.parametrize("code", [0, 3])
def test_a_reader_that_leaves_does_not_change_the_exit_code(
    code: int, run: Run, tmp_path: Path
) -> None:
    process = run(
        f"""import sys, time
from pathlib import Path
from rich.console import Console
from flows.command import run_command, say
from models.errors import DiskLow
def main(arguments):
    for number in range(3):
        print("one", flush=True)
        say("two")
        Console().print("three")
        time.sleep(1)
    Path("done").touch()
    if {code}:
        raise DiskLow("Only 3 MB")
    print("four")
    return 0
sys.exit(run_command(main))
""",
        stderr=(tmp_path / "errors").open("wb"),
    )
    assert process.stdout and process.stdout.readline() == "one\n"
    process.stdout.close()
    assert process.wait(timeout=120) == code
    assert (tmp_path / "done").exists()
    told = (tmp_path / "errors").read_text()
    assert "BrokenPipe" not in told and "Traceback" not in told, told
