"""What goes into every bundle, and the writing of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from models.errors import StorageGone
from models.handoff import Bundle, BundleSample, Plan
from tasks.handoff.place import place
from tasks.progress import Progress
from tasks.storage import Storage

IMAGES = "images"
README = "README.md"
TRAIN = "train.sh"


class Shell(str):
    """A word of a command as the shell is to read it, quotes included; all others are quoted."""


@dataclass
class Content:
    """A bundle in the making.

    Attributes:
        record: What it is.
        dataset: Where the pictures lie.
        target: The bundle's folder.
        samples: Its pictures and captions.
        written: Names of all files written so far, relative to the bundle.
    """

    record: Bundle
    dataset: Storage
    target: Storage
    samples: Sequence[BundleSample]
    progress: Progress
    written: set[str] = field(default_factory=set)

    @property
    def plan(self) -> Plan:
        """What the trainer is told."""
        return self.record.plan

    @property
    def prompt(self) -> str:
        """What sample images are made of."""
        return ", ".join(filter(None, (self.record.trigger, self.plan.prompt)))

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file."""
        self.target.write(name, text.encode() if isinstance(text, str) else text)
        self.written.add(name)

    def pictures(self, folder: str, sidecars: bool = False) -> None:
        """Put all pictures into a folder.

        Args:
            folder: Relative to the bundle.
            sidecars: Write the captions beside them, as ``.txt``.

        Raises:
            StorageGone: A picture of the dataset is missing.
        """
        there = self.target.names(folder) if sidecars else {}
        for sample in self.samples:
            name = f"{folder}/{sample.image}"
            try:
                place(self.dataset, sample.file_name, self.target, name)
            except FileNotFoundError as error:
                path = self.dataset.path(sample.file_name)
                raise StorageGone(
                    f"{path} vanished.",
                    f"Make it again: python -m flows.verify --output {self.dataset.url} --repair",
                ) from error
            self.written.add(name)
            if sidecars:
                self._sidecar(f"{folder}/{sample.stem}.txt", sample.caption.encode(), there)
            self.progress.advance()

    def _sidecar(self, name: str, text: bytes, there: dict[str, int]) -> None:
        """Write a caption, unless it is there already: most of a second run's files are."""
        if there.get(name) != len(text) or self.target.read(name) != text:
            self.target.write(name, text)
        self.written.add(name)

    def script(
        self, name: str, comment: str, command: Iterable[str | int | float], before: str = ""
    ) -> None:
        """Write a shell script that works wherever the bundle lies.

        Args:
            name: Of the file.
            comment: What it does.
            command: Words; the shell fills in nothing but a :class:`Shell`.
            before: Lines of shell to run first.
        """
        shown = [w if isinstance(w, Shell) else shlex.quote(str(w)) for w in command]
        lines = [" ".join(shown[:2])]
        for word in shown[2:]:
            # An option and its value share a line.
            if word.startswith("-") or lines[-1].count(" ") or not lines[-1].startswith("-"):
                lines.append(word)
            else:
                lines[-1] += f" {word}"
        body = " \\\n  ".join([*lines, '"$@"'])
        self.write(
            name,
            f'#!/usr/bin/env bash\n# {comment}\nset -euo pipefail\ncd "$(dirname "$0")"\n'
            f"{before}exec {body}\n",
        )


def program(variable: str, path: str) -> Shell:
    """A file in the trainer's folder, as a word of a command."""
    return Shell(f'"${variable}/{path}"')


def home(variable: str, what: str) -> str:
    """A line of shell that asks for the trainer's folder."""
    return f': "${{{variable}:?set it to the folder of {what}}}"\n'
