"""PDFs with random damage: all are accounted for; none stops the run or outlasts its limit."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from models.records import Summary
from tests.faults.record import record
from tests.faults.stages import settings_for, work
from tests.resources.make_faults import MAKERS

LIMIT_S = 20.0
"""Time limit of a page; the slowest sound one takes a tenth of a second."""


def flip(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    """Turn single bits over."""
    for _ in range(chance.choice((1, 4, 16, 64))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    """Lose a stretch, or everything from a place on."""
    start = chance.randrange(1, len(data))
    del data[start : chance.choice((start + chance.randrange(1, 400), len(data)))]


def splice(data: bytearray, chance: random.Random, others: list[bytes]) -> None:
    """Put a stretch of another file, or a number that means trouble, in the place of a stretch."""
    other = chance.choice(others)
    start = chance.randrange(len(other))
    stretch = chance.choice(
        (other[start : start + 300], b"-1", b"99999999999", b"1e38", b"\0" * 50)
    )
    at = chance.randrange(len(data))
    data[at : at + chance.choice((0, len(stretch)))] = stretch


def mutants(folder: Path, count: int, seed: int) -> Counter[str]:
    """Write PDFs with damage; how many of each kind."""
    chance = random.Random(seed)
    originals = [made for maker in MAKERS.values() if len(made := maker()) > 300]
    kinds: Counter[str] = Counter()
    folder.mkdir()
    for number in range(count):
        data = bytearray(chance.choice(originals))
        damage = chance.choice((flip, cut, splice))
        damage(data, chance, originals)
        kinds[damage.__name__] += 1
        (folder / f"{number:05}-{damage.__name__}.pdf").write_bytes(data)
    return kinds


def fuzz(folder: Path, count: int, seed: int) -> tuple[Counter[str], Summary]:
    """Work an archive of damaged PDFs, and make sure that nothing is lost of it."""
    kinds = mutants(folder / "archive", count, seed)
    settings = settings_for(folder / "archive", folder / "out")
    limits = {"workers": 2, "page_timeout_s": LIMIT_S, "worker_memory_mb": 512}
    settings = settings.model_copy(
        update={
            "read": settings.read.model_copy(update={"max_megapixels": 4.0}),
            "run": settings.run.model_copy(update=limits),
        }
    )
    begun = time.monotonic()
    work(settings)
    summary = Summary.model_validate_json((folder / "out" / "summary.json").read_text())
    assert summary.pdfs.total == count
    assert summary.pdfs.kept + summary.pdfs.dropped + summary.pdfs.quarantined == count
    pages = summary.pages
    assert pages.kept + pages.dropped + pages.quarantined == pages.total
    lost = summary.quarantined.get("page_timeout", 0)
    assert time.monotonic() - begun < 60 + count + 2 * LIMIT_S * lost
    for line in (folder / "out" / "quarantine.jsonl").read_text().splitlines():
        fault = json.loads(line)
        assert fault["pdf"] in fault["message"] and fault["cure"]
        assert str(folder) not in fault["message"]
    return kinds, summary


def test_a_hundred(tmp_path: Path) -> None:
    fuzz(tmp_path, 100, seed=1)


@pytest.mark.nightly
def test_two_thousand(tmp_path: Path) -> None:
    kinds, summary = fuzz(tmp_path, 2000, seed=2)
    found = ", ".join(f"{kind} {count}" for kind, count in summary.quarantined.items())
    died = sum(summary.quarantined.get(kind, 0) for kind in ("worker_died", "page_timeout"))
    outcome = (
        f"all accounted for: {summary.pdfs.kept + summary.pdfs.dropped:,} opened with "
        f"{summary.pages.total:,} pages, the rest quarantined ({found}); crashes and hangs: {died}"
    )
    what = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    again = "pytest -m nightly tests/faults/test_fuzz.py"
    record("Input", f"PDFs with random damage ({what})", sum(kinds.values()), outcome, again)
