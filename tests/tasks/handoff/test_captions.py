"""Captions: who writes them, and what they may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import BadSettings
from models.handoff import Captions, HandoffSettings
from models.records import Sample
from tasks.captions.clip import Vocabulary, choose, read_vocabulary
from tasks.captions.page import printed_caption
from tasks.captions.table import CAPTIONS
from tasks.captions.template import template, year_of
from tasks.captions.text import count_tokens, join, tidy
from tasks.dataset import read_samples
from tasks.handoff.run import write_all_captions
from tasks.progress import Progress
from tasks.score import spread
from tasks.storage import Storage
from tests.tasks.handoff.conftest import hand_over_all, make_dataset, sidecar


@settings(max_examples=60)
@given(st.text())
def test_a_tidy_caption_is_one_line_without_brackets_that_mean_something(text: str) -> None:
    tidied = tidy(text)
    assert len(tidied.splitlines()) <= 1 and not set(tidied) & set("{}[]\t\r\n")
    assert tidy(tidied) == tidied
    tidied.encode()


def test_what_was_said_is_not_said_again() -> None:
    assert join(["intaglio", "", "A plate,", "a plate", "1880s"]) == "intaglio, A plate, 1880s"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("intaglio, engraving, 1880s", 11),
        ("a cyber monocle in the style of an 1890s engraving", 16),
        ("x" * 40, 10),
        ("", 0),
    ],
)
def test_tokens_are_counted_as_the_text_encoder_counts_them(text: str, tokens: int) -> None:
    """The counts are those of open_clip's own tokenizer."""
    assert count_tokens(text) == tokens


def sample(**fields: Any) -> Sample:
    values: dict[str, Any] = {
        "file_name": "images/v/p0001-1.jpg", "pdf": "v.pdf", "pdf_sha256": "0" * 64,
        "page_index": 0, "page_size": (100, 100), "box": (0, 0, 50, 50), "kind": "engraving",
        "confidence": 1, "dpi": 100, "width": 64, "height": 64, "bytes": 1, "sha256": "0" * 64,
        "transforms": [],
    }  # fmt: skip
    return Sample.model_validate(values | fields)


@pytest.mark.parametrize(
    ("fields", "year"),
    [
        ({"metadata": {"title": "Gazette, 12 March 1887"}}, 1887),
        ({"pdf": "1891/volume-03.pdf"}, 1891),
        ({"pdf": "1887/reprint-of-1871.pdf"}, 1871),
        ({"metadata": {"title": "The Lady 1887"}, "pdf": "scans-2020/mirror.pdf"}, 1887),
        ({"metadata": {"creationDate": "D:18870312"}}, 1887),
        # The date of a scan is not that of the print, and a number not a year.
        ({"metadata": {"creationDate": "D:20080312"}}, None),
        ({"pdf": "scan-118875.pdf"}, None),
    ],
)
def test_the_year_is_that_of_the_print(fields: dict[str, Any], year: int | None) -> None:
    assert year_of(sample(**fields)) == year
    assert spread.year(sample(**fields)) == str(year or "unknown")


def test_the_template_names_medium_and_decade() -> None:
    dated = {"title": "Mode, 1887"}
    assert template(sample(metadata=dated), Captions()) == "engraving, 1880s"
    assert template(sample(kind="photograph"), Captions()) == "halftone photograph"
    assert template(sample(metadata=dated), Captions(medium="etching")) == "etching, 1880s"


LOREM = "The gown is of grey cashmere with bands of velvet, and the sleeves are full. " * 12


@pytest.mark.parametrize(
    ("below", "found"),
    [
        ("FIG. 3. LADY'S WALKING DRESS\nof grey cashmere.", True),
        (LOREM, False),
        ("", False),
        ("12", False),
    ],
)
def test_the_printed_caption_is_the_block_right_under_the_figure(
    tmp_path: Path, below: str, found: bool
) -> None:
    document = pymupdf.open()
    page = document.new_page(width=400, height=600)
    page.draw_rect(pymupdf.Rect(40, 60, 360, 300), fill=(0.5, 0.5, 0.5))
    page.insert_textbox(pymupdf.Rect(40, 306, 360, 560), below, fontsize=8)
    if found:
        page.insert_textbox(pymupdf.Rect(40, 345, 360, 590), LOREM, fontsize=8)
    document.save(tmp_path / "a.pdf")
    box = (0.1, 0.1, 0.9, 0.5)
    said = printed_caption(str(tmp_path / "a.pdf"), (), 0, box)
    assert said == ("FIG. 3. LADY'S WALKING DRESS of grey cashmere." if found else "")


def test_captions_from_the_page_through_the_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A dataset whose PDF is where it was, one whose PDF is encrypted, and one whose is gone."""
    import hashlib

    document = pymupdf.open()
    page = document.new_page(width=594, height=810)
    page.insert_textbox(pymupdf.Rect(60, 705, 500, 730), "FIG. 9. A {new} bonnet", fontsize=8)
    (tmp_path / "scans").mkdir()
    data = document.tobytes()
    (tmp_path / "scans" / "a.pdf").write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)], pdf="a.pdf", pdf_sha256=sha256)
    from models.settings import Settings

    made = Settings(source=str(tmp_path / "scans"), output=dataset.url)
    summary = {"settings": made.model_dump(mode="json")}
    dataset.write("summary.json", json.dumps(summary).encode())
    chosen = HandoffSettings(dataset=dataset.url, captions={"by": ["template", "page"]})
    samples = list(read_samples(dataset))
    (written,) = write_all_captions(chosen, dataset, samples, Progress()).values()
    assert "says nothing" not in caplog.text
    assert written.text == "intaglio, engraving, 1880s, FIG. 9. A (new) bonnet"
    assert written.source == "template+page"
    assert "from the page" not in caplog.text
    locked = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "user_pw": "sesame", "owner_pw": "x"}
    data = document.tobytes(**locked)
    (tmp_path / "scans" / "a.pdf").write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    closed = make_dataset(tmp_path / "d", sizes=[(64, 64)], pdf="a.pdf", pdf_sha256=sha256)
    samples = list(read_samples(closed))
    (written,) = write_all_captions(chosen, closed, samples, Progress()).values()
    assert written.source == "template"
    assert "1 samples get no caption from the page" in caplog.text
    assert "captions.by page says nothing of 1 of 1 samples: no text stands under" in caplog.text
    (tmp_path / "scans" / "a.pdf").rename(tmp_path / "elsewhere.pdf")
    (tmp_path / "scans" / "b.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(BadSettings, match="none of the dataset's PDFs"):
        write_all_captions(chosen, dataset, samples, Progress())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"file_name,caption\nx,y\n", "no source"),
        (b"file_name,caption,source\nx,\xff,z\n", "UTF-8"),
        (b"file_name,caption,source\nx,a lady, seated,edited\n", "needs quotes"),
    ],
)
def test_a_broken_table_is_named_by_line(tmp_path: Path, data: bytes, said: str) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    dataset.write(CAPTIONS, data)
    with pytest.raises(BadSettings, match=f"line 2: .*{said}"):
        hand_over_all(dataset)
    assert not (tmp_path / "d" / "bundles").exists()


def test_samples_without_a_caption_are_an_error_before_anything_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    vocabulary = tmp_path / "words.yaml"
    vocabulary.write_text('prompt: "a {}"\nlists:\n  subject: [lady, gentleman]\n')
    unsure = {
        "by": ["clip"], "trigger": "", "certainty": 1.0, "vocabulary": str(vocabulary),
    }  # fmt: skip
    with pytest.raises(BadSettings, match="1 samples have none, images/ladies"):
        hand_over_all(dataset, captions=unsure, clip={"model": "print"})
    assert "captions.by clip says nothing of 1 of 1 samples: the model print knows" in caplog.text
    assert not dataset.names(CAPTIONS) and not (tmp_path / "d" / "bundles").exists()


def test_clip_takes_the_likeliest_word_of_each_list(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    vocabulary = tmp_path / "words.yaml"
    vocabulary.write_text(
        'prompt: "{}"\nlists:\n  one: [lady, gentleman]\n  two: [street, garden, room]\n'
    )
    captions = {"by": ["template", "clip"], "certainty": 0, "vocabulary": str(vocabulary)}
    place = hand_over_all(dataset, trainers=["kohya"], captions=captions, clip={"model": "print"})
    words = sidecar(place, "kohya", 1).read_text().split(", ")
    assert words[:3] == ["intaglio", "engraving", "1880s"] and len(words) == 5
    assert words[3] in ("lady", "gentleman") and words[4] in ("street", "garden", "room")


@pytest.mark.parametrize(
    "text", ["lists: {}", 'prompt: "{}"\nlists: {one: []}', 'prompt: "{}"\nlists: {one: [a]}']
)
def test_a_vocabulary_without_a_choice(text: str) -> None:
    Storage("memory://words").write("words.yaml", text.encode())
    with pytest.raises(BadSettings, match=r"vocabulary: .*words\.yaml"):
        read_vocabulary("memory://words/words.yaml")
    with pytest.raises(BadSettings, match="there is no file"):
        read_vocabulary("memory://words/none.yaml")


def test_the_empty_word_says_nothing_and_braces_stay() -> None:
    vocabulary = Vocabulary(prompt="an {x} of {}", lists={"garment": ["a hat", ""]})
    words = vocabulary.lists["garment"]
    assert vocabulary.phrases(words) == ["an {x} of a hat", "an {x} of something else"]
    assert choose(words, np.array([0.0, 9.0]), 0.5) == ""
    assert choose(words, np.array([9.0, 0.0]), 0.5) == "a hat"
    assert "" in read_vocabulary("").lists["garment"]
