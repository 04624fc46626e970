"""Histograms as shapes: where the bars and ticks of a method's figures lie on the drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

WIDTH, HEIGHT = 440.0, 150.0
"""Size of the drawing without the line of ticks, in its own units."""
LEFT = 44.0
"""Where the axis begins; left of it stands the bar of pages without any picture."""
TOP = 30.0
"""Room for the names of the thresholds."""
BINS = 44
GROUPS = {
    "illustrated": "illustrated",
    "kept": "kept",
    "uncounted": "no label, or other",
    "dropped": "dropped",
    "plain": "text or blank",
}
"""What pages are sorted into and what it is called, stacked in this order from below."""
AREA_TICKS = (0.01, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)


@dataclass(frozen=True)
class Bar:
    """Pages of one group in one bin; a rectangle."""

    group: str
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True)
class Histogram:
    """A drawing.

    Attributes:
        ticks: Places and names.
        groups: Those there are, in the order of `GROUPS`.
        none: Pages whose figure is zero.
        highest: Pages of the highest bin on the axis.
    """

    bars: list[Bar]
    ticks: list[tuple[float, str]]
    groups: list[str]
    none: int
    highest: int
    end: float
    root: bool

    def x(self, figure: float) -> float:
        """Where a figure lies across the drawing; areas on a square-root axis."""
        return _place(figure, self.end, self.root)


def histogram(method: str, figures: Sequence[float], groups: Sequence[str]) -> Histogram:
    """Sort figures into bins.

    Args:
        method: Name of the method.
        figures: One for each page.
        groups: One of `GROUPS` for each page.
    """
    root = method != "sigma"
    end = 1.0 if root else max(90.0, *figures, 0.0)
    bins: dict[int, Counter[str]] = {}
    for figure, group in zip(figures, groups, strict=True):
        at = (_place(figure, end, root) - LEFT) / (WIDTH - LEFT) * BINS
        number = -1 if root and figure == 0 else min(BINS - 1, int(at))
        bins.setdefault(number, Counter())[group] += 1
    highest = max((sum(b.values()) for n, b in bins.items() if n >= 0), default=0)
    none = sum(bins.get(-1, Counter()).values())
    bars = [bar for number in sorted(bins) for bar in _stack(number, bins[number], highest)]
    ticks = AREA_TICKS if root else [float(t) for t in range(0, int(end) + 1, 15)]
    return Histogram(
        bars=bars,
        ticks=[(_place(t, end, root), f"{100 * t:g} %" if root else f"{t:g}") for t in ticks],
        groups=[group for group in GROUPS if group in groups],
        none=none,
        highest=highest,
        end=end,
        root=root,
    )


def _place(figure: float, end: float, root: bool) -> float:
    share = min(1.0, max(0.0, figure / end))
    return LEFT + (WIDTH - LEFT) * (sqrt(share) if root else share)


def _stack(number: int, counts: Counter[str], highest: int) -> list[Bar]:
    """The bars of one bin, one upon the other.

    The bin of pages without any picture (-1) may be far higher than all others; it is as high as
    the drawing, and its number is written over it.
    """
    step = (WIDTH - LEFT) / BINS
    total = sum(counts.values())
    x, width = (8.0, 22.0) if number < 0 else (LEFT + number * step + 0.5, step - 1.0)
    unit = (HEIGHT - TOP) / max(highest, 1)
    if number < 0:
        unit = min(unit, (HEIGHT - TOP) / total)
    bars = []
    y = HEIGHT
    for group in GROUPS:
        if count := counts[group]:
            y -= count * unit
            title = f"{count} {GROUPS[group]}"
            bars.append(Bar(group, round(x, 2), round(y, 2), width, round(count * unit, 2), title))
    return bars
