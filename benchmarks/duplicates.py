"""How well copies are found: pictures against re-scans of themselves, and against each other.

    python -m benchmarks.duplicates FOLDER [--scans 3] [--threshold 0.7]

FOLDER holds pictures, each a different one; every one is scanned again a few times (size, angle,
margin, tone, shading, grain, compression, one in five bilevel), and all pairs are judged as
flows.score judges them, by hash and pixels alone, without CLIP. Prints recall and precision with
their 95 % intervals, and the pairs of different pictures that look most alike.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from models.score import Duplicates
from tasks.calibrate.figures import wilson
from tasks.detect.page import fit
from tasks.score import duplicates
from tasks.score.measure import perceptual_hash, square
from tasks.score.words import rate
from tests.resources.rescan import rescan

LONG_SIDE = 1024
SHOWN = 5


def main() -> None:
    """Scan again, judge, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scans", type=int, default=3)
    parser.add_argument("--threshold", type=float, default=Duplicates().likeness)
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.folder.rglob("*") if path.is_file())
    read = [(path, cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)) for path in files]
    originals = [(path, fit(picture, LONG_SIDE)) for path, picture in read if picture is not None]
    rng = np.random.default_rng(1885)
    scans = [picture for _, picture in originals]
    of = list(range(len(scans)))
    for number, (_, picture) in enumerate(originals):
        for _ in range(arguments.scans):
            scans.append(rescan(picture, rng))
            of.append(number)
    report([path.name for path, _ in originals], scans, of, arguments.threshold)


def report(names: Sequence[str], scans: list[np.ndarray], of: list[int], threshold: float) -> None:
    """Judge all pairs and print."""
    squares = [square(scan, duplicates.SIDE) for scan in scans]
    hashes = [perceptual_hash(scan) for scan in scans]
    # One vector each, all at right angles: CLIP has nothing to say here.
    nothing = np.eye(len(scans), dtype=np.float32)
    pixels = [str(number) for number in range(len(scans))]
    _, maybe = duplicates.candidates(pixels, hashes, nothing)
    begun = time.perf_counter()
    alike = {
        pair: duplicates.likeness(squares[pair[0]], squares[pair[1]]) for pair in sorted(maybe)
    }
    spent = 1e3 * (time.perf_counter() - begun) / max(1, len(alike))
    found = {pair for pair, value in alike.items() if value >= threshold}
    everything = [(i, j) for j in range(len(scans)) for i in range(j)]
    true = {pair for pair in everything if of[pair[0]] == of[pair[1]]}
    right = len(found & true)
    print(f"{len(names)} pictures, {len(scans)} scans: {len(true)} true pairs, "
          f"{len(everything) - len(true)} false ones; {len(alike)} laid upon each other, "
          f"{spent:.1f} ms each")  # fmt: skip
    print(f"pairs found      {rate(wilson(right, len(true)))}")
    print(f"found are right  {rate(wilson(right, len(found)))}")
    grouped = duplicates.groups(sorted(found))
    whole = sum(len({of[at] for at in group}) == 1 for group in grouped)
    home = {at: number for number, group in enumerate(grouped) for at in group}
    copies = range(len(names), len(scans))
    together = sum(home.get(at, -1) == home.get(of[at], -2) for at in copies)
    print(f"copies grouped with their original  {rate(wilson(together, len(copies)))}")
    print(f"groups of one picture only          {rate(wilson(whole, len(grouped)))}")
    wrong = sorted((value, pair) for pair, value in alike.items() if pair not in true)[-SHOWN:]
    for value, (i, j) in reversed(wrong):
        print(f"  {value:.3f}  {names[of[i]]}  {names[of[j]]}")


if __name__ == "__main__":
    main()
