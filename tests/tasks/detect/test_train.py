"""The training command as a user runs it: what it refuses, and how it ends when interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import pymupdf
import pytest

from models.errors import BadSettings
from tasks.decide import WHOLE_PAGE
from tasks.detect.table import LabelledPage
from tasks.detect.train.folds import are_enough, assign_folds
from tasks.detect.train.pages import load
from tests.tasks.detect.drawn import SHAPE, text_page, with_engraving

PICTURE = (180, 420, 620, 760)
RELATIVE = [side / SHAPE[1 - number % 2] for number, side in enumerate(PICTURE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of four pages: two works with pictures, two with text."""
    corpus = tmp_path_factory.mktemp("corpus")
    lines = ["path;page;label;boxes;work"]
    for number in range(4):
        page, label, boxes = text_page(number), "text", ""
        if number % 2:
            page = with_engraving(page, PICTURE, number)
            label, boxes = "mixed", json.dumps([RELATIVE])
        cv2.imwrite(str(corpus / f"{number}.png"), page)
        lines.append(f"{number}.png;0;{label};{boxes};work{number}")
    (corpus / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return corpus


def start(folder: Path, output: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tasks.detect.train", "--corpus", folder, "--output", output]
    return subprocess.Popen(
        [*map(str, command), "--threads", "1", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--steps", "0"], "--steps: it may be 1 to 1000000000, not '0'"),
        (["--steps", "-5"], "--steps: it may be 1 to 1000000000, not '-5'"),
        (["--crops", "0"], "--crops: it may be 1 to 1000000000, not '0'"),
        (["--threads", "0"], f"--threads: it may be 1 to {os.cpu_count()}, not '0'"),
        (["--threads", "3000000000"], "--threads: it may be 1 to"),
        (["--steps", "5000000000"], "--steps: it may be 1 to 1000000000, not"),
        (["--seed", "-1"], "--seed: it may be 0 to 1000000000, not '-1'"),
        (["--folds", "1"], "--folds: it may be 0 (do not) or 2 to 9, not '1'"),
        (["--folds", "-1"], "--folds: it may be 0 (do not) or 2 to 9, not '-1'"),
        (["--folds", "10"], "--folds: it may be 0 (do not) or 2 to 9, not '10'"),
        (["--folds", "few"], "--folds: it may be 0 (do not) or 2 to 9, not 'few'"),
        (["--folds", "3"], "--folds: there are too few works for 3"),
    ],
    ids=" ".join,
)
def test_numbers_without_sense_are_refused(
    folder: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    process = start(folder, tmp_path / "out", *arguments)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 2 and told in printed, printed
    assert "Traceback" not in printed and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("illustrated", "plain", "folds", "enough"),
    [(1, 3, 2, False), (1, 3, 3, False), (3, 1, 3, False), (3, 3, 3, True), (2, 2, 3, False)],
)
def test_every_fold_leaves_pictures_and_text_to_train_on(
    illustrated: int, plain: int, folds: int, enough: bool
) -> None:
    pages = [
        LabelledPage(Path(), "", 0, label, f"{label}{number}", "", boxes, None, None)
        for label, count, boxes in (("mixed", illustrated, (WHOLE_PAGE,)), ("text", plain, ()))
        for number in range(count)
    ]
    assert are_enough(pages, assign_folds(pages, folds), folds) == enough


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("1.png;7;mixed;[];work1", "1.png, page 7: "),
        ("broken.png;0;text;;work1", "broken.png, page 0: "),
        ("broken.pdf;0;text;;work1", "broken.pdf, page 0: "),
        ("locked.pdf;0;text;;work1", "locked.pdf, page 0: "),
    ],
)
def test_a_page_that_cannot_be_read_is_named(tmp_path: Path, row: str, told: str) -> None:
    cv2.imwrite(str(tmp_path / "1.png"), text_page(1))
    for name in ("broken.png", "broken.pdf"):
        (tmp_path / name).write_bytes(b"no page")
    with pymupdf.open() as document:
        document.new_page()
        encryption = pymupdf.PDF_ENCRYPT_AES_256
        document.save(tmp_path / "locked.pdf", encryption=encryption, user_pw="secret")
    (tmp_path / "labels.csv").write_text(f"path;page;label;boxes;work\n{row}\n", encoding="utf-8")
    with pytest.raises(BadSettings, match=re.escape(str(tmp_path / told))):
        load(tmp_path, None)


def test_what_cannot_be_trained_on_ends_with_2_and_a_cure(folder: Path, tmp_path: Path) -> None:
    table = (folder / "labels.csv").read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(table.replace("1.png;0;", "1.png;7;"), encoding="utf-8")
    process = start(folder, tmp_path / "out", "--annotations", wrong)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 2 and "Traceback" not in printed, printed
    assert "1.png, page 7: " in printed and "Correct the row" in printed


def test_the_least_numbers_make_networks(folder: Path, tmp_path: Path) -> None:
    process = start(folder, tmp_path, "--steps", 1, "--crops", 1)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert {"layout.onnx", "regions.onnx", "boxes.onnx"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_an_interruption_while_torch_is_imported_ends_with_130(
    folder: Path, tmp_path: Path
) -> None:
    process = start(folder, tmp_path)
    loaded = Path(f"/proc/{process.pid}/maps")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and "libtorch" not in loaded.read_text():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    assert printed.splitlines() == [
        "Interrupted; the same command goes on with the networks that are not made yet."
    ]


@pytest.mark.parametrize("wait", [0.0, 1.0, 5.0], ids="{} s after its worker was called".format)
def test_an_interruption_ends_with_130_and_one_sentence(
    folder: Path, tmp_path: Path, wait: float
) -> None:
    process = start(folder, tmp_path, "--steps", 100_000)
    card = tmp_path / "layout.json"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not card.exists():
        time.sleep(0.02)
    time.sleep(wait)
    # A terminal sends it to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    lines = [line for line in printed.splitlines() if " step " not in line]
    assert lines[0].endswith("4 works")
    assert lines[1:] == [
        "Interrupted; the same command goes on with the networks that are not made yet."
    ]
    # Nothing of the group is left behind.
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.02)
