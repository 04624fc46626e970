"""Where the time of the first batches goes, as PyTorch's profiler sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.errors import BadSettings

BATCHES = 10
"""Batches that are profiled; a trace of all of them would be as large as the images."""
OPERATIONS = 12
"""Operations shown."""
logger = logging.getLogger("intaglio.clip")

Tower = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def check_place(path: str) -> None:
    """See that a trace can be written.

    Raises:
        BadSettings: It cannot.
    """
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab") as stream:
            empty = not stream.tell()
        if empty:
            place.unlink()
    except OSError as error:
        raise BadSettings(
            f"clip.profile: {path} cannot be written: {error.strerror}.", "Name another file."
        ) from error


class Profile:
    """Profiles the first batches of images that are embedded, and nothing before them.

    Args:
        path: File for the trace.

    Raises:
        BadSettings: It cannot be written.
    """

    def __init__(self, path: str) -> None:
        check_place(path)
        self._path, self._left = path, BATCHES
        self._profiler: Any = None
        self._order = ""

    def watch(self, tower: Tower, device: str) -> Tower:
        """The same image tower, watched.

        Args:
            tower: The tower.
            device: ``cpu`` or ``cuda``.
        """

        def watched(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
            if self._left and self._profiler is None:
                self._begin(device)
            features = tower(pixels)
            if self._left:
                self._left -= 1
                if not self._left:
                    self.end()
            return features

        return watched

    def _begin(self, device: str) -> None:
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU]
        self._order = "self_cpu_time_total"
        if device == "cuda":
            kinds.append(ProfilerActivity.CUDA)
            self._order = "self_device_time_total"
        self._profiler = profile(activities=kinds)
        self._profiler.start()

    def end(self) -> None:
        """Write the trace of what was embedded, if anything was, and show what took longest."""
        if self._profiler is None:
            return
        profiler, self._profiler, self._left = self._profiler, None, 0
        profiler.stop()
        profiler.export_chrome_trace(self._path)
        table = profiler.key_averages().table(sort_by=self._order, row_limit=OPERATIONS)
        logger.info("The operations that took longest (trace in %s):\n%s", self._path, table)

    def close(self) -> None:
        """Say so if no image was embedded."""
        self.end()
        if self._left:
            logger.warning("No image was embedded: there is no profile in %s.", self._path)
