"""Which pixels to make of a page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.records import RelativeBox

WHOLE: RelativeBox = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Grid:
    """The pixels to make of a page: all ``across`` by ``down`` of it, from which a part is cut."""

    width: float
    height: float
    box: RelativeBox
    across: int
    down: int

    @classmethod
    def of(cls, width: float, height: float, dpi: float, box: RelativeBox) -> Grid:
        """The grid of a page of a size in points at a resolution.

        A page is a whole number of pixels in both directions, its resolution rounded to suit. So
        no edge is half paper, and at its own resolution a scan is copied pixel by pixel.
        """
        scale = dpi / 72
        return cls(width, height, box, max(1, round(width * scale)), max(1, round(height * scale)))

    @property
    def left(self) -> int:
        """The first column that is cut out."""
        return min(self.across - 1, round(self.box[0] * self.across))

    @property
    def top(self) -> int:
        """The first row that is cut out."""
        return min(self.down - 1, round(self.box[1] * self.down))

    @property
    def right(self) -> int:
        """The column after the last."""
        return max(self.left + 1, round(self.box[2] * self.across))

    @property
    def bottom(self) -> int:
        """The row after the last."""
        return max(self.top + 1, round(self.box[3] * self.down))

    @property
    def pixels(self) -> int:
        """How many pixels are cut out."""
        return (self.right - self.left) * (self.bottom - self.top)

    @property
    def dpi(self) -> float:
        """Pixels per inch, the mean of both directions."""
        return 72 * math.sqrt(self.across * self.down / (self.width * self.height))

    def within(self, max_pixels: int) -> Grid:
        """The finest grid with no more pixels than that, give or take half a percent."""
        dpi = self.dpi * math.sqrt(max_pixels / self.pixels)
        grid = self
        while grid.pixels > max_pixels:
            grid = Grid.of(self.width, self.height, dpi, self.box)
            dpi *= 0.995
        return grid
