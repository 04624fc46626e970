"""From maps to regions, with maps drawn by hand in place of the network's."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from models.records import RegionKind
from tasks.detect.boxes import overlap
from tasks.detect.page import absolute, fit, relative
from tasks.detect.regions import ORNAMENT, PICTURE, TEXT, Judge, measure
from tests.tasks.detect.drawn import SHAPE, text_page, with_dark_border, with_engraving

Gray = NDArray[np.uint8]
Maps = NDArray[np.float32]
Box = tuple[int, int, int, int]
PICTURE_BOX = (180, 420, 620, 760)
LONG_SIDE = 512


def _maps(
    page: Gray, *boxes: Box, channel: int = PICTURE, loose: int = 0, text: float = 0.9
) -> Maps:
    """Maps that are sure of boxes (pixels of a drawn page), `loose` pixels too large.

    ``text`` is how sure they are that everything else is text.
    """
    height, width = fit(page, LONG_SIDE).shape
    maps = np.full((4, -(-height // 4), -(-width // 4)), 0.02, np.float32)
    maps[TEXT] = text
    scale = height / SHAPE[0] / 4
    for x0, y0, x1, y1 in boxes:
        rows = slice(round((y0 - loose) * scale), round((y1 + loose) * scale))
        columns = slice(round((x0 - loose) * scale), round((x1 + loose) * scale))
        maps[:, rows, columns] = 0.02
        maps[channel, rows, columns] = 0.95
    # The network's maps fade out over a few cells.
    return np.stack([cv2.blur(one, (5, 5)) for one in maps])


def _judge(*odds: float) -> Judge:
    """A judge that says the same of every region."""
    return lambda page, boxes: np.tile(np.array(odds, np.float32), (len(boxes), 1))


_pictures = _judge(1.0, 0.0, 0.0, 0.0)


def _as_found(page: Maps, boxes: Sequence[Box]) -> list[Box]:
    """A refiner that leaves boxes as they are."""
    return list(boxes)


def _found(page: Gray, maps: Maps) -> list[tuple[float, float, float, float]]:
    return [
        region.box for region in measure(fit(page, LONG_SIDE), maps, _pictures, _as_found).regions
    ]


def _relative(box: Box) -> tuple[float, float, float, float]:
    return (box[0] / SHAPE[1], box[1] / SHAPE[0], box[2] / SHAPE[1], box[3] / SHAPE[0])


@pytest.mark.parametrize("loose", [-6, 0, 10, 24])
def test_edges_are_set_to_the_ink(loose: int) -> None:
    page = with_engraving(np.full(SHAPE, 235, np.uint8), PICTURE_BOX)
    (box,) = _found(page, _maps(page, PICTURE_BOX, loose=loose, text=0.02))
    assert overlap(box, _relative(PICTURE_BOX)) > 0.94


def test_text_around_a_loose_box_stays_outside() -> None:
    page = with_engraving(text_page(), PICTURE_BOX)
    (box,) = _found(page, _maps(page, PICTURE_BOX, loose=6))
    assert overlap(box, _relative(PICTURE_BOX)) > 0.93


def test_a_caption_across_white_space_stays_outside() -> None:
    page = with_engraving(np.full(SHAPE, 255, np.uint8), PICTURE_BOX)
    page[776:786, 250:550] = text_page()[600:610, 250:550]
    (box,) = _found(page, _maps(page, PICTURE_BOX))
    assert box[3] * SHAPE[0] < 772


def test_neighbours_stay_apart() -> None:
    left, right = (100, 200, 390, 460), (410, 200, 700, 460)
    page = with_engraving(with_engraving(text_page(), left), right, seed=1)
    found = _found(page, _maps(page, left, right))
    assert [overlap(box, _relative(b)) > 0.9 for box, b in zip(found, (left, right), strict=True)]
    assert found[0][2] <= found[1][0]


@pytest.mark.parametrize(("top", "bottom", "count"), [(200, 460, 2), (100, 1000, 1)])
def test_figures_joined_in_the_maps_are_parted_unless_they_are_a_plate(
    top: int, bottom: int, count: int
) -> None:
    left, right = (100, top, 370, bottom), (430, top, 700, bottom)
    page = with_engraving(np.full(SHAPE, 255, np.uint8), left)
    page = with_engraving(page, right, seed=1)
    joined = np.minimum(_maps(page, (100, top, 700, bottom), text=0.02), np.float32(0.65))
    maps = np.maximum(joined, np.minimum(_maps(page, left, right, text=0.02), np.float32(0.8)))
    assert len(_found(page, maps)) == count


def test_only_pictures_count_in_the_score() -> None:
    page = fit(with_engraving(text_page(), PICTURE_BOX), LONG_SIDE)
    as_picture = measure(page, _maps(page, PICTURE_BOX), _pictures, _as_found)
    as_ornament = measure(
        page, _maps(page, PICTURE_BOX, channel=ORNAMENT), _judge(0.2, 0.8, 0, 0), _as_found
    )
    assert as_picture.score == as_picture.measures["picture_area"] > 0.15
    assert as_ornament.score == 0
    assert as_ornament.measures["ornament_area"] == pytest.approx(as_picture.score, abs=0.01)
    assert [region.kind for region in as_ornament.regions] == [RegionKind.ORNAMENT]


@pytest.mark.parametrize(
    ("box", "picture", "kind"),
    [
        (PICTURE_BOX, 0.35, RegionKind.ENGRAVING),
        (PICTURE_BOX, 0.25, RegionKind.ORNAMENT),
        ((300, 500, 430, 680), 0.25, RegionKind.ORNAMENT),
        ((120, 150, 680, 950), 0.25, RegionKind.ENGRAVING),
    ],
    ids=["picture to the judge", "ornament to both", "small", "large"],
)
def test_what_is_an_ornament_to_the_maps_must_be_one_to_the_judge(
    box: Box, picture: float, kind: RegionKind
) -> None:
    page = fit(with_engraving(text_page(), box), LONG_SIDE)
    judge = _judge(picture, 1 - picture, 0, 0)
    (region,) = measure(page, _maps(page, box, channel=ORNAMENT), judge, _as_found).regions
    assert region.kind == kind


def test_boxes_are_judged_as_found_and_reported_as_refined() -> None:
    page = fit(with_engraving(text_page(), PICTURE_BOX), LONG_SIDE)
    seen: list[Box] = []

    def judge(normal: Maps, boxes: Sequence[Box]) -> NDArray[np.float32]:
        assert normal.shape == page.shape and normal.max() < 1.3
        seen.extend(boxes)
        return np.tile(np.array([0.9, 0.1, 0, 0], np.float32), (len(boxes), 1))

    def refine(normal: Maps, boxes: Sequence[Box]) -> list[Box]:
        assert normal.max() < 1.3
        return [(x0 - 9, y0, x1, y1 + 5) for x0, y0, x1, y1 in boxes]

    (region,) = measure(page, _maps(page, PICTURE_BOX), judge, refine).regions
    (found,) = seen
    assert absolute(region.box, page.shape) == refine(_maps(page), [found])[0]
    assert overlap(relative(found, page.shape), _relative(PICTURE_BOX)) > 0.93


def test_what_is_no_figure_to_the_judge_is_not_refined() -> None:
    page = fit(with_engraving(text_page(), PICTURE_BOX), LONG_SIDE)

    def refine(normal: Maps, boxes: Sequence[Box]) -> list[Box]:
        assert boxes == []
        return []

    found = measure(page, _unsure(_maps(page, PICTURE_BOX)), _judge(0.1, 0.0, 0.1, 0.8), refine)
    assert [region.kind for region in found.regions] == [RegionKind.OTHER]


def test_the_judge_gives_pictures_their_confidence() -> None:
    page = fit(with_engraving(text_page(), PICTURE_BOX), LONG_SIDE)
    (region,) = measure(
        page, _maps(page, PICTURE_BOX), _judge(0.35, 0.6, 0.05, 0.0), _as_found
    ).regions
    assert (region.kind, region.confidence) == (RegionKind.ENGRAVING, pytest.approx(0.35))


@pytest.mark.parametrize(
    ("box", "ornament", "kind"),
    [
        (PICTURE_BOX, 0.95, RegionKind.ORNAMENT),
        (PICTURE_BOX, 0.91, RegionKind.ENGRAVING),
        ((120, 150, 680, 950), 0.95, RegionKind.ENGRAVING),
    ],
    ids=["sure", "not so sure", "large"],
)
def test_what_the_judge_is_sure_of_is_an_ornament_unless_it_is_large(
    box: Box, ornament: float, kind: RegionKind
) -> None:
    page = fit(with_engraving(text_page(), box), LONG_SIDE)
    (region,) = measure(
        page, _maps(page, box), _judge(1 - ornament, ornament, 0, 0), _as_found
    ).regions
    assert region.kind == kind
    wanted = ornament if kind is RegionKind.ORNAMENT else 1 - ornament
    assert region.confidence == pytest.approx(wanted)


def _unsure(maps: Maps, elsewhere: float = 0.52) -> Maps:
    """The same pictures, of which the maps are sure only here and there."""
    unsure = maps.copy()
    unsure[PICTURE][(maps[PICTURE] > 0.5) & (np.arange(maps.shape[2]) % 8 > 0)] = elsewhere
    return unsure


@pytest.mark.parametrize(
    ("odds", "kind"),
    [
        ((0.31, 0.69, 0, 0), RegionKind.ENGRAVING),
        ((0.29, 0.28, 0.21, 0.22), RegionKind.ORNAMENT),
        ((0.29, 0.1, 0.36, 0.25), RegionKind.TABLE),
        ((0.1, 0.1, 0.1, 0.7), RegionKind.OTHER),
    ],
)
def test_what_the_judge_denies_is_no_picture_unless_the_maps_are_sure_or_it_is_small(
    odds: tuple[float, float, float, float], kind: RegionKind
) -> None:
    page = fit(with_engraving(text_page(), PICTURE_BOX), LONG_SIDE)
    sure = _maps(page, PICTURE_BOX)
    for maps in (_unsure(sure), _unsure(sure, 0.5)):
        found = measure(page, maps, _judge(*odds), _as_found)
        (region,) = found.regions
        assert region.kind == kind
        assert (found.score > 0) == (kind == RegionKind.ENGRAVING)
        wanted = odds[0] if kind is RegionKind.ENGRAVING else 1 - odds[0]
        assert region.confidence == pytest.approx(wanted)
    for maps in (sure, _unsure(sure, 0.68)):
        (region,) = measure(page, maps, _judge(*odds), _as_found).regions
        assert region.kind == RegionKind.ENGRAVING
    small = (300, 500, 430, 680)
    page = fit(with_engraving(text_page(), small), LONG_SIDE)
    (region,) = measure(page, _unsure(_maps(page, small)), _judge(*odds), _as_found).regions
    assert region.kind == RegionKind.ENGRAVING


def test_a_picture_of_which_the_maps_saw_a_part_is_completed() -> None:
    page = with_engraving(np.full(SHAPE, 255, np.uint8), PICTURE_BOX)
    lower = (PICTURE_BOX[0], 610, *PICTURE_BOX[2:])
    (box,) = _found(page, _maps(page, lower, text=0.02))
    assert overlap(box, _relative(PICTURE_BOX)) > 0.94


@pytest.mark.parametrize(("text", "share"), [(0.02, 1.0), (0.9, 0.17)])
def test_a_picture_goes_on_to_the_edges_of_a_page_without_text(text: float, share: float) -> None:
    page = np.full(SHAPE, 255, np.uint8)
    for x in range(-100, SHAPE[1], 170):
        for y in range(0, SHAPE[0], 14):
            cv2.line(page, (x, y), (x + 150, y + 8), 0, 2)
    ((x0, y0, x1, y1),) = _found(page, _maps(page, PICTURE_BOX, text=text))
    assert (x1 - x0) * (y1 - y0) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize(("text", "count"), [(0.05, 1), (0.3, 0)])
def test_grains_as_small_as_letters_are_a_picture_if_the_map_sees_no_text(
    text: float, count: int
) -> None:
    page = np.full(SHAPE, 255, np.uint8)
    x0, y0, x1, y1 = PICTURE_BOX
    for x in range(x0, x1, 12):
        for y in range(y0, y1, 12):
            cv2.circle(page, (x, y), 3, 0, -1)
    maps = _maps(page, PICTURE_BOX, text=0.02)
    maps[TEXT][maps[PICTURE] > 0.5] = text
    assert len(_found(page, maps)) == count


def test_a_blank_page_has_no_regions_whatever_the_maps_say() -> None:
    page = np.full(SHAPE, 230, np.uint8)
    found = measure(fit(page, LONG_SIDE), _maps(page, PICTURE_BOX), _pictures, _as_found)
    assert found.blank
    assert not found.regions


def test_a_dark_border_is_not_taken_into_a_box() -> None:
    picture = (60, 300, 500, 700)
    page = with_dark_border(with_engraving(np.full(SHAPE, 240, np.uint8), picture))
    (box,) = _found(page, _maps(page, picture, loose=16))
    assert box[0] * SHAPE[1] > 45


def test_a_dark_plate_to_the_edges_is_kept_whole() -> None:
    page = np.random.default_rng(0).integers(5, 80, SHAPE).astype(np.uint8)
    found = measure(
        fit(page, LONG_SIDE), _maps(page, (0, 0, SHAPE[1], SHAPE[0])), _pictures, _as_found
    )
    assert not found.blank
    assert found.score > 0.95


def test_specks_are_too_small_to_be_regions() -> None:
    page = with_engraving(np.full(SHAPE, 255, np.uint8), (400, 500, 448, 548))
    assert not _found(page, _maps(page, (400, 500, 448, 548)))


HEADPIECE = (150, 200, 650, 420)


@pytest.mark.parametrize(
    ("box", "odds", "elsewhere", "kind"),
    [
        (HEADPIECE, (0.6, 0.3, 0, 0.1), 0.52, RegionKind.ORNAMENT),
        (HEADPIECE, (0.2, 0.3, 0, 0.5), 0.52, RegionKind.ORNAMENT),
        (HEADPIECE, (0.6, 0.2, 0, 0.2), 0.52, RegionKind.ENGRAVING),
        (HEADPIECE, (0.6, 0.3, 0, 0.1), 0.8, RegionKind.ENGRAVING),
        ((320, 300, 480, 460), (0.6, 0.3, 0, 0.1), 0.52, RegionKind.ENGRAVING),
        ((120, 150, 680, 950), (0.6, 0.3, 0, 0.1), 0.52, RegionKind.ENGRAVING),
    ],
    ids=["headpiece", "denied", "no ornament", "picture to the maps", "coin", "cover"],
)
def test_what_mirrors_itself_is_a_headpiece_unless_something_speaks_for_a_picture(
    box: Box, odds: tuple[float, ...], elsewhere: float, kind: RegionKind
) -> None:
    page = with_engraving(np.full(SHAPE, 255, np.uint8), box)
    maps = _unsure(_maps(page, box, text=0.02), elsewhere)
    (region,) = measure(fit(page, LONG_SIDE), maps, _judge(*odds), _as_found).regions
    assert region.kind == (RegionKind.OTHER if odds[0] < 0.3 else RegionKind.ENGRAVING)
    middle = (box[0] + box[2]) // 2
    page[:, middle : box[2]] = page[:, box[0] : middle][:, ::-1]
    (region,) = measure(fit(page, LONG_SIDE), maps, _judge(*odds), _as_found).regions
    assert region.kind == kind
