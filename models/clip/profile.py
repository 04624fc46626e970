"""Where the time of the first batches goes, as PyTorch's profiler sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCHES = 10
"""Batches that are profiled; a trace of all of them would be as large as the images."""
OPERATIONS = 12
"""Operations shown."""
logger = logging.getLogger("intaglio.clip")

Tower = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class Profile:
    """An image tower that profiles its first batches.

    Args:
        tower: The tower itself.
        path: File for the trace.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, tower: Tower, path: str, device: str) -> None:
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU]
        self._order = "self_cpu_time_total"
        if device == "cuda":
            kinds.append(ProfilerActivity.CUDA)
            self._order = "self_device_time_total"
        self._tower, self._path, self._left = tower, Path(path), BATCHES
        self._profiler: Any = profile(activities=kinds)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._profiler.start()

    def __call__(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Embed a batch, and end the profile after the last of those that are profiled."""
        features = self._tower(pixels)
        self._left -= 1
        if self._left == 0:
            self.end()
        return features

    def end(self) -> None:
        """Write the trace and show what took longest, once."""
        if self._profiler is None:
            return
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        profiler.export_chrome_trace(str(self._path))
        table = profiler.key_averages().table(sort_by=self._order, row_limit=OPERATIONS)
        logger.info("The operations that took longest (trace in %s):\n%s", self._path, table)
