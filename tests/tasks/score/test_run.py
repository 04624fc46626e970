"""Scoring a dataset whole: what comes out, what a bad file costs, what is not done again."""

from __future__ import annotations

import json
import shutil
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.clip.engine import ClipEngine
from models.clip.errors import Int8Refused
from models.errors import BadSettings
from tasks.captions.table import CAPTIONS, caption, write_captions
from tasks.dataset import aside_name, read_dropped
from tasks.package import package
from tasks.score import words
from tasks.score.calibration import sigmoid
from tasks.score.run import Scoring
from tasks.storage import Storage
from tests.resources.make_dataset import jpeg, make_dataset, read_lines
from tests.tasks.detect.drawn import text_page
from tests.tasks.score.conftest import Score, drawing, files, places


@pytest.fixture(params=["local", pytest.param("memory", marks=pytest.mark.nightly)])
def output(request: pytest.FixtureRequest, tmp_path: Path, memory: object) -> str:
    """An output on the disk, and nightly one on a filesystem that is not local."""
    return str(tmp_path / "the output") if request.param == "local" else "memory://bucket/out"


def encoded(picture: Image.Image, form: str, **options: object) -> bytes:
    stream = BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


def test_what_comes_out_agrees(output: str, score: Score) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    storage = Storage(output)
    made = files(24)
    made["paper-1890/p0001-1.jpg"] = made["paper-1880/p0001-1.jpg"]
    made["paper-1890/p0002-1.jpg"] = jpeg(text_page(3))
    samples = make_dataset(storage, made.items())
    verdict = score(output, select=10).verdict
    assert verdict.samples == 26 and verdict.kept == 10
    assert verdict.dropped == {"text": 1, "duplicate": 1, "not_selected": 14}
    assert len(places(output)["images"]) == 10 and len(places(output)["dropped"]) == 16
    dropped = read_dropped(storage)
    assert dropped["images/paper-1890/p0002-1.jpg"] == "text"
    table = pyarrow.parquet.read_table(BytesIO(storage.read("scores.parquet"))).to_pylist()
    assert [row["file_name"] for row in table] == [sample.file_name for sample in samples]
    assert {row["file_name"]: row["reason"] for row in table if not row["kept"]} == dropped
    copy = next(row for row in table if row["duplicate_of"])
    assert copy["reason"] == "duplicate" and copy["duplicate_of"].endswith("p0001-1.jpg")
    vectors = np.load(BytesIO(storage.read("embeddings.npy")))
    assert vectors.shape == (26, 24) and len(storage.read("embeddings.txt").splitlines()) == 26
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-4)
    assert json.loads(storage.read("verdict.json"))["spread"]["balance"]["years"]["groups"]
    assert verdict.selection and 0 < verdict.selection.value <= verdict.selection.bound <= 1
    assert "local-dir:" in verdict.scored_by
    assert set(storage.names("report")) >= {"report/index.html", "report/data.js"}


def test_the_report_shows_captions_that_are_there_already(
    output: str, score: Score, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Storage(output)
    first, *_ = make_dataset(storage, files(6).items())
    score(output)
    assert storage.read("report/captions.js") == b"const CAPTIONS = {};\n"
    write_captions(storage, {first.file_name: caption("a gown", "page", first.sha256)})
    score(output)
    assert "a gown" in storage.read("report/captions.js").decode()
    storage.write(CAPTIONS, b"not,a\ntable\n")
    score(output)
    assert b"gown" not in storage.read("report/captions.js")
    assert "shows no captions" in caplog.text and CAPTIONS in caplog.text


def test_a_bad_file_costs_that_sample_with_its_reason(tmp_path: Path, score: Score) -> None:
    plain = Image.fromarray(drawing(1))
    made = files(4) | {
        "bad/p0001-1.jpg": jpeg(drawing(2))[:4000],
        "bad/p0002-1.jpg": encoded(plain.resize((1, 1)), "PNG"),
        "bad/p0003-1.jpg": encoded(plain, "GIF", save_all=True, append_images=[plain.rotate(9)]),
        "bad/p0004-1.jpg": b"no picture at all",
        "odd/p0001-1.jpg": encoded(Image.fromarray(drawing(11)).convert("CMYK"), "JPEG"),
        "odd/p0002-1.jpg": encoded(Image.fromarray(drawing(12).astype(np.uint16) * 257), "PNG"),
    }
    storage = Storage(str(tmp_path / "out"))
    make_dataset(storage, made.items())
    storage.write("images/paper-1880/p0004-1.jpg", jpeg(drawing(99)))
    storage.remove("images/paper-1880/p0003-1.jpg")
    scores = score(storage.url).scores
    faults = {scores.samples[at].file_name: fault.kind for at, fault in scores.faults.items()}
    assert faults == {
        "images/bad/p0001-1.jpg": "damaged_image",
        "images/bad/p0002-1.jpg": "image_too_small",
        "images/bad/p0003-1.jpg": "animated_image",
        "images/bad/p0004-1.jpg": "damaged_image",
        "images/paper-1880/p0003-1.jpg": "missing_file",
        "images/paper-1880/p0004-1.jpg": "changed_file",
    }
    assert set(read_dropped(storage)) == faults.keys()
    assert len(places(storage.url)["images"]) == 4


THIN = {1: (8, 5000), 2: (5000, 8)}
"""Height and width by number."""


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_nothing_to_look_at_and_one_picture_many_times(tmp_path: Path, score: Score) -> None:
    bad, same = Storage(str(tmp_path / "bad")), Storage(str(tmp_path / "same"))
    make_dataset(bad, {f"v/p{n:04d}-1.jpg": b"nothing %d" % n for n in range(1, 4)}.items())
    assert score(bad.url).verdict.dropped == {"unreadable": 3}
    make_dataset(same, {f"v/p{n:04d}-1.jpg": jpeg(drawing(1)) for n in range(1, 10)}.items())
    found = score(same.url, select=3, duplicates={"drop": False}).verdict
    assert found.kept == 3 and found.spread.coverage == found.spread.vendi_all == 1
    assert found.selection and found.selection.value == found.selection.bound == 1


def test_the_estimate_is_of_what_is_kept_after_copies_and_choice(
    tmp_path: Path, score: Score
) -> None:
    storage = Storage(str(tmp_path / "out"))
    copies = {f"copies/p{n:04d}-1.jpg": jpeg(drawing(1)) for n in range(1, 7)}
    make_dataset(storage, (files(5) | copies).items())
    for settings in ({}, {"select": 2}):
        found = score(storage.url, **settings)
        stays = found.scores.probability[found.scores.kept()]
        assert len(stays) == found.verdict.kept < 7
        assert found.verdict.purity.estimate == pytest.approx(stays.mean())


def test_a_picture_as_thin_as_a_rule_is_judged(tmp_path: Path, score: Score) -> None:
    storage = Storage(str(tmp_path / "out"))
    thin = {f"thin/p{n:04d}-1.jpg": jpeg(np.full(s, 200, np.uint8)) for n, s in THIN.items()}
    make_dataset(storage, (files(2) | thin).items())
    assert not score(storage.url).scores.faults


def test_only_what_is_new_is_embedded(tmp_path: Path, score: Score) -> None:
    storage = Storage(str(tmp_path / "out"))
    made = files(6)
    make_dataset(storage, made.items())
    first = score(storage.url)
    assert first.verdict.embedded == 6
    table, page = storage.read("scores.parquet"), storage.read("report/data.js")
    again = score(storage.url)
    assert again.verdict.embedded == 0
    assert (storage.read("scores.parquet"), storage.read("report/data.js")) == (table, page)
    # Names do not matter, bytes do.
    renamed = dict(zip([*list(made)[1:], "new/p0001-1.jpg"], made.values(), strict=True))
    renamed["paper-1880/p0002-1.jpg"] = jpeg(drawing(50))
    make_dataset(storage, renamed.items())
    assert score(storage.url).verdict.embedded == 1


def test_what_was_lost_or_changed_since_costs_just_that_sample_every_time(
    tmp_path: Path, score: Score, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Storage(str(tmp_path / "out"))
    samples = make_dataset(storage, files(6).items())
    score(storage.url)
    whole = storage.read(samples[2].file_name)
    middle = len(whole) // 2
    storage.remove(samples[0].file_name)
    storage.write(samples[1].file_name, jpeg(drawing(77)))
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    storage.write(samples[2].file_name, flipped)
    lost = storage.read(samples[3].file_name)
    storage.write(samples[3].file_name, lost[: len(lost) // 2])
    kinds = dict.fromkeys(range(4), "changed_file") | {0: "missing_file"}
    for settings in ({}, {"select": 1}, {}):
        caplog.clear()
        scoring = score(storage.url, **settings)
        assert {at: fault.kind for at, fault in scoring.scores.faults.items()} == kinds
        assert {name: r for name, r in read_dropped(storage).items() if r == "unreadable"} == {
            samples[at].file_name: "unreadable" for at in kinds
        }
        package(scoring.run)
        with zipfile.ZipFile(BytesIO(storage.read("dataset.zip"))) as archive:
            assert len(archive.namelist()) == 1 + scoring.verdict.kept
        assert f"{samples[2].file_name} is not the file that was written." in caplog.text
        assert "python -m flows.verify --repair" in caplog.text
    # Mended, as extraction would.
    storage.write(samples[2].file_name, whole)
    storage.remove(aside_name(samples[2].file_name))
    assert 2 not in score(storage.url).scores.faults


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "other"])
def test_what_is_remembered_and_damaged_is_made_anew(
    damage: str, tmp_path: Path, score: Score, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Storage(str(tmp_path / "out"))
    make_dataset(storage, files(3).items())
    score(storage.url)
    table, known = storage.read("scores.parquet"), storage.names(".intaglio/score")
    for name in known:
        data = storage.read(name)
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
        bad = {"cut": data[:100], "flipped": flipped, "emptied": b"", "other": b"x" * 99}[damage]
        storage.write(name, bad)
    assert score(storage.url).verdict.embedded == 3
    assert all(f"{storage.path(name)} is damaged" in caplog.text for name in known)
    assert len(known) == 2 and known == storage.names(".intaglio/score")
    assert storage.read("scores.parquet") == table
    caplog.clear()
    assert score(storage.url).verdict.embedded == 0 and "damaged" not in caplog.text


def test_other_weights_of_the_image_tower_embed_anew(
    tmp_path: Path, model: str, score: Score
) -> None:
    from safetensors.torch import load_file, save_file

    storage = Storage(str(tmp_path / "out"))
    make_dataset(storage, files(3).items())
    folder = tmp_path / "model"
    shutil.copytree(model.removeprefix("local-dir:"), folder)
    clip = {"pretrained": f"local-dir:{folder}"}
    assert score(storage.url, clip=clip).verdict.embedded == 3
    assert score(storage.url, clip=clip).verdict.embedded == 0
    weights = load_file(folder / "open_clip_model.safetensors")
    weights["visual.proj"] = -weights["visual.proj"]
    save_file(weights, folder / "open_clip_model.safetensors")
    assert score(storage.url, clip=clip).verdict.embedded == 3


def test_int8_that_decides_otherwise_is_refused(
    tmp_path: Path, model: str, score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    storage = Storage(str(tmp_path / "out"))
    # Nearly one picture: what tells them apart is less than what INT8 rounds away.
    alike = {f"v/p{n:04d}-1.jpg": jpeg(drawing(1), 90 + n) for n in range(1, 5)}
    make_dataset(storage, alike.items())
    with pytest.raises(Int8Refused, match="On 4 samples"):
        score(storage.url, clip={"pretrained": model, "precision": "int8"})


def test_labels_measure_the_purity(tmp_path: Path, score: Score) -> None:
    storage = Storage(str(tmp_path / "out"))
    made = files(4) | {f"text/p{n:04d}-1.jpg": jpeg(text_page(n)) for n in range(1, 3)}
    make_dataset(storage, made.items())
    rows = [f"images/{name},{'text' if 'text' in name else 'illustration'}" for name in made]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["file_name,label", *rows]))
    found = score(storage.url, labels=str(labels)).verdict.purity
    assert (found.measured.value, found.labelled, found.calibrated_by) == (1.0, 6, "nothing")
    assert found.measured.low == pytest.approx(0.510, abs=0.001), "Wilson, 4 of 4"
    loose = {"threshold": 0, "most_text": 1}
    found = score(storage.url, labels=str(labels), purity=loose).verdict.purity
    assert found.measured.value == pytest.approx(4 / 6), "the labels have no say in that"
    assert set(read_dropped(storage).values()) == {"impure"}, "but in what stays"
    # A changed filter brings files back.
    score(storage.url, purity=loose)
    assert len(places(storage.url)["images"]) == 6 and not read_lines(storage, "dropped.jsonl")
    # One label, and against the scores.
    labels.write_text("file_name,label\nimages/text/p0001-1.jpg,illustration\n")
    found = score(storage.url, labels=str(labels)).verdict
    assert read_dropped(storage) == {"images/text/p0002-1.jpg": "text"}
    labels.write_text("file_name,label\nimages/text/p0001-1.jpg,text\n")
    found = score(storage.url, labels=str(labels), purity=loose).verdict
    assert found.purity.measured.value == 0
    assert dict(words.rows(found))["purity"].startswith("0.0 % (0.0 % to ")


def test_labels_move_the_threshold_and_do_not_turn_the_scores_over(
    tmp_path: Path, score: Score, caplog: pytest.LogCaptureFixture
) -> None:
    storage, labels = Storage(str(tmp_path / "out")), tmp_path / "labels.csv"
    names = [sample.file_name for sample in make_dataset(storage, files(24).items())]
    margins = score(storage.url).scores.margins.margin
    wanted = margins > np.sort(margins)[17 if (margins > 0).sum() != 6 else 11]

    def labelled(as_wanted: np.ndarray) -> Scoring:
        pairs = zip(names, as_wanted, strict=True)
        rows = [f"{n},{'illustration' if w else 'text'}" for n, w in pairs]
        labels.write_text("\n".join(["file_name,label", *rows]))
        return score(storage.url, labels=str(labels), purity={"threshold": 0.5})

    found = labelled(wanted)
    assert found.verdict.purity.calibrated_by == "labels" and not found.verdict.purity.contrary
    # The gate of INT8 decides as the run does.
    with ClipEngine(found.settings.clip) as clip:
        _, compare = found._comparison(clip)
    stays = found.decide(compare, names, found.scores.vectors)
    assert stays.tolist() == (found.scores.probability >= 0.5).tolist()
    assert stays.tolist() != (margins >= 0).tolist()

    caplog.clear()
    turned = labelled(~wanted)
    assert turned.verdict.purity.contrary and turned.verdict.purity.calibrated_by == "nothing"
    assert turned.scores.probability == pytest.approx(sigmoid(margins))
    said = "the 24 labels say the opposite of the scores"
    assert said in caplog.text and said in dict(words.rows(turned.verdict))["probabilities"]


@pytest.mark.nightly
def test_likeness_to_a_folder(tmp_path: Path, score: Score) -> None:
    storage = Storage(str(tmp_path / "out"))
    make_dataset(storage, files(5).items())
    examples = tmp_path / "like"
    examples.mkdir()
    (examples / "a.jpg").write_bytes(jpeg(drawing(0)))
    with pytest.raises(BadSettings, match="holds 1 pictures"):
        score(storage.url, like=str(examples))
    for name in "bc":
        (examples / f"{name}.jpg").write_bytes(jpeg(drawing(1)))
    assert len(score(storage.url, like=str(examples)).verdict.dropped) <= 1
