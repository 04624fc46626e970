"""The figures of the selection benchmark."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.selection import shrunk_overlap
from benchmarks.selection_metrics import (
    Outcome,
    auc,
    average_precision,
    best_overlaps,
    bootstrap,
    false_boxes,
    page_figures,
)

BOX = (0.1, 0.1, 0.5, 0.5)
FAR = (0.6, 0.6, 0.9, 0.9)
RIGHT = Outcome(
    key="a.pdf#0",
    work="a",
    label="mixed",
    note="",
    illustrated=True,
    kept=True,
    score=0.16,
    truth=(BOX,),
    boxes=((BOX, 0.9),),
    boxes_source="gt",
    scan="grey",
    seconds=0.01,
)
MISSED = replace(RIGHT, key="b.pdf#0", work="b", kept=False, score=0.0, boxes=())
TEXT = replace(MISSED, key="c.pdf#0", work="c", label="text", illustrated=False, truth=())
FALSE = replace(TEXT, key="d.pdf#0", work="d", kept=True, score=0.09, boxes=((FAR, 0.95),))


def test_page_figures_count_hits_misses_and_false_alarms() -> None:
    figures = page_figures([RIGHT, RIGHT, MISSED, TEXT, FALSE])
    assert figures["precision"] == pytest.approx(2 / 3)
    assert figures["recall"] == pytest.approx(2 / 3)
    assert figures["f1"] == pytest.approx(2 / 3)


def test_auc_counts_ties_half_and_is_undefined_for_one_class() -> None:
    assert auc(np.array([0.2, 0.1, 0.1]), np.array([True, True, False])) == pytest.approx(0.75)
    assert math.isnan(auc(np.array([1.0]), np.array([True])))


def test_average_precision_falls_with_misses_and_with_surer_false_boxes() -> None:
    assert average_precision([RIGHT], 0.5) == pytest.approx(1.0)
    assert average_precision([RIGHT, MISSED], 0.5) == pytest.approx(0.5)
    assert average_precision([RIGHT, FALSE], 0.5) == pytest.approx(0.5)
    twice = replace(RIGHT, boxes=((BOX, 0.9), (BOX, 0.8)))
    assert average_precision([twice, MISSED], 0.5) == pytest.approx(0.5)


def test_a_loose_box_counts_at_one_overlap_and_not_at_the_other() -> None:
    loose = replace(RIGHT, boxes=(((0.1, 0.1, 0.5, 0.7), 0.9),))
    assert best_overlaps([loose, MISSED]) == pytest.approx([2 / 3, 0.0])
    assert average_precision([loose], 0.5) == pytest.approx(1.0)
    assert average_precision([loose], 0.75) == 0


def test_false_boxes_are_counted_on_pages_to_drop() -> None:
    assert false_boxes([RIGHT, MISSED, TEXT, FALSE]) == (1, 1)
    small_truth = replace(FALSE, truth=(FAR,))
    assert false_boxes([small_truth]) == (0, 0)


def test_the_interval_holds_the_figure_and_comes_from_works() -> None:
    outcomes = [RIGHT] * 10 + [MISSED] + [TEXT] * 10
    low, high = bootstrap(outcomes, lambda drawn: page_figures(drawn)["recall"], rounds=200)
    assert low <= 10 / 11 <= high
    assert low < 0.5  # whole works are left out, not single pages


def test_plates_and_large_pictures_are_what_must_not_be_missed() -> None:
    assert RIGHT.large
    assert replace(RIGHT, truth=((0.0, 0.0, 0.3, 0.3),)).large is False
    assert replace(RIGHT, truth=(), label="illustration").large
    assert replace(RIGHT, note="abstract ornament 19 %").ornamental


def test_a_box_drawn_around_white_overlaps_what_is_left_of_it_by_its_share_of_ink() -> None:
    ink = np.zeros((200, 100), np.uint8)
    ink[40:80, 20:40] = 255
    assert shrunk_overlap(ink, (0.2, 0.2, 0.4, 0.4)) == pytest.approx(1.0)
    assert shrunk_overlap(ink, (0.1, 0.1, 0.5, 0.5)) == pytest.approx(1 / 4)
    assert shrunk_overlap(ink, (0.6, 0.6, 0.9, 0.9)) == 0
