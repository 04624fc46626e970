"""Folders in the corpus format, what training makes of them, and the shipped weights on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from models.errors import BadSettings
from models.records import Detection, Region, RegionKind
from tasks.detect import make_detector
from tasks.detect.corpus import read_labels, render_fit, scan_type
from tasks.detect.judge import JUDGE
from tasks.detect.layout import (
    FOLDS,
    LONG_SIDE,
    NETWORK,
    WEIGHTS,
    LayoutDetector,
    as_input,
    read_predictions,
    write_predictions,
)
from tasks.detect.page import fit
from tasks.detect.refine import REFINER
from tasks.detect.regions import ORNAMENT, TEXT
from tasks.detect.regions import PICTURE as PICTURE_MAP
from tasks.detect.train.augment import PORTRAIT, make_example
from tasks.detect.train.compose import make_bank, make_scene, make_spread
from tasks.detect.train.crops import make_crops, pack, unpack
from tasks.detect.train.export import FREE_PAGE, export
from tasks.detect.train.folds import assign_folds
from tasks.detect.train.make import Plan, train
from tasks.detect.train.net import LayoutNet
from tasks.detect.train.pages import Scene, load
from tasks.detect.window import SIDE
from tests.tasks.detect.drawn import SHAPE, text_page, with_engraving

CORPUS = Path(os.environ.get("INTAGLIO_CORPUS", "../shared/corpus"))
needs_corpus = pytest.mark.skipif(
    not (CORPUS / "labels.csv").exists(),
    reason="the labelled corpus is not here: set INTAGLIO_CORPUS to its folder",
)
PICTURE = (180, 420, 620, 760)
RELATIVE = (180 / SHAPE[1], 420 / SHAPE[0], 620 / SHAPE[1], 760 / SHAPE[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of six drawn pages of three works."""
    lines = ["path,page,label,boxes,work,note"]
    for number in range(6):
        illustrated = number % 2 == 0
        page = text_page(number)
        if illustrated:
            page = with_engraving(page, PICTURE, number)
        cv2.imwrite(str(tmp_path / f"{number}.png"), page)
        boxes = '"' + json.dumps([RELATIVE]) + '"' if illustrated else ""
        label = "mixed" if illustrated else "text"
        lines.append(f"{number}.png,0,{label},{boxes},work{number // 2},")
    lines.append("5.png,0,other,,work2,a cover")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (b"pdf,page_index,label\na.pdf,0,text\n", "no column path, page, work"),
        (b"\xef\xbb\xbfpath,page,label,work\na.pdf,one,text,w\n", "line 2: .*one"),
        (b"path,page,label,work,boxes\na.pdf,0,mixed,w,[[0.1\n", "line 2"),
    ],
    ids=["another table", "a number that is none, from Excel", "boxes"],
)
def test_a_table_that_cannot_be_read_is_named(tmp_path: Path, table: bytes, what: str) -> None:
    (tmp_path / "labels.csv").write_bytes(table)
    with pytest.raises(BadSettings, match=f"labels.csv.* {what}"):
        read_labels(tmp_path)


def test_training_asks_for_pages_of_text_in_every_fold(folder: Path, tmp_path: Path) -> None:
    _, scenes = load(folder, None)
    plan = Plan(2, 30, 0)
    for few in ([s for s in scenes if not s.pictures], [s for s in scenes if s.pictures]):
        with pytest.raises(BadSettings, match="Label some"):
            train(few, [], tmp_path / "out", plan)
    assert not (tmp_path / "out").exists()


def test_labels_are_read(folder: Path) -> None:
    pages = read_labels(folder)
    assert [page.label for page in pages] == ["mixed", "text"] * 3 + ["other"]
    assert pages[0].boxes == (pytest.approx(RELATIVE),)
    assert pages[1].boxes == ()
    assert pages[6].boxes is None
    assert not pages[6].judged
    assert render_fit(pages[0].file, 0, 512).shape == (512, 373)
    assert scan_type(pages[0].file, 0) == "bilevel"


def test_a_second_table_adds_and_replaces(folder: Path) -> None:
    extra = folder / "extra.csv"
    extra.write_text(
        'path,page,label,boxes,ornaments,work\n1.png,0,,,"[[0.1, 0.1, 0.4, 0.2]]",\n'
        '5.png,0,,"[]",,\n',
        encoding="utf-8",
    )
    pages, scenes = load(folder, extra)
    by_path = {page.path: (page, scene) for page, scene in zip(pages, scenes, strict=True)}
    page, scene = by_path["1.png"]
    assert (page.label, page.work, page.boxes) == ("text", "work0", ())
    assert scene.ornaments == ((0.1, 0.1, 0.4, 0.2),)
    assert len(pages) == 6


def test_folds_keep_works_whole_and_share_out_the_pictures(folder: Path) -> None:
    pages = [page for page in read_labels(folder) if page.judged]
    folds = assign_folds(pages, 3)
    assert set(folds) == {"work0", "work1", "work2"}
    assert sorted(folds.values()) == [0, 1, 2]


def test_training_examples_show_pictures_where_their_targets_say(folder: Path) -> None:
    _, scenes = load(folder, None)
    picture = with_engraving(text_page(), PICTURE)[420:760, 180:620]
    bank = make_bank(scenes, [("loose", picture)])
    inside, outside = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scene = make_scene(bank, rng)
        image, target = make_example(scene, bank.plain[0].gray, PORTRAIT, rng)
        assert image.shape == (1, *PORTRAIT)
        assert target.shape == (4, PORTRAIT[0] // 4, PORTRAIT[1] // 4)
        assert np.isfinite(image).all()
        if scene.pictures and target[0].sum() > 400:
            small = cv2.resize(image[0], target.shape[:0:-1], interpolation=cv2.INTER_AREA)
            inside.append(float(small[target[0] > 0].mean()))
            outside.append(float(np.median(small[target[0] == 0])))
    assert len(inside) > 8
    assert np.mean(inside) < np.mean(outside)


def test_crops_show_what_they_are_said_to_and_follow_from_the_seed(folder: Path) -> None:
    _, scenes = load(folder, None)
    bank = make_bank(scenes, [])
    windows, kinds = make_crops(bank, 60, 3, print)
    assert windows.shape == (60, 2, SIDE + 8, SIDE + 8)
    grey, inside = unpack(windows).swapaxes(0, 1)
    assert np.abs(unpack(pack(unpack(windows))) - unpack(windows)).max() < 0.01
    assert min(np.bincount(kinds, minlength=4)[[PICTURE_MAP, ORNAMENT, TEXT]]) > 3
    ink = np.array([page[box > 0.5].mean() for page, box in zip(grey, inside, strict=True)])
    assert np.median(ink[kinds == PICTURE_MAP]) < np.median(ink[kinds == TEXT])
    again, same = make_crops(bank, 20, 3, print)
    assert np.array_equal(again, windows[:20]) and np.array_equal(same, kinds[:20])
    assert not np.array_equal(make_crops(bank, 20, 4, print)[0], again)


def test_a_spread_keeps_boxes_on_their_side() -> None:
    page = np.full((100, 60), 255, np.uint8)
    scene = Scene(page, np.zeros_like(page), "w", pictures=((0.2, 0.1, 0.8, 0.5),))
    spread = make_spread(scene, scene)
    assert spread.gray.shape == (100, 120)
    assert spread.pictures[0] == pytest.approx((0.1, 0.1, 0.4, 0.5))
    assert spread.pictures[1] == pytest.approx((0.6, 0.1, 0.9, 0.5))


def test_predictions_come_back_as_written(tmp_path: Path) -> None:
    region = Region(box=(0.125, 0.25, 0.5, 0.75), kind=RegionKind.ENGRAVING, confidence=0.5)
    found = {
        "a.pdf#0": Detection(score=0.1875, measures={"ink": 0.25}, regions=[region]),
        'b "c".pdf#1': Detection(score=0.0, blank=True),
    }
    write_predictions(tmp_path / "folds.json", found)
    assert read_predictions(tmp_path / "folds.json") == found
    assert read_predictions(tmp_path / "none.json") == {}


@needs_corpus
def test_the_shipped_weights_find_the_illustrated_pages_of_the_corpus() -> None:
    """In sample: guards against weights and code that no longer belong together."""
    detector = make_detector("layout")
    pages = [page for page in read_labels(CORPUS) if page.judged][::3]
    right = sum(
        (detector(render_fit(page.file, page.index, 512)).score >= 0.075) == page.illustrated
        for page in pages
    )
    assert right / len(pages) > 0.94


def test_a_network_is_trained_with_one_command_and_found_again(
    folder: Path, tmp_path: Path
) -> None:
    weights = tmp_path / "weights"
    command = [sys.executable, "-m", "tasks.detect.train", "--corpus", folder, "--output", weights]
    command += ["--folds", "2", "--steps", "2", "--crops", "30", "--threads", "1"]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    made = {path: path.read_bytes() for path in weights.rglob("*.onnx")}
    assert len(made) == 9
    assert "is there already" not in first.stdout
    (weights / "fold1" / JUDGE).unlink()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.count("is there already") == 8
    assert {path: path.read_bytes() for path in weights.rglob("*.onnx")} == made
    assert read_predictions(weights / FOLDS).keys() == {f"{number}.png#0" for number in range(5)}
    assert LayoutDetector(weights)(text_page(1)).blank is False
    card = weights / "fold0" / "regions.json"
    for damaged in ("{", "[1]", card.read_text().replace("epochs", "epoch")):
        whole = card.read_text()
        card.write_text(damaged)
        other = subprocess.run(command, capture_output=True, text=True)
        assert "regions.json" in other.stderr and "Traceback" not in other.stderr
        card.write_text(whole)
    other = subprocess.run([*command, "--seed", "1"], capture_output=True, text=True)
    assert f"{NETWORK} was trained otherwise" in other.stderr
    command[command.index("30")] = "31"
    other = subprocess.run(command, capture_output=True, text=True)
    assert f"{JUDGE} was trained otherwise" in other.stderr
    for network in (*weights.rglob(JUDGE), *weights.rglob(REFINER)):
        network.unlink()
    subprocess.run(command, capture_output=True, text=True, check=True)
    for path in weights.rglob("*.onnx"):
        assert (path.read_bytes() == made[path]) == (path.name == NETWORK)


def test_whole_numbers_draw_the_maps_of_the_network(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = LayoutNet().train()
    pages = [with_engraving(text_page(number), PICTURE, number) for number in range(3)]
    pages = [fit(page, LONG_SIDE) for page in pages]
    with torch.no_grad():  # the running means of an untrained network are far off
        for _ in range(30):
            net(torch.from_numpy(as_input(pages[0])))
        wanted = torch.sigmoid(net.eval()(torch.from_numpy(as_input(pages[1]))))[0].numpy()
    export(net, FREE_PAGE, map(as_input, pages), tmp_path / NETWORK)
    for name in (JUDGE, REFINER):
        (tmp_path / name).write_bytes((WEIGHTS / name).read_bytes())
    maps = LayoutDetector(tmp_path).maps(pages[1])
    assert np.abs(maps - wanted[:, : maps.shape[1], : maps.shape[2]]).mean() < 0.01
    assert (tmp_path / NETWORK).stat().st_size < 1_000_000
