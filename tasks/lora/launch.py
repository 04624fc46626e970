"""Running another project's trainer on a bundle, its output in our log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from time import monotonic

from models.errors import BadSettings
from models.handoff import Bundle
from models.train import TrainerFailed, TrainerMissing, TrainSettings
from tasks.end import end
from tasks.handoff.content import TRAIN
from tasks.storage import Storage

NEEDS = {"kohya": "accelerate", "diffusers": "accelerate", "simpletuner": "simpletuner"}
"""Programs that must be on the PATH, by trainer."""
VENVS = ("venv", ".venv")
"""Where a trainer's README has its environment made, in the trainer's folder."""
BAR_EVERY_S = 10.0
"""Seconds between two states of a progress bar that are told."""


class Launch:
    """A trainer about to be run.

    Args:
        settings: Which bundle, and where the trainer lies.
        bundle: The bundle's record.

    Attributes:
        output: Where the trainer writes.
        elsewhere: What to do if nothing can be written there.

    Raises:
        BadSettings: The bundle is for no trainer, or not on this machine's disk, or an output is
            named.
        TrainerMissing: The trainer is not installed.
    """

    elsewhere = "Copy the bundle to where it can be written: the trainer writes into it."

    def __init__(self, settings: TrainSettings, bundle: Bundle) -> None:
        place = Storage(settings.bundle)
        if not place.local:
            raise BadSettings(
                f"bundle: {place.url} is not on this machine.",
                "Copy it here first (--zip of flows.handoff makes one file of it).",
            )
        self.script = Path(place.path(TRAIN))
        if not self.script.is_file():
            raise BadSettings(
                f"bundle: that of {bundle.trainer} is no trainer's.",
                "Launch one of kohya, diffusers, ai-toolkit, onetrainer, simpletuner, open-clip.",
            )
        if settings.output:
            raise BadSettings(
                "output: a launched trainer writes into the bundle.",
                "Leave --output out: the LoRA goes to the bundle's own output/.",
            )
        self.output = Storage(place.path("output"))
        self.environment = dict(os.environ)
        path = [self.environment.get("PATH", os.defpath)]
        if bundle.home:
            home = self._find_home(settings, bundle)
            self.environment[bundle.home] = str(home)
            # The trainer's own environment, if it has one, goes before whatever is activated.
            path = [*(str(b) for v in VENVS if (b := home / v / "bin").is_dir()), *path]
        # What stands beside this Python is better than nothing.
        path.append(os.path.dirname(sys.executable))
        self.environment["PATH"] = os.pathsep.join(path)
        program = NEEDS.get(bundle.trainer)
        if program and shutil.which(program, path=self.environment["PATH"]) is None:
            raise TrainerMissing(
                f"{bundle.trainer} needs {program}, which is not on the PATH.",
                f"Install the trainer as its README says (pip install {program}), or activate its "
                "environment first.",
            )

    def _find_home(self, settings: TrainSettings, bundle: Bundle) -> Path:
        home = settings.home or os.environ.get(bundle.home, "")
        cure = f"Give its folder with --home, or set {bundle.home}."
        if not home:
            raise TrainerMissing(f"Where is {bundle.trainer}? Nothing says so.", cure)
        if not (Path(home) / bundle.program).is_file():
            raise TrainerMissing(
                f"{home} has no {bundle.program}: it is no {bundle.trainer}.", cure
            )
        return Path(home).resolve()

    @property
    def command(self) -> str:
        """What is run, as the script has it."""
        lines = self.script.read_text().splitlines()
        start = next(n for n, line in enumerate(lines) if line.startswith("exec "))
        return "\n".join(lines[start:])

    def run(self, tell: Callable[[str], None]) -> None:
        """Run it to its end; an interruption ends it, too.

        Args:
            tell: Takes each line it prints; of a progress bar, a state now and then.

        Raises:
            TrainerFailed: It ended with another exit code than 0.
        """
        process = subprocess.Popen(
            ["bash", str(self.script)],
            env={**self.environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A group of its own, so that all of it can be ended.
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            told = monotonic()
            # Unlike by default, a carriage return can be told from the end of a line.
            for line in TextIOWrapper(process.stdout, "utf-8", "replace", newline=""):
                now = monotonic()
                if line.endswith("\r") and now - told < BAR_EVERY_S:
                    continue
                told = now
                if text := line.rstrip():
                    tell(text)
            code = process.wait()
        finally:
            end(process)
        if code:
            raise TrainerFailed(f"{self.script} ended with exit code {code}.")
