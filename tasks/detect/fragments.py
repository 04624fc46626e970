"""Which ink makes one picture: growing over pieces, joining fragments, parting neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.detect.blobs import Pieces
from tasks.detect.boxes import size, union
from tasks.detect.edges import REACH, snap
from tasks.detect.page import Mask, PixelBox

SPECK = 7
"""Pieces of ink with fewer pixels than this, at 512 pixels a page, are grain."""
LETTERS = 0.03
"""Pieces of ink larger than this, as a fraction of the page's longer side, are no letters."""
MOSTLY_IN = 0.6
"""A piece with at least this share of its ink in a box belongs to it."""
MOST_OF_IT = 0.8
"""A blob that holds at least this share of a box may complete it."""
MUCH_LARGER = 4
"""A blob of more than this many times the area of a box is something else."""
FEW_LETTERS = 0.3
"""An edge moves over ink with at most this share of letter-sized pieces."""
CAPTION_GAP = 2
"""Fewest white lines, at 512 pixels a page, between a picture and its caption."""
LETTERED = 0.6
"""Ink with more than this share of letter-sized pieces is a caption; with less it is the foot of
the picture."""
IS_TEXT = 0.5
"""A cell at least this probable is text."""
LITTLE_TEXT = 0.3
"""A box does not grow over more text than this share of what it gains."""
IN_LINE = 0.6
"""Fragments of one picture share at least this part of the larger one's side."""
DENSE = 0.5
"""Between fragments of one picture there is at least this share of their own density of ink."""
GUTTER = 0.012
"""Least width of the white between two pictures, as a fraction of the page's longer side."""
PLATE = 0.3
"""A box of at least this fraction of the page is one picture."""
OUTERMOST = 8
"""Lines at the edge of a page of 512 pixels that tell a picture which runs to it from a margin."""
UNSURE = 0.75
"""Between two pictures the map is less sure than this; within one it is surer."""


def strokes(pieces: Pieces) -> Mask:
    """(H, W) mask of the ink without pieces too small to be a stroke."""
    keep = pieces.stats[:, cv2.CC_STAT_AREA] >= SPECK
    keep[0] = False
    mask: Mask = (keep * np.uint8(255))[pieces.labels]
    return mask


def grow(pieces: Pieces, box: PixelBox, text: NDArray[np.float32]) -> PixelBox:
    """The box with the whole of every large piece of ink that lies in it for a good part.

    So a picture of which the network saw a part is taken whole. A piece that would add text, or
    more than the box's own size on a side, is a frame or touches one.
    """
    x0, y0, x1, y1 = box
    inside = np.bincount(pieces.labels[y0:y1, x0:x1].ravel(), minlength=len(pieces.stats))
    side = LETTERS * max(pieces.labels.shape)
    large = np.maximum(pieces.stats[:, 2], pieces.stats[:, 3]) > side
    large[0] = False
    grown = box
    for number in np.flatnonzero(large & (inside >= MOSTLY_IN * pieces.stats[:, 4])):
        x, y, w, h, _ = (int(v) for v in pieces.stats[number])
        wider = union(grown, (x, y, x + w, y + h))
        if _allowed(box, wider, text, pieces.labels.shape):
            grown = wider
    return grown


def complete(pieces: Pieces, box: PixelBox, blobs: Sequence[PixelBox]) -> PixelBox:
    """The box with each edge moved out to that of a blob that holds most of the box.

    An edge stays where it is if what it would move over are letters, or is white, or if the blob
    is very much larger.
    """
    whole = box
    for blob in blobs:
        shared = (
            max(box[0], blob[0]),
            max(box[1], blob[1]),
            min(box[2], blob[2]),
            min(box[3], blob[3]),
        )
        if size(shared) < MOST_OF_IT * size(box) or size(blob) > MUCH_LARGER * size(box):
            continue
        for edge in range(4):
            x0, y0, x1, y1 = beyond = _beyond(whole, blob, edge)
            # Where there is no ink the share of letters is 1.
            if pieces.text_share((slice(y0, y1), slice(x0, x1))) <= FEW_LETTERS:
                whole = union(whole, beyond)
    return whole


def to_edges(ink: Mask, box: PixelBox) -> PixelBox:
    """The box with edges moved to those of the page where the ink beyond is about as dense.

    For pages with nothing but a picture, of which the maps see a face or a dress. ``ink`` is that
    of the page, without dark scan borders.
    """
    whole = box
    for edge in (*range(4), *range(4)):
        x0, y0, x1, y1 = beyond = _beyond(whole, (0, 0, ink.shape[1], ink.shape[0]), edge)
        if not size(beyond):
            continue
        enough = DENSE * np.mean(ink[whole[1] : whole[3], whole[0] : whole[2]] > 0)
        strip = ink[y0:y1, x0:x1] > 0
        # Line by line from the edge of the page: a margin is white, whatever lies within it.
        lines = strip.mean(axis=1 if edge % 2 else 0)
        outer = lines[:OUTERMOST] if edge < 2 else lines[-OUTERMOST:]
        if strip.mean() >= enough and outer.mean() >= enough:
            whole = union(whole, beyond)
    return whole


def _beyond(box: PixelBox, blob: PixelBox, edge: int) -> PixelBox:
    """What a blob has beyond one edge of a box, as wide or high as the box; empty if nothing."""
    beyond = list(box)
    if edge < 2:
        beyond[edge], beyond[edge + 2] = min(blob[edge], box[edge]), box[edge]
    else:
        beyond[edge - 2], beyond[edge] = box[edge], max(blob[edge], box[edge])
    return (beyond[0], beyond[1], beyond[2], beyond[3])


def without_captions(pieces: Pieces, ink: Mask, box: PixelBox) -> PixelBox:
    """The box without lines of letters at its top and bottom that white parts from the rest.

    ``ink`` is that of the pieces without specks, which lie in the white as well. At most a fifth of
    the height is cut off at either end: more would be another picture.
    """
    x0, y0, x1, y1 = box
    inked = np.max(ink[y0:y1, x0:x1], axis=1) > 0
    top = _caption_depth(pieces, inked, lambda end: (slice(y0, y0 + end), slice(x0, x1)))
    bottom = _caption_depth(pieces, inked[::-1], lambda end: (slice(y1 - end, y1), slice(x0, x1)))
    return (x0, y0 + top, x1, y1 - bottom)


def _caption_depth(
    pieces: Pieces, inked: NDArray[np.bool_], window: Callable[[int], tuple[slice, slice]]
) -> int:
    """How many lines from the edge are a caption; 0 if none.

    ``inked`` says of each line, from the edge inwards, whether there is ink; ``window`` gives
    the area of so many lines from the edge.
    """
    depth = 0
    for start, end in _runs(~inked[: len(inked) // 5]):
        if start > 0 and end - start >= CAPTION_GAP and pieces.text_share(window(start)) > LETTERED:
            depth = max(0, end - 2)
    return depth


def join_fragments(ink: Mask, text: NDArray[np.float32], boxes: list[PixelBox]) -> list[PixelBox]:
    """Boxes of which one continues the other, joined: between them is ink, and it is not text."""
    left = list(boxes)
    done: list[PixelBox] = []
    while left:
        box = left.pop()
        for i, other in enumerate(left):
            between = _between(box, other)
            if between is not None and _continues(ink, text, box, other, between):
                left[i] = union(box, other)
                break
        else:
            done.append(box)
    return done


def _between(a: PixelBox, b: PixelBox) -> PixelBox | None:
    """The area between two boxes side by side or one above the other; None if they are askew.

    They are in line if they share most of the larger one's side, and near if the area is
    smaller than the smaller of them.
    """
    for axis in (0, 1):
        low, high = max(a[axis], b[axis]), min(a[axis + 2], b[axis + 2])
        widest = max(a[axis + 2] - a[axis], b[axis + 2] - b[axis])
        first, second = sorted((a, b), key=lambda box: box[1 - axis])
        start, end = first[3 - axis], second[1 - axis]
        nearest = min(a[3 - axis] - a[1 - axis], b[3 - axis] - b[1 - axis])
        if high - low >= IN_LINE * widest and 0 < end - start <= nearest:
            return (low, start, high, end) if axis == 0 else (start, low, end, high)
    return None


def _continues(
    ink: Mask, text: NDArray[np.float32], a: PixelBox, b: PixelBox, between: PixelBox
) -> bool:
    inked = [float((ink[y0:y1, x0:x1] > 0).mean()) for x0, y0, x1, y1 in (a, b, between)]
    dense = inked[2] >= DENSE * min(inked[:2])
    return dense and float(cells(text, between, ink.shape).mean()) < LITTLE_TEXT


def split(ink: Mask, likely: NDArray[np.float32], box: PixelBox) -> list[PixelBox]:
    """The box cut at a white gutter that the map is unsure of, if there is one; each part tight.

    A box that takes a good part of the page is left whole: that is a plate of several figures.
    """
    x0, y0, x1, y1 = box
    if size(box) >= PLATE * ink.size:
        return [box]
    side = max(ink.shape)
    gutter = max(3, round(GUTTER * side))
    part = ink[y0:y1, x0:x1]
    for axis in (0, 1):
        inked: NDArray[np.bool_] = np.max(part, axis=axis) > 0
        length = len(inked)
        least = max(length // 6, round(REACH * side))
        for start, end in _runs(~inked):
            if end - start < gutter or start < least or length - end < least:
                continue
            if axis == 0:
                between = (x0 + start, y0, x0 + end, y1)
                halves = [(x0, y0, x0 + start, y1), (x0 + end, y0, x1, y1)]
            else:
                between = (x0, y0 + start, x1, y0 + end)
                halves = [(x0, y0, x1, y0 + start), (x0, y0 + end, x1, y1)]
            if cells(likely, between, ink.shape).mean() < UNSURE:
                return [tight for half in halves for tight in split(ink, likely, snap(ink, half))]
    return [box]


def _runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Start and end of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def cells(
    one_map: NDArray[np.float32], box: PixelBox, shape: tuple[int, ...]
) -> NDArray[np.float32]:
    """The part of a map under a box in pixels, at least one cell."""
    down, across = one_map.shape[0] / shape[0], one_map.shape[1] / shape[1]
    top, left = int(box[1] * down), int(box[0] * across)
    bottom, right = max(top + 1, round(box[3] * down)), max(left + 1, round(box[2] * across))
    return one_map[top:bottom, left:right]


def _allowed(
    box: PixelBox, wider: PixelBox, text: NDArray[np.float32], shape: tuple[int, ...]
) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    if wider[2] - wider[0] > 2 * width or wider[3] - wider[1] > 2 * height:
        return False
    before, after = (cells(text, one, shape) > IS_TEXT for one in (box, wider))
    return int(after.sum()) - int(before.sum()) <= LITTLE_TEXT * max(1, after.size - before.size)
