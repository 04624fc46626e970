"""From the network's maps to regions: fragments joined, neighbours apart, edges on the ink."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from models.records import Detection, Region, RegionKind
from tasks.detect.blobs import Pieces, blob_boxes, freed_boxes, read_pieces
from tasks.detect.boxes import merge_close, reading_order, size, touch
from tasks.detect.edges import snap
from tasks.detect.fragments import (
    cells,
    complete,
    grow,
    join_fragments,
    split,
    strokes,
    to_edges,
    without_captions,
)
from tasks.detect.kinds import picture_kind, ruled_kind, symmetry
from tasks.detect.page import (
    Gray,
    InkPage,
    Mask,
    PixelBox,
    area,
    components,
    normalise,
    read_ink,
    relative,
)

PICTURE, ORNAMENT, RULED, TEXT = range(4)
"""The maps, in the order of the network's channels."""
LIKELY = 0.5
"""A cell at least this probable belongs to a region."""
POSSIBLE = 0.15
"""Ink in cells less probable than this belongs to no region."""
CERTAIN = 0.75
"""A region has at least one cell as probable as this."""
LETTERS_IN_BLOB, LETTERS_IN_FREED, LETTERS_IN_TEXT = 0.2, 0.25, 0.6
"""Ink of a blob has at most the first share of letter-sized pieces to overrule the network, that of
one freed from a scan's lines, of which the maps see a little, the second; a picture of the
network's with more than the third is text, unless the map of text says less than
`LEAST_TEXT`: grainy woodcuts fall into pieces as small (0.12 on the labelled pages; lettering in
the panels of a circuit diagram has 0.21)."""
LEAST_TEXT = 0.17
BARE = 0.02
"""On a page with less text than this share of its cells a picture may go on to the edges."""
SURE_PICTURE = 0.6
"""Pictures of which the maps are at least as sure are not denied, whatever mirrors itself."""
ORNAMENTAL, LEAST_ORNAMENT = 1.8, 0.3
"""A figure is an ornament to the maps if they say so this many times as surely as a picture, and at
least so surely. The judge has the last word: some networks of the maps call small woodcuts
ornaments which it finds 0.7 to 0.97 likely to be pictures."""
SURE_ORNAMENT = 0.93
"""A picture that the judge is surer than this to be an ornament is one. From 0.8 to 0.96 nothing
changes on the labelled pages; drawn patterns of lace reach 0.92."""
LARGEST_ORNAMENT = 0.3
"""Nothing larger, as a fraction of the page, is made an ornament by the judge."""
LEAST_PICTURE = 0.3
"""What the judge finds less likely to be a picture than this is none, unless the maps are sure of
it. On the labelled pages 0.45 (and 0.7 for the maps) would drop one more page of ornaments and no
picture; of 73 photographs and fashion plates set into pages (`benchmarks.pasted`) it would lose
four more, and three that fill a page."""
MIRRORED, MIRRORED_ORNAMENT = 0.8, 0.25
"""Likeness to its mirror image above which a figure is a head- or tailpiece, if the judge finds it
at least so likely to be an ornament. Those of the labelled pages that the maps are unsure of are
alike to 0.82 to 0.92, and the judge gives them 0.43 to 0.98; a wine press and a coat of arms that
mirror themselves have 0.03 and 0.02."""
TOO_SMALL_TO_DENY = 0.05
"""Fraction of the page below which what is a picture to the maps is not denied: the judge knows
small drawings of tools badly, coins mirror themselves, and none of them decides about a page."""
FEWEST = 6
"""Connected cells that make a region; fewer are under 16 x 24 pixels of the page."""
SMALLEST = 0.004
"""Regions under this fraction of the page are not reported: specks, stamps, small initials."""

Judge = Callable[[NDArray[np.float32], Sequence[PixelBox]], NDArray[np.float32]]
"""Gives (boxes, 4) probabilities of what boxes show, in the order of the maps, from the page in
normalised grey."""
Refine = Callable[[NDArray[np.float32], Sequence[PixelBox]], list[PixelBox]]
"""Moves the edges of boxes to those of the pictures, from the page in normalised grey."""


def measure(gray: Gray, maps: NDArray[np.float32], judge: Judge, refine: Refine) -> Detection:
    """Everything about a page.

    Args:
        gray: (H, W) uint8, the page the maps were drawn from.
        maps: (4, h, w) probabilities, 0 to 1, covering the same page in coarser cells.
        judge: Has a second look at what the pictures are.
        refine: Has one at where they end.
    """
    page = read_ink(gray)
    regions = [] if page.blank else find_regions(page, maps, judge, refine)
    areas = {"picture_area": 0.0, "ornament_area": 0.0, "ruled_area": 0.0}
    for region in regions:
        if region.kind in _AREA_OF:
            areas[_AREA_OF[region.kind]] += area(region.box)
    return Detection(
        score=areas["picture_area"],
        measures={
            **areas,
            "text_area": float((maps[TEXT] > LIKELY).mean()),
            "ink": page.ink_share,
        },
        regions=regions,
        blank=page.blank,
    )


_AREA_OF = {
    RegionKind.ENGRAVING: "picture_area",
    RegionKind.PHOTOGRAPH: "picture_area",
    RegionKind.ORNAMENT: "ornament_area",
    RegionKind.MUSIC: "ruled_area",
    RegionKind.TABLE: "ruled_area",
}


def find_regions(
    page: InkPage, maps: NDArray[np.float32], judge: Judge, refine: Refine
) -> list[Region]:
    """The regions of a page, in reading order.

    The classical method gives a second opinion on pictures: what is made of letters is taken
    out, pictures seen in part are completed, and pictures the network missed are added. What
    then counts as a picture is judged once more by itself.
    """
    shape = page.gray.shape
    pieces = read_pieces(page.ink)
    certain = blob_boxes(page.ink, pieces)
    # Where a figure is, is surer than what it is: that is asked of the whole of it.
    figure = np.maximum(maps[PICTURE], maps[ORNAMENT])
    blobs = _no_text(certain, maps, LETTERS_IN_BLOB, shape)
    # Looked for only where the maps see anything: it costs as much as the blobs themselves.
    more = freed_boxes(page.ink, pieces, certain) if figure.max() > POSSIBLE else []
    freed = [
        box
        for box in _no_text(more, maps, LETTERS_IN_FREED, shape)
        if cells(figure, box, shape).max() > POSSIBLE
    ]
    ruled = maps[RULED] > figure
    likely = {PICTURE: figure, RULED: maps[RULED]}
    found = {
        channel: [
            _to_pixels(box, ruled.shape, shape)
            for box in _likely_boxes(likely[channel], ruled == (channel == RULED))
        ]
        for channel in likely
    }
    if not blobs and not freed and not any(found.values()):
        return []
    ink = strokes(pieces)
    ours = ink & _mask_of_ours(maps, shape)
    parts = {}
    for channel, boxes in found.items():
        grown = [grow(pieces, snap(ours, box), maps[TEXT]) for box in boxes]
        if channel == PICTURE:
            grown = [complete(pieces, box, blobs) for box in grown]
            if (maps[TEXT] > LIKELY).mean() < BARE:
                grown = [to_edges(page.ink, box) for box in grown]
        whole = join_fragments(ink, maps[TEXT], merge_close(grown, gap=0))
        parts[channel] = [part for box in whole for part in split(ours, likely[channel], box)]
    taken = [box for boxes in parts.values() for box in boxes]
    parts[PICTURE] = [
        without_captions(pieces, ink, box)
        for box in parts[PICTURE]
        if not _is_text(pieces, maps[TEXT], box)
    ]
    parts[PICTURE] += [b for b in (*blobs, *freed) if not any(touch(b, box) for box in taken)]
    pictures, tables = (
        [box for box in parts[channel] if size(box) >= SMALLEST * page.gray.size]
        for channel in (PICTURE, RULED)
    )
    regions = _judge(page, maps, pictures, judge, refine) if pictures else []
    return reading_order([*regions, *(_ruled(page, maps, box) for box in tables)])


def _no_text(
    boxes: Sequence[tuple[PixelBox, float]],
    maps: NDArray[np.float32],
    most: float,
    shape: tuple[int, ...],
) -> list[PixelBox]:
    """Blobs of which at most a share is letter-sized, and that are no text to the maps."""
    return [
        box
        for box, letters in boxes
        if letters <= most and cells(maps[TEXT], box, shape).mean() < LIKELY
    ]


def _is_text(pieces: Pieces, text: NDArray[np.float32], box: PixelBox) -> bool:
    window = (slice(box[1], box[3]), slice(box[0], box[2]))
    letters = pieces.labels[window].any() and pieces.text_share(window) > LETTERS_IN_TEXT
    return bool(letters and cells(text, box, pieces.labels.shape).mean() > LEAST_TEXT)


def _judge(
    page: InkPage,
    maps: NDArray[np.float32],
    boxes: Sequence[PixelBox],
    judge: Judge,
    refine: Refine,
) -> list[Region]:
    """What the maps take for pictures, after the second looks at what they are and where they end.

    The judge was trained on boxes as they are found, the refiner on pictures and ornaments.
    """
    normal = normalise(page.gray)
    odds = dict(zip(boxes, judge(normal, boxes), strict=True))
    channels = {box: _second_look(page, maps, box, odds[box]) for box in boxes}
    figures = [box for box in boxes if channels[box] in (PICTURE, ORNAMENT)]
    edges = dict(zip(figures, refine(normal, figures), strict=True))
    regions = []
    for box in boxes:
        picture = float(odds[box][PICTURE])
        regions.append(
            Region(
                box=relative(edges.get(box, box), page.gray.shape),
                kind=_kind(page, box, channels[box]),
                confidence=picture if channels[box] == PICTURE else 1 - picture,
            )
        )
    return regions


def _kind(page: InkPage, box: PixelBox, channel: int) -> RegionKind:
    if channel == PICTURE:
        return picture_kind(page.gray, box)
    if channel == RULED:
        return ruled_kind(page.ink, box)
    return RegionKind.ORNAMENT if channel == ORNAMENT else RegionKind.OTHER


def _second_look(
    page: InkPage, maps: NDArray[np.float32], box: PixelBox, odds: NDArray[np.float32]
) -> int:
    """What a picture of the maps is to the judge; no plate becomes an ornament."""
    share = size(box) / page.gray.size
    plate = share >= LARGEST_ORNAMENT
    if odds[ORNAMENT] > SURE_ORNAMENT:
        return PICTURE if plate else ORNAMENT
    picture, ornament = (
        float(cells(maps[channel], box, page.gray.shape).mean()) for channel in (PICTURE, ORNAMENT)
    )
    if ornament > max(ORNAMENTAL * picture, LEAST_ORNAMENT):
        return ORNAMENT if odds[PICTURE] < LEAST_PICTURE and not plate else PICTURE
    if picture >= SURE_PICTURE or share < TOO_SMALL_TO_DENY:
        return PICTURE
    decorated = odds[ORNAMENT] >= MIRRORED_ORNAMENT
    if decorated and not plate and symmetry(page.flat, box) > MIRRORED:
        return ORNAMENT
    if odds[PICTURE] >= LEAST_PICTURE:
        return PICTURE
    instead = max((ORNAMENT, RULED, TEXT), key=lambda channel: float(odds[channel]))
    return PICTURE if plate and instead == ORNAMENT else instead


def _ruled(page: InkPage, maps: NDArray[np.float32], box: PixelBox) -> Region:
    shape = page.gray.shape
    confidence = min(1.0, max(0.0, float(cells(maps[RULED], box, shape).mean())))
    kind = ruled_kind(page.ink, box)
    return Region(box=relative(box, shape), kind=kind, confidence=confidence)


def _likely_boxes(likely: NDArray[np.float32], allowed: NDArray[np.bool_]) -> list[PixelBox]:
    """Boxes, in cells, of connected likely and allowed cells, some of them certain."""
    mask = ((likely >= LIKELY) & allowed).astype(np.uint8)
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)).astype(np.uint8)
    labels, stats = components(mask, connectivity=4)
    boxes: list[PixelBox] = []
    for number in range(1, len(stats)):
        x, y, w, h, size = (int(v) for v in stats[number])
        part = np.asarray(labels[y : y + h, x : x + w] == number)
        if size >= FEWEST and likely[y : y + h, x : x + w][part].max() >= CERTAIN:
            boxes.append(_dense((x, y, x + w, y + h), part))
    return merge_close(boxes, gap=0)


def _dense(box: PixelBox, part: NDArray[np.bool_]) -> PixelBox:
    """The box without thin tongues: rows and columns that are filled a third as well as most."""
    rows, columns = part.sum(axis=1), part.sum(axis=0)
    y = np.flatnonzero(rows >= np.percentile(rows, 80) / 3)
    x = np.flatnonzero(columns >= np.percentile(columns, 80) / 3)
    return (
        box[0] + int(x[0]),
        box[1] + int(y[0]),
        box[0] + int(x[-1]) + 1,
        box[1] + int(y[-1]) + 1,
    )


def _mask_of_ours(maps: NDArray[np.float32], shape: tuple[int, int]) -> Mask:
    """(H, W) mask of where ink may belong to a region."""
    any_region = maps[:TEXT].max(axis=0)
    ours = (any_region > POSSIBLE) & (any_region >= maps[TEXT])
    ours_u8 = np.where(ours, 255, 0).astype(np.uint8)
    return cv2.resize(ours_u8, shape[::-1], interpolation=cv2.INTER_NEAREST).astype(np.uint8)


def _to_pixels(box: PixelBox, cells: tuple[int, ...], shape: tuple[int, int]) -> PixelBox:
    down, across = shape[0] / cells[0], shape[1] / cells[1]
    return (
        int(box[0] * across),
        int(box[1] * down),
        min(shape[1], round(box[2] * across)),
        min(shape[0], round(box[3] * down)),
    )
