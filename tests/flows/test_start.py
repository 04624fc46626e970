"""How a run starts: with a server, without one, with one that is gone, and not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Extract = Callable[..., tuple[int, str]]


def test_without_a_server_prefect_starts_one_quietly(
    demo: Path, start_extract: Callable, tmp_path: Path
) -> None:
    process = start_extract(
        "--source",
        demo / "la-toilette-1901.pdf",
        "--output",
        tmp_path / "out",
        environment={"PREFECT_API_URL": None, "PREFECT_HOME": str(tmp_path / "home")},
    )
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert (tmp_path / "out" / "dataset.zip").exists()
    assert "Traceback" not in printed and "locked" not in printed
    assert len(printed.splitlines()) < 20, printed


def test_a_server_that_does_not_answer_is_said_in_two_lines(
    demo: Path, start_extract: Callable, tmp_path: Path
) -> None:
    process = start_extract(
        "--source",
        demo / "1887",
        "--output",
        tmp_path / "out",
        environment={"PREFECT_API_URL": "http://127.0.0.1:9/api"},
    )
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 3, printed
    assert "http://127.0.0.1:9/api does not answer" in printed and "Traceback" not in printed


def test_a_folder_too_deep_for_sockets_is_named(
    demo: Path, start_extract: Callable, tmp_path: Path
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    arguments = ("--source", demo / "1887", "--output", tmp_path / "out")
    process = start_extract(*arguments, environment={"TMPDIR": str(deep)})
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 2, printed
    assert str(deep) in printed and "TMPDIR=" in printed and "Traceback" not in printed


def test_a_server_of_our_own_that_cannot_start_is_said_in_two_lines(
    demo: Path, start_extract: Callable, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    environment = {"PREFECT_API_URL": "", "PREFECT_HOME": str(tmp_path / "file")}
    arguments = ("--source", demo / "1887", "--output", tmp_path / "out")
    process = start_extract(*arguments, environment=environment)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 3, printed
    assert f"cannot keep its database in {tmp_path}/file: " in printed
    assert "PREFECT_HOME=" in printed and "Traceback" not in printed


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--output", "out"], 2, "source"),
        (["--source", "nowhere", "--output", "out"], 2, "nowhere does not exist"),
        (["--source", ".", "--output", "out", "--encode.quality", "101"], 2, "encode.quality"),
        (["--source", ".", "--output", "out", "--encode.quality", "101"], 2, "100"),
        (["--source", ".", "--output", "out", "--no-such-flag"], 2, "no-such-flag"),
        (["--source", "EMPTY", "--output", "out"], 4, "no PDF"),
    ],
)
def test_bad_usage_ends_before_anything_starts(
    arguments: list[str], code: int, words: str, extract: Extract, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"EMPTY": tmp_path / "empty", "out": tmp_path / "out"}
    ended, printed = extract(*(places.get(a, a) for a in arguments))
    assert ended == code, printed
    assert words in printed and "Traceback" not in printed


def test_a_user_without_a_home_gets_one_for_prefect() -> None:
    """As in a container that runs under a number the system does not know."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another")
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "PREFECT_HOME")}
    # What the package needs is loaded before: the interpreter may lie in root's own home.
    program = (
        "import tempfile, os; os.setuid(54321); import flows; print(os.environ['PREFECT_HOME'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    if "ModuleNotFoundError" in done.stderr or "PermissionError" in done.stderr:
        pytest.skip("the project lies where nobody else may read it")
    assert done.stdout.endswith("/prefect-54321\n"), done.stderr


def test_a_home_that_cannot_be_written_after_all_is_not_prefect_s(tmp_path: Path) -> None:
    """Root may write everywhere, it seems, until it comes to it."""
    (tmp_path / "file").touch()
    for home in ("/proc/nobody", str(tmp_path / "file" / "below")):
        environment = {k: v for k, v in os.environ.items() if k != "PREFECT_HOME"}
        done = subprocess.run(
            [sys.executable, "-c", "import flows, os; print(os.environ['PREFECT_HOME'])"],
            cwd=ROOT,
            env={**environment, "HOME": home},
            capture_output=True,
            text=True,
        )
        assert done.stdout.endswith(f"/prefect-{os.getuid()}\n"), done.stderr
