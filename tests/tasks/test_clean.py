"""Cleaning crops: screens out, pictures straight, paper white, and nothing done unasked."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import default_rng
from numpy.typing import NDArray

from models.settings import Clean
from tasks.clean import clean, descreen, deskew
from tasks.clean.tone import find_paper, set_paper
from tests.tasks import drawn_print as drawn

WHITE = (255, 255, 255)
CREAM = (226, 212, 178)
EVERYTHING = Clean(descreen=True, deskew=True, paper="white")


def difference(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Mean difference in grey levels."""
    return float(np.abs(a.astype(np.float32) - b).mean())


# --- paper


def test_paper_is_measured() -> None:
    found = find_paper(drawn.on_paper(drawn.hatched((30.0,), 7.0), CREAM))
    assert found is not None
    assert found.tone == pytest.approx([0.96 * value for value in CREAM], abs=4)


@pytest.mark.parametrize("paper", [CREAM, (200, 200, 200), (170, 150, 120), (255, 255, 255)])
def test_engravings_come_out_on_white_with_their_lines(paper: tuple[int, int, int]) -> None:
    ink = drawn.hatched((30.0, 120.0), 6.0)
    white = cv2.copyMakeBorder(ink, 24, 24, 24, 24, cv2.BORDER_CONSTANT, value=[255.0])
    toned = drawn.on_paper(ink, paper)
    found = find_paper(toned)
    assert found is not None
    done = set_paper(toned, found, WHITE)
    assert done.shape == toned.shape
    assert (done[:20] == 255).mean() > 0.99, "paper is white"
    assert difference(done, np.dstack([white] * 3)) < 8
    dark = white < 128
    assert difference(done[dark], np.dstack([white] * 3)[dark]) < 8, "ink is neither burnt nor lost"


def test_fine_pale_lines_are_not_burnt() -> None:
    page = np.full((300, 300), 210, np.uint8)
    page[40:260:6, 40:260] = 168
    found = find_paper(page)
    assert found is not None
    done = set_paper(page, found, WHITE)
    assert done[46, 100] == pytest.approx(168 / 210 * 255, abs=12)
    assert done[43, 100] == 255


def test_faint_show_through_goes_with_the_paper() -> None:
    page = np.full((300, 300), 205, np.uint8)
    page[100:140, 50:250] = 194
    page[180:200, 50:250] = 40
    found = find_paper(page)
    assert found is not None
    done = set_paper(page, found, WHITE)
    assert done[120, 150] >= 245
    assert done[190, 150] < 60


def test_colours_keep_their_hues() -> None:
    page = drawn.on_paper(np.full((300, 300), 255, np.uint8), (220, 220, 220))
    colours = {60: (180, 40, 30), 140: (40, 60, 160), 220: (60, 140, 70)}
    for left, colour in colours.items():
        page[100:200, left : left + 40] = colour
    found = find_paper(page)
    assert found is not None
    done = set_paper(page, found, WHITE)
    for left, colour in colours.items():
        shown = done[150, left + 20].astype(float)
        assert np.allclose(shown / shown.max(), np.array(colour) / max(colour), atol=0.03)


def test_a_set_tone_lies_under_the_ink() -> None:
    page = cv2.cvtColor(drawn.on_paper(drawn.hatched((30.0,), 7.0), CREAM), cv2.COLOR_RGB2GRAY)
    done, said = clean(page.astype(np.uint8), Clean(paper="#f0e0c0"))
    assert done.shape == (*page.shape, 3)
    assert np.median(done[:20], axis=(0, 1)) == pytest.approx((0xF0, 0xE0, 0xC0), abs=2)
    assert done.min() < 40
    assert re.fullmatch("paper #[0-9a-f]{6} to #f0e0c0", said[0])


@pytest.mark.parametrize(
    "picture",
    [
        np.zeros((200, 200), np.uint8),
        np.full((200, 200, 3), 60, np.uint8),
        drawn.scene((400, 400), 3),
    ],
    ids=["black", "dark cover", "photograph to the edges"],
)
def test_where_no_paper_shows_nothing_is_done(picture: NDArray[np.uint8]) -> None:
    assert find_paper(picture) is None
    done, said = clean(picture, Clean(paper="white"))
    assert done is picture and said == ()


def test_a_dark_border_round_a_page_is_no_paper() -> None:
    page = drawn.on_paper(drawn.hatched((30.0,), 7.0), CREAM, margin=60)
    page[:20] = page[-20:] = page[:, :20] = page[:, -20:] = 10
    found = find_paper(page)
    assert found is not None
    assert found.tone == pytest.approx([0.96 * value for value in CREAM], abs=5)
    assert set_paper(page, found, WHITE)[5, 5].max() < 25


# --- screens


@pytest.mark.parametrize("angle", [33.0, 45.0, 58.0])
@pytest.mark.parametrize("period", [2.3, 3.0, 4.5, 7.0])
def test_screens_are_found_and_taken_out(period: float, angle: float) -> None:
    photograph = drawn.scene()
    print_ = drawn.through_screen(photograph, period, angle, default_rng(1))
    screen = descreen.detect(print_)
    assert screen is not None
    assert screen.period == pytest.approx(period, rel=0.03)
    assert screen.angle == pytest.approx(angle, abs=1.5)
    done = descreen.remove(print_, screen)
    # A print has less contrast than the photograph.
    wanted = (228 + (25 - 228) * (1 - np.clip((photograph / 255.0 - 0.04) / 0.92, 0, 1))).astype(
        np.uint8
    )
    inner = slice(30, -30), slice(30, -30)
    assert difference(done[inner], wanted[inner]) < 0.35 * difference(print_[inner], wanted[inner])
    again = descreen.detect(done)
    assert again is None, "no screen is left"


@pytest.mark.parametrize(
    ("angles", "pitch"),
    [((45.0,), 5.0), ((30.0,), 7.0), ((45.0, 135.0), 6.0), ((20.0, 70.0, 120.0), 6.5)],
)
def test_hatching_is_no_screen(angles: tuple[float, ...], pitch: float) -> None:
    block = drawn.hatched(angles, pitch)
    assert descreen.detect(block) is None
    done, said = clean(block, Clean(descreen=True))
    assert done is block and said == ()


def test_line_work_beside_a_halftone_keeps_its_pixels() -> None:
    screened = drawn.through_screen(drawn.scene(), 4.0, 45.0, default_rng(2))
    lines = drawn.hatched((20.0,), 8.0, (480, 160))
    both = np.hstack([screened, lines])
    screen = descreen.detect(both)
    assert screen is not None
    done = descreen.remove(both, screen)
    beside = slice(None), slice(screened.shape[1] + 40, None)
    assert np.array_equal(done[beside], both[beside])
    assert difference(done[:, :300], both[:, :300]) > 20


def test_large_pictures_are_descreened_in_strips_without_seams() -> None:
    screened = drawn.through_screen(drawn.scene((1400, 300)), 4.0, 45.0, default_rng(2))
    screen = descreen.detect(screened)
    assert screen is not None
    done = descreen.remove(screened, screen)
    start = descreen.STRIP - 100
    alone = descreen.remove(screened[start : start + 400], screen)
    assert difference(alone[90:310], done[start + 90 : start + 310]) < 0.2


def test_colour_halftones_stay_in_colour() -> None:
    screened = drawn.through_screen(drawn.scene(), 4.0, 45.0, default_rng(2))
    tinted = (screened[..., None] * np.array([1.0, 0.9, 0.7])).astype(np.uint8)
    done, said = clean(tinted, Clean(descreen=True))
    assert said[0].startswith("descreen 4.0")
    assert np.allclose(done[..., 2].astype(float), done[..., 0] * 0.7, atol=3)


def test_no_engraving_of_the_corpus_has_a_screen(corpus: Path) -> None:
    found = []
    with open(corpus / "engravings" / "labels.csv") as stream:
        rows = [row for row in csv.DictReader(stream) if row["kind"] == "engraving"]
    for row in rows:
        gray = cv2.imread(str(corpus / row["path"]), cv2.IMREAD_GRAYSCALE)
        if descreen.detect(gray.astype(np.uint8)) is not None:
            found.append(row["path"])
    assert len(rows) >= 40 and not found


# --- skew


@pytest.mark.parametrize("skew", [-4.6, -2.0, -0.4, 0.0, 0.7, 3.0, 4.6])
def test_skew_is_measured_by_the_frame(skew: float) -> None:
    assert deskew.find_skew(drawn.framed((500, 380), skew)) == pytest.approx(skew, abs=0.06)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.3, 4.7), st.booleans(), st.integers(300, 900), st.integers(300, 900))
def test_straightened_pictures_are_straight(
    skew: float, left: bool, height: int, width: int
) -> None:
    skewed = drawn.framed((height, width), -skew if left else skew)
    done, said = clean(skewed, Clean(deskew=True))
    assert done.shape == skewed.shape
    assert re.fullmatch(r"rotate by -?\d\.\d\d degrees filled with #[0-9a-f]{6}", said[0])
    assert deskew.find_skew(done) == pytest.approx(0, abs=0.1)
    corners = done[[0, 0, -1, -1], [0, -1, 0, -1]].astype(int)
    assert np.abs(corners - 255).max() < 12, "filled with paper"


@pytest.mark.parametrize(
    "picture",
    [
        drawn.hatched((3.0,), 7.0),
        drawn.scene((500, 500), 2),
        drawn.framed((500, 380), 0.05),
        np.full((300, 300), 200, np.uint8),
    ],
    ids=["vignette hatched aslant", "no frame", "straight enough", "nothing"],
)
def test_without_a_clear_angle_nothing_turns(picture: NDArray[np.uint8]) -> None:
    done, said = clean(picture, Clean(deskew=True))
    assert done is picture and said == ()


# --- all of it


def test_everything_at_once_and_in_order() -> None:
    screened = drawn.through_screen(drawn.scene((500, 400)), 4.0, 45.0, default_rng(3))
    page = cv2.copyMakeBorder(screened, 30, 30, 30, 30, cv2.BORDER_CONSTANT, value=[228.0])
    middle = (page.shape[1] / 2, page.shape[0] / 2)
    turn = cv2.getRotationMatrix2D(middle, -2.0, 1.0)
    size = (page.shape[1], page.shape[0])
    turned = cv2.warpAffine(page, turn, size, flags=cv2.INTER_CUBIC, borderValue=[228.0])
    done, said = clean(turned.astype(np.uint8), EVERYTHING)
    assert [step.split()[0] for step in said] == ["descreen", "rotate", "paper"]
    assert float(said[1].split()[2]) == pytest.approx(2.0, abs=0.1)
    assert (done[:4] == 255).mean() > 0.95
    again, said_again = clean(turned.astype(np.uint8), EVERYTHING)
    assert np.array_equal(done, again) and said == said_again


def test_off_by_default() -> None:
    picture = drawn.through_screen(drawn.scene(), 4.0, 45.0, default_rng(3))
    done, said = clean(picture, Clean())
    assert done is picture and said == ()


shapes = st.one_of(
    st.tuples(st.integers(1, 80), st.integers(1, 80)),
    st.tuples(st.integers(1, 80), st.integers(1, 80), st.just(3)),
    st.sampled_from([(1, 1), (1, 700), (700, 1, 3), (300, 300), (64, 900, 3)]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
@given(st.data())
def test_any_picture_comes_back_whole(data: st.DataObject) -> None:
    picture = data.draw(arrays(np.uint8, shapes, elements=st.integers(0, 255)))
    before = picture.copy()
    done, _ = clean(picture, EVERYTHING)
    assert done.shape == picture.shape and done.dtype == np.uint8
    assert np.array_equal(picture, before), "what was given is not changed"


@pytest.mark.parametrize("paper", ["black", "#12345", "#gggggg", "", "WHITE", "#fffffff"])
def test_only_tones_are_taken(paper: str) -> None:
    with pytest.raises(ValueError, match="paper"):
        Clean(paper=paper)
