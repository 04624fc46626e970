"""What is measured on pixels: lettering, and whether two scans are one picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tasks.score import duplicates
from tasks.score.measure import perceptual_hash, square
from tasks.score.text import text_area
from tests.resources.rescan import rescan
from tests.resources.scan_subjects import Studio
from tests.tasks.detect.drawn import text_page, with_engraving

PICTURES = 12


@pytest.fixture(scope="module")
def prints() -> list[np.ndarray]:
    """Engravings of many subjects on white paper."""
    studio = Studio(7, 1)
    shapes = ("tall", "square", "wide")
    inks = [studio.picture(shapes[n % 3], 1885).ink for n in range(PICTURES)]
    return [
        cv2.copyMakeBorder(255 - ink, *[30] * 4, cv2.BORDER_CONSTANT, value=255) for ink in inks
    ]


def test_lettering_tells_text_from_engravings(prints: list[np.ndarray]) -> None:
    text = [text_area(text_page(seed)) for seed in range(4)]
    text.append(text_area(text_page(4)[200:700, 80:720]))
    assert min(text) > 0.35
    pictures = [text_area(each) for each in prints]
    assert np.mean(pictures) < 0.05 and max(pictures) < 0.25
    mixed = text_area(with_engraving(text_page(5), (100, 150, 700, 700)))
    assert max(pictures) < mixed < min(text)


def test_nothing_is_no_text() -> None:
    assert text_area(np.full((400, 300), 230, np.uint8)) == 0
    assert text_area(np.zeros((9, 9), np.uint8)) == 0


def test_scans_of_one_print_are_found_and_others_are_not(prints: list[np.ndarray]) -> None:
    rng = np.random.default_rng(3)
    scans = [*prints, *(rescan(each, rng, bilevel=0) for each in prints for _ in range(2))]
    of = [n if n < PICTURES else (n - PICTURES) // 2 for n in range(len(scans))]
    squares = [square(scan, duplicates.SIDE) for scan in scans]
    names = [str(n) for n in range(len(scans))]
    vectors = np.eye(len(scans), dtype=np.float32)
    equal, maybe = duplicates.candidates(names, [perceptual_hash(s) for s in scans], vectors)
    assert not equal
    found = set(duplicates.verified(sorted(maybe), squares.__getitem__, 0.75))
    true = {(i, j) for j in range(len(scans)) for i in range(j) if of[i] == of[j]}
    assert len(found & true) >= 0.8 * len(true)
    assert len(found - true) <= 0.05 * len(found)


def test_equal_pixels_need_no_verifying() -> None:
    vectors = np.eye(3, dtype=np.float32)
    equal, maybe = duplicates.candidates(["a", "b", "a"], ["0", "f" * 16, "0"], vectors)
    assert equal == {(0, 2)} and not maybe
    assert duplicates.groups([(0, 2), (5, 4), (2, 3)]) == [[0, 2, 3], [4, 5]]


def test_even_pictures_are_like_nothing() -> None:
    blank = np.ones((128, 128), np.float32)
    assert duplicates.likeness(blank, blank) == 0
