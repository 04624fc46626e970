"""The second look at edges: what the shipped refiner does to boxes, and what it learns from."""

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
from tasks.detect.boxes import overlap
from tasks.detect.judge import JUDGE
from tasks.detect.layout import LONG_SIDE, NETWORK, WEIGHTS
from tasks.detect.page import PixelBox, fit, normalise
from tasks.detect.refine import CELLS, REFINER, TIMES, Refiner, keep_apart, settle, with_protrusions
from tasks.detect.train.compose import make_bank
from tasks.detect.train.crops import unpack
from tasks.detect.train.export import FREE_BOXES, FREE_WINDOWS, export
from tasks.detect.train.net import RefineNet
from tasks.detect.train.pages import Scene
from tasks.detect.train.refine_fit import covered, loss, make_boxes, turn
from tasks.detect.window import SIDE, square, window
from tests.resources.scan_subjects import country, lake, view
from tests.tasks.detect.drawn import SHAPE, as_read, printed, text_page, with_engraving

BOX = (120, 300, 680, 680)
"""In pixels of a drawn page."""


@pytest.fixture(scope="module")
def refiner() -> Refiner:
    """The one that comes with the project."""
    return Refiner(WEIGHTS)


def _page(seed: int) -> NDArray[np.float32]:
    """A page of text with a plate in it, in normalised grey."""
    draw = (country, lake, view)[seed % 3]
    return normalise(fit(printed(seed, draw(default_rng(seed), 1880), BOX), LONG_SIDE))


@pytest.mark.parametrize(
    "wrong",
    [(0, 0, -150, 0), (0, 100, 0, 0), (0, 0, 0, 110), (-90, 0, 90, 0), (0, -110, 0, 0)],
    ids=["cut at the right", "cut at the top", "text below", "text at both sides", "text above"],
)
def test_wrong_edges_are_mended(refiner: Refiner, wrong: PixelBox) -> None:
    before, after = [], []
    for seed in range(6):
        page = _page(seed)
        box = as_read(tuple(side + by for side, by in zip(BOX, wrong, strict=True)))
        (mended,) = refiner(page, [box])
        before.append(overlap(box, as_read(BOX)))
        after.append(overlap(mended, as_read(BOX)))
    assert np.mean(after) > np.mean(before) + 0.3 * (1 - np.mean(before))


def test_right_edges_are_left_nearly_as_they_are(refiner: Refiner) -> None:
    for seed in range(6):
        (box,) = refiner(_page(seed), [as_read(BOX)])
        assert overlap(box, as_read(BOX)) > 0.9


def test_boxes_are_refined_alike_alone_and_together(refiner: Refiner) -> None:
    page = _page(1)
    height, width = page.shape
    boxes = [as_read(BOX), (0, 0, width, height), (width - 12, height - 12, width, height)]
    together = refiner(page, boxes)
    assert [refiner(page, [box])[0] for box in boxes] == together == refiner(page, boxes)
    assert refiner(page, []) == []
    for x0, y0, x1, y1 in together:
        assert 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height


@pytest.mark.parametrize("tone", [0, 128, 255])
def test_a_box_where_nothing_is_seen_stays_in_the_page(refiner: Refiner, tone: int) -> None:
    page = normalise(np.full((512, 380), tone, np.uint8))
    ((x0, y0, x1, y1),) = refiner(page, [(100, 100, 250, 300)])
    assert 0 <= x0 < x1 <= 380 and 0 <= y0 < y1 <= 512


@pytest.mark.parametrize(
    ("seen", "becomes"),
    [
        ((100, 100, 300, 200), (100, 100, 300, 200)),
        ((90, 100, 300, 206), (96, 100, 300, 202)),
        ((110, 106, 290, 195), (100, 100, 300, 200)),
        ((120, 100, 300, 185), (120, 100, 300, 185)),
        ((60, 100, 300, 230), (60, 100, 300, 230)),
        ((-40, 100, 390, 200), (0, 100, 350, 200)),
        ((150, 125, 250, 175), (150, 125, 250, 175)),
        ((151, 125, 250, 175), (100, 100, 300, 200)),
    ],
    ids=[
        "as found",
        "further out",
        "a little in",
        "far in",
        "far out",
        "beyond the page",
        "a quarter seen",
        "hardly seen",
    ],
)
def test_where_an_edge_goes(seen: PixelBox, becomes: PixelBox) -> None:
    assert settle((100, 100, 300, 200), seen, [0.1] * 4, (400, 350)) == becomes


def test_an_edge_goes_inwards_only_where_surely_no_picture_is() -> None:
    box, seen = (100, 100, 300, 200), (140, 120, 270, 180)
    assert settle(box, seen, [0.0, 0.3, 0.14, 0.16], (400, 350)) == (140, 100, 270, 200)


def test_weights_that_are_missing_or_something_else_say_so(tmp_path: Path) -> None:
    for name in (NETWORK, JUDGE):
        (tmp_path / name).write_bytes((WEIGHTS / name).read_bytes())
    with pytest.raises(BadSettings, match=rf"{REFINER} is missing.*[Tt]rain"):
        make_detector("layout", str(tmp_path))
    windows = [np.zeros((1, 2, SIDE, SIDE), np.float32)]
    export(Flatten(2), FREE_WINDOWS, windows, tmp_path / REFINER)
    with pytest.raises(BadSettings, match=f"{REFINER} finds no edges"):
        make_detector("layout", str(tmp_path))
    (tmp_path / REFINER).write_bytes(b"something else")
    with pytest.raises(BadSettings, match=f"{REFINER} is no network of layout"):
        make_detector("layout", str(tmp_path))


@pytest.mark.parametrize(("said", "times"), [(9.0, TIMES), (0.0, 1.0)])
def test_the_network_says_how_far_each_row_and_column_is_covered(
    tmp_path: Path, said: float, times: float
) -> None:
    page, box = _page(1), as_read(BOX)
    net = RefineNet().eval()
    for profile in (net.rows, net.columns):
        profile[2].weight.data[:] = 0.0
        profile[2].bias.data[:] = said
    export(net, FREE_BOXES, [window(page, box, square(box, TIMES))[None]], tmp_path / REFINER)
    ((x0, _, x1, _),) = Refiner(tmp_path)(page, [box])
    # Seen everywhere in the square; or half of everything, of which no edge can be sure.
    assert x1 - x0 == pytest.approx(min(times * (box[2] - box[0]), page.shape[1]), abs=3)


def test_what_protrudes_is_not_cut_off() -> None:
    page = np.ones((400, 350), np.float32)
    box, smaller = (100, 100, 300, 200), (130, 125, 300, 180)
    assert with_protrusions(page, box, smaller) == smaller
    page[100:130, 200:204] = 0.0  # a mast
    page[150:153, 100:135] = 0.7  # pale: a shadow
    page[182:188, 140:290] = 0.0  # a line of text
    assert with_protrusions(page, box, smaller) == (130, 100, 300, 180)
    assert with_protrusions(page, box, (90, 95, 310, 200)) == (90, 95, 310, 200)


def test_neighbours_do_not_grow_into_each_other() -> None:
    found = [(0, 0, 100, 50), (0, 60, 100, 120), (90, 110, 200, 300), (300, 0, 400, 50)]
    greedy = [(0, 0, 100, 70), (0, 55, 100, 120), (80, 115, 200, 300), (290, 0, 400, 60)]
    apart = keep_apart(found, greedy)
    # The first would grow into the second, the second and third had touched before.
    assert apart == [found[0], *greedy[1:]]


def test_boxes_to_learn_from_are_wrong_and_their_truths_right() -> None:
    plate = tuple(side / length for side, length in zip(BOX, (SHAPE[1], SHAPE[0]) * 2, strict=True))
    scenes = []
    for seed, draw in enumerate((lake, country, view)):
        page = with_engraving(text_page(seed), BOX, seed)
        scenes.append(Scene(page, np.zeros_like(page), f"w{seed}", pictures=(plate,)))
        plain = text_page(seed + 9)
        scenes.append(Scene(plain, np.where(plain < 99, 255, 0).astype(np.uint8), f"t{seed}"))
        ink = draw(default_rng(seed), 600)
        scenes.append(Scene(ink, np.zeros_like(ink), f"o{seed}", ornaments=((0.1, 0.1, 0.9, 0.9),)))
    bank = make_bank(scenes, [])
    windows, truths = make_boxes(bank, 120, 3, print)
    inside = unpack(windows)[:, 1] > 0.5
    wrong = []
    for box, truth in zip(inside, truths, strict=True):
        rows, columns = np.flatnonzero(box.any(axis=1)), np.flatnonzero(box.any(axis=0))
        shown = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]) / SIDE
        sides = truth[[2, 3, 2, 3]] - truth[[0, 1, 0, 1]]
        wrong.append(np.abs(shown - truth) / sides)
    # Most edges are off by a few per cent, one in five by much more.
    assert np.median(wrong) < 0.06
    assert 0.08 < np.mean(np.array(wrong) > 0.12) < 0.3
    assert np.max(wrong) < 0.4
    again, same = make_boxes(bank, 20, 3, print)
    assert np.array_equal(again, windows[:20]) and np.array_equal(same, truths[:20])


def test_truths_turn_with_their_windows() -> None:
    truth = np.array([[0.125, 0.25, 0.5, 0.875]], np.float32)
    drawn = np.zeros((1, 2, SIDE, SIDE), np.float32)
    drawn[:, :, 24:84, 12:48] = 1.0
    seen = set()
    for seed in range(40):
        windows, ((x0, y0, x1, y1),) = turn(drawn, truth, default_rng(seed))
        seen.add((x0, y0))
        left, top, right, bottom = (round(side * SIDE) for side in (x0, y0, x1, y1))
        part = windows[0, 0, top:bottom, left:right]
        assert part.all() and part.size == 60 * 36
    # Of eight ways to turn it, two put this corner to the same place.
    assert len(seen) == 7


def test_the_right_answer_costs_least() -> None:
    wanted = covered(torch.tensor([[0.2, 0.3, 0.7, 0.9]]))
    costs = [
        float(loss((covered(torch.tensor([box])) - 0.5) * 12, wanted))
        for box in ([0.2, 0.3, 0.7, 0.9], [0.2, 0.3, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0])
    ]
    assert costs == sorted(costs) and costs[0] < 0.1 < costs[1]


def test_what_the_network_is_to_say_of_a_box() -> None:
    rows, columns = covered(torch.tensor([[0.0, 0.25, 0.5, 1.1]]))[0]
    assert rows.tolist() == pytest.approx([0.0] * 6 + [1.0] * 18, abs=1e-4)
    assert columns.tolist() == pytest.approx([1.0] * 12 + [0.0] * 12, abs=1e-4)
    (part, _) = covered(torch.tensor([[0.0, 0.02, 1.0, 1.0]]))[0]
    assert part[0] == pytest.approx(1 - 0.02 * CELLS, abs=1e-4)


def test_a_square_has_the_box_in_its_middle() -> None:
    left, top, size = square((100, 200, 300, 240), TIMES)
    assert (left + size / 2, top + size / 2, size) == (200, 220, 320)
