"""What Prefect costs: the whole job with it and without it, on the same files in turns.

    python -m benchmarks.orchestration [--gigabytes 1.2] [--rounds 3]

The archive is made (some 1,100 colour pages of 300 dpi). ``workers`` is the job with its worker
processes and no Prefect, ``flow`` the same as a Prefect flow against a running server. The time of
a run does not contain its start-up; the server's processor time is given apart.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.archives import multiply
from benchmarks.measure import Figures
from benchmarks.speed import prefect_server, run_contestant

CONTESTANTS = ("workers", "flow")


def main() -> None:
    """Measure in turns and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=1.2, help="size of the archive")
    parser.add_argument("--rounds", type=int, default=3, help="the median counts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "archive"
        multiply(archive, 1e9 * arguments.gigabytes, os.cpu_count() or 1)
        found: dict[str, list[Figures]] = {name: [] for name in CONTESTANTS}
        server_s: list[float] = []
        with prefect_server(Path(scratch) / "prefect") as (environment, server):
            for _ in range(arguments.rounds):
                for name in CONTESTANTS:
                    figures, meanwhile_s = run_contestant(
                        name, archive, Path(scratch), environment, server
                    )
                    found[name].append(figures)
                    if name == "flow":
                        server_s.append(meanwhile_s)
    report(found, statistics.median(server_s))


def report(found: dict[str, list[Figures]], server_s: float) -> None:
    """Print a line for each, and what the flow takes more."""
    pages = found["flow"][0].pages
    print(f"{pages} pages\n{'':9}{'seconds':>9}{'pages/s':>9}{'CPU ms/page':>13}")
    seconds, cpu_s = (
        {
            name: statistics.median(getattr(run, what) for run in runs)
            for name, runs in found.items()
        }
        for what in ("seconds", "cpu_s")
    )
    for name in CONTESTANTS:
        print(
            f"{name:9}{seconds[name]:9.1f}{pages / seconds[name]:9.1f}"
            f"{1e3 * cpu_s[name] / pages:13.1f}"
        )
    print(
        f"flow: {100 * (seconds['flow'] / seconds['workers'] - 1):+.1f} % time, "
        f"{100 * (cpu_s['flow'] / cpu_s['workers'] - 1):+.1f} % processor time; "
        f"the server {1e3 * server_s / pages:.1f} ms a page besides"
    )


if __name__ == "__main__":
    main()
