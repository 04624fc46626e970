"""The table of errors in ``docs/errors.md`` is that of the code.

    python -m tests.models.test_errors

writes it anew, and leaves a question mark where nobody has said yet what a new error's message is.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import models
from models.errors import ExitCode, InputFault, IntaglioError, StopRun

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "errors.md"
START, END = "<!-- made by tests/models/test_errors.py -->\n", "<!-- end -->\n"


def family(base: type[IntaglioError]) -> Iterator[type[IntaglioError]]:
    """The kinds of error that a user may see below a base."""
    for kind in base.__subclasses__():
        if kind.__module__.startswith("models."):
            yield kind
            yield from family(kind)


def kinds(base: type[IntaglioError]) -> list[type[IntaglioError]]:
    """All kinds below a base: those of everybody first, then module by module, line by line."""
    for module in pkgutil.walk_packages(models.__path__, "models."):
        importlib.import_module(module.name)

    def place(kind: type[IntaglioError]) -> tuple[bool, str, int]:
        module = kind.__module__
        return module != "models.errors", module, inspect.getsourcelines(kind)[1]

    return sorted(family(base), key=place)


def messages(page: str) -> dict[str, str]:
    """What the page says of each kind's message."""
    return dict(re.findall(r"(?m)^\| `(\w+)` \|.* \| ([^|]*) \| [^|]* \|$", page))


def table(page: str) -> str:
    said = messages(page)

    def row(kind: type[IntaglioError], *more: str) -> str:
        what = " ".join((kind.__doc__ or "").split())
        cells = [f"`{kind.kind}`", *more, what, said.get(kind.kind, "?"), kind.cure]
        return f"| {' | '.join(cells)} |"

    stops = [row(kind, str(int(kind.exit_code))) for kind in kinds(StopRun)]  # type: ignore[attr-defined]
    faults = [row(kind) for kind in [InputFault, *kinds(InputFault)]]
    return "\n".join(
        [
            "## What ends the run",
            "",
            "| kind | exit code | what happened | the message | what helps |",
            "|---|---|---|---|---|",
            *stops,
            "",
            "## What is quarantined while the run goes on",
            "",
            "| kind | what happened | the message | what helps |",
            "|---|---|---|---|",
            *faults,
            "",
        ]
    )


def rewritten() -> str:
    page = PAGE.read_text()
    before, rest = page.split(START)
    return before + START + table(page) + END + rest.split(END)[1]


@cache
def source() -> str:
    """The code."""
    files = [
        file for place in ("models", "tasks", "flows") for file in (ROOT / place).rglob("*.py")
    ]
    return "\n".join(file.read_text() for file in files)


def test_the_page_lists_every_error_of_the_code() -> None:
    assert rewritten() == PAGE.read_text(), "python -m tests.models.test_errors writes it anew"


def test_kinds_are_told_apart_and_have_a_cure() -> None:
    every = [InputFault, *kinds(StopRun), *kinds(InputFault)]
    assert len({kind.kind for kind in every}) == len(every)
    assert all(kind.cure.endswith(".") and kind.__doc__ for kind in every)


def test_every_exit_code_is_explained() -> None:
    listed = re.findall(r"(?m)^\| (\d+) \|", PAGE.read_text())
    assert [int(code) for code in listed] == sorted({*ExitCode, 1})


@pytest.mark.parametrize("kind", messages(PAGE.read_text()).items(), ids=lambda kind: kind[0])
def test_the_messages_are_those_of_the_code(kind: tuple[str, str]) -> None:
    """What stands between the placeholders of the page is written somewhere in the code."""
    name, said = kind
    assert said.strip() not in ("", "?"), f"docs/errors.md does not say what {name} says"
    for message in said.split("<br>"):
        for part in message.strip(" `").split("…"):
            assert part.strip() in source(), f"nothing says {part!r}"


if __name__ == "__main__":
    PAGE.write_text(rewritten())
