"""What verification says of damaged records, and what a repair dares to take away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import verify as flow
from models.errors import BadSettings, StorageRefused
from tasks.progress import Progress
from tasks.storage import Storage
from tasks.verify import verify
from tests.faults.stages import PUBLISHED, make_archive, settings_for, work
from tests.tasks.conftest import tree

Places = tuple[Path, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """A source and its finished dataset, read only."""
    folder = tmp_path_factory.mktemp("made")
    source, output = make_archive(folder / "source"), folder / "out"
    work(settings_for(source, output))
    return source, output


@pytest.fixture
def places(made: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Copies, to be damaged; repairs run the stages without Prefect."""
    monkeypatch.setattr(flow, "extract", work)
    source, output = (shutil.copytree(place, tmp_path / place.name) for place in made)
    for name in ("summary.json", ".intaglio/published.json"):
        written = json.loads((output / name).read_bytes())
        written["settings"]["source"] = str(source)
        (output / name).write_text(json.dumps(written))
    return source, output


def samples_of(output: Path, volume: str) -> list[Path]:
    return sorted(output.glob(f"images/{volume}/*.jpg"))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def repair(output: Path) -> int:
    return flow.main(["--output", str(output), "--repair"])


def lose_the_source(source: Path) -> str:
    shutil.rmtree(source)
    return "three.pdf was in it"


def empty_the_source(source: Path) -> str:
    shutil.rmtree(source)
    source.mkdir()
    return "1887/three.pdf is gone from the source"


def lose_the_pdf(source: Path) -> str:
    (source / "1887" / "three.pdf").unlink()
    return "1887/three.pdf is gone from the source"


def lose_another_pdf(source: Path) -> str:
    (source / "a.pdf").unlink()
    (source / "copy of a.pdf").unlink()
    return "a.pdf is gone from the source"


def change_the_pdf(source: Path) -> str:
    shutil.copy(source / "text.pdf", source / "1887" / "three.pdf")
    return "1887/three.pdf is not the file"


def spoil_the_pdf(source: Path) -> str:
    (source / "1887" / "three.pdf").write_bytes(b"<html>404")
    return "three.pdf is not a PDF"


@pytest.mark.parametrize(
    "lose",
    [
        lose_the_source,
        empty_the_source,
        lose_the_pdf,
        lose_another_pdf,
        change_the_pdf,
        spoil_the_pdf,
    ],
)
def test_what_cannot_be_made_again_is_not_taken_away(
    lose: Callable[[Path], str], places: Places
) -> None:
    source, output = places
    damage(samples_of(output, "three")[0])
    said = lose(source)
    before = tree(output)
    with pytest.raises(BadSettings) as caught:
        repair(output)
    assert said in caught.value.message and "Nothing was changed." in caught.value.message
    assert "back" in caught.value.cure
    assert tree(output) == before


def test_a_relative_source_from_another_folder_takes_nothing_away(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = places
    for name in ("summary.json", ".intaglio/published.json"):
        path = output / name
        path.write_text(path.read_text().replace(str(source), "source"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    damage(samples_of(output, "three")[0])
    before = tree(output)
    with pytest.raises(BadSettings, match="source does not exist"):
        repair(output)
    assert tree(output) == before
    monkeypatch.chdir(tmp_path)
    assert repair(output) == 0


@pytest.mark.parametrize("name", ["manifest.jsonl", "pages.jsonl", "quarantine.jsonl"])
@pytest.mark.parametrize("junk", [b"\x00\xff junk", b"{}", b"[]"])
def test_a_junk_line_is_a_problem_that_is_mended(
    name: str, junk: bytes, places: Places, made: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    _, output = places
    lines = (output / name).read_bytes().splitlines()
    (output / name).write_bytes(b"\n".join([lines[0], junk, *lines[1:]]) + b"\n")
    problems = verify(Storage(str(output)), Progress())
    assert [(problem.file_name, problem.what) for problem in problems] == [
        (name, "is damaged in line 2")
    ]
    assert flow.main(["--output", str(output)]) == 1
    assert repair(output) == 0
    assert "All is as the records say" in capsys.readouterr().out
    for each in PUBLISHED:
        assert (output / each).read_bytes() == (made[1] / each).read_bytes()


def test_lists_that_are_not_those_that_were_written_are_mended(
    places: Places, made: Places
) -> None:
    _, output = places
    (output / "quarantine.jsonl").unlink()
    pages = (output / "pages.jsonl").read_bytes()
    (output / "pages.jsonl").write_bytes(pages.replace(b"low_sigma", b"old_sigma", 1))
    (output / "contact-sheet.jpg").unlink()
    problems = verify(Storage(str(output)), Progress())
    assert {problem.file_name: problem.what for problem in problems} == {
        "quarantine.jsonl": "is missing",
        "pages.jsonl": "is not the file that was written",
        "contact-sheet.jpg": "is missing",
    }
    assert repair(output) == 0
    for each in PUBLISHED:
        assert (output / each).read_bytes() == (made[1] / each).read_bytes()


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b"\xff\x00"])
def test_a_broken_summary_is_mended_with_the_settings_of_the_last_run(
    junk: bytes, places: Places
) -> None:
    _, output = places
    settings = json.loads((output / "summary.json").read_bytes())["settings"]
    (output / "summary.json").write_bytes(junk)
    problems = verify(Storage(str(output)), Progress())
    assert [problem.file_name for problem in problems] == ["summary.json"]
    assert repair(output) == 0
    again = json.loads((output / "summary.json").read_bytes())["settings"]
    assert again | {"output": ""} == settings | {"output": ""}


def test_a_sample_that_does_not_come_back_is_said(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    _, output = places
    name = samples_of(output, "three")[0].relative_to(output)
    damage(output / name)
    summary = json.loads((output / "summary.json").read_bytes())
    summary["settings"]["fit"]["min_side"] = 2000
    (output / "summary.json").write_text(json.dumps(summary))
    assert repair(output) == 1
    assert f"{name} could not be made again" in " ".join(capsys.readouterr().out.split())


def test_without_any_settings_the_command_to_run_is_said(places: Places) -> None:
    _, output = places
    (output / "summary.json").write_bytes(b"{")
    (output / ".intaglio" / "published.json").unlink()
    before = tree(output)
    with pytest.raises(BadSettings, match=r"summary\.json is damaged") as caught:
        repair(output)
    assert "flows.extract" in caught.value.cure
    assert tree(output) == before


def test_a_folder_where_a_sample_belongs_is_named_with_its_cure(
    places: Places, made: Places
) -> None:
    source, output = places
    path = samples_of(output, "three")[0]
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("kept")
    for act in (
        lambda: flow.main(["--output", str(output)]),
        lambda: repair(output),
        lambda: work(settings_for(source, output)),
    ):
        with pytest.raises(StorageRefused, match="a folder lies where a file belongs") as caught:
            act()
        assert str(path) in caught.value.message and "Remove" in caught.value.cure
        assert (path / "mine.txt").exists()
    shutil.rmtree(path)
    assert repair(output) == 0
    assert path.read_bytes() == (made[1] / "images" / "three" / path.name).read_bytes()
