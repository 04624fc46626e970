"""Every file operation of a run is struck in turn; see :mod:`tests.faults.stages`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.record import ROOT, SAME
from tests.faults.strike import KINDS


def strike_all(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "tests.faults.stages", str(folder), *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip().endswith(SAME)


@pytest.mark.parametrize(("kind", "every"), [("kill", 9), ("torn", 9), ("ENOSPC", 21), ("EIO", 23)])
def test_at_some_operations(kind: str, every: int, tmp_path: Path) -> None:
    strike_all(tmp_path, "--kind", kind, "--every", str(every))


@pytest.mark.nightly
@pytest.mark.parametrize("changed", [(), ("--changed",)])
@pytest.mark.parametrize("kind", KINDS)
def test_at_every_operation(kind: str, changed: tuple[str, ...], tmp_path: Path) -> None:
    strike_all(tmp_path, "--kind", kind, *changed)
