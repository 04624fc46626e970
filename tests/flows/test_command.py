"""The command line: where a setting comes from, and what is said of a bad one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from flows.command import Command, parse, parse_as, printable, run_command, settings_of
from flows.handoff import Command as Handoff
from models.errors import BadSettings, DiskLow, ExitCode, IntaglioError, NothingUsable
from models.settings import Settings

BASE = ("--source", "in", "--output", "out")


def read(*arguments: object) -> Command:
    return parse("python -m flows.x", "What x does.", [*BASE, *map(str, arguments)])


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("INTAGLIO_"):
            monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "my config.yaml").write_text(text)
        return tmp_path / "my config.yaml"

    return write


def test_command_line_over_environment_over_file_over_preset(
    config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = []
    sides.append(read().fit.side)
    sides.append(read("--preset", "article").triage.sigma_threshold)
    path = config("preset: article\ntriage: {sigma_threshold: 41}\nfit: {side: 512}\n")
    sides.append(read("--config", path).triage.sigma_threshold)
    monkeypatch.setenv("INTAGLIO_TRIAGE__SIGMA_THRESHOLD", "42")
    sides.append(read(f"--config={path}").triage.sigma_threshold)
    sides.append(read("--config", path, "--triage.sigma-threshold", 43).triage.sigma_threshold)
    assert sides == [1024, 45, 41, 42, 43]
    whole = read("--config", path, "--triage.sigma-threshold", 43)
    assert (whole.fit.mode, whole.fit.side, whole.triage.method) == ("stretch", 512, "sigma")


def test_the_file_may_be_named_in_the_environment(
    config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTAGLIO_CONFIG", str(config("fit: {side: 512}")))
    assert read().fit.side == read("--config", "").fit.side == 512


def test_the_file_may_hold_everything(config: Callable[[str], Path]) -> None:
    path = config("source: a\noutput: b\nstrict: true\n")
    command = parse("x", "x", ["--config", str(path)])
    assert (command.source, command.output, command.strict) == ("a", "b", True)
    assert not parse("x", "x", ["--config", str(path), "--no-strict"]).strict


def test_what_is_typed_counts_if_it_is_empty_and_an_empty_variable_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INTAGLIO_CAPTIONS__TRIGGER", "")
    arguments = ["--dataset", "out/"]
    assert parse_as(Handoff, "p", "", arguments).captions.trigger == "intaglio"
    monkeypatch.setenv("INTAGLIO_CAPTIONS__TRIGGER", "mode")
    assert parse_as(Handoff, "p", "", arguments).captions.trigger == "mode"
    for empty in (["--captions.trigger", ""], ["--captions.trigger="]):
        assert parse_as(Handoff, "p", "", [*arguments, *empty]).captions.trigger == ""
    with pytest.raises(BadSettings, match=r"plan\.steps"):
        parse_as(Handoff, "p", "", [*arguments, "--plan.steps", ""])


def test_an_empty_file_changes_nothing(config: Callable[[str], Path]) -> None:
    assert settings_of(read("--config", config("# nothing\n"))) == settings_of(read())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--encode.quality", "101"], ["encode.quality", "100", "101"]),
        (["--encode.quality", "0"], ["encode.quality", "1"]),
        (["--encode.quality", "x"], ["encode.quality", "integer", "'x'"]),
        (["--fit.mode", "squash"], ["fit.mode", "bucket", "squash"]),
        (["--read.dpi", "20"], ["read.dpi", "36"]),
        (["--run.pages-per-task", "0"], ["run.pages_per_task", "1"]),
        (["--preset", "none"], ["preset", "article"]),
        (["--regions.keep-kinds", "cat"], ["regions.keep_kinds", "engraving", "cat"]),
        (["--fit.side", "64", "--fit.step", "128"], ["fit", "step ≤ side"]),
        (["--config", "/nowhere.yaml"], ["config", "/nowhere.yaml", "No such file"]),
        (["--config", "/"], ["config", "cannot be read"]),
    ],
)
def test_a_bad_setting_is_named_with_its_bound(arguments: list[str], words: list[str]) -> None:
    with pytest.raises(BadSettings) as caught:
        read(*arguments)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fit: {side: 3}", ["fit.side", "64"]),
        ("fit: {size: 512}", ["fit.size"]),
        ("fit: 3", ["fit"]),
        ("preset: article\nfit: 3", ["fit"]),
        ("preset: [article]", ["preset"]),
        ("nonsense: 1", ["nonsense"]),
        ("- a list", ["config"]),
        ("a: [", ["config", "YAML"]),
        ("\x00", ["config", "YAML"]),
    ],
)
def test_a_bad_file_is_refused(text: str, words: list[str], config: Callable[[str], Path]) -> None:
    with pytest.raises(BadSettings) as caught:
        read("--config", config(text))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INTAGLIO_READ__PASSWORDS", "no json", ["read"]),
        ("INTAGLIO_FIT", "no json", ["fit"]),
        ("INTAGLIO_FIT__SIDE", "3", ["fit.side", "64"]),
        ("INTAGLIO_FIT__SIZE", "3", ["fit.size"]),
        ("INTAGLIO_CONFIG", "/nowhere.yaml", ["/nowhere.yaml"]),
    ],
)
def test_a_bad_environment_is_refused(
    name: str, value: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings) as caught:
        read()
    for word in words:
        assert word in str(caught.value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadSettings, match=r"output: Field required"):
        parse("x", "x", ["--source", "a"])


@pytest.mark.parametrize(
    ("flow", "extracts"),
    [
        ("extract", True),
        ("calibrate", True),
        ("pipeline", True),
        ("score", False),
        ("handoff", False),
        ("train", False),
        ("finetune", False),
    ],
)
def test_help_offers_a_preset_only_where_it_does_something(
    flow: str, extracts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        import_module(f"flows.{flow}").main(["--help"])
    said = capsys.readouterr().out
    assert "--config" in said and ("--preset" in said) == extracts


@pytest.mark.parametrize("flag", ["--no-such", "--fit.sid", "--fit_side"])
def test_an_unknown_flag_is_bad_usage(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read(flag, "1")
    assert caught.value.code == ExitCode.USAGE
    assert flag in capsys.readouterr().err


@pytest.mark.parametrize(
    "word",
    ["sesame", "007", "1e3", "12345", "a,b", "[x", "{", 'say "x"', " pad ", "null", "-x", ""],
)
def test_a_password_is_taken_as_it_is(word: str) -> None:
    for arguments in ([f"--read.passwords={word}"], ["--read.passwords", word]):
        if word == "-x" and len(arguments) == 2:
            continue  # argparse takes it for a flag
        command = read(*arguments, "--read.passwords=other")
        given = [password.get_secret_value() for password in command.read.passwords]
        assert given == [word, "other"]


def test_a_password_of_one_pdf_is_taken_as_it_is() -> None:
    command = read("--read.password-of", "1887/*=a=b", "--read.password-of=[1].pdf=007")
    given = {name: word.get_secret_value() for name, word in command.read.password_of.items()}
    assert given == {"1887/*": "a=b", "[1].pdf": "007"}
    assert "007" not in repr(command)
    with pytest.raises(BadSettings, match="NAME=PASSWORD") as caught:
        read("--read.password-of", "geheim")
    assert "geheim" not in str(caught.value)


def test_lists_are_given_by_repeating_the_flag() -> None:
    command = read("--regions.keep-kinds", "map", "--regions.keep-kinds", "music")
    assert command.regions.keep_kinds == ["map", "music"]


def test_help_shows_every_setting_its_bounds_and_choices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse("python -m flows.x", "What x does.", ["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "python -m flows.x" in shown and "What x does." in shown
    for name, field in Settings.model_fields.items():
        group: Any = field.annotation
        inner = getattr(group, "model_fields", None)
        flags = [f"--{name}.{each}" for each in inner] if inner else [f"--{name}"]
        for flag in flags:
            assert flag.replace("_", "-") in shown
    flat = " ".join(shown.split())
    for words in ("[1 to 100]", "bucket", "engraving", "--dry-run", "--config", "article"):
        assert words in flat


def test_settings_leave_behind_what_belongs_to_the_command_line() -> None:
    command = read("--dry-run", "--fit.side", 512)
    assert command.dry_run
    settings = settings_of(command)
    assert type(settings) is Settings
    assert settings == Settings.model_validate(
        {"source": "in", "output": "out", "fit": {"side": 512}}
    )


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (BadSettings("fit.side: no"), 2, ["fit.side: no", "--help"]),
        (DiskLow("Only 3 MB"), 3, ["Only 3 MB", "run the same command again"]),
        (NothingUsable("no PDF"), 4, ["no PDF"]),
        (IntaglioError("odd"), 1, ["odd", "report"]),
        (KeyboardInterrupt(), 130, ["same command goes on"]),
        (None, 0, []),
    ],
)
def test_how_a_command_ends(
    error: BaseException | None,
    code: int,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--flag"])
    seen: list[list[str]] = []

    def main(arguments: list[str]) -> ExitCode:
        seen.append(arguments)
        if error is not None:
            raise error
        return ExitCode.OK

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert run_command(main) == code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert seen == [["--flag"]]
    told = capsys.readouterr().err
    assert "Traceback" not in told
    for word in words:
        assert word in told


def test_what_a_file_name_holds_cannot_move_the_cursor() -> None:
    assert printable("a\x1b]0;owned\x07b\u202e.pdf") == "a\\x1b]0;owned\\x07b\\u202e.pdf"
    assert printable("two\nlines, Zürich") == "two\nlines, Zürich"
