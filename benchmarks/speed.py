"""Speed and memory against the article's loop and its rivals, on the same files in the same run.

    python -m benchmarks.speed --scans FOLDER [--pages 300] [--rounds 3] [--output build/speed.json]

Two archives: real scans, and one made to resemble the magazine (300-dpi colour JPEG, about 1 MB a
page, 27 % of the pages illustrated). Prints a table and writes JSON. A Prefect server is started
for the flow and counts with it. Rivals need ``pip install -e '.[bench]'``, pdf2image also poppler.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.archives import compose
from benchmarks.measure import Figures, Watch, measure
from benchmarks.rivals import CONTESTANTS

BASELINE = "article"
PATIENCE_S = 120
"""Seconds a Prefect server may take to start."""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scans", type=Path, required=True, help="folder of real scans")
    parser.add_argument("--pages", type=int, default=300, help="of the archive that is made")
    parser.add_argument("--rounds", type=int, default=3, help="the median counts")
    parser.add_argument("--output", type=Path, default=Path("build/speed.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "archive"
        compose(made, arguments.pages, seed=1885)
        archives = {"real scans": arguments.scans, "made archive": made}
        with prefect_server(Path(scratch) / "prefect") as (environment, server):
            results = {
                name: contest(archive, Path(scratch), arguments.rounds, environment, server)
                for name, archive in archives.items()
            }
    report = {
        "machine": {"processors": os.cpu_count(), "cpu": cpu_name(), "python": sys.version},
        "archives": results,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(f"written: {arguments.output}")


def contest(
    archive: Path, scratch: Path, rounds: int, environment: dict[str, str], server: Watch
) -> dict[str, dict[str, float]]:
    """Measure all contestants on one archive, in turns, and print the table."""
    found: dict[str, list[Figures]] = {}
    servers: list[float] = []
    for _ in range(rounds):
        for name in CONTESTANTS:
            if why := missing(name):
                print(f"{name} is left out: {why}")
                continue
            figures, server_s = run_contestant(name, archive, scratch, environment, server)
            if name == "flow":
                servers.append(server_s)
                figures = replace(figures, cpu_s=figures.cpu_s + server_s)
            found.setdefault(name, []).append(figures)
    medians = {
        name: {
            key: statistics.median(asdict(figures)[key] for figures in several)
            for key in asdict(several[0])
        }
        for name, several in found.items()
    }
    medians["flow"]["server_cpu_s"] = statistics.median(servers)
    print_table(str(archive), medians)
    return medians


def run_contestant(
    name: str, archive: Path, scratch: Path, environment: dict[str, str], server: Watch
) -> tuple[Figures, float]:
    """Measure one contestant once; its figures, and the server's processor time meanwhile."""
    output = scratch / "output"
    command = [sys.executable, "-m", "benchmarks.rivals", name, str(archive), str(output)]
    before = server.cpu_s()
    figures = measure(command, environment)
    server_s = server.cpu_s() - before
    shutil.rmtree(output)
    return figures, server_s


def print_table(title: str, medians: dict[str, dict[str, float]]) -> None:
    """One line a contestant, with its ratio to the article's loop."""
    first = medians[BASELINE]
    print(f"\n{title}: {first['pages']:.0f} pages")
    print(f"{'':12}{'pages/s':>9}{'×':>6}{'CPU ms/page':>13}{'×':>6}{'peak MB':>9}{'kept':>6}")
    for name, row in medians.items():
        speed, cpu = row["pages"] / row["seconds"], row["cpu_s"] / row["pages"]
        faster = speed / (first["pages"] / first["seconds"])
        share = cpu / (first["cpu_s"] / first["pages"])
        print(
            f"{name:12}{speed:9.1f}{faster:6.2f}{1e3 * cpu:13.1f}{share:6.2f}"
            f"{row['peak_bytes'] / 1e6:9.0f}{row['kept']:6.0f}"
        )
    row = medians["flow"]
    print(
        f"flow: start-up {row['startup_s']:.1f} s ({row['startup_cpu_s']:.1f} s of CPU), not in "
        f"the table; the Prefect server's {1e3 * row['server_cpu_s'] / row['pages']:.1f} ms a "
        "page are, its memory is not"
    )


def missing(name: str) -> str:
    """Why a contestant cannot take part; empty if it can."""
    if name in ("pdf2image", "pypdfium2") and importlib.util.find_spec(name) is None:
        return "it is not installed (pip install -e '.[bench]')"
    if name == "pdf2image" and shutil.which("pdftoppm") is None:
        return "pdftoppm is not installed (package poppler-utils)"
    return ""


@contextmanager
def prefect_server(home: Path) -> Iterator[tuple[dict[str, str], Watch]]:
    """A Prefect server with a new database, and the environment that leads to it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_TO_CONSOLE": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    watch = Watch(process.pid)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _answers(f"http://127.0.0.1:{port}/api/health"):
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit("The Prefect server does not start.")
            time.sleep(0.5)
        yield environment, watch
    finally:
        watch.stop()
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def cpu_name() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


if __name__ == "__main__":
    main()
