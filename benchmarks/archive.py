"""The whole job on an archive of 9.24 GB, under the limits of the machine it was meant for.

    python -m benchmarks.archive --folder SCRATCH [--gigabytes 9.24] [--output build/archive.json]

Makes an archive of colour scans, all pages different, and runs ``python -m flows.extract`` on it
twice: undisturbed, and killed (SIGKILL) again and again. Source, scratch, Prefect's database and
output together may take 20 GB of disk, all processes together 16 GB of memory; both are watched,
and a run that takes more is ended. Both runs must give the same ZIP. Needs about 12 GB of disk,
and removes what it made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.archives import multiply
from benchmarks.measure import Watch

GB = 10**9
DISK_BYTES = 20 * GB
MEMORY_BYTES = 16 * GB
"""What the article's machine had to spare."""
KILLS = 5
LOOK_EVERY_S = 1.0
START_S = 25.0
"""Seconds after a start before which it is not killed: Prefect needs them to start at all."""


@dataclass
class Account:
    """What one run took.

    Attributes:
        seconds: Wall time, start-ups included.
        cpu_s: Processor time of all processes.
        peak_memory_bytes: Of all processes together (PSS).
        peak_disk_bytes: Of source, scratch and output together.
        kills: How often it was killed.
        samples: Finished images.
        zip_sha256: Of the dataset.
    """

    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    peak_disk_bytes: int = 0
    kills: int = 0
    samples: int = 0
    zip_sha256: str = ""


def main() -> None:
    """Make, run twice, compare, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="an empty or new folder")
    parser.add_argument("--gigabytes", type=float, default=9.24)
    parser.add_argument("--output", type=Path, default=Path("build/archive.json"))
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty.")
    try:
        begun = time.monotonic()
        pages = multiply(folder / "source", arguments.gigabytes * GB, os.cpu_count() or 1)
        size = sum(path.stat().st_size for path in (folder / "source").iterdir())
        print(
            f"made {size / GB:.2f} GB, {pages} pages, in {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        undisturbed = run(folder, Account(), every_s=float("inf"))
        tell("undisturbed", pages, undisturbed)
        killed = run(folder, Account(), every_s=undisturbed.seconds / (KILLS + 1))
        tell(f"killed {killed.kills} times", pages, killed)
        same = undisturbed.zip_sha256 == killed.zip_sha256
        print(f"the ZIPs are {'the same' if same else 'DIFFERENT'}")
    finally:
        for place in ("source", "output", "scratch", "prefect"):
            shutil.rmtree(folder / place, ignore_errors=True)
    report = {
        "bytes": size,
        "pages": pages,
        "same_zip": same,
        "undisturbed": asdict(undisturbed),
        "killed": asdict(killed),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=2), encoding="utf-8")
    if not same:
        sys.exit(1)


def run(folder: Path, account: Account, every_s: float) -> Account:
    """Run the job to its end, killing it in between.

    Args:
        folder: Holds ``source``.
        account: Added to.
        every_s: Seconds from one kill to the next.
    """
    for place in ("output", "scratch", "prefect"):
        shutil.rmtree(folder / place, ignore_errors=True)
    while True:
        wanted = account.kills < KILLS
        code = start(folder, account, max(every_s, START_S) if wanted else float("inf"))
        if code == 0:
            break
        if code != -signal.SIGKILL:
            raise SystemExit(f"the job ended with {code}; its account so far: {account}")
        account.kills += 1
    summary = json.loads((folder / "output" / "summary.json").read_text(encoding="utf-8"))
    account.samples = summary["samples"]
    with (folder / "output" / "dataset.zip").open("rb") as file:
        account.zip_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return account


def start(folder: Path, account: Account, kill_after_s: float) -> int:
    """Start the job once, and watch it until it ends or is killed; returns its exit code."""
    command = [sys.executable, "-m", "flows.extract", "--source", str(folder / "source")]
    command += ["--output", str(folder / "output"), "--run.scratch", str(folder / "scratch")]
    begun = time.monotonic()
    process = subprocess.Popen(
        command, env=os.environ | {"PREFECT_HOME": str(folder / "prefect")}, stdout=sys.stderr
    )
    watch = Watch(process.pid)
    done = threading.Event()
    disk = threading.Thread(target=_watch_disk, args=(folder, account, done))
    disk.start()
    try:
        while process.poll() is None:
            time.sleep(LOOK_EVERY_S)
            if watch.peak_bytes > MEMORY_BYTES:
                raise SystemExit(f"more than 16 GB of memory: {watch.peak_bytes}")
            if account.peak_disk_bytes > DISK_BYTES:
                raise SystemExit(f"more than 20 GB of disk: {account.peak_disk_bytes}")
            if time.monotonic() - begun > kill_after_s:
                process.send_signal(signal.SIGKILL)
                process.wait()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
        done.set()
        disk.join()
        watch.stop()
        account.seconds += time.monotonic() - begun
        account.cpu_s += watch.cpu_s()
        account.peak_memory_bytes = max(account.peak_memory_bytes, watch.peak_bytes)
    return process.returncode


def _watch_disk(folder: Path, account: Account, done: threading.Event) -> None:
    while not done.wait(LOOK_EVERY_S):
        account.peak_disk_bytes = max(account.peak_disk_bytes, _disk_bytes(folder))


def _disk_bytes(folder: Path) -> int:
    """What the files below a folder take on the disk."""
    taken = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                # POSIX counts blocks of 512 bytes.
                taken += os.lstat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return taken


def tell(title: str, pages: int, account: Account) -> None:
    """One line for a run."""
    print(
        f"{title}: {account.seconds:.0f} s, {pages / account.seconds:.1f} pages/s, "
        f"{1e3 * account.cpu_s / pages:.1f} ms of CPU a page, "
        f"{account.peak_memory_bytes / 1e6:.0f} MB of memory, "
        f"{account.peak_disk_bytes / GB:.2f} GB of disk, {account.samples} samples",
        flush=True,
    )


if __name__ == "__main__":
    main()
