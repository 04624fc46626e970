"""The second look: windows around boxes, and what the shipped judge says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from numpy.typing import NDArray
from torch.nn import Flatten

from models.errors import BadSettings
from tasks.detect import make_detector
from tasks.detect.judge import JUDGE, TIMES, RegionJudge
from tasks.detect.layout import LONG_SIDE, NETWORK, WEIGHTS
from tasks.detect.page import Gray, PixelBox, fit, normalise
from tasks.detect.regions import ORNAMENT, PICTURE, TEXT
from tasks.detect.train.export import FREE_WINDOWS, export
from tasks.detect.train.net import JudgeEnsemble, JudgeNet
from tasks.detect.window import DARKEST, LIGHTEST, SIDE, square, window
from tests.resources.scan_ornament import initial
from tests.resources.scan_subjects import country, lake, view
from tests.tasks.detect.drawn import as_read, printed

PLATE = (120, 300, 680, 680)
LETTER = (90, 300, 250, 460)
LINES = (90, 700, 710, 900)
"""In pixels of a drawn page."""


@pytest.fixture(scope="module")
def judge() -> RegionJudge:
    """The one that comes with the project."""
    return RegionJudge(WEIGHTS)


def _window(page: NDArray[np.float32], box: PixelBox) -> NDArray[np.float32]:
    return window(page, box, square(box, TIMES))


def _printed(seed: int, ink: Gray, box: PixelBox) -> Gray:
    return fit(printed(seed, ink, box), LONG_SIDE)


def test_a_plate_an_initial_and_text_are_told_apart(judge: RegionJudge) -> None:
    plates, letters = [], []
    for seed, draw in enumerate((lake, country, view, lake, country)):
        plates.append(_printed(seed, draw(default_rng(seed), 1880), PLATE))
        letters.append(_printed(seed, initial("ABEDM"[seed], 320, default_rng(seed)), LETTER))
    for kind, pages, box in (
        (PICTURE, plates, PLATE),
        (ORNAMENT, letters, LETTER),
        (TEXT, letters, LINES),
    ):
        odds = np.concatenate([judge(normalise(page), [as_read(box)]) for page in pages])
        assert (odds.argmax(axis=1) == kind).all()
        assert np.median(odds[:, kind]) > 0.7


def test_boxes_are_judged_alike_alone_and_together(judge: RegionJudge) -> None:
    page = normalise(_printed(1, initial("A", 320, default_rng(1)), LETTER))
    boxes = [as_read(LETTER), as_read(LINES), (0, 0, page.shape[1], page.shape[0])]
    together = judge(page, boxes)
    assert together.shape == (3, 4)
    assert together.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    alone = np.concatenate([judge(page, [box]) for box in boxes])
    assert alone == pytest.approx(together, abs=1e-5)
    assert np.array_equal(judge(page, boxes), together)
    assert judge(page, []).shape == (0, 4)


def test_a_window_shows_the_box_in_the_middle_and_a_margin_around_it() -> None:
    page = np.ones((500, 400), np.float32)
    page[200:300, 100:300] = 0.0
    grey, inside = _window(page, (100, 200, 300, 300))
    assert grey.shape == inside.shape == (SIDE, SIDE)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    # The box is twice as wide as high, and a sixth of the window is margin.
    assert (columns[0], columns[-1]) == (8, 87)
    assert (rows[0], rows[-1]) == (28, 67)
    assert grey[inside > 0].max() < 0.3
    assert np.mean(grey[inside == 0]) > 0.97


def test_a_larger_window_holds_the_smaller_one() -> None:
    page = default_rng(0).random((300, 300), np.float32)
    box = (100, 90, 196, 170)
    large = window(page, box, square(box, TIMES * (SIDE + 8) / SIDE), SIDE + 8)
    assert np.abs(large[:, 4:-4, 4:-4] - _window(page, box)).mean() < 0.02


@pytest.mark.parametrize(
    "box",
    [
        (0, 0, 40, 30),
        (380, 480, 400, 500),
        (0, 0, 400, 500),
        (200, 200, 201, 201),
        (0, 250, 400, 251),
        (399, 0, 400, 500),
    ],
    ids=["corner", "far corner", "whole page", "one pixel", "line", "column at the edge"],
)
def test_every_box_has_a_window(box: PixelBox) -> None:
    page = default_rng(0).normal(0.5, 2.0, (500, 400)).astype(np.float32)
    grey, inside = _window(page, box)
    assert grey.shape == inside.shape == (SIDE, SIDE)
    assert grey.dtype == np.float32
    assert grey.min() >= DARKEST - 1e-6 and grey.max() <= LIGHTEST + 1e-6
    assert set(np.unique(inside)) <= {0.0, 1.0}
    width, height = box[2] - box[0], box[3] - box[1]
    part = inside[inside.any(axis=1)][:, inside.any(axis=0)]
    assert part.size and part.all()
    if min(width, height) > 9:
        assert part.shape[1] / part.shape[0] == pytest.approx(width / height, rel=0.05)


def test_beyond_the_page_its_edge_goes_on() -> None:
    page = np.zeros((100, 100), np.float32)
    page[:, 0] = 1.0
    grey, inside = _window(page, (0, 0, 100, 100))
    outside = grey[:, : int(np.flatnonzero(inside.any(axis=0))[0])]
    assert outside.mean() > 0.95


def test_weights_of_an_older_version_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / NETWORK).write_bytes((WEIGHTS / NETWORK).read_bytes())
    with pytest.raises(BadSettings, match=rf"{JUDGE} is missing.*[Tt]rain"):
        make_detector("layout", str(tmp_path))
    page = [np.zeros((1, 2, SIDE, SIDE), np.float32)]
    for net, what in ((JudgeNet(), "is a single judge.*[Tt]rain"), (Flatten(2), "is no judge")):
        export(net, FREE_WINDOWS, page, tmp_path / JUDGE)
        with pytest.raises(BadSettings, match=f"{JUDGE} {what}"):
            make_detector("layout", str(tmp_path))
    (tmp_path / JUDGE).write_bytes(b"something else")
    with pytest.raises(BadSettings, match=f"{JUDGE} is no network of layout"):
        make_detector("layout", str(tmp_path))


def test_an_ensemble_says_the_mean_of_what_its_members_say(tmp_path: Path) -> None:
    torch.manual_seed(0)
    members = [JudgeNet().eval() for _ in range(3)]
    for member, opinion in zip(members, (PICTURE, PICTURE, ORNAMENT), strict=True):
        member.head[1].bias.data[opinion] += 6
    page = normalise(_printed(1, initial("A", 320, default_rng(1)), LETTER))
    boxes = [as_read(LETTER), as_read(LINES)]
    shown = np.stack([_window(page, box) for box in boxes])
    export(JudgeEnsemble(members), FREE_WINDOWS, [shown], tmp_path / JUDGE)
    odds = RegionJudge(tmp_path)(page, boxes)
    assert odds[:, PICTURE] == pytest.approx(2 / 3, abs=0.03)
    assert odds[:, ORNAMENT] == pytest.approx(1 / 3, abs=0.03)
