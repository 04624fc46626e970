"""Calibration without Prefect: which pages are drawn, what is suggested, what the sheet says."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

from flows.command import parse, settings_of
from models.calibrate import CalibrateSettings, Calibration, JudgedPage, Label, SeenPage
from models.errors import BadSettings, DamagedPage, NotAPdf
from models.records import Fault, Region, RegionKind
from models.settings import Settings
from tasks.calibrate import thresholds
from tasks.calibrate.figures import keeps, measure, wilson
from tasks.calibrate.histogram import HEIGHT, TOP, histogram
from tasks.calibrate.judge import judge
from tasks.calibrate.labels import format_labels, parse_labels
from tasks.calibrate.sample import draw
from tasks.calibrate.sheet import render
from tasks.calibrate.words import command_line
from tests.tasks.looks import SETTINGS, pdf, seen

rng = np.random.default_rng(5)


ARCHIVE = [pdf(f"{n}.pdf", pages) for n, pages in enumerate((200, 100, 50, 40, 10, 1))]


# Which pages are drawn.


def test_every_pdf_gets_its_share_and_the_pages_spread_over_it() -> None:
    pages = draw(ARCHIVE, 100, {})
    assert len(pages) == len({(p.pdf, p.page_index) for p in pages}) == 100
    counts = Counter(page.pdf for page in pages)
    for each in ARCHIVE:
        assert each.facts
        assert abs(counts[each.name] - each.facts.page_count * 100 / 401) < 1
    indices = [page.page_index for page in pages if page.pdf == "0.pdf"]
    # One in each stretch of four: never two pages further apart than two stretches.
    assert max(np.diff([0, *indices, 199])) < 2 * 200 / len(indices)


def test_neither_names_nor_their_order_change_the_pages() -> None:
    before = {(p.pdf_sha256, p.page_index) for p in draw(ARCHIVE, 60, {})}
    renamed = [p.model_copy(update={"name": f"{9 - n}.pdf"}) for n, p in enumerate(ARCHIVE)]
    after = {(p.pdf_sha256, p.page_index) for p in draw(renamed[::-1], 60, {})}
    assert before == after


def test_a_small_archive_is_looked_at_whole() -> None:
    assert len(draw(ARCHIVE, 2000, {})) == 401


def test_broken_pdfs_and_copies_are_not_drawn() -> None:
    fault = Fault.of(NotAPdf("bad.pdf is a page of HTML."))
    archive = [
        pdf("good.pdf", 5),
        pdf("bad.pdf", 5).model_copy(update={"fault": fault}),
        pdf("copy.pdf", 5, "good.pdf").model_copy(update={"duplicate_of": "good.pdf"}),
    ]
    assert {page.pdf for page in draw(archive, 100, {})} == {"good.pdf"}


def test_labelled_pages_are_looked_at_besides() -> None:
    drawn = {(p.pdf, p.page_index) for p in draw(ARCHIVE, 10, {})}
    other = next(("0.pdf", i) for i in range(200) if ("0.pdf", i) not in drawn)
    inside = min(drawn)
    pages = draw(ARCHIVE, 10, {other: Label.MIXED, inside: Label.TEXT})
    assert len(pages) == 11 and sum(page.drawn for page in pages) == 10
    by_key = {(p.pdf, p.page_index): p for p in pages}
    assert by_key[other].label is Label.MIXED and not by_key[other].drawn
    assert by_key[inside].label is Label.TEXT and by_key[inside].drawn


# Thresholds from figures alone.


def test_sigma_is_split_between_two_heaps() -> None:
    figures = np.concatenate([rng.uniform(20, 30, 60), rng.uniform(60, 80, 40)])
    suggestion = thresholds.suggest("sigma", figures, 45.0)
    assert suggestion.threshold is not None and 30 <= suggestion.threshold <= 60
    assert "two heaps" in suggestion.reason


def test_sigma_of_one_heap_suggests_nothing() -> None:
    suggestion = thresholds.suggest("sigma", rng.normal(50, 8, 200), 45.0)
    assert suggestion.threshold is None and "one heap" in suggestion.reason
    same = thresholds.suggest("sigma", np.full(30, 50.0), 45.0)
    assert same.threshold is None


def test_areas_are_split_where_no_page_is_uncertain() -> None:
    nothing, small = np.zeros(100), rng.uniform(0.02, 0.068, 30)
    figures = np.concatenate([nothing, small, rng.uniform(0.2, 0.9, 70)])
    suggestion = thresholds.suggest("layout", figures, 0.08)
    assert suggestion.threshold is not None
    low, high = thresholds.band("layout", suggestion.threshold)
    assert low >= 0.068 and high <= 0.2


def test_a_present_threshold_in_a_gap_is_kept() -> None:
    figures = np.concatenate([rng.uniform(0.01, 0.04, 30), rng.uniform(0.2, 0.9, 70)])
    assert thresholds.suggest("layout", figures, 0.08).threshold is None


@pytest.mark.parametrize("method", ["sigma", "blobs", "layout"])
@pytest.mark.parametrize("present", [0.0, 0.08, 1.0])
def test_strange_figures_never_fail(method: str, present: float) -> None:
    for figures in (np.zeros(0), np.zeros(50), np.ones(50), np.array([0.0, 1.0] * 20)):
        thresholds.suggest(method, figures, present)
        thresholds.uncertain(method, figures, present)


# Thresholds from labels.


def test_labels_put_the_threshold_into_the_gap_and_say_what_it_costs() -> None:
    figures = np.array([0.0] * 20 + [0.10, 0.11, 0.12, 0.13] + [0.2, 0.3, 0.4, 0.5] * 5)
    truth = np.array([False] * 24 + [True] * 20)
    groups = [f"{n % 3}.pdf" for n in range(44)]
    suggestion = thresholds.suggest_from_labels("layout", figures, truth, groups, 0.08)
    assert suggestion.threshold is not None and 0.13 < suggestion.threshold <= 0.2
    assert "drops 4 more of the others" in suggestion.reason
    assert suggestion.held_out_f1 == 1.0
    assert measure("layout", figures, truth, suggestion.threshold).f1.value == 1.0


def test_a_threshold_that_fails_on_other_pdfs_comes_with_a_warning() -> None:
    # Every PDF has a line of its own: a threshold that suits the others is wrong for it.
    figures = np.concatenate([10.0 * n + np.arange(1, 9) for n in range(4)])
    truth = np.tile([False] * 4 + [True] * 4, 4)
    groups = [f"{n}.pdf" for n in range(4) for _ in range(8)]
    suggestion = thresholds.suggest_from_labels("sigma", figures, truth, groups, 0.5)
    now = measure("sigma", figures, truth, 0.5).f1.value
    assert suggestion.threshold is not None and suggestion.held_out_f1 is not None
    assert now is not None and suggestion.held_out_f1 <= now
    assert "Do not rely on it" in suggestion.reason


def test_labels_that_agree_keep_the_present_threshold() -> None:
    figures, truth = np.array([0.0] * 10 + [0.5] * 10), np.array([False] * 10 + [True] * 10)
    suggestion = thresholds.suggest_from_labels("layout", figures, truth, ["a"] * 20, 0.08)
    assert suggestion.threshold is None and suggestion.held_out_f1 is None


def test_sigma_keeps_above_and_areas_from_the_threshold_on() -> None:
    assert keeps("sigma", np.array([45.0, 45.1]), 45.0).tolist() == [False, True]
    assert keeps("layout", np.array([0.0, 0.0799, 0.08]), 0.08).tolist() == [False, False, True]
    assert keeps("layout", np.array([0.0, 0.001]), 0.0).tolist() == [False, True]


def test_rates_and_intervals_of_a_known_table() -> None:
    # 8 rightly kept, 2 wrongly kept, 4 missed, 86 rightly dropped.
    truth = np.array([True] * 8 + [False] * 2 + [True] * 4 + [False] * 86)
    figures = np.array([0.5] * 10 + [0.0] * 90)
    found = measure("layout", figures, truth, 0.08)
    assert (found.kept_right, found.kept_wrong, found.missed, found.dropped_right) == (8, 2, 4, 86)
    assert found.precision.value == pytest.approx(0.8)
    # statsmodels.stats.proportion.proportion_confint(8, 10, method="wilson")
    assert (found.precision.low, found.precision.high) == pytest.approx(
        (0.49016, 0.94332), abs=1e-4
    )
    assert found.recall.value == pytest.approx(8 / 12)
    assert (found.recall.low, found.recall.high) == pytest.approx((0.39062, 0.86188), abs=1e-4)
    assert found.f1.value == pytest.approx(16 / 22)
    share = wilson(8, 14)
    assert share.low and found.f1.low == pytest.approx(2 * share.low / (1 + share.low))


def test_nothing_kept_has_no_precision() -> None:
    found = measure("layout", np.zeros(5), np.array([True] * 5), 0.08)
    assert found.precision.value is None and found.recall.value == 0.0


# Labels.


def test_labels_are_read_as_spreadsheets_write_them() -> None:
    rows = [
        "pdf;page_index;label;guess",
        '"0.pdf"; 3 ;Mixed;text',
        "1.pdf;0;;text",
        "1.pdf;1;other;",
    ]
    text = "\r\n".join(rows)
    labels = parse_labels(b"\xef\xbb\xbf" + text.encode(), "x.csv", ARCHIVE)
    assert labels == {("0.pdf", 3): Label.MIXED, ("1.pdf", 1): Label.OTHER}


def test_labels_of_a_copy_hold_for_the_first_of_them() -> None:
    copy = pdf("copy.pdf", 1, "5.pdf").model_copy(update={"duplicate_of": "5.pdf"})
    data = b"pdf,page_index,label\ncopy.pdf,0,text\n"
    assert parse_labels(data, "x.csv", [*ARCHIVE, copy]) == {("5.pdf", 0): Label.TEXT}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0.pdf,1,text\n0.pdf,2,picture\n", "line 3: 'picture' is no label"),
        ("0.pdf,one,text\n", "line 2: page_index 'one' is no number"),
        ("0.pdf,-1,text\n", "line 2: page_index '-1'"),
        ("0.pdf,200,text\n", "line 2: page_index 200 is beyond the 200 pages of 0.pdf"),
        ("0.pdf,1,text\n\n9.pdf,1,text\n", "line 4: the archive has no readable PDF '9.pdf'"),
        ("0.pdf,1,text\n0.pdf,1,mixed\n", "line 3: 0.pdf, page_index 1 was 'text' before"),
        ("\n\n,,text\n", "line 4: the archive has no readable PDF ''"),
        ("0.pdf,1,text\n0.pdf\n", "line 3: it has more or fewer cells than line 1"),
    ],
)
def test_a_bad_label_is_named_with_its_line(rows: str, words: str) -> None:
    with pytest.raises(BadSettings, match=re.escape(words)) as error:
        parse_labels(f"pdf,page_index,label\n{rows}".encode(), "my.csv", ARCHIVE)
    assert error.value.message.startswith("my.csv, line") and "mixed" in error.value.cure


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1: it has no column pdf, page_index, label"),
        (b"pdf,page_index\n", "line 1: it has no column label"),
        (b"pdf,page_index,label,label\n", "line 1: two of its columns are called 'label'"),
        (b"pdf,page_index,label\n\xff.pdf,1,text\n", "line 2: it is not UTF-8"),
    ],
)
def test_a_file_that_holds_no_labels_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        parse_labels(data, "my.csv", ARCHIVE)


# The verdicts and the sheet.


HOSTILE = '<script>alert("x")</script>&\'.pdf'


@pytest.fixture(scope="module")
def looks() -> list[SeenPage]:
    broken = draw([pdf("broken.pdf", 1)], 1, {})[0]
    ornament = Region(box=(0.1, 0.1, 0.2, 0.15), kind=RegionKind.ORNAMENT, confidence=0.7)
    return [
        *(seen("a.pdf", n, 0.0, Label.TEXT if n < 9 else Label.MIXED) for n in range(10)),
        *(seen("b.pdf", n, 0.2, Label.MIXED) for n in range(10)),
        seen("b.pdf", 10, 0.07, None, ornament=ornament),
        seen(HOSTILE, 0, 0.2),
        SeenPage(page=broken, fault=Fault.of(DamagedPage("broken.pdf, page 1: no pixels."))),
    ]


@pytest.fixture(scope="module")
def result(looks: list[SeenPage]) -> Calibration:
    return judge(SETTINGS, [pdf("a.pdf", 400)], looks)


@pytest.fixture(scope="module")
def html(looks: list[SeenPage], result: Calibration) -> str:
    return render(SETTINGS, result, looks)


def test_the_sums_and_figures_are_those_of_the_pages(result: Calibration) -> None:
    assert (result.drawn, result.kept, result.dropped, result.unreadable) == (23, 11, 11, 1)
    assert result.uncertain == 1 and result.labelled == 20
    assert result.kept_share.value == 0.5 and result.kept_share.low < 0.5  # type: ignore[operator]
    layout = next(method for method in result.methods if method.name == "layout")
    assert layout.measured and layout.measured.recall.value == pytest.approx(10 / 11)
    assert layout.measured.precision.value == 1.0
    small = result.pages[20]
    assert small.uncertain and not small.kept and small.reason == "small_illustration"


class Cards(HTMLParser):
    """The cards of a sheet, in order: their attributes, and those of their boxes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cards: list[dict[str, str]] = []
        self.boxes: list[list[dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "figure":
            self.cards.append(found)
            self.boxes.append([])
        elif tag == "i" and "box" in found.get("class", "").split():
            self.boxes[-1].append(found)


def test_errors_come_first_then_the_uncertain(html: str) -> None:
    cards = Cards(html).cards
    assert "wrong" in cards[0]["data-tags"].split() and cards[0]["data-pdf"] == "a.pdf"
    assert "uncertain" in cards[1]["data-tags"].split()
    for card in cards[2:]:
        assert not {"wrong", "uncertain"} & set(card["data-tags"].split())


def test_boxes_lie_where_the_regions_are(html: str) -> None:
    sheet = Cards(html)
    at = next(n for n, card in enumerate(sheet.cards) if card["data-index"] == "10")
    picture, ornament = sheet.boxes[at]
    assert picture["style"] == "left:25.00%;top:50.00%;width:50.00%;height:14.00%"
    assert picture["class"].split() == ["box", "engraving"]
    assert picture["title"] == "engraving, confidence 0.90, 7 % of the page"
    assert ornament["class"].split() == ["box", "ornament", "unwanted"]


def test_the_sheet_needs_nothing_from_outside(html: str) -> None:
    assert not re.search(r"(https?:)?//[a-z0-9]", html, re.IGNORECASE)
    assert not re.search(r"@import|<link|<script src|url\(", html)


def test_names_cannot_break_the_sheet(html: str) -> None:
    assert "<script>alert" not in html
    assert HOSTILE in [card["data-pdf"] for card in Cards(html).cards]


def test_unreadable_pages_are_listed_with_their_cure(html: str) -> None:
    assert "broken.pdf, page 1: no pixels." in html and DamagedPage.cure in html


def test_the_form_goes_out_and_comes_back(result: Calibration) -> None:
    rows = list(csv.DictReader(io.StringIO(format_labels(result.pages).decode())))
    assert len(rows) == 22  # not the broken page
    assert rows[0] == {"pdf": "a.pdf", "page_index": "0", "label": "text", "guess": "text"}
    assert {row["guess"] for row in rows if row["pdf"] == "b.pdf"} == {"mixed", "text"}
    archive = [pdf("a.pdf", 10), pdf("b.pdf", 11)]
    labels = parse_labels(format_labels(result.pages), "x", archive)
    assert labels == {(p.pdf, p.page_index): p.label for p in result.pages if p.label}


def test_the_command_line_gives_the_settings_back() -> None:
    settings = Settings.model_validate(
        {
            "source": "my scans/*.pdf",
            "output": "out",
            "strict": True,
            "triage": {"method": "blobs", "min_area": 0.113},
            "regions": {"keep_kinds": ["map", "other"]},
            "read": {"dpi": 200.0},
            "encode": {"keep_gray": True},
        }
    )
    words = shlex.split(command_line(settings))
    assert words[:3] == ["python", "-m", "flows.extract"]
    assert settings_of(parse("x", "x", words[3:])) == settings


def test_passwords_are_not_shown() -> None:
    settings = Settings.model_validate(
        {"source": "a", "output": "b", "read": {"passwords": ["secret"]}}
    )
    assert "secret" not in command_line(settings)
    secret = CalibrateSettings(**settings.model_dump())
    assert "secret" not in judge(secret, [pdf("a.pdf", 1)], []).model_dump_json()


@pytest.mark.parametrize("method", ["sigma", "layout"])
def test_a_histogram_holds_every_page_within_its_frame(method: str) -> None:
    figures = [0.0] * 500 + list(rng.uniform(0, 1 if method == "layout" else 127, 300))
    drawn = histogram(method, figures, ["kept", "dropped"] * 400)
    assert sum(int(bar.title.split()[0]) for bar in drawn.bars) == 800
    for bar in drawn.bars:
        assert bar.y >= TOP - 0.1 and bar.y + bar.height <= HEIGHT + 0.1
    assert histogram(method, [], []).bars == []


@pytest.mark.parametrize("method", ["sigma", "blobs", "layout"])
def test_any_method_makes_a_sheet_of_many_pages(method: str) -> None:
    triage = SETTINGS.triage.model_copy(update={"method": method})
    settings = SETTINGS.model_copy(update={"triage": triage})
    pages = [seen("c.pdf", 0, area) for area in rng.uniform(0, 0.2, 300)]
    found = judge(settings, [pdf("c.pdf", 300)], pages)
    assert len(Cards(render(settings, found, pages)).cards) == 300
    assert isinstance(found.pages[0], JudgedPage)
