"""Calibration as a user runs it: a real command, a real Prefect server, real pages."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.detect.boxes import overlap

ROOT = Path(__file__).resolve().parent.parent.parent
Calibrate = Callable[..., tuple[int, str]]
ILLUSTRATED = {"mixed", "plate", "cover"}
"""Kinds of page in the demo archive that hold a picture."""


@pytest.fixture(scope="module")
def start(prefect_url: str) -> Callable[..., subprocess.Popen[str]]:
    """Start ``python -m flows.calibrate`` with arguments."""

    def begin(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.calibrate", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PREFECT_API_URL": prefect_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


@pytest.fixture(scope="module")
def calibrate(start: Callable[..., subprocess.Popen[str]]) -> Calibrate:
    """Run ``python -m flows.calibrate`` to its end: exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, str]:
        process = start(*arguments)
        printed, _ = process.communicate(timeout=300)
        return process.returncode, printed

    return run


@pytest.fixture(scope="module")
def truth(demo: Path) -> list[dict]:
    return [json.loads(line) for line in (demo / "truth.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def sheet(
    demo: Path, calibrate: Calibrate, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """The calibration of the demo archive, and what its run printed."""
    output = tmp_path_factory.mktemp("calibrated")
    code, printed = calibrate("--source", demo, "--output", output)
    assert code == 0, printed
    return output / "calibration", printed


def test_every_readable_page_is_shown_with_its_pictures(
    sheet: tuple[Path, str], truth: list[dict]
) -> None:
    folder, printed = sheet
    html = (folder / "index.html").read_text()
    pictures = re.findall(r'(?:src|data-large)="([^"]+\.jpg)"', html)
    assert all((folder / name).read_bytes()[:2] == b"\xff\xd8" for name in pictures)
    found = json.loads((folder / "calibration.json").read_text())
    assert len(pictures) == 2 * (found["kept"] + found["dropped"]) > 0
    assert found["drawn"] == found["kept"] + found["dropped"] + found["unreadable"]
    copies = {t["pdf"] for t in truth if t["duplicate_of"]}
    readable = {(t["pdf"], t["page"]) for t in truth if t["page"] is not None}
    shown = {(p["pdf"], p["page_index"]) for p in found["pages"] if p["kept"] is not None}
    assert {key for key in readable if key[0] not in copies} <= shown
    unreadable = {p["pdf"] for p in found["pages"] if p["kept"] is None}
    unreadable |= set(found["unreadable_pdfs"])
    assert unreadable == {t["pdf"] for t in truth if t["page"] is None}
    assert all(name in html for name in unreadable)
    assert not re.search(r"https?://", html)
    assert "Traceback" not in printed and "WARNING" not in printed
    assert len(printed.splitlines()) < 20 and "would be kept" in printed


def test_boxes_lie_on_the_pictures(sheet: tuple[Path, str], truth: list[dict]) -> None:
    html = (sheet[0] / "index.html").read_text()
    cards = {}
    for card in html.split("<figure")[1:]:
        pdf = re.search(r'data-pdf="([^"]+)"', card)
        index = re.search(r'data-index="(\d+)"', card)
        styles = re.findall(r"left:([\d.]+)%;top:([\d.]+)%;width:([\d.]+)%;height:([\d.]+)%", card)
        boxes = [tuple(float(side) / 100 for side in style) for style in styles]
        assert pdf and index
        cards[pdf[1], int(index[1])] = [(x, y, x + w, y + h) for x, y, w, h in boxes]
    drawn = [(t, box) for t in truth for box in t["boxes"] if (t["pdf"], t["page"]) in cards]
    hits = [
        any(overlap(box, found) > 0.5 for found in cards[t["pdf"], t["page"]]) for t, box in drawn
    ]
    assert len(hits) > 10 and sum(hits) >= 0.8 * len(hits)


def test_labels_give_figures_and_are_never_lost(
    demo: Path, sheet: tuple[Path, str], truth: list[dict], calibrate: Calibrate, tmp_path: Path
) -> None:
    folder = sheet[0]
    kinds = {(t["pdf"], t["page"]): t["kind"] for t in truth}
    with (folder / "labels.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows[::2]:
        kind = kinds[row["pdf"], int(row["page_index"])]
        row["label"] = "mixed" if kind in ILLUSTRATED else "text"
    with (tmp_path / "mine.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    arguments = ("--source", demo, "--output", folder.parent, "--sample", 6)
    code, printed = calibrate(*arguments, "--labels", tmp_path / "mine.csv")
    assert code == 0 and "precision" in printed, printed
    found = json.loads((folder / "calibration.json").read_text())
    assert found["drawn"] == 6 and found["labelled"] == len(rows[::2])
    said = {(p["pdf"], p["page_index"]): p for p in found["pages"] if p["label"]}
    assert all(not page["kept"] for page in said.values() if page["guess"] == "text")
    (layout,) = [m["measured"] for m in found["methods"] if m["name"] == "layout"]
    wanted = [page["label"] == "mixed" for page in said.values()]
    right = [page["kept"] and page["label"] == "mixed" for page in said.values()]
    assert layout["kept_right"] == sum(right)
    assert layout["recall"]["value"] == pytest.approx(sum(right) / sum(wanted))
    assert layout["recall"]["low"] < layout["recall"]["value"]
    # The pictures of the larger sample are gone, and the labels are still there.
    assert len(list(folder.glob("pages/*/*.jpg"))) == len(found["pages"]) < len(rows)
    kept = {
        (r["pdf"], r["page_index"]): r["label"]
        for r in csv.DictReader((folder / "labels.csv").open())
    }
    assert {key for key, label in kept.items() if label} == {
        (row["pdf"], row["page_index"]) for row in rows[::2]
    }


@pytest.fixture(scope="module")
def trained(
    sheet: tuple[Path, str], demo: Path, truth: list[dict], calibrate: Calibrate
) -> tuple[Path, list[object]]:
    """A calibration of labelled pages in a folder with an odd name, and its arguments."""
    folder = sheet[0].parent.with_name("Größe 1 für alle")
    chosen = [t for t in truth if t["page"] is not None and not t["duplicate_of"]][:24]
    folder.mkdir()
    lines = ["pdf,page_index,label"]
    for t in chosen:
        label = "mixed" if t["kind"] in ILLUSTRATED else "text"
        lines.append(f'"{t["pdf"]}",{t["page"]},{label}')
    (folder / "mine.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["--source", demo, "--output", folder, "--sample", 2]
    code, printed = calibrate(*arguments, "--labels", folder / "mine.csv")
    assert code == 0, printed
    return folder / "calibration" / "training", arguments


def covered(boxes: Sequence[Sequence[float]]) -> NDArray[np.bool_]:
    """Which of 200 by 200 cells of a page lie in boxes."""
    cells = np.zeros((200, 200), bool)
    for x0, y0, x1, y1 in boxes:
        cells[round(200 * y0) : round(200 * y1), round(200 * x0) : round(200 * x1)] = True
    return cells


def test_labelled_pages_can_be_trained_on_as_they_are(
    trained: tuple[Path, list[object]], truth: list[dict]
) -> None:
    load = pytest.importorskip("tasks.detect.train.pages").load
    pages, scenes = load(trained[0], None)
    lines = (trained[0].parent.parent / "mine.csv").read_text(encoding="utf-8").splitlines()
    labels = Counter(line.rpartition(",")[2] for line in lines[1:])
    found = Counter(page.label for page in pages)
    assert found["text"] == labels["text"] > 3
    # Illustrated pages on which nothing was found are left out.
    assert labels["mixed"] >= found["mixed"] >= 0.8 * labels["mixed"] > 3
    html = (trained[0].parent / "index.html").read_text(encoding="utf-8")
    card = r'data-pdf="([^"]+)"\s+data-index="(\d+)"[^>]+data-large="([^"]+)"'
    shown = {(pdf, int(index)): f"../{name}" for pdf, index, name in re.findall(card, html)}
    own = [t for t in truth if (t["pdf"], t["page"]) in shown]
    drawn = {shown[t["pdf"], t["page"]]: covered(t["boxes"]) for t in own}
    for page, scene in zip(pages, scenes, strict=True):
        assert scene.gray.shape[0] > 300 and page.work in page.path
        assert bool(page.boxes) == page.illustrated
        found_here, drawn_here = covered(page.boxes or ()), drawn[page.path]
        both, either = found_here & drawn_here, found_here | drawn_here
        assert both.sum() >= 0.5 * either.sum(), page.path


def test_corrections_and_their_pictures_outlive_another_run(
    trained: tuple[Path, list[object]], calibrate: Calibrate
) -> None:
    folder, arguments = trained
    table, labels = folder / "labels.csv", folder.parent / "labels.csv"
    with table.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if row["label"] == "mixed":
            row["boxes"] = "[[0.125, 0.25, 0.5, 0.75]]"
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    # One label is taken back, and another turned round.
    said = labels.read_text(encoding="utf-8")
    turned = said.replace(",mixed,", ",text,", 1)
    last = turned.rindex(",mixed,")
    labels.write_text(f"{turned[:last]},,{turned[last + 7 :]}", encoding="utf-8")
    code, printed = calibrate(*arguments)
    assert code == 0, printed
    with table.open(newline="", encoding="utf-8") as stream:
        after = list(csv.DictReader(stream))
    changed = [new for old, new in zip(rows, after, strict=True) if old != new]
    assert [(row["label"], row["boxes"]) for row in changed] == [("text", "[]")]
    assert all((folder / row["path"]).is_file() for row in after)
    # What was drawn on the page that was turned round is not lost.
    before = (folder / "labels.csv.bak").read_text(encoding="utf-8")
    mixed = sum(row["label"] == "mixed" for row in rows)
    assert before.count("[[0.125, 0.25, 0.5, 0.75]]") == mixed > 0


def test_a_damaged_table_to_train_on_ends_with_2_and_is_left_alone(
    trained: tuple[Path, list[object]], calibrate: Calibrate
) -> None:
    folder, arguments = trained
    table, html = folder / "labels.csv", folder.parent / "index.html"
    damaged = table.read_text(encoding="utf-8").replace("]]", "]", 1)
    table.write_text(damaged, encoding="utf-8")
    before = html.stat().st_mtime_ns
    code, printed = calibrate(*arguments)
    assert code == 2, printed
    assert re.search(r"labels\.csv, line \d+: ", printed.replace("\n", " "))
    assert "Traceback" not in printed and "Starting" not in printed
    assert table.read_text(encoding="utf-8") == damaged and html.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("work-table-1891.PDF,0,text\nwork-table-1891.PDF,1,picture\n", "line 3: 'picture'"),
        ("nowhere.pdf,0,text\n", "line 2: the archive has no readable PDF 'nowhere.pdf'"),
        ("work-table-1891.PDF,0,\n", "has no label filled in"),
    ],
)
def test_bad_labels_end_with_2_before_anything_starts(
    rows: str, words: str, demo: Path, sheet: tuple[Path, str], calibrate: Calibrate, tmp_path: Path
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(f"pdf,page_index,label\n{rows}")
    code, printed = calibrate("--source", demo, "--output", sheet[0].parent, "--labels", labels)
    assert code == 2, printed
    assert str(labels) in printed and words in printed
    assert "Traceback" not in printed and "Starting" not in printed


def test_an_interruption_ends_with_130(
    demo: Path, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = start("--source", demo, "--output", tmp_path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(tmp_path.glob("calibration/pages/*/*.jpg")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in printed, printed
