"""Rendering: every fault of a page gives the right picture or an error, never a wrong picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models import errors
from models.records import RelativeBox
from tasks.read import open_pdf
from tests.resources.fault_pdf import HIGH, WIDE, coded, color_mark, gray_mark, image, shown
from tests.resources.make_faults import make
from tests.tasks.reading import BILEVEL, BUDGET, COLOR, GRAY, IN_LAB, INKS, quadrants, show


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All faults, made once."""
    return make(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, COLOR) for name in (
            "plain", "owner_only", "cropbox", "cropbox_outside", "userunit", "negative_mediabox",
            "zero_mediabox", "huge_page", "tiny_page", "rotate_0", "rotate_90", "rotate_180",
            "rotate_270", "rotate_-90", "rotate_450", "rotate_45", "layer_off",
            "annotated", "indexed", "jpx", "jpx_alpha", "garbage_in_contents", "inline",
            "form", "mirrored", "upside_down", "strips", "tiles", "device_n", "broken_profile",
        )),
        ("lab", IN_LAB),
        ("layers", COLOR),
        ("color_key", (*COLOR[:2], (255, 255, 255), COLOR[3])),
        *((name, GRAY) for name in (
            "gray_jpeg", "gray_jpeg_decode", "soft_mask", "indexed_gray", "jpx_16_bit",
            "hidden_text", "separation", "jpx_gray",
        )),
        *((name, BILEVEL) for name in (
            "image_mask", "image_mask_decode", "fax", "fax_group_3", "fax_black_is_1", "jbig2",
        )),
        *((name, INKS) for name in ("cmyk_jpeg", "cmyk_jpeg_without_marker", "ycck_jpeg")),
    ],
)  # fmt: skip
def test_shows_what_a_viewer_shows(
    faults: dict[str, Path], name: str, expected: tuple[tuple[int, int, int], ...]
) -> None:
    reader = open_pdf(faults[name])
    facts = reader.page(0)
    raster = show(reader)
    assert np.abs(quadrants(raster) - np.array(expected)).max() < 6
    # The same page in grey is the same picture, and has colour only if it says so.
    gray = show(reader, gray=True)
    assert gray.pixels.shape == raster.pixels.shape[:2]
    weights = np.array([0.299, 0.587, 0.114])
    assert np.abs(quadrants(gray)[:, 0] - quadrants(raster) @ weights).max() < 2
    assert facts.color == (expected not in (GRAY, BILEVEL))


@pytest.mark.parametrize(
    "name",
    [
        "corrupt_picture", "corrupt_jpx", "cut_jpx", "cut_jpeg_most", "silent_jpeg", "cut_flate",
        "corrupt_contents", "missing_contents", "missing_picture",
    ],
)  # fmt: skip
def test_a_lost_picture_is_no_blank_page(faults: dict[str, Path], name: str) -> None:
    reader = open_pdf(faults[name])
    assert reader.page(0).width == 160
    with pytest.raises(errors.DamagedPage, match="page 1"):
        show(reader)
    # Asked again, or for a part, it does not become better.
    with pytest.raises(errors.DamagedPage):
        reader.render(0, 72, gray=True, box=(0, 0, 1, 0.1), max_pixels=BUDGET)


def test_a_picture_with_a_little_damage_is_kept_and_says_so(faults: dict[str, Path]) -> None:
    raster = show(open_pdf(faults["cut_jpeg_little"]))
    assert raster.transforms[0].startswith("picture damaged: about 20% missing")
    raster = show(open_pdf(faults["one_of_two_corrupt"]))
    assert raster.transforms[0].startswith("picture damaged: about 2% missing")


def test_an_even_part_of_a_page_is_not_taken_for_a_lost_one(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["garbage_in_contents"])
    raster = reader.render(0, 72, gray=False, box=(0.6, 0.1, 0.9, 0.4), max_pixels=BUDGET)
    assert raster.pixels.max(axis=(0, 1)).tolist() == pytest.approx(COLOR[1], abs=3)
    assert raster.transforms[0].startswith("damaged content: ")


@pytest.mark.parametrize("name", ["without_contents", "text_only"])
def test_pages_without_pictures_are_no_damage(faults: dict[str, Path], name: str) -> None:
    reader = open_pdf(faults[name])
    assert reader.page(0).native_dpi is None
    assert not reader.page(0).color
    assert show(reader).transforms == ()


@pytest.mark.parametrize(
    ("name", "size", "rotation", "native"),
    [
        ("plain", (160, 240), 0, 72),
        ("cropbox", (160, 240), 0, 72),
        ("userunit", (640, 960), 0, 18),
        ("rotate_90", (160, 240), 90, 72),
        ("rotate_-90", (160, 240), 270, 72),
        ("rotate_450", (160, 240), 90, 72),
        ("rotate_45", (160, 240), 90, 72),
        ("negative_mediabox", (160, 240), 0, 72),
        ("zero_mediabox", (612, 792), 0, 21.8),
        ("tiny_page", (16, 24), 0, 720),
        ("enormous_fax", (7200, 9600), 0, 300),
        ("huge_page", (14400, 14400), 0, 1.2),
        ("layers", (160, 240), 0, 144),
        ("strips", (160, 240), 0, 72),
        ("tiles", (160, 240), 0, 72),
        ("image_mask", (160, 240), 0, 72),
        ("soft_mask", (160, 240), 0, 72),
    ],
)
def test_facts_of_a_page(
    faults: dict[str, Path], name: str, size: tuple[int, int], rotation: int, native: float
) -> None:
    facts = open_pdf(faults[name]).page(0)
    assert (facts.width, facts.height) == size
    assert facts.rotation == rotation
    assert facts.native_dpi == pytest.approx(native, rel=0.01)


def test_page_labels(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["labels"])
    assert [reader.page(i).label for i in range(3)] == ["i", "ii", "pl. 7"]
    assert open_pdf(faults["plain"]).page(0).label == ""


@pytest.mark.parametrize("name", ["plain", "rotate_90", "cropbox", "userunit", "tiles"])
@pytest.mark.parametrize("gray", [True, False])
def test_a_part_is_a_crop_of_the_whole(faults: dict[str, Path], name: str, gray: bool) -> None:
    reader = open_pdf(faults[name])
    dpi = reader.page(0).native_dpi or 0
    whole = reader.render(0, dpi, gray=gray, max_pixels=BUDGET).pixels
    box = (0.31, 0.22, 0.64, 0.87)
    part = reader.render(0, dpi, gray=gray, box=box, max_pixels=BUDGET)
    high, wide = whole.shape[:2]
    left, right = round(0.31 * wide), round(0.64 * wide)
    top, bottom = round(0.22 * high), round(0.87 * high)
    assert part.pixels.shape[:2] == (bottom - top, right - left)
    assert np.array_equal(part.pixels, whole[top:bottom, left:right])


def test_a_scan_at_its_own_resolution_is_copied_pixel_by_pixel(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["indexed"])
    native = reader.page(0).native_dpi
    assert native is not None
    pixels = reader.render(0, native, gray=False, max_pixels=BUDGET).pixels
    assert pixels.shape == (240, 160, 3)
    assert np.unique(pixels.reshape(-1, 3), axis=0).tolist() == sorted(map(list, COLOR))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_quick_look_at_jpeg_2000_is_the_same_picture(tmp_path: Path, channels: int) -> None:
    """It goes another way than the full picture, which the part still takes."""
    mark = color_mark() if channels == 3 else gray_mark()
    large = np.repeat(np.repeat(mark, 4, axis=0), 4, axis=1)
    path = tmp_path / "large.pdf"
    picture = image(coded(large, "JPEG2000"), "JPXDecode", "", (4 * WIDE, 4 * HIGH))
    path.write_bytes(shown(picture))
    reader = open_pdf(path)
    assert reader.page(0).native_dpi == 288
    for gray in (True, False):
        quick = show(reader, gray=gray).pixels
        slow = reader.render(0, 72, gray=gray, box=(0, 0, 1, 0.999), max_pixels=BUDGET).pixels
        assert quick.shape == slow.shape
        assert np.abs(quick.astype(int) - slow).mean() < 1


def test_the_budget_lowers_the_resolution_and_says_so(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["plain"])
    raster = reader.render(0, 600, gray=True, max_pixels=200_000)
    assert 190_000 < raster.pixels.size <= 200_000
    assert raster.dpi == pytest.approx(164, abs=1)
    assert raster.transforms == (f"dpi lowered from 600 to {raster.dpi:.0f}: pixel budget",)
    # A part may have what the whole may not.
    part = reader.render(0, 600, gray=True, box=(0, 0, 0.1, 0.1), max_pixels=200_000)
    assert part.dpi == pytest.approx(600, rel=0.001)
    assert part.transforms == ()


def test_a_picture_beyond_all_measure_is_shown_small(faults: dict[str, Path]) -> None:
    raster = show(open_pdf(faults["enormous_fax"]))
    assert raster.pixels.size <= 3 * BUDGET and raster.pixels.min() == 255
    assert raster.transforms[0].startswith("dpi lowered from 72 to 9: pixel budget")


def test_a_scan_of_2400_dpi_has_all_its_pixels(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["finest_page"])
    native = reader.page(0).native_dpi
    assert native == pytest.approx(2400, rel=0.01)
    raster = reader.render(0, native or 0, gray=False, max_pixels=BUDGET)
    assert raster.pixels.shape == (HIGH, WIDE, 3)
    assert np.abs(quadrants(raster) - np.array(COLOR)).max() < 6


def test_a_black_picture_is_no_lost_one(faults: dict[str, Path]) -> None:
    raster = show(open_pdf(faults["black_picture"]))
    assert raster.pixels.max() == 0 and raster.transforms == ()


def test_a_page_no_budget_shows(faults: dict[str, Path]) -> None:
    with pytest.raises(errors.PageTooLarge, match="megapixels"):
        show(open_pdf(faults["ribbon"]))


def test_an_endless_page_has_some_size(faults: dict[str, Path]) -> None:
    facts = open_pdf(faults["endless_mediabox"]).page(0)
    assert 0 < facts.width < 20_000


@pytest.mark.parametrize(
    ("degrees", "lower"),
    [
        (0, (0, 0.5, 1, 1)),
        (90, (0, 0, 0.5, 1)),
        (180, (0, 0, 1, 0.5)),
        (270, (0.5, 0, 1, 1)),
    ],
)
def test_text_is_where_it_is_displayed(
    faults: dict[str, Path], tmp_path: Path, degrees: int, lower: RelativeBox
) -> None:
    path = tmp_path / "turned.pdf"
    turned = f"/Rotate {degrees} /Contents".encode()
    path.write_bytes(faults["hidden_text"].read_bytes().replace(b"/Contents", turned))
    reader = open_pdf(path)
    assert reader.text(0).split() == ["Upper", "Lower"]
    assert reader.text(0, lower).split() == ["Lower"]
    assert open_pdf(faults["plain"]).text(0).strip() == ""
