"""The parts the methods are made of."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from models.records import Region, RegionKind
from tasks.detect.blobs import read_pieces
from tasks.detect.boxes import merge_close, overlap, reading_order
from tasks.detect.fragments import complete, strokes, without_captions
from tasks.detect.halftone import find_screen
from tasks.detect.kinds import picture_kind, ruled_kind, symmetry
from tasks.detect.page import Gray, find_border, fit, flatten, read_ink, to_gray8
from tests.tasks.detect.drawn import halftone, text_page, with_dark_border, with_engraving


def test_overlap_is_one_for_the_same_box_and_none_apart() -> None:
    assert overlap((0.1, 0.1, 0.5, 0.5), (0.1, 0.1, 0.5, 0.5)) == pytest.approx(1.0)
    assert overlap((0.0, 0.0, 0.2, 0.2), (0.3, 0.0, 0.5, 0.2)) == 0
    assert overlap((0.0, 0.0, 0.2, 0.1), (0.1, 0.0, 0.3, 0.1)) == pytest.approx(1 / 3)


def test_boxes_chained_by_small_gaps_become_one() -> None:
    merged = merge_close([(0, 0, 10, 10), (30, 0, 40, 10), (12, 0, 28, 10), (80, 80, 90, 90)], 3)
    assert sorted(merged) == [(0, 0, 40, 10), (80, 80, 90, 90)]


def test_reading_order_goes_by_rows_and_from_left_to_right() -> None:
    boxes = [(0.6, 0.12, 0.9, 0.3), (0.1, 0.5, 0.9, 0.8), (0.1, 0.1, 0.4, 0.31)]
    ordered = reading_order([Region(box=box) for box in boxes])
    assert [region.box for region in ordered] == [boxes[2], boxes[0], boxes[1]]


def test_sixteen_bits_become_eight() -> None:
    page = to_gray8(np.array([[0, 32896, 65535]], np.uint16))
    assert page.dtype == np.uint8
    assert page.tolist() == [[0, 128, 255]]


def test_fit_never_enlarges_and_keeps_at_least_a_pixel() -> None:
    assert fit(np.zeros((30, 20), np.uint8), 512).shape == (30, 20)
    assert fit(np.zeros((5000, 2), np.uint8), 512).shape == (512, 1)


def test_flattening_evens_out_a_shadow() -> None:
    page = text_page()
    shaded = (page * np.linspace(0.5, 1.0, page.shape[1])[None, :]).astype(np.uint8)
    flat = flatten(shaded)
    margin = flat[:60]
    assert margin.min() > 225
    assert np.abs(flat.astype(int) - page).mean() < 12


def test_the_border_is_what_is_dark_at_the_edge_and_not_the_picture() -> None:
    page = with_dark_border(with_engraving(text_page(), (180, 420, 620, 760)))
    border = find_border(page)
    assert border[5, 400] == 255
    assert border[550, 400] == 0
    assert not (read_ink(page).ink & border).any()


def _letters(ink: Gray, top: int, *columns: int) -> None:
    for x in columns:
        ink[top : top + 7, x : x + 5] = 255


def _figure() -> Gray:
    """The ink of a page with a frame, and lines above it and on its left."""
    ink = np.zeros((512, 370), np.uint8)
    cv2.rectangle(ink, (101, 141), (298, 298), 255, 2)
    for y in range(60, 140, 16):
        cv2.line(ink, (100, y), (299, y + 8), 255, 1)
    for x in range(40, 100, 12):
        cv2.line(ink, (x, 145), (x + 6, 290), 255, 1)
    return ink


def test_a_picture_seen_in_part_is_completed_by_strokes_and_not_by_letters() -> None:
    ink, seen = _figure(), (100, 140, 300, 300)
    _letters(ink, 306, *range(100, 296, 9))
    pieces = read_pieces(ink)
    assert complete(pieces, seen, [(100, 60, 300, 313)]) == (100, 60, 300, 300)
    assert complete(pieces, seen, [(40, 140, 360, 300)]) == (40, 140, 300, 300)
    assert complete(pieces, seen, [(0, 0, 370, 512), (100, 60, 180, 200)]) == seen


def test_letters_in_a_corner_do_not_come_in_between_two_edges() -> None:
    ink, seen = _figure(), (100, 140, 300, 300)
    for top in range(62, 132, 10):
        _letters(ink, top, *range(42, 92, 7))
    assert complete(read_pieces(ink), seen, [(40, 60, 300, 300)]) == (40, 140, 300, 300)


@pytest.mark.parametrize(
    ("letters", "line", "bottom"),
    [(20, 0, 302), (1, 0, 302), (8, 75, 302), (4, 75, 313)],
    ids=["caption", "number", "caption and the end of a line", "foot of the picture"],
)
def test_a_caption_is_cut_off_below_white_with_specks(letters: int, line: int, bottom: int) -> None:
    ink = _figure()
    ink[302:306:2, 110:290:20] = 255
    _letters(ink, 306, *range(104, 104 + 9 * letters, 9))
    ink[309:311, 300 - line : 300] = 255
    _letters(ink, 450, *range(20, 350, 9))
    pieces = read_pieces(ink)
    cut = without_captions(pieces, strokes(pieces), (100, 140, 300, 313))
    assert cut == (100, 140, 300, bottom)


@pytest.mark.parametrize("period", [3.5, 5.0, 8.0])
def test_a_halftone_screen_is_measured(period: float) -> None:
    screen = find_screen(halftone(period))
    assert screen is not None
    assert screen.period == pytest.approx(period, rel=0.08)
    assert screen.angle == pytest.approx(45, abs=4)


def test_hatching_text_and_small_pictures_have_no_screen() -> None:
    engraving = with_engraving(text_page(), (20, 20, 780, 1080))
    assert find_screen(engraving) is None
    assert find_screen(text_page()) is None
    assert find_screen(halftone(5.0, (100, 100))) is None


def test_what_shows_through_from_another_leaf_is_no_picture() -> None:
    box = (180, 420, 620, 760)
    printed = with_engraving(text_page(), box)
    blank = np.full_like(printed, 255)
    pale = np.where(printed < 255, 160 + printed // 4, 255).astype(np.uint8)
    ghost = cv2.addWeighted(cv2.GaussianBlur(printed, (0, 0), 6), 0.3, blank, 0.7, 0)
    assert picture_kind(printed, box) == RegionKind.ENGRAVING
    assert picture_kind(pale, box) == RegionKind.ENGRAVING
    assert picture_kind(ghost.astype(np.uint8), box) == RegionKind.OTHER


@pytest.mark.parametrize(("darkest", "lightest"), [(20, 190), (90, 200), (10, 14)])
def test_smooth_pictures_with_ink_are_no_ghosts(darkest: int, lightest: int) -> None:
    y, x = np.mgrid[0:340, 0:440]
    tones = 0.5 + 0.5 * np.sin(x / 60) * np.cos(y / 50)
    photograph = (darkest + tones * (lightest - darkest)).astype(np.uint8)
    page = text_page()
    page[420:760, 180:620] = photograph
    assert picture_kind(page, (180, 420, 620, 760)) != RegionKind.OTHER
    assert picture_kind(photograph, (0, 0, 440, 340)) != RegionKind.OTHER


def test_symmetry_tells_a_mirrored_ornament_from_a_scene() -> None:
    half = (255 - with_engraving(np.full((300, 200), 255, np.uint8), (25, 25, 175, 275))) // 2
    ornament = 255 - np.hstack([half, half[:, ::-1]])
    scene = with_engraving(np.full((300, 400), 255, np.uint8), (25, 25, 375, 275), seed=4)
    assert symmetry(ornament, (20, 20, 380, 280)) > 0.9
    assert symmetry(scene, (20, 20, 380, 280)) < 0.72
    assert symmetry(np.full((50, 50), 255, np.uint8), (0, 0, 50, 50)) <= 1.0


def test_a_grid_is_a_table_and_staves_are_music() -> None:
    ink = np.zeros((300, 400), np.uint8)
    for y in range(20, 280, 40):
        for line in range(5):
            ink[y + 5 * line, 10:390] = 255
    assert ruled_kind(ink, (0, 0, 400, 300)) is RegionKind.MUSIC
    ink[10:290, 50::90] = 255
    assert ruled_kind(ink, (0, 0, 400, 300)) is RegionKind.TABLE
