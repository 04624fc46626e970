"""The three methods behind their one interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.errors import BadSettings
from models.records import PageFacts, RegionKind
from tasks.detect import METHODS, Detector, make_detector
from tasks.detect.boxes import overlap
from tasks.detect.judge import JUDGE
from tasks.detect.layout import NETWORK, WEIGHTS
from tasks.detect.refine import REFINER
from tests.tasks.detect.drawn import SHAPE, text_page, with_dark_border, with_engraving

PICTURE = (180, 420, 620, 760)
"""In pixels of a drawn page: 17 % of it."""
FINDERS = ("blobs", "layout")
STRANGE: dict[str, NDArray[np.generic]] = {
    "nothing": np.zeros((0, 0), np.uint8),
    "no rows": np.zeros((0, 40), np.uint8),
    "one pixel": np.zeros((1, 1), np.uint8),
    "two pixels": np.array([[0, 255]], np.uint8),
    "black": np.zeros((900, 600), np.uint8),
    "white": np.full((900, 600), 255, np.uint8),
    "grey": np.full((900, 600), 128, np.uint8),
    "a line": np.zeros((2, 9000), np.uint8),
    "a column": np.full((9000, 3), 200, np.uint8),
    "noise": np.random.default_rng(0).integers(0, 256, (700, 500)).astype(np.uint8),
    "16 bit": (text_page().astype(np.uint16) * 257),
    "bilevel": text_page() > 128,
    "colour": np.repeat(text_page()[..., None], 3, axis=2),
    "fractions": text_page().astype(np.float32) / 255,
    "not a number": np.full((50, 50), np.nan),
}


@pytest.fixture(params=METHODS)
def detector(request: pytest.FixtureRequest) -> Detector:
    """Each method in turn."""
    return make_detector(request.param)


def _relative(box: tuple[int, int, int, int]) -> tuple[float, float, float, float]:
    height, width = SHAPE
    return (box[0] / width, box[1] / height, box[2] / width, box[3] / height)


def test_a_method_is_made_once_and_unknown_ones_are_refused() -> None:
    assert make_detector("layout") is make_detector("layout")
    assert [make_detector(name).name for name in METHODS] == list(METHODS)
    with pytest.raises(BadSettings, match="Unknown detection method 'magic'"):
        make_detector("magic")


@pytest.mark.parametrize("page", STRANGE.values(), ids=STRANGE.keys())
def test_every_array_gets_a_verdict(detector: Detector, page: NDArray[np.uint8]) -> None:
    found = detector(page)
    assert np.isfinite(found.score)
    assert all(np.isfinite(value) for value in found.measures.values())
    for region in found.regions:
        x0, y0, x1, y1 = region.box
        assert 0 <= x0 < x1 <= 1
        assert 0 <= y0 < y1 <= 1


def test_the_same_page_gives_the_same_answer(detector: Detector) -> None:
    page = with_engraving(text_page(), PICTURE)
    assert detector(page) == detector(page)


def test_the_array_is_left_as_it_was(detector: Detector) -> None:
    page = with_engraving(text_page(), PICTURE)
    before = page.copy()
    detector(page)
    assert np.array_equal(page, before)


@pytest.mark.parametrize("page", [STRANGE["white"], STRANGE["grey"]], ids=["white", "grey"])
def test_a_page_without_ink_is_blank(detector: Detector, page: NDArray[np.uint8]) -> None:
    assert detector(page).blank


def test_a_page_of_text_is_not_blank(detector: Detector) -> None:
    assert not detector(text_page()).blank


def test_a_blank_page_in_a_black_frame_is_blank_and_unillustrated(detector: Detector) -> None:
    found = detector(with_dark_border(np.full(SHAPE, 225, np.uint8)))
    assert found.blank
    assert not found.regions


def test_the_resolution_asked_for_fits_the_page(detector: Detector) -> None:
    for width, height in ((595, 842), (842, 595), (14400, 14400), (20, 3)):
        dpi = detector.render_dpi(PageFacts(width=width, height=height))
        assert dpi > 0
        if detector.name != "sigma":
            assert max(width, height) * dpi / 72 == pytest.approx(
                640 if detector.name == "blobs" else 512
            )


def test_sigma_is_the_standard_deviation_of_grey() -> None:
    page = text_page()
    found = make_detector("sigma")(page)
    assert found.score == pytest.approx(float(np.std(page)))
    assert make_detector("sigma").render_dpi(PageFacts(width=300, height=400)) == 144


@pytest.mark.parametrize("method", FINDERS)
@pytest.mark.parametrize("tone", [255, 190], ids=["white paper", "toned paper"])
def test_a_picture_in_text_is_found_where_it_is(method: str, tone: int) -> None:
    page = np.minimum(with_engraving(text_page(tone=tone), PICTURE), tone).astype(np.uint8)
    found = make_detector(method)(page)
    pictures = [region for region in found.regions if region.kind is RegionKind.ENGRAVING]
    assert len(pictures) == 1
    assert overlap(pictures[0].box, _relative(PICTURE)) > 0.85
    assert found.score == pytest.approx(0.17, abs=0.03)


@pytest.mark.parametrize("method", FINDERS)
def test_text_alone_scores_nothing(method: str) -> None:
    assert make_detector(method)(text_page()).score < 0.02


@pytest.mark.parametrize("method", FINDERS)
def test_a_black_border_is_no_picture(method: str) -> None:
    assert make_detector(method)(with_dark_border(text_page())).score < 0.02


@pytest.mark.parametrize("method", FINDERS)
def test_two_pictures_stay_apart_and_come_in_reading_order(method: str) -> None:
    left, right, below = (100, 200, 380, 460), (420, 200, 700, 460), (150, 620, 640, 950)
    page = text_page()
    for number, box in enumerate((below, right, left)):
        page = with_engraving(page, box, seed=number)
    boxes = [region.box for region in make_detector(method)(page).regions]
    assert len(boxes) == 3
    for box, drawn in zip(boxes, (left, right, below), strict=True):
        assert overlap(box, _relative(drawn)) > 0.7


def test_workers_need_neither_torch_nor_prefect() -> None:
    code = (
        "import sys; from tasks.detect import make_detector; make_detector('layout');"
        "sys.exit(any(m in sys.modules for m in ('torch', 'prefect')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_weights_of_ones_own(tmp_path: Path) -> None:
    for name in (NETWORK, JUDGE, REFINER):
        (tmp_path / name).write_bytes((WEIGHTS / name).read_bytes())
    assert make_detector("layout", str(tmp_path)).version == make_detector("layout").version
    (tmp_path / NETWORK).write_bytes(b"something else")
    with pytest.raises(BadSettings, match="no network of layout"):
        make_detector("layout", f"{tmp_path}/")
    with pytest.raises(BadSettings, match="nowhere"):
        make_detector("layout", str(tmp_path / "nowhere"))
