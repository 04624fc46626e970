"""What spreading the work costs: one machine, shards and Dask, on the same archive.

    python -m benchmarks.machines --source FOLDER [--output build/machines.json]

All machines are this one: two worker processes do the work each time, in one run, in two shards of
one each (and the run that publishes), or below two Dask workers of one each. What is told apart is
thus the price of each way, not its gain. Source and outputs lie on a Ceph gateway, which runs
beside them and is not counted, and no more is the Prefect server. Needs what tests of S3 need (see
.ci/run).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import s3fs

from benchmarks.measure import Watch
from benchmarks.speed import prefect_server
from tests.s3.conftest import BUCKET, account
from tests.services.radosgw import Radosgw

DASK_STARTS_S = 5.0
"""Seconds that scheduler and workers are given to find each other; not counted."""
EXTRACT = (sys.executable, "-m", "flows.extract")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="folder of PDFs")
    parser.add_argument("--output", type=Path, default=Path("build/machines.json"))
    arguments = parser.parse_args()
    report: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        environment, _ = stack.enter_context(prefect_server(Path(scratch) / "prefect"))
        gateway = stack.enter_context(Radosgw(Path(scratch) / "gateway"))
        environment |= account(gateway.url, gateway.key, gateway.secret)
        fs = s3fs.S3FileSystem(endpoint_url=gateway.url, key=gateway.key, secret=gateway.secret)
        fs.call_s3("create_bucket", Bucket=BUCKET)
        fs.put(str(arguments.source), f"{BUCKET}/source", recursive=True)

        def command(way: str, *more: str) -> list[str]:
            output = f"s3://{BUCKET}/{way}"
            return [*EXTRACT, "--source", f"s3://{BUCKET}/source", "--output", output, *more]

        one = ("--run.workers", "1")
        report["one machine"] = run([[command("one", "--run.workers", "2")]], environment)
        shards = [command("shards", "--shard", f"{number}/2", *one) for number in (1, 2)]
        report["two shards"] = run([shards, [command("shards", *one)]], environment)
        with dask(environment) as (address, watches):
            ways = ("--run.runner", "dask", "--run.dask-address", address)
            report["two Dask workers"] = run([[command("dask", *ways, *one)]], environment, watches)
        zips = {
            hashlib.sha256(fs.cat_file(f"{BUCKET}/{way}/dataset.zip")).hexdigest()
            for way in ("one", "shards", "dask")
        }
    for way, figures in report.items():
        print(f"{way:18} {figures['seconds']:6.1f} s   {figures['cpu_s']:6.1f} s of processor time")
    print(f"the ZIPs are {'the same' if len(zips) == 1 else 'DIFFERENT'}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2), encoding="utf-8")
    if len(zips) > 1:
        sys.exit(1)


def run(
    steps: Sequence[Sequence[list[str]]],
    environment: Mapping[str, str],
    besides: Sequence[Watch] = (),
) -> dict[str, float]:
    """Run commands, those of a step at the same time, and account for them.

    ``besides`` are watches on processes that work for them.
    """
    before = sum(watch.cpu_s() for watch in besides)
    begun, cpu_s = time.monotonic(), 0.0
    for step in steps:
        processes = [
            subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
            for command in step
        ]
        watches = [Watch(process.pid) for process in processes]
        codes = [process.wait() for process in processes]
        for watch in watches:
            watch.stop()
            cpu_s += watch.cpu_s()
        if any(codes):
            raise SystemExit(f"{step} ended with {codes}")
    cpu_s += sum(watch.cpu_s() for watch in besides) - before
    return {"seconds": time.monotonic() - begun, "cpu_s": cpu_s}


@contextmanager
def dask(environment: Mapping[str, str]) -> Iterator[tuple[str, list[Watch]]]:
    """A scheduler and two workers; its address, and watches on all three."""
    address = "tcp://127.0.0.1:8786"
    worker = ["worker", address, "--nthreads", "1", "--no-dashboard"]
    environment = {**environment, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in (["scheduler", "--no-dashboard"], worker, worker)
    ]
    watches = [Watch(process.pid) for process in processes]
    try:
        time.sleep(DASK_STARTS_S)
        yield address, watches
    finally:
        for process in processes:
            process.terminate()
            process.wait()
        for watch in watches:
            watch.stop()


if __name__ == "__main__":
    main()
