"""Large pages do not meet in memory: a budget of pixels which all workers share."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

BYTES_PER_PIXEL = 12
"""What cutting a page takes for each of its pixels, decoded, cut and resized: measured on a colour
page of 50 million pixels as 8 (JPEG, PNG) to 13 (JPEG 2000)."""
SHARE = 0.5
"""Share of the free memory that the pages under way may take."""
_GROUP = Path("/sys/fs/cgroup")
"""This container's own limits, as it sees them; on a machine's root there are none."""


class PixelBudget:
    """Pixels of the pages that are under way at a time.

    Args:
        most: Their sum. A page larger than that is let in when no other is under way.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._freed = threading.Condition()

    def take(self, pixels: int) -> None:
        """Wait until there is room for a page, and take it; what needs none does not wait."""
        if not pixels:
            return
        with self._freed:
            self._freed.wait_for(lambda: not self._taken or self._taken + pixels <= self._most)
            self._taken += pixels

    def give(self, pixels: int) -> None:
        """Give a page's room back."""
        with self._freed:
            self._taken -= pixels
            self._freed.notify_all()


def affordable_pixels() -> int:
    """How many pixels the free memory of this machine, or of this container, has room for."""
    free = psutil.virtual_memory().available
    # Without a limit the file says "max"; outside of Linux there is none.
    with suppress(OSError, ValueError):
        limit, used = (int((_GROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, max(0, limit - used))
    return int(SHARE * free / BYTES_PER_PIXEL)
