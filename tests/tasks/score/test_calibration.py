"""Probabilities: fitted on labels, with an honest error; prompts and labels as users write them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from models.errors import BadSettings
from models.score import ScoreSettings
from tasks.calibrate.figures import wilson
from tasks.score.calibration import calibrate, expected_calibration_error, sigmoid
from tasks.score.judge import Scores, judge_purity
from tasks.score.labels import read_labels
from tasks.score.prompts import read_prompts
from tasks.score.purity import Margins

NAMES = [f"images/v/p{n:04d}-1.jpg" for n in range(1, 6)]


def drawn(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Margins whose true log-odds are 0.5 times themselves minus 1, and what holds."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(2, 6, count)
    return margins, rng.random(count) < sigmoid(0.5 * margins - 1)


@pytest.mark.parametrize(("labels", "method"), [(200, "platt"), (800, "isotonic")])
def test_labels_make_probabilities_true(labels: int, method: str) -> None:
    margins, truth = drawn(4000)
    found = calibrate(margins, np.arange(labels), truth[:labels], None)
    assert (found.by, found.method) == ("labels", method)
    assert expected_calibration_error(found.probability[labels:], truth[labels:]) < 0.05
    assert found.ece is not None and found.ece < 0.1
    assert found.without_own == pytest.approx(found.probability[:labels], abs=0.2)
    assert (found.without_own != found.probability[:labels]).any(), "no label proves itself right"
    # The model's own probabilities were far off, and the error says so.
    assert expected_calibration_error(sigmoid(margins), truth) > 0.08


def test_the_measured_purity_is_of_what_would_be_kept_without_a_samples_own_label() -> None:
    margins, truth = drawn(40, seed=8)
    names = [f"images/v/p{n:04d}-1.jpg" for n in range(40)]
    found = calibrate(margins, np.arange(40), truth, None)
    kept, not_so = (odds >= 0.5 for odds in (found.without_own, found.probability))
    assert (kept != not_so).any(), "else this test could not fail"
    scores = Scores(
        samples=[SimpleNamespace(file_name=name) for name in names],
        measures=[SimpleNamespace(text_area=0.0)] * 40,
        faults={},
        vectors=np.zeros((40, 2), np.float32),
        margins=Margins(margins, [""] * 40, [""] * 40),
        labels=dict(zip(names, truth.tolist(), strict=True)),
    )
    settings = ScoreSettings(dataset="out", purity={"threshold": 0.5})
    measured = judge_purity(scores, settings, None).measured
    assert measured == wilson(int(truth[kept].sum()), int(kept.sum()))


def test_few_labels_only_measure() -> None:
    margins, truth = drawn(100)
    found = calibrate(margins, np.arange(12), truth[:12], None)
    assert (found.by, found.method) == ("nothing", "none") and found.ece is not None
    assert found.probability == pytest.approx(sigmoid(margins))
    assert found.without_own == pytest.approx(found.probability[:12])
    shipped = calibrate(margins, np.arange(0), truth[:0], (0.5, -1))
    assert shipped.by == "model card" and shipped.ece is None
    assert shipped.probability == pytest.approx(sigmoid(0.5 * margins - 1))


@pytest.mark.parametrize("labels", [200, 800])
def test_labels_that_say_the_opposite_calibrate_nothing(labels: int) -> None:
    margins, truth = drawn(1000)
    found = calibrate(margins, np.arange(labels), ~truth[:labels], (0.5, -1))
    assert found.contrary and (found.by, found.method) == ("model card", "platt")
    assert found.probability == pytest.approx(sigmoid(0.5 * margins - 1))
    assert not calibrate(margins, np.arange(labels), truth[:labels], None).contrary


def test_a_clean_split_stays_finite() -> None:
    margins = np.linspace(-5, 5, 60)
    found = calibrate(margins, np.arange(60), margins > 0, None)
    assert 0 < found.probability.min() < 0.1 < 0.9 < found.probability.max() < 1


def test_the_prompts_that_ship_are_well_formed() -> None:
    ensembles = read_prompts("").ensembles()
    assert "printed text" in ensembles and "wood engraving" in ensembles
    assert "a scan of a woodcut" in ensembles["wood engraving"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("templates: ['a {}']\npositive: {cut: [woodcut]}\n", "negative Field required"),
        ("templates: ['a']\npositive: {a: [b]}\nnegative: {c: [d]}", "needs {} once"),
        ("templates: ['{}']\npositive: {a: [b]}\nnegative: {a: [d]}", "both positive and negative"),
        ("templates: ['{}']\npositive: {a: []}\nnegative: {c: [d]}", "should have at least 1 item"),
        ("templates: ['{}']\npositive: {a: [b]}\nnegative: {A: [d]}", "both positive and negative"),
        ("templates: ['{}']\npositive: {a: [b]}\nnegative: {c: [d], c: [e]}", "'c' is there twice"),
        ("positive: {a: [b]}\npositive: {c: [d]}", "'positive' is there twice"),
        ("{", "is no YAML"),
        ("positive: {a: [1885-13-45]}", "is no YAML"),
        ("[" * 5000, "is no YAML"),
        ("positive: !!bool maybe", "is no YAML"),
    ],
)
def test_bad_prompts_are_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(BadSettings) as error:
        read_prompts(str(tmp_path / "mine.yaml"))
    assert words in error.value.message and "mine.yaml" in error.value.message


def test_labels_are_read_as_spreadsheets_write_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = f"label;file_name\nWood engraving;{NAMES[0]}\n;{NAMES[1]}\nprinted text;{NAMES[2]}\n"
    path.write_text("\ufeff" + rows)
    labels = read_labels(str(path), read_prompts(""), NAMES)
    assert labels == {NAMES[0]: True, NAMES[2]: False}


def test_classes_of_the_prompts_are_labels_whatever_their_case(tmp_path: Path) -> None:
    prompts, path = tmp_path / "mine.yaml", tmp_path / "labels.csv"
    prompts.write_text(
        "templates: ['{}']\npositive: {Fashion Plate: [a], text: [b]}\nnegative: {MAP: [c]}\n"
    )
    said = ["Fashion Plate", "fashion plate", "map", "text", "Blank"]
    rows = [f"{name},{label}" for name, label in zip(NAMES, said, strict=True)]
    path.write_text("\n".join(["file_name,label", *rows]))
    labels = read_labels(str(path), read_prompts(str(prompts)), NAMES)
    assert list(labels.values()) == [True, True, False, True, False]
    path.write_bytes("file_name,label\nimages/é.jpg,text\n".encode("cp1252"))
    with pytest.raises(BadSettings, match="not UTF-8") as error:
        read_labels(str(path), read_prompts(str(prompts)), NAMES)
    assert "Save it again as UTF-8" in error.value.cure


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (f"{NAMES[0]},nice\n", "line 2: 'nice' is no label"),
        ("images/x.jpg,text\n", "line 2: the manifest has no sample 'images/x.jpg'"),
        (f"{NAMES[0]},text\n{NAMES[0]},illustration\n", "line 3: "),
        (f"{NAMES[0]},\n", "no label filled in"),
        (f'{NAMES[0]},"{"x" * 200_000}\n', "line 2: field larger than"),
    ],
)
def test_bad_labels_are_named(rows: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"file_name,label\n{rows}")
    with pytest.raises(BadSettings) as error:
        read_labels(str(path), read_prompts(""), NAMES)
    assert words in error.value.message
