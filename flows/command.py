"""The command line of the flows: settings in, exit code out."""

from __future__ import annotations

import argparse
import atexit
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any, Literal, TypeVar

import httpx
from prefect.settings import get_current_settings
from pydantic import ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)

from models.errors import BadSettings, ExitCode, IntaglioError, ServerGone, StopRun
from models.settings import Group, Settings, holds_password, with_preset
from tasks.orphans import end_orphans, mark_children

HOME_CURE = (
    "Make that folder writable and give it room, choose another (PREFECT_HOME=folder), or use a "
    "server that runs (PREFECT_API_URL); the same command goes on from here."
)
DATABASE_BYTES = 4_000_000
"""What a new database of Prefect takes, about."""
_interrupted = threading.Event()
_gone = threading.Event()
"""Set when Prefect's server is known to be gone."""


class CommandLine(BaseSettings):
    """What makes a settings tree a command line.

    What is given on the command line wins over the environment (INTAGLIO_FIT__SIDE=768), that over
    the YAML file.
    """

    model_config = SettingsConfigDict(
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_avoid_json=True,
        cli_use_class_docs_for_groups=True,
        cli_hide_none_type=True,
        env_prefix="INTAGLIO_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
    )

    config: str | None = None
    """YAML file with any of these settings, grouped as they are here."""


class ExtractionLine(CommandLine):
    """The command line of what extracts, which alone has a preset; all else wins over it."""

    model_config = CommandLine.model_config

    preset: Literal["article"] | None = None
    """A named set of settings, which all others override. article: the pipeline this project
    grew out of (2× zoom, sigma over 45, whole pages stretched to 1024×1024, JPEG 92)."""

    @model_validator(mode="before")
    @classmethod
    def _apply_preset(cls, data: Any) -> Any:
        return with_preset(data) if isinstance(data, dict) else data


class Command(Settings, ExtractionLine):
    """The settings of ``python -m flows.extract``."""

    model_config = CommandLine.model_config

    dry_run: bool = False
    """Say what would be done, with an estimate of time and disk, and do nothing."""


C = TypeVar("C", bound=CommandLine)
S = TypeVar("S", bound=Group)


def parse(program: str, description: str, arguments: list[str]) -> Command:
    """Read the settings of the main job; see :func:`parse_as`."""
    return parse_as(Command, program, description, arguments)


def parse_as(kind: type[C], program: str, description: str, arguments: list[str]) -> C:
    """Read the settings from command line, environment, YAML file and, if there is one, preset.

    Args:
        kind: The settings tree as a command line.
        program: Name for the usage line.
        description: First paragraph of ``--help``.
        arguments: The command line without the program.

    Raises:
        BadSettings: Naming the field and its bound.
    """
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", default=os.environ.get("INTAGLIO_CONFIG"))
    config = early.parse_known_args(arguments)[0].config or os.environ.get("INTAGLIO_CONFIG")
    # Passwords are taken as they are: the list parser would read 007 as a number, a,b as two.
    secret = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    secret.add_argument("--read.passwords", action="append")
    secret.add_argument("--read.password-of", action="append", type=_name_and_password)
    known, rest = secret.parse_known_args(arguments)
    words, pairs = vars(known)["read.passwords"], vars(known)["read.password_of"]
    read = {"passwords": words, "password_of": dict(pairs) if pairs else None}
    typed = {name: value for name, value in read.items() if value}
    given = {"read": typed} if typed else {}

    class Sources(kind):  # type: ignore[valid-type, misc]
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            command_line: Any = CliSettingsSource(settings_cls, cli_prog_name=program)
            # What is typed counts, even if it is empty; an empty variable may be a leftover.
            command_line.env_ignore_empty = False
            command_line.root_parser.usage = f"%(prog)s {_needed(kind)}[settings]"
            sources = (init_settings, command_line(args=rest), env_settings)
            return (*sources, _yaml(settings_cls, config)) if config else sources

    Sources.__doc__ = description
    try:
        command: C = Sources(**given)
    except ValidationError as error:
        raise BadSettings("\n".join(map(_explain, error.errors()))) from error
    except SettingsError as error:
        raise BadSettings(f"{error}.") from error
    if (command.config or config) != config:
        raise BadSettings("config: write --config in full, once.")
    return command


def _needed(kind: type[CommandLine]) -> str:
    """What must be given, as the usage line shows it."""
    fields = kind.model_fields.items()
    return "".join(f"--{name} {name.upper()} " for name, field in fields if field.is_required())


def _name_and_password(text: str) -> tuple[str, str]:
    """A PDF and its password, which may itself hold an equals sign."""
    name, sign, word = text.partition("=")
    if not sign:
        raise BadSettings("read.password_of: write NAME=PASSWORD, for instance '1887/*=sesame'.")
    return name, word


def _yaml(settings: type[BaseSettings], path: str) -> YamlConfigSettingsSource:
    try:
        with open(path, encoding="utf-8"):
            return YamlConfigSettingsSource(settings, yaml_file=path)
    except OSError as error:
        raise BadSettings(f"config: {path} cannot be read: {error.strerror}.") from error
    except Exception as error:
        raise BadSettings(f"config: {path} is no YAML: {error}") from error


def _explain(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"]) or "settings"
    # A password is never shown, not even a wrong one.
    given = error.get("input")
    if "password" in field or (isinstance(given, str) and holds_password(given)):
        given = None
    shown = f" (given: {given!r})" if isinstance(given, str | int | float) else ""
    return f"{field}: {error['msg']}{shown}"


def settings_of(command: Command) -> Settings:
    """The settings without what belongs to the command line alone."""
    return tree_of(command, Settings)


def tree_of(command: CommandLine, kind: type[S]) -> S:
    """A command's settings tree, without what belongs to the command line alone."""
    fields = {name: getattr(command, name) for name in kind.model_fields}
    return kind.model_construct(**fields)  # type: ignore[return-value]


class _Pipe(io.FileIO):
    """Standard output or error whose reader may leave, as ``head`` does: the run goes on."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def _let_readers_leave() -> None:
    """Let nobody who stops reading what we say end the run, or change its exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            pipe = _Pipe(stream.fileno(), "w", closefd=False)
            at_once = stream.write_through  # python -u
            quiet = io.TextIOWrapper(
                pipe if at_once else io.BufferedWriter(pipe),
                stream.encoding,
                stream.errors,
                line_buffering=stream.line_buffering,
                write_through=at_once,
            )
            setattr(sys, name, quiet)


def run_command(main: Callable[[list[str]], int]) -> int:
    """Run a flow's main function, and turn whatever happens into an exit code."""
    _let_readers_leave()
    # Python, while it ends, would die of a signal whatever the exit code.
    atexit.register(_answer_signals, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _interrupt)
    _quiet_console()
    end_orphans()
    mark_children()
    code = _exit_code(main)
    # From here on all is done or said, and nobody need wait for what libraries still have to do.
    sys.stdout.flush()
    sys.stderr.flush()
    _answer_signals(lambda *_: os._exit(code))
    if _gone.is_set():
        # Prefect would go on trying to deliver its events, for minutes.
        os._exit(code)
    return code


def _exit_code(main: Callable[[list[str]], int]) -> int:
    try:
        return main(sys.argv[1:])
    except (KeyboardInterrupt, Exception) as error:
        # Libraries that are interrupted in the middle of something may fail with errors of theirs.
        if _interrupted.is_set() or isinstance(error, KeyboardInterrupt):
            # Python ends by the signal itself, not with our code, if the interrupt fell into a
            # string that was executed, as dataclasses do; executing another makes it forget.
            exec("")
            say("Interrupted; the same command goes on from here.")
            return ExitCode.INTERRUPTED
        if not isinstance(error, IntaglioError):
            if not server_is_gone(error):
                raise
            error = _server_gone()
        say(f"{error.message}\n{error.cure}")
        return error.exit_code if isinstance(error, StopRun) else 1


def start_prefect() -> None:
    """Say that Prefect starts; its own server, where no other is named, needs a folder it can use.

    Prefect would try for minutes, and say nothing of the cause.

    Raises:
        ServerGone: It has none.
    """
    print("Starting Prefect ...", file=sys.stderr)
    settings = get_current_settings()
    if settings.api.url:
        return
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=settings.home) as probe:
            probe.write(bytes(DATABASE_BYTES))
    except OSError as error:
        told = (
            f"Prefect's own server cannot keep its database in {settings.home}: {error.strerror}."
        )
        raise ServerGone(told, HOME_CURE) from error


def _server_gone() -> ServerGone:
    settings = get_current_settings()
    if url := settings.api.url:
        return ServerGone(f"Prefect's server at {url} does not answer, or only with errors.")
    told = (
        f"Prefect's own server does not start, or only fails; its database is in {settings.home}."
    )
    return ServerGone(told, HOME_CURE)


def say(text: str) -> None:
    """Tell the user something that went wrong."""
    print(printable(text), file=sys.stderr)


def printable(text: str) -> str:
    """Text for a terminal: what a file name may hold must not move cursors or ring bells."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def server_is_gone(error: BaseException) -> bool:
    """Whether an error comes from Prefect's API, which cannot be reached or only fails.

    If so, this process will end without waiting to tell it the rest.
    """
    seen: BaseException | None = error
    while seen is not None:
        failed = isinstance(seen, httpx.HTTPStatusError) and seen.response.is_server_error
        # Prefect has no class for its own server that does not start.
        absent = isinstance(seen, RuntimeError) and "ephemeral Prefect API server" in str(seen)
        if failed or absent or isinstance(seen, httpx.TransportError):
            _gone.set()
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _quiet_console() -> None:
    """Say errors once, at the end; Prefect's API still gets its own account of them."""
    for name in ("", "uvicorn", "fastapi", "prefect._internal"):
        for handler in logging.getLogger(name).handlers:
            handler.setLevel(logging.CRITICAL)
    ours = logging.getLogger("intaglio")
    ours.setLevel(logging.INFO)
    ours.addHandler(logging.StreamHandler())
    ours.propagate = False


def _answer_signals(answer: Any) -> None:
    signal.signal(signal.SIGTERM, answer)
    signal.signal(signal.SIGINT, answer)


def _interrupt(*_: Any) -> None:
    _interrupted.set()
    raise KeyboardInterrupt
