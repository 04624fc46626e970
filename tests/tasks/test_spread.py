"""Two-page spreads: the gutter is found, the pages kept apart, and single pages left alone."""

from __future__ import annotations

import csv
from pathlib import Path

import cv2
import numpy as np
import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from models.records import Detection, Pdf, Region, RelativeBox
from models.settings import Read, Settings, Triage
from tasks import spread, work
from tasks.decide import WHOLE_PAGE, Verdict, decide, figure
from tasks.keys import Keys
from tests.tasks import drawn_print as drawn
from tests.tasks.detect.drawn import text_page, with_engraving

LEFT, RIGHT = (0.1, 0.2, 0.4, 0.6), (0.6, 0.2, 0.9, 0.6)
ACROSS = (0.3, 0.2, 0.7, 0.6)


def judged(*boxes: RelativeBox, gutter: float | None = 0.5, **given: object) -> Verdict:
    measures = {} if gutter is None else {spread.GUTTER: gutter}
    seen = Detection(score=0, measures=measures, regions=[Region(box=b) for b in boxes])
    regions = {"keep_kinds": ["other"], **given}
    return decide(
        seen, Settings.model_validate({"source": "in", "output": "out", "regions": regions})
    )


@pytest.mark.parametrize("shadow", [0.6, 0.3, 0.15, 0.0])
def test_the_gutter_is_found(shadow: float) -> None:
    found = spread.find_gutter(drawn.two_pages(shadow))
    assert found == pytest.approx(0.5, abs=0.03 if shadow == 0.0 else 0.005)


def test_pages_need_not_be_as_wide_as_each_other() -> None:
    both = drawn.spread(text_page(1)[:, :700], text_page(2), 0.4)
    assert spread.find_gutter(both) == pytest.approx(700 / 1500, abs=0.005)


@pytest.mark.parametrize("skew", [-2.0, 1.5])
def test_books_lie_askew(skew: float) -> None:
    both = drawn.two_pages(0.5)
    height, width = both.shape
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), skew, 1.0)
    turned = cv2.warpAffine(both, turn, (width, height), borderMode=cv2.BORDER_REPLICATE)
    assert spread.find_gutter(turned.astype(np.uint8)) == pytest.approx(0.5, abs=0.01)


def two_figures() -> NDArray[np.uint8]:
    """A landscape plate with two engravings side by side."""
    plate = np.full((800, 1100), 235, np.uint8)
    for x in (100, 650):
        plate[120:680, x : x + 350] = drawn.hatched((30.0, 110.0), 7.0, (560, 350))
    return plate


@pytest.mark.parametrize(
    "page",
    [
        text_page(),
        np.full((600, 900), 230, np.uint8),
        np.zeros((600, 900), np.uint8),
        drawn.hatched((40.0, 130.0), 7.0, (600, 900)),
        drawn.scene((600, 900), 4),
        two_figures(),
        np.hstack([text_page(1), np.full((1100, 800), 255, np.uint8)]),
        np.rot90(text_page(3)),
    ],
    ids=[
        "a single page",
        "blank",
        "black",
        "engraving",
        "photograph",
        "two figures",
        "empty on one side",
        "a page lying on its side",
    ],
)
def test_anything_else_has_no_gutter(page: NDArray[np.uint8]) -> None:
    assert spread.find_gutter(page) is None
    seen = Detection(score=0.1, regions=[Region(box=ACROSS)])
    assert spread.split(seen, page) is seen


@settings(max_examples=40, deadline=None)
@given(
    arrays(
        np.uint8,
        st.one_of(st.tuples(st.integers(1, 90), st.integers(1, 190)), st.just((80, 160))),
        elements=st.integers(0, 255),
    )
)
def test_any_image_gives_an_answer(gray: NDArray[np.uint8]) -> None:
    found = spread.find_gutter(gray)
    assert found is None or 0.35 <= found <= 0.65


def test_no_landscape_picture_of_the_corpus_is_parted(corpus: Path) -> None:
    names = []
    for labels in (corpus / "labels.csv", corpus / "engravings" / "labels.csv"):
        with open(labels) as stream:
            names += [row["path"] for row in csv.DictReader(stream)]
    wide = []
    for path in sorted({corpus / name for name in names if name.endswith((".png", ".jpg"))}):
        with Image.open(path) as image:
            # The picture of a binding is a spread indeed.
            if image.width > image.height and "binding" not in path.name:
                wide.append(path)
    assert len(wide) >= 20
    for path in wide:
        gray = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        assert spread.find_gutter(gray.astype(np.uint8)) is None, path


def test_boxes_that_reach_over_the_gutter_are_cut_there() -> None:
    left = with_engraving(text_page(1), (200, 300, 700, 700))
    both = drawn.spread(left, text_page(2), 0.4)
    seen = Detection(score=0.1, regions=[Region(box=(0.1, 0.25, 0.58, 0.65))])
    parted = spread.split(seen, both)
    gutter = parted.measures[spread.GUTTER]
    assert [r.box for r in parted.regions] == [
        (0.1, 0.25, gutter, 0.65),
        (gutter, 0.25, 0.58, 0.65),
    ]
    slightly = seen.model_copy(update={"regions": [Region(box=(0.1, 0.25, 0.52, 0.65))]})
    assert [r.box for r in spread.split(slightly, both).regions] == [(0.1, 0.25, gutter, 0.65)]


def test_a_picture_that_runs_across_stays_whole() -> None:
    both = drawn.two_pages(0.4)
    picture = drawn.hatched((30.0, 120.0), 7.0, (400, 900))
    both[350:750, 350:1250] = np.minimum(both[350:750, 350:1250], picture)
    seen = Detection(score=0.1, regions=[Region(box=(350 / 1600, 0.3, 1250 / 1600, 0.7))])
    parted = spread.split(seen, both)
    assert spread.GUTTER in parted.measures
    assert parted.regions == seen.regions


def test_the_left_page_is_read_first() -> None:
    low_left, high_right = (0.1, 0.6, 0.4, 0.9), (0.6, 0.1, 0.9, 0.4)
    seen = Detection(score=0, regions=[Region(box=high_right), Region(box=low_left)])
    parted = spread.split(seen, drawn.two_pages(0.4))
    assert [r.box for r in parted.regions] == [low_left, high_right]


def test_each_page_is_judged_by_itself() -> None:
    small = (0.6, 0.2, 0.66, 0.3)
    assert [r.box for r in judged(LEFT, small).regions] == [LEFT]
    assert [r.box for r in judged(LEFT, RIGHT).regions] == [LEFT, RIGHT]
    # Five per cent of the scan is ten of the page.
    assert judged((0.1, 0.1, 0.35, 0.3)).outcome == "kept"
    assert judged((0.1, 0.1, 0.35, 0.3), gutter=None).outcome == "dropped"
    seen = Detection(score=0, measures={spread.GUTTER: 0.5}, regions=[Region(box=LEFT)])
    one = Settings.model_validate(
        {"source": "in", "output": "out", "regions": {"keep_kinds": ["other"]}}
    )
    assert figure(seen, one) == pytest.approx(0.24)


def test_whole_pages_of_a_spread_are_two_samples() -> None:
    pages = [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)]
    assert [r.box for r in judged(LEFT, RIGHT, unit="page").regions] == pages
    assert [r.box for r in judged(RIGHT, unit="page").regions] == pages[1:]
    assert [r.box for r in judged(ACROSS, LEFT, unit="page").regions] == [WHOLE_PAGE]
    assert [r.box for r in judged(LEFT, RIGHT, unit="page", gutter=None).regions] == [WHOLE_PAGE]


def test_margins_end_at_the_gutter(tmp_path: Path) -> None:
    left = with_engraving(text_page(1), (260, 300, 740, 700))
    both = drawn.spread(left, text_page(2), 0.4)
    path = tmp_path / "spread.pdf"
    data = cv2.imencode(".png", both)[1].tobytes()
    with pymupdf.open() as document:
        page = document.new_page(width=800, height=550)
        page.insert_image(page.rect, stream=data)
        document.save(path)
    seen = work.look(str(path), (), 0, Read(), Triage(method="blobs"), "key")
    assert seen.detection is not None
    assert seen.detection.measures[spread.GUTTER] == pytest.approx(0.5, abs=0.01)
    margin = {"margin": 0.2, "keep_kinds": ["engraving", "photograph"]}
    run = Settings.model_validate(
        {"source": "in", "output": "out", "regions": margin, "clean": {"paper": "white"}}
    )
    verdict = decide(seen.detection, run)
    pdf = Pdf(
        name="spread.pdf",
        path=str(path),
        sha256=work.hash_file(str(path)),
        facts=work.inspect(str(path), ()),
        volume="spread",
    )
    cut, files = work.cut(str(path), (), pdf, seen, verdict.regions, Keys(run).recipe, "key")
    assert len(files) == 1
    assert cut.samples[0].box[2] == pytest.approx(400, abs=4)
    assert any(step.startswith("paper #") for step in cut.samples[0].transforms)
