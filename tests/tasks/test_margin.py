"""The margin of a crop: paper, and no slices of captions and letters."""

from __future__ import annotations

import numpy as np
import pytest

from tasks.margin import trim

INNER = (100, 100, 500, 400)


def crop(*dark: tuple[int, int, int, int], paper: int = 255) -> np.ndarray:
    """A crop of 600 × 500 with a hatched picture in `INNER`, and dark boxes about it."""
    pixels = np.full((500, 600), paper, np.uint8)
    pixels[100:400:6, 100:500] = 30
    pixels[100:400, 100:500:9] = 30
    for x0, y0, x1, y1 in dark:
        pixels[y0:y1, x0:x1] = 20
    return pixels


def test_clean_paper_is_kept_whole() -> None:
    assert trim(crop(), INNER) == (0, 0, 600, 500)


@pytest.mark.parametrize("paper", [255, 200])
@pytest.mark.parametrize(
    ("caption", "side", "place"),
    [
        ((250, 420, 300, 440), 3, 420),
        ((250, 60, 300, 80), 1, 80),
        ((30, 200, 60, 220), 0, 60),
        ((540, 200, 570, 220), 2, 540),
    ],
)
def test_the_margin_ends_before_a_caption(
    caption: tuple[int, int, int, int], side: int, place: int, paper: int
) -> None:
    kept = trim(crop(caption, paper=paper), INNER)
    assert abs(kept[side] - place) <= 2
    assert all(kept[other] == (0, 0, 600, 500)[other] for other in range(4) if other != side)


def test_letters_beyond_a_corner_go_too() -> None:
    x0, y0, x1, y1 = trim(crop((20, 440, 90, 460)), INNER)
    assert not (x0 < 90 and y1 > 440)
    assert x0 <= 100 and y0 == 0 and x1 == 600 and y1 >= 400


def test_ink_of_the_picture_that_runs_over_its_edge_stays() -> None:
    assert trim(crop((300, 400, 320, 460)), INNER) == (0, 0, 600, 500)
    kept = trim(crop((300, 400, 320, 430), (250, 450, 300, 470)), INNER)
    assert 430 < kept[3] <= 450


def test_specks_do_not_end_it() -> None:
    assert trim(crop((300, 440, 301, 441)), INNER) == (0, 0, 600, 500)


def test_a_large_colour_crop_is_trimmed_in_its_own_pixels() -> None:
    large = np.repeat(np.repeat(crop((250, 420, 300, 440)), 5, axis=0), 5, axis=1)
    kept = trim(np.dstack([large] * 3), tuple(5 * v for v in INNER))  # type: ignore[arg-type]
    assert kept[:3] == (0, 0, 3000)
    assert 2085 <= kept[3] <= 2100


def test_a_crop_without_margin_is_left() -> None:
    assert trim(crop()[100:400, 100:500], (0, 0, 400, 300)) == (0, 0, 400, 300)
