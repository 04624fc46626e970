"""A second opinion on where a picture ends, by a small network that sees it with its surroundings.

Ink tells an edge to the pixel, but not whose ink it is: a picture may be cut at a pale ground, or
have a rule, handwriting or a shadow added that touches it. The network sees that, to a few per cent
of the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.detect.boxes import size, touch
from tasks.detect.network import read_added
from tasks.detect.page import PixelBox
from tasks.detect.window import SIDE, Square, square, window

REFINER = "boxes.onnx"
TIMES = 1.6
"""A window is this many times as large as the box's longer side."""
CELLS = 24
"""Rows and columns of a window of which the network says how far the picture covers them."""
FAR = 0.08
"""An edge that is seen further away than this share of the box's width or height is wrong, and goes
there."""
OUTWARDS = 0.35
"""How much of the way an edge goes that is seen further out, but not far: both opinions count. One
that is seen a little further in stays, since the ink there may be the picture's."""
NO_PICTURE = 0.15
"""An edge goes inwards only if the picture covers its outermost row or column by less: the network
must be sure. Of handwriting, captions and columns that touch a picture it says 0.00 to 0.05 (0.19
where the rest has 0.04), of a finial or a hat's feather that it takes for something else 0.23."""
DARK, PROTRUSION = 0.4, 0.4
"""What is darker (in normalised grey) than the first, and covers less than the second share of an
edge's length, protrudes from the picture: a mast, a spire, a feather. No edge goes inwards over it;
text, rules and the frames of pages cover more, and what is dark nowhere is no loss."""
LEAST_SEEN = 0.25
"""Where less than this share of a box is seen, no picture was, and the box stays."""


class Refiner:
    """Moves the edges of boxes to where a network sees the edges of pictures.

    Args:
        folder: Where the weights lie, called `REFINER`.

    Attributes:
        digest: SHA-256 of the weights, in hex.

    Raises:
        ValueError: They are not there, or are something else.
    """

    def __init__(self, folder: Path) -> None:
        file, example = folder / REFINER, np.zeros((1, 2, SIDE, SIDE), np.float32)
        self._net = read_added(file, example)
        if self._net.shape != (1, 2, CELLS):
            raise ValueError(f"{file} finds no edges: it answers in the shape {self._net.shape}.")
        self.digest = self._net.digest

    def __call__(self, page: NDArray[np.float32], boxes: Sequence[PixelBox]) -> list[PixelBox]:
        """Move the edges of boxes, all of a page in one go.

        Args:
            page: (H, W), normalised grey.
            boxes: In pixels of it.
        """
        if not boxes:
            return []
        squares = [square(box, TIMES) for box in boxes]
        shown = [window(page, box, around) for box, around in zip(boxes, squares, strict=True)]
        covered = 1.0 / (1.0 + np.exp(-self._net(np.stack(shown))))
        refined = [
            settle(box, *_read(own, box, around), page.shape)
            for box, own, around in zip(boxes, covered, squares, strict=True)
        ]
        whole = [with_protrusions(page, *both) for both in zip(boxes, refined, strict=True)]
        return keep_apart(boxes, whole)


def settle(
    box: PixelBox, seen: PixelBox, outermost: Sequence[float], shape: tuple[int, ...]
) -> PixelBox:
    """What becomes of a box of which another is seen.

    Args:
        box: As it was found.
        seen: As the network sees it.
        outermost: By how much the picture covers the outermost row or column within each edge.
        shape: Of the page, (H, W).
    """
    if size(seen) < LEAST_SEEN * size(box):
        return box
    edges = []
    for edge in range(4):
        length, side = shape[1 - edge % 2], box[edge % 2 + 2] - box[edge % 2]
        way = min(max(seen[edge], 0), length) - box[edge]
        outwards = (way > 0) == (edge >= 2)
        far = abs(way) > FAR * side
        if outwards and not far:
            way = round(OUTWARDS * way)
        elif not outwards and not (far and outermost[edge] < NO_PICTURE):
            way = 0
        edges.append(box[edge] + way)
    return (edges[0], edges[1], edges[2], edges[3])


def with_protrusions(page: NDArray[np.float32], box: PixelBox, refined: PixelBox) -> PixelBox:
    """The refined box, without those moves inwards that cut off what protrudes from the picture.

    Args:
        page: (H, W), normalised grey.
        box: As it was found, in pixels of it.
        refined: As it became.
    """
    edges = list(refined)
    for edge in range(4):
        strip = list(box)
        if edge < 2:
            strip[edge + 2] = max(refined[edge], box[edge])
        else:
            strip[edge - 2] = min(refined[edge], box[edge])
        x0, y0, x1, y1 = strip
        dark: NDArray[np.bool_] = np.any(page[y0:y1, x0:x1] < DARK, axis=1 - edge % 2)
        if 0 < np.count_nonzero(dark) < PROTRUSION * dark.size:
            edges[edge] = box[edge]
    return (edges[0], edges[1], edges[2], edges[3])


def keep_apart(boxes: Sequence[PixelBox], refined: Sequence[PixelBox]) -> list[PixelBox]:
    """The refined boxes; where two would touch that did not before, one stays as it was."""
    settled = list(boxes)
    for number, box in enumerate(refined):
        others = settled[:number] + settled[number + 1 :]
        if not any(touch(box, other) and not touch(boxes[number], other) for other in others):
            settled[number] = box
    return settled


def _read(
    covered: NDArray[np.float32], box: PixelBox, around: Square
) -> tuple[PixelBox, list[float]]:
    """The box seen in a square of the page, and what is seen of its outermost rows and columns.

    ``covered`` is (2, CELLS): by how much the picture covers each row and each column. There is a
    picture in the middle, from where it is followed outwards.
    """
    cell, half = around.size / CELLS, CELLS // 2
    seen, outermost = [], []
    for edge in range(4):
        profile = covered[1 - edge % 2]
        corner = (around.left, around.top)[edge % 2]
        if edge < 2:
            reach = -profile[:half].sum()
            at = int((box[edge] - corner) / cell)
        else:
            reach = profile[half:].sum()
            at = int(np.ceil((box[edge] - corner) / cell)) - 1
        seen.append(round(corner + around.size / 2 + float(reach) * cell))
        outermost.append(float(profile[min(max(at, 0), CELLS - 1)]))
    return (seen[0], seen[1], seen[2], seen[3]), outermost
