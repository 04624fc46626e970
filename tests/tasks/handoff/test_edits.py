"""Captions that a person edited: none is lost, and the last edit counts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings
from models.handoff import HandoffSettings
from tasks.captions.table import CAPTIONS, check, read_captions, write_captions
from tasks.handoff.bundle import make_bundle, read_bundle
from tasks.handoff.place import name_samples
from tasks.handoff.run import open_dataset, write_all_captions
from tasks.progress import Progress
from tasks.storage import Storage
from tests.tasks.conftest import tree
from tests.tasks.handoff.conftest import hand_over_all, make_dataset, sidecar


def edit(dataset: Storage, name: str, text: str, delimiter: str = ",", bom: bool = False) -> None:
    """Edit a row as a spreadsheet does."""
    text_before = dataset.read(CAPTIONS).decode("utf-8-sig")
    before = max(",;", key=text_before.partition("\n")[0].count)
    rows = list(csv.DictReader(io.StringIO(text_before), delimiter=before))
    for row in rows:
        if row["file_name"] == name:
            row["caption"] = text
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    dataset.write(CAPTIONS, (b"\xef\xbb\xbf" if bom else b"") + stream.getvalue().encode())


def name(number: int) -> str:
    return f"images/ladies-mirror-1887-03/p{number:04d}-1.jpg"


def test_what_a_person_edited_stays(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 4)
    trainers = {"trainers": ["kohya", "diffusers", "onetrainer"]}
    place = hand_over_all(dataset, **trainers)
    edit(dataset, name(1), "intaglio, a lady; seated", delimiter=";", bom=True)
    sidecar(place, "onetrainer", 2).write_text("intaglio, two\nladies {here}\n")
    # Edited in both: the table wins. Emptied: written anew.
    edit(dataset, name(3), "from the table")
    sidecar(place, "kohya", 3).write_text("from the file")
    sidecar(place, "kohya", 4).write_text(" \n")
    for medium in ("engraving", "woodcut"):
        hand_over_all(dataset, captions={"medium": medium}, **trainers)
        captions = {key: (c.text, c.source) for key, c in read_captions(dataset).items()}
        assert captions == {
            name(1): ("intaglio, a lady; seated", "edited"),
            name(2): ("intaglio, two ladies (here)", "edited"),
            name(3): ("from the table", "edited"),
            name(4): (f"intaglio, {medium}, 1880s", "template"),
        }
        for number in range(1, 5):
            text = captions[name(number)][0]
            for trainer in ("kohya", "onetrainer"):
                assert sidecar(place, trainer, number).read_text() == text
            metadata = (place / "diffusers" / "train" / "metadata.jsonl").read_text()
            assert f'"text": "{text}"' in metadata


def test_of_edits_one_after_the_other_the_last_counts(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    trainers = {"trainers": ["kohya", "onetrainer"]}
    place = hand_over_all(dataset, **trainers)

    def said() -> set[str]:
        hand_over_all(dataset, **trainers)
        texts = {sidecar(place, trainer, 1).read_text() for trainer in trainers["trainers"]}
        return texts | {read_captions(dataset)[name(1)].text}

    sidecar(place, "kohya", 1).write_text("one")
    assert said() == {"one"}
    sidecar(place, "onetrainer", 1).write_text("two")
    assert said() == {"two"} == said()
    edit(dataset, name(1), "three")
    assert said() == {"three"} == said()
    sidecar(place, "kohya", 1).write_text("four")
    assert said() == {"four"}
    sidecar(place, "kohya", 1).write_text("")
    assert said() == {"intaglio, engraving, 1880s"}


def test_bundles_that_are_not_made_anew_are_named_and_bring_no_old_edit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    place = hand_over_all(dataset, trainers=["kohya", "diffusers", "onetrainer"])
    hand_over_all(dataset, trainers=["kohya"])
    assert "not asked for" not in caplog.text
    sidecar(place, "onetrainer", 1).write_text("from onetrainer's")
    hand_over_all(dataset, trainers=["kohya"])
    assert sidecar(place, "kohya", 1).read_text() == "from onetrainer's"
    assert "than captions.csv has: diffusers. Name" in caplog.text
    edit(dataset, name(1), "from the table")
    for _ in range(2):
        hand_over_all(dataset, trainers=["kohya"])
        assert sidecar(place, "kohya", 1).read_text() == "from the table"
    assert sidecar(place, "onetrainer", 1).read_text() == "from onetrainer's"
    assert "than captions.csv has: diffusers, onetrainer. Name" in caplog.text


def test_a_caption_file_that_is_not_utf_8_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    place = hand_over_all(dataset, trainers=["kohya"])
    sidecar(place, "kohya", 1).write_bytes("une dame à l'éventail".encode("latin-1"))
    before = tree(tmp_path)
    with pytest.raises(BadSettings, match=r"p0001-1\.txt: it is not UTF-8 text") as refused:
        hand_over_all(dataset, trainers=["kohya"], captions={"trigger": "other"})
    assert "Save it as UTF-8" in refused.value.cure and tree(tmp_path) == before
    with pytest.raises(BadSettings, match="UTF-8"):
        read_bundle(Storage(str(place / "kohya")))
    sidecar(place, "kohya", 1).write_bytes("\ufeffune dame à l'éventail\r\n".encode())
    hand_over_all(dataset, trainers=["kohya"])
    assert sidecar(place, "kohya", 1).read_text() == "une dame à l'éventail"


class Killed(Progress):
    """Ends a run when so many pictures of a bundle are written."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def advance(self, *_: Any, **__: Any) -> None:
        self.after -= 1
        if not self.after:
            raise KeyboardInterrupt


def test_runs_killed_half_way_leave_nothing_that_looks_like_an_edit(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 3)
    place = hand_over_all(dataset, trainers=["kohya"])
    for trigger, after in (("second", 2), ("third", 1)):
        chosen = HandoffSettings(
            dataset=dataset.url, trainers=["kohya"], captions={"trigger": trigger}
        )
        _, samples = open_dataset(chosen)
        captions = write_all_captions(chosen, dataset, samples, Progress())
        write_captions(dataset, captions)
        with pytest.raises(KeyboardInterrupt):
            make_bundle(chosen, dataset, name_samples(samples, captions), "kohya", Killed(after))
    assert [sidecar(place, "kohya", n).read_text().split(",")[0] for n in (1, 2, 3)] == [
        "third", "second", "intaglio",
    ]  # fmt: skip
    sidecar(place, "kohya", 3).write_text("a person's")
    hand_over_all(dataset, trainers=["kohya"], captions={"trigger": "fourth"})
    found = {key: (c.text, c.source) for key, c in read_captions(dataset).items()}
    assert found == {
        name(1): ("fourth, engraving, 1880s", "template"),
        name(2): ("fourth, engraving, 1880s", "template"),
        name(3): ("a person's", "edited"),
    }
    assert not (place / "kohya" / "written.jsonl").exists()


def test_a_spreadsheet_takes_no_hash_for_a_number(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 2)
    hand_over_all(dataset, trainers=["kohya"])
    for row in csv.DictReader(io.StringIO(dataset.read(CAPTIONS).decode())):
        for column in ("check", "picture"):
            with pytest.raises(ValueError, match="could not convert"):
                float(row[column])
    assert len(check("x")) == 8 and check("x")[0] == "c"


def test_an_edited_caption_stays_with_its_picture(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Other settings of detection may give a file name to another picture."""
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 2)
    place = hand_over_all(dataset, trainers=["kohya"])
    edit(dataset, name(1), "a lady with a fan")
    sidecar(place, "kohya", 2).write_text("a mantle")
    lines = dataset.read("manifest.jsonl").splitlines(keepends=True)
    other = [json.loads(line) | {"sha256": f"{n}" * 64} for n, line in enumerate(lines, 1)]
    dataset.write("manifest.jsonl", "".join(json.dumps(line) + "\n" for line in other).encode())
    for _ in range(2):
        hand_over_all(dataset, trainers=["kohya"])
        assert sidecar(place, "kohya", 1).read_text() == "intaglio, engraving, 1880s"
        assert sidecar(place, "kohya", 2).read_text() == "intaglio, engraving, 1880s"
        assert "2 edited captions are of pictures that are not there any more" in caplog.text
    dataset.write("manifest.jsonl", b"".join(lines))
    hand_over_all(dataset, trainers=["kohya"])
    assert sidecar(place, "kohya", 1).read_text() == "a lady with a fan"
    assert sidecar(place, "kohya", 2).read_text() == "a mantle"
    assert [*read_captions(dataset)] == [name(1), name(2)]


def test_an_edit_outlives_its_sample_being_taken_out(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 2)
    hand_over_all(dataset, trainers=["kohya"])
    edit(dataset, name(1), "a rare one")
    whole = dataset.read("manifest.jsonl")
    dataset.write("manifest.jsonl", whole.splitlines(keepends=True)[1])
    place = hand_over_all(dataset, trainers=["kohya"])
    assert [path.stem[-7:] for path in (place / "kohya/images").glob("*.jpg")] == ["p0002-1"]
    dataset.write("manifest.jsonl", whole)
    hand_over_all(dataset, trainers=["kohya"])
    assert read_captions(dataset)[name(1)].text == "a rare one"
