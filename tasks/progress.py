"""Telling a person how far a run is: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import logging
import sys
import threading
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

LOG_EVERY_S = 30.0
logger = logging.getLogger("intaglio.progress")


class Progress:
    """Counts of the pages looked at, kept and finished; safe to use from several threads.

    A page that is dropped is finished with triage, a kept one with its last sample.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._bar: Bar | None = None
        self.start(0)

    def start(self, pages: int, stage: str = "pages") -> None:
        """Begin a stage.

        Args:
            pages: What it has to do altogether.
            stage: Its name.
        """
        self.stop()
        self.total = pages
        self.done = self.kept = self._resumed = 0
        self.stage = stage
        self._begun = self._told = monotonic()
        if pages and sys.stderr.isatty():
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(stage, total=pages, note="")
            self._bar.start()

    def advance(self, pages: int = 1, kept: int = 0, resumed: int = 0) -> None:
        """Count finished pages.

        Args:
            pages: Finished pages.
            kept: How many of them gave samples.
            resumed: How many of them an earlier run had finished; they do not count as speed.
        """
        with self._lock:
            self._resumed += resumed
            self.done += pages
            self.kept += kept
            now = monotonic()
            rate = (self.done - self._resumed) / max(now - self._begun, 1e-3)
            note = f"{self.kept} kept, {rate:.1f}/s" if self.stage == "pages" else ""
            if self._bar is not None:
                self._bar.update(self._task, completed=self.done, note=note)
            elif now - self._told > LOG_EVERY_S:
                self._told = now
                left = max(self.total - self.done, 0) / max(rate, 1e-3)
                logger.info(
                    "%s: %d of %d%s, about %d s left",
                    self.stage,
                    self.done,
                    self.total,
                    f", {note}" if note else "",
                    left,
                )

    def stop(self) -> None:
        """Take the bar off the screen."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
