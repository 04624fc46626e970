"""The generated archive: always the same, true to its own description, of every kind it claims."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pikepdf
import pymupdf
import pytest

from tests.resources import make_demo
from tests.resources.make_demo import DECK, LONGEST, PASSWORD, VOLUMES, Truth, deal, make, plan

PAGES = 24


Archive = tuple[Path, list[Truth]]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.Popen]]:
    """The same archive in the making beside the tests, in a process with another hash seed."""
    folder = tmp_path_factory.mktemp("twin")
    command = [sys.executable, "-m", "tests.resources.make_demo", str(folder)]
    with subprocess.Popen(
        [*command, "--pages", str(PAGES)],
        cwd=Path(make_demo.__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        stdout=subprocess.DEVNULL,
    ) as process:
        yield folder, process
        process.kill()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, twin: tuple) -> Archive:
    """A small archive and the truth about it, made while its twin is."""
    folder = tmp_path_factory.mktemp("archive")
    return folder, make(folder, pages=PAGES)


def hashes(folder: Path) -> dict[str, str]:
    """Hash every file of a folder by its path within it."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files
    }


def darkness(page: pymupdf.Page, dpi: int = 100) -> np.ndarray:
    """Render a page; returns ink against its paper, (height, width) float, 0 paper to 1 black."""
    pixmap = page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY)
    grey = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.h, pixmap.w) / 255
    return 1 - grey / np.percentile(grey, 90)


def test_same_bytes_in_another_process(
    archive: Archive, twin: tuple[Path, subprocess.Popen]
) -> None:
    """Neither hash seeds nor what was drawn before may show in the files."""
    assert twin[1].wait(timeout=120) == 0
    assert hashes(twin[0]) == hashes(archive[0])


def test_truth_is_written_and_counts_the_pages(archive: Archive) -> None:
    folder, truths = archive
    written = [json.loads(line) for line in (folder / "truth.jsonl").open(encoding="utf-8")]
    assert written == json.loads(json.dumps([asdict(t) for t in truths]))
    own = [t for t in truths if t.page is not None and not t.duplicate_of]
    assert len(own) == PAGES
    for name in {t.pdf for t in truths if t.page is not None}:
        with pymupdf.open(folder / name) as pdf:
            indices = [t.page for t in truths if t.pdf == name]
            assert indices == list(range(len(pdf)))


def test_boxes_hold_the_ink_and_nothing_beside_it(archive: Archive) -> None:
    """A box has ink along all its sides, and bare paper just outside."""
    folder, truths = archive
    for truth in truths:
        if not truth.boxes or truth.duplicate_of:
            continue
        with pymupdf.open(folder / truth.pdf) as pdf:
            dark = darkness(pdf[truth.page]) > 0.2
        h, w = dark.shape
        for box in truth.boxes:
            x0, y0, x1, y1 = (round(v * s) for v, s in zip(box, (w, h, w, h), strict=True))
            about = f"{truth.pdf} page {truth.page} {box}"
            inside = dark[y0:y1, x0:x1]
            assert inside.mean() > 0.04, about
            assert inside[:12].any() and inside[-12:].any(), about
            assert inside[:, :12].any() and inside[:, -12:].any(), about
            ring = dark[max(y0 - 5, 0) : y1 + 5, max(x0 - 5, 0) : x1 + 5].copy()
            ring[3:-3, 3:-3] = False
            assert ring.sum() < 0.06 * 4 * sum(ring.shape), about


def test_pages_are_of_the_kind_they_claim(archive: Archive) -> None:
    folder, truths = archive
    kinds = {t.kind for t in truths}
    assert kinds == {*DECK, "cover", "broken", "locked", "html"}
    for truth in truths:
        area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in truth.boxes)
        if truth.kind in ("mixed", "plate", "cover"):
            assert area > 0.08, truth
        else:
            assert not truth.boxes
        if truth.kind == "blank":
            with pymupdf.open(folder / truth.pdf) as pdf:
                middle = darkness(pdf[truth.page])[80:-80, 80:-80]
            assert (middle > 0.3).mean() < 0.001, truth


def test_every_codec_and_structure_is_there(archive: Archive) -> None:
    folder, truths = archive
    assert {t.codec for t in truths if t.codec} == {"jpeg", "g4", "jpx", "mrc", "strips"}
    filters = {
        "jpeg": {"/DCTDecode"}, "g4": {"/CCITTFaxDecode"}, "jpx": {"/JPXDecode"},
        "mrc": {"/DCTDecode", "/CCITTFaxDecode"}, "strips": {"/DCTDecode"},
    }  # fmt: skip
    turned = set()
    for truth in (t for t in truths if t.page == 0):
        with pikepdf.open(folder / truth.pdf) as pdf:
            images = list(pdf.pages[0].Resources.XObject.values())
            turned |= {int(page.get("/Rotate", 0)) for page in pdf.pages}
            assert {str(i.Filter) for i in images} == filters[truth.codec]
            assert len(images) > 4 or truth.codec != "strips"
    assert {0, 90, 270} <= turned
    names = [t.pdf for t in truths]
    assert any(n.endswith(".PDF") for n in names) and any("/" in n for n in names)


def test_labels_and_metadata_are_as_a_reader_sees_them(archive: Archive) -> None:
    folder, truths = archive
    labelled = [t for t in truths if t.label]
    with pymupdf.open(folder / labelled[0].pdf) as pdf:
        assert [pdf[t.page].get_label() for t in labelled] == [t.label for t in labelled]
        assert pdf.metadata["title"].startswith("The Ladies’ Mirror")
        assert pdf.metadata["creationDate"] == "D:18870312"
    assert labelled[0].label == "i"


def test_faults_fail_as_they_should(archive: Archive) -> None:
    folder, truths = archive
    fault = {t.kind: folder / t.pdf for t in truths if t.page is None}
    with pymupdf.open(fault["locked"]) as pdf:
        assert pdf.needs_pass and pdf.authenticate(PASSWORD) and len(pdf) == 1
    with pymupdf.open(fault["broken"]) as pdf:
        assert len(pdf) == 0
    assert fault["html"].read_bytes().startswith(b"<!DOCTYPE html>")
    copy = next(t for t in truths if t.duplicate_of)
    assert (folder / copy.pdf).read_bytes() == (folder / copy.duplicate_of).read_bytes()


def test_too_small_an_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="8 pages or more"):
        make(tmp_path, pages=3)


@pytest.mark.parametrize("pages", [8, 72, 2000])
def test_plan_divides_all_pages_into_short_volumes(pages: int) -> None:
    counts = [count for _, count in plan(pages)]
    paths = [volume.path for volume, _ in plan(pages)]
    assert sum(counts) == pages and max(counts) <= LONGEST + 1
    assert len(set(paths)) == len(paths)
    assert pages < 72 or len(paths) >= len(VOLUMES)


def test_deal_keeps_the_shares() -> None:
    kinds = deal(400)
    for kind, share in DECK.items():
        assert abs(kinds.count(kind) - 400 * share) <= 1
    assert set(kinds[:20]) == set(DECK)
