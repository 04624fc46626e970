"""Lines of a scan's border, and pictures that touch them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tasks.detect.blobs import find_blobs
from tasks.detect.boxes import overlap
from tasks.detect.lines import scan_lines
from tasks.detect.page import Mask, fit, read_ink, relative
from tests.tasks.detect.drawn import SHAPE, text_page

HEIGHT, WIDTH = 512, 372


def _ink() -> Mask:
    return np.zeros((HEIGHT, WIDTH), np.uint8)


@pytest.mark.parametrize(
    ("start", "end", "width"),
    [
        ((12, 0), (12, 300), 2),
        ((WIDTH - 9, 200), (WIDTH - 9, HEIGHT - 1), 3),
        ((0, 8), (WIDTH - 1, 8), 2),
        ((150, HEIGHT - 6), (WIDTH - 1, HEIGHT - 6), 1),
        ((10, 0), (13, HEIGHT - 1), 2),
    ],
    ids=["left", "right", "top", "bottom", "askew"],
)
def test_lines_along_an_edge_that_run_into_one_are_found(
    start: tuple[int, int], end: tuple[int, int], width: int
) -> None:
    ink = _ink()
    cv2.line(ink, start, end, 255, width)
    lines = scan_lines(ink)
    assert (lines[ink > 0] > 0).mean() > 0.97
    assert (lines > 0).sum() < 5 * (ink > 0).sum() + 200


def test_a_line_may_be_broken_but_not_by_much() -> None:
    ink = _ink()
    ink[:, 10:12] = 255
    ink[100:106] = 0
    assert scan_lines(ink)[:, 10].all()
    ink[100:460] = 0
    assert not scan_lines(ink)[:99, 10].any()


def test_frames_dark_edges_and_text_are_no_such_lines() -> None:
    frame = _ink()
    cv2.rectangle(frame, (14, 14), (WIDTH - 15, HEIGHT - 15), 255, 2)
    dark = _ink()
    dark[:, :20] = 255
    middle = _ink()
    middle[:, 180:182] = 255
    for ink in (frame, dark, middle, read_ink(fit(text_page(), HEIGHT)).ink):
        assert not scan_lines(ink).any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 900), (900, 3), (2, 2), (17, 40)])
@pytest.mark.parametrize("value", [0, 255])
def test_any_mask_has_an_answer(shape: tuple[int, int], value: int) -> None:
    assert scan_lines(np.full(shape, value, np.uint8)).shape == shape


def test_a_picture_whose_frame_touches_the_border_s_line_is_found() -> None:
    page = text_page()
    page[60:380] = 255
    box = (30, 90, 700, 330)
    rng = np.random.default_rng(0)
    # Open strokes, of which nothing is a picture without the frame.
    for x, y in rng.integers((40, 100), (540, 290), (6, 2)).tolist():
        cv2.line(page, (x, y), (x + 140, y + 30), 40, 2)
    cv2.rectangle(page, box[:2], box[2:], 30, 3)
    page[:, 27:31] = 30
    page[12:16, :] = 30
    small = fit(page, 640)
    (found,) = find_blobs(read_ink(small))
    assert overlap(found.box, relative(box, SHAPE)) > 0.9


def test_the_frame_of_a_page_is_not_freed_and_swallows_nothing() -> None:
    page = text_page()
    page[400:760, 140:660] = 255
    cv2.ellipse(page, (400, 580), (230, 160), 0, 0, 360, 40, -1)
    cv2.rectangle(page, (40, 40), (SHAPE[1] - 41, SHAPE[0] - 41), 30, 3)
    page[:, 40:43] = 30
    (found,) = find_blobs(read_ink(fit(page, 640)))
    assert overlap(found.box, relative((170, 420, 630, 740), SHAPE)) > 0.9
