"""Boxes: merging what belongs together, and the order of reading."""

from __future__ import annotations

from collections.abc import Sequence

from models.records import Region, RelativeBox
from tasks.detect.page import PixelBox


def merge_close(boxes: Sequence[PixelBox], gap: int) -> list[PixelBox]:
    """Join boxes that overlap or lie less than `gap` pixels apart, until none do."""
    left = list(boxes)
    done: list[PixelBox] = []
    while left:
        box = left.pop()
        near = [i for i, other in enumerate(left) if _close(box, other, gap)]
        if not near:
            done.append(box)
            continue
        for i in reversed(near):
            box = union(box, left.pop(i))
        # The grown box may now reach boxes that were finished before.
        left += [other for other in done if _close(box, other, gap)]
        done = [other for other in done if not _close(box, other, gap)]
        left.append(box)
    return done


def touch(a: RelativeBox, b: RelativeBox) -> bool:
    """Whether two boxes share any area."""
    return _close(a, b, gap=0)


def union(a: PixelBox, b: PixelBox) -> PixelBox:
    """The smallest box around two boxes."""
    return (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))


def size(box: PixelBox) -> int:
    """The area of a box in pixels; 0 if it is empty."""
    return max(0, box[2] - box[0]) * max(0, box[3] - box[1])


def overlap(a: RelativeBox, b: RelativeBox) -> float:
    """Intersection over union of two boxes, 0 to 1."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def reading_order(regions: Sequence[Region]) -> list[Region]:
    """Top to bottom in rows; regions whose heights overlap by half are a row, left to right."""
    left = sorted(regions, key=lambda region: (region.box[1], region.box[0], region.box))
    ordered: list[Region] = []
    while left:
        top = left[0].box
        row = [region for region in left if _same_row(top, region.box)]
        ordered += sorted(row, key=lambda region: (region.box[0], region.box))
        left = [region for region in left if region not in row]
    return ordered


def _same_row(a: RelativeBox, b: RelativeBox) -> bool:
    shared = min(a[3], b[3]) - max(a[1], b[1])
    return a == b or shared > 0.5 * min(a[3] - a[1], b[3] - b[1])


def _close(a: RelativeBox, b: RelativeBox, gap: int) -> bool:
    across = a[0] - gap < b[2] and b[0] - gap < a[2]
    down = a[1] - gap < b[3] and b[1] - gap < a[3]
    return across and down
