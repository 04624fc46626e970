"""Figures and settings in words: shares, rates, command lines, the end of a run."""

from __future__ import annotations

import shlex
from os.path import expanduser
from typing import Any

from fsspec.core import strip_protocol
from fsspec.utils import get_protocol
from pydantic import BaseModel, SecretStr

from models.calibrate import CalibrateSettings, Calibration, Rate
from models.settings import Settings


def rows(result: Calibration) -> list[tuple[str, str]]:
    """What a person wants to know at the end of a run, line by line."""
    lines = [
        ("pages", f"{result.drawn:,} of {result.archive_pages:,}"),
        ("would be kept", f"{result.kept:,} ({show_rate(result.kept_share)} of the archive)"),
        ("dropped", f"{result.dropped:,}"),
        ("uncertain", f"{result.uncertain:,}, near the threshold on either side"),
    ]
    if result.unreadable or result.unreadable_pdfs:
        text = f"{result.unreadable:,} pages, {len(result.unreadable_pdfs):,} PDFs"
        lines.append(("unreadable", text))
    for method in result.methods:
        if method.name != result.method:
            continue
        if method.measured:
            measured = method.measured
            text = ", ".join(
                f"{name} {show_rate(rate)}"
                for name, rate in (
                    ("precision", measured.precision),
                    ("recall", measured.recall),
                    ("F1", measured.f1),
                )
            )
            lines.append(("measured", f"{text} on {result.labelled:,} labelled pages"))
        suggested = method.suggestion.threshold
        text = (
            "keep" if suggested is None else f"--{_flag(method.setting)} {suggested:g} instead of"
        )
        now = f"{method.threshold:g}"
        lines.append(("suggestion", f"{text} {now}. {method.suggestion.reason}"))
    return lines


def commands(settings: CalibrateSettings, result: Calibration) -> dict[str, str]:
    """The command line of the main job with the suggestion of each method that has one."""
    lines = {}
    for method in result.methods:
        if method.suggestion.threshold is not None:
            field = method.setting.partition(".")[2]
            update = {"method": method.name, field: method.suggestion.threshold}
            triage = settings.triage.model_copy(update=update)
            lines[method.name] = command_line(settings.model_copy(update={"triage": triage}))
    return lines


def command_line(settings: Settings) -> str:
    """``python -m flows.extract`` with everything that is not as it is by default."""
    words = ["python", "-m", "flows.extract", "--source", settings.source]
    words += ["--output", settings.output]
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            for inner, default in type(value)().model_dump().items():
                if getattr(value, inner) != default:
                    words += _argument(f"{name}.{inner}", getattr(value, inner))
        elif name not in ("source", "output", "preset") and value != field.default:
            words += _argument(name, value)
    return shlex.join(words)


def training_command(settings: Settings) -> str:
    """The command line that trains the network on the labelled pages, and measures it.

    The trainer reads local files: of an output on other storage, its copy in the working folder.
    """
    output = settings.output
    if "://" in output:
        local = get_protocol(output) in ("file", "local")
        output = strip_protocol(output) if local else ""
    output = expanduser(output)
    folder = f"{output.rstrip('/')}/" if output else ""
    words = ["python", "-m", "tasks.detect.train", "--corpus", f"{folder}calibration/training"]
    return shlex.join([*words, "--output", "WEIGHTS", "--folds", "4"])


def show_percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.3g} %"


def show_rate(rate: Rate) -> str:
    """A share with its interval, in per cent."""
    if rate.value is None or rate.low is None or rate.high is None:
        return "–"
    if rate.low == rate.high:
        return f"{100 * rate.value:.0f} %"
    return f"{100 * rate.value:.0f} % ({100 * rate.low:.0f} to {100 * rate.high:.0f} %)"


def _flag(setting: str) -> str:
    return setting.replace("_", "-")


def _argument(name: str, value: Any) -> list[str]:
    flag = f"--{_flag(name)}"
    if isinstance(value, bool):
        return [flag if value else f"--no-{_flag(name)}"]
    values = value if isinstance(value, list) else [value]
    return [
        word
        for each in values
        for word in (flag, "..." if isinstance(each, SecretStr) else str(each))
    ]
