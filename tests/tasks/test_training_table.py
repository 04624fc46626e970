"""The table of labelled pages that calibration makes, a person corrects and the trainer reads."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from models.calibrate import Label, SeenPage
from models.errors import BadSettings, DamagedPage
from models.records import Fault, Region, RegionKind
from tasks.calibrate.training import add_pages, format_training, parse_training
from tasks.calibrate.words import training_command
from tests.tasks.looks import SETTINGS, seen


def region(kind: RegionKind, box: tuple[float, float, float, float]) -> Region:
    return Region(box=box, kind=kind, confidence=0.9)


ORNAMENT = region(RegionKind.ORNAMENT, (0.1, 0.1, 0.2, 0.15))
MUSIC = region(RegionKind.MUSIC, (0.1, 0.2, 0.9, 0.4))
SPECK = region(RegionKind.ENGRAVING, (0.1, 0.1, 0.1001, 0.1001))


def labelled(label: Label, area: float = 0.2, **more: Region) -> SeenPage:
    return seen("a.pdf", 0, area, label, **more)


def row(page: SeenPage) -> dict[str, str]:
    (made,) = add_pages(SETTINGS, [], [page])
    return made


@pytest.mark.parametrize(
    ("label", "area", "boxes"),
    [
        (Label.MIXED, 0.2, "[[0.25, 0.5, 0.75, 0.9]]"),
        (Label.ILLUSTRATION, 0.0, ""),
        (Label.TEXT, 0.2, "[]"),
        (Label.BLANK, 0.0, "[]"),
        (Label.OTHER, 0.2, ""),
    ],
)
def test_a_labelled_page_gets_a_row_with_what_was_found(
    label: Label, area: float, boxes: str
) -> None:
    page = labelled(label, area, ornament=ORNAMENT, music=MUSIC, speck=SPECK)
    assert row(page) == {
        "path": "../pages/v-1/p0001.jpg",
        "page": "0",
        "label": label,
        "boxes": boxes,
        "ornaments": "[[0.1, 0.1, 0.2, 0.15]]",
        "ruled": "[[0.1, 0.2, 0.9, 0.4]]",
        "work": "v-1",
        "made_as": label,
    }


def test_pages_without_label_or_pixels_get_no_row() -> None:
    broken = SeenPage(page=labelled(Label.TEXT).page, fault=Fault.of(DamagedPage("no pixels")))
    assert add_pages(SETTINGS, [], [seen("a.pdf", 0, 0.2), broken]) == []


def test_what_a_person_corrected_stays_while_the_label_says_the_same() -> None:
    corrected = {**row(labelled(Label.TEXT)), "label": "mixed", "boxes": "[[0, 0, 1, 0.5]]"}
    own = {**corrected, "path": "my scan.pdf", "note": "added; by hand"}
    later = {**own, "page": "1"}
    rows = [corrected, own, later]
    other = seen("b.pdf", 1, 0.2, Label.MIXED)
    same = add_pages(SETTINGS, rows, [labelled(Label.BLANK), other])
    assert same[:3] == rows and [r["path"] for r in same[3:]] == ["../pages/v-2/p0002.jpg"]
    assert add_pages(SETTINGS, rows, []) == rows
    again = parse_training(format_training(same), "labels.csv")
    assert again == [{**each, "note": each.get("note", "")} for each in same]


@pytest.mark.parametrize(
    ("before", "after"),
    [(Label.TEXT, Label.MIXED), (Label.ILLUSTRATION, Label.BLANK), (Label.TEXT, Label.OTHER)],
)
def test_a_label_that_says_the_opposite_makes_the_row_anew(before: Label, after: Label) -> None:
    there = {**row(labelled(before)), "boxes": "[[0, 0, 1, 0.5]]"}
    made = row(labelled(after))
    if after.illustrated:
        made["boxes"] = there["boxes"]
    assert add_pages(SETTINGS, [there], [labelled(after)]) == [made]


def test_boxes_drawn_before_the_label_was_corrected_elsewhere_too_stay() -> None:
    drawn = {**row(labelled(Label.TEXT)), "label": "Mixed ", "boxes": "[[0, 0, 1, 0.5]]"}
    assert add_pages(SETTINGS, [drawn], [labelled(Label.MIXED)]) == [drawn]
    shouted = {**drawn, "label": "MIXED", "made_as": "TEXT "}
    (read,) = parse_training(format_training([shouted]), "x.csv")
    assert add_pages(SETTINGS, [read], [labelled(Label.TEXT)]) == [shouted]


def test_boxes_stay_with_a_page_that_turns_out_to_be_illustrated() -> None:
    drawn = {**row(labelled(Label.OTHER)), "boxes": "[[0, 0, 1, 0.5]]"}
    (made,) = add_pages(SETTINGS, [drawn], [labelled(Label.MIXED)])
    assert (made["label"], made["boxes"]) == ("mixed", "[[0, 0, 1, 0.5]]")


def test_a_second_row_for_a_page_is_refused() -> None:
    one = row(labelled(Label.MIXED))
    table = format_training([one, {**one, "page": "", "note": "mine"}])
    with pytest.raises(BadSettings, match=r"x.csv, line 3: .*has a row already"):
        parse_training(table, "x.csv")


def test_pictures_count_by_their_share_of_the_page_of_a_spread() -> None:
    spread = labelled(Label.MIXED, small=region(RegionKind.ENGRAVING, (0.05, 0.1, 0.35, 0.3)))
    layout = spread.detections["layout"]
    layout = layout.model_copy(update={"regions": layout.regions[-1:], "measures": {"gutter": 0.5}})
    spread = spread.model_copy(update={"detections": {**spread.detections, "layout": layout}})
    settings = SETTINGS.model_copy(
        update={"regions": SETTINGS.regions.model_copy(update={"min_area": 0.1})}
    )
    (made,) = add_pages(settings, [], [spread])
    assert made["boxes"] == "[[0.05, 0.1, 0.35, 0.3]]"


def test_ornaments_and_ruled_may_be_left_out() -> None:
    table = b'path,page,label,boxes,work\nmine.png,0, Text,"[[0, 0, 1, 1]]",w\n'
    assert [r["path"] for r in parse_training(table, "x.csv")] == ["mine.png"]


def test_a_table_comes_back_from_a_spreadsheet() -> None:
    table = format_training([row(labelled(Label.MIXED))]).decode()
    sheet = list(csv.reader(io.StringIO(table)))
    stream = io.StringIO()
    csv.writer(stream, delimiter=";", lineterminator="\r\n").writerows(sheet)
    saved = b"\xef\xbb\xbf" + stream.getvalue().encode()
    assert parse_training(saved, "x.csv") == [row(labelled(Label.MIXED))]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[[0.25", "[[0.25,", "line 2: "),
        ("0.75, 0.9]]", "750, 900]]", "line 2: .*from 0 to 1"),
        ("[[0.25, 0.5, 0.75, 0.9]]", "[[0, 0, 1, 1" + "0" * 400 + "]]", "line 2: .*from 0 to 1"),
        ("[[0.25, 0.5, 0.75, 0.9]]", '[""0011""]', "line 2: .*no list of boxes"),
        ("[[0.25, 0.5, 0.75, 0.9]]", "[[false, 0, true, 1]]", "line 2: .*no list of boxes"),
        ("[[0.25, 0.5, 0.75, 0.9]]", "[[NaN, 0, 1, 1]]", "line 2: "),
        ("../pages/v-1/p0001.jpg", "", "line 2: it names no page"),
        (",0,", ",-1,", "line 2: it names no page"),
        (",mixed", ",picture", "line 2: 'picture' is no label"),
        ("boxes", "box", "line 1: it has no column boxes"),
        ("made_as", "made_as,,", "line 1: two of its columns are called ''"),
        ("work", "volume", "line 1: it has no column work"),
        (",0,", ",one,", "line 2: .*one"),
        (",0,", ",0,0,", "line 2: it has more or fewer cells"),
    ],
)
def test_a_damaged_table_is_named_with_its_line(old: str, new: str, words: str) -> None:
    table = format_training([row(labelled(Label.MIXED))]).decode()
    assert old in table
    with pytest.raises(BadSettings, match=f"x.csv, {words}") as error:
        parse_training(table.replace(old, new, 1).encode(), "x.csv")
    assert "made anew" in error.value.cure


@pytest.mark.parametrize(
    ("output", "corpus"),
    [
        ("my out", "'my out/calibration/training'"),
        ("file:///data/out", "/data/out/calibration/training"),
        ("~/out", f"{Path.home()}/out/calibration/training"),
        ("s3://bucket/out", "calibration/training"),
    ],
)
def test_the_sheet_says_how_to_train(output: str, corpus: str) -> None:
    settings = SETTINGS.model_copy(update={"output": output})
    assert f"--corpus {corpus} --output WEIGHTS --folds 4" in training_command(settings)
