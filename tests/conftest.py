"""What the tests share: a demo archive, a real Prefect server, the command as a user runs it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("INTAGLIO_CORPUS", ROOT.parent / "shared" / "corpus"))


def pytest_configure() -> None:
    """Have the commands that tests start hear an interrupt, though a shell's ``&`` silenced it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def heard() -> None:
    """Let pytest hear our log: a command that ran in this process keeps it to itself."""
    for handler in logging.getLogger().handlers:
        handler.setLevel(logging.NOTSET)
    logging.getLogger("intaglio").propagate = True
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("intaglio")]:
        logging.getLogger(name).disabled = False


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of labelled real scans; skips where it is absent."""
    if not CORPUS.is_dir():
        pytest.skip(f"no labelled corpus at {CORPUS}; set INTAGLIO_CORPUS to its folder")
    return CORPUS


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small archive of scan-like PDFs, read only."""
    from tests.resources.make_demo import make

    folder = tmp_path_factory.mktemp("demo") / "archive"
    make(folder, pages=48)
    return folder


@pytest.fixture(scope="session")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of a real Prefect server of this session's own."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as (url, _):
        yield url


@contextmanager
def prefect_server(home: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Prefect server that answers: its API, and its process.

    Args:
        home: Where it keeps its database.
        port: Where it listens; a free one if 0.
    """
    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    environment = {**os.environ, "PREFECT_HOME": str(home), "DO_NOT_TRACK": "1"}
    environment["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    environment.pop("PREFECT_API_URL", None)
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
    with open(home / "server.log", "wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/api"
    try:
        _wait_for(f"{url}/health", server, home / "server.log")
        yield url, server
    finally:
        server.terminate()
        server.wait(120)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the Prefect server ended:\n{log.read_text()}")
        try:
            urllib.request.urlopen(url, timeout=2)
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"no Prefect server after 300 s:\n{log.read_text()}")


@pytest.fixture(scope="session")
def tiny_sdxl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny SDXL with random weights, read only."""
    from tests.resources.make_sdxl import make

    return make(tmp_path_factory.mktemp("sdxl") / "tiny-sdxl")


Extract = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def start_extract(prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Extract:
    """Start ``python -m flows.extract`` with arguments, against the session's server."""
    home = str(tmp_path_factory.mktemp("home"))

    def start(
        *arguments: object, environment: dict[str, str | None] | None = None
    ) -> subprocess.Popen[str]:
        mine = {"PREFECT_API_URL": prefect_url, "PREFECT_HOME": home, **(environment or {})}
        return subprocess.Popen(
            [sys.executable, "-m", "flows.extract", *map(str, arguments)],
            cwd=ROOT,
            env={k: v for k, v in {**os.environ, **mine}.items() if v is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.fixture(scope="session")
def extract(start_extract: Extract) -> Callable[..., tuple[int, str]]:
    """Run ``python -m flows.extract`` to its end: exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, str]:
        process = start_extract(*arguments)
        printed, _ = process.communicate(timeout=300)
        return process.returncode, printed

    return run
