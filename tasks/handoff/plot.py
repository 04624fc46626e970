"""A picture of the buckets: for each trainer a bar a bucket, as long as it has samples."""

from __future__ import annotations

import math
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from models.handoff import Preflight, TrainerPreflight

COLUMN, ROW, HEAD, LABEL, PAD = 400, 20, 76, 92, 16
"""Width of a trainer's part, height of a bar, of the part's head, of a bar's label; space."""
ACROSS = 3
"""Trainers side by side."""
MOST_ROWS = 40
"""Bars of a trainer; the rest is summed up in words."""
INK, BAR, FAINT, SMALL = "#222222", "#4878a8", "#777777", "#c8743c"


def plot(found: Preflight) -> bytes:
    """The buckets as PNG. Buckets with fewer samples than a batch are orange."""
    rows = max(min(len(trainer.buckets), MOST_ROWS) for trainer in found.trainers) + 1
    across = min(ACROSS, len(found.trainers))
    height = PAD + HEAD + ROW * rows
    down = math.ceil(len(found.trainers) / across)
    image = Image.new("RGB", (PAD + COLUMN * across, height * down + PAD), "white")
    draw = ImageDraw.Draw(image)
    for number, trainer in enumerate(found.trainers):
        row, column = divmod(number, across)
        _part(draw, PAD + COLUMN * column, PAD + height * row, trainer, found)
    stream = BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _part(
    draw: ImageDraw.ImageDraw, x: int, y: int, found: TrainerPreflight, all_: Preflight
) -> None:
    big, small = ImageFont.load_default(16), ImageFont.load_default(12)
    draw.text((x, y), found.trainer, INK, big)
    lines = (
        found.rule,
        f"{len(found.buckets)} buckets, {found.upscaled} of {all_.samples} enlarged, "
        f"{found.cropped_mean:.1%} cropped",
    )
    for number, line in enumerate(lines):
        draw.text((x, y + 24 + 17 * number), line, FAINT, small)
    longest = max(bucket.samples for bucket in found.buckets)
    room = COLUMN - LABEL - 3 * PAD - 24
    y += HEAD
    for bucket in found.buckets[:MOST_ROWS]:
        draw.text((x, y), f"{bucket.width} x {bucket.height}", INK, small)
        few = bucket.samples * all_.repeats < all_.batch_size
        end = x + LABEL + max(1, round(room * bucket.samples / longest))
        draw.rectangle((x + LABEL, y + 2, end, y + ROW - 6), SMALL if few else BAR)
        draw.text((end + 6, y), f"{bucket.samples}", INK, small)
        y += ROW
    if more := len(found.buckets) - MOST_ROWS:
        draw.text((x, y), f"and {more} more" if more > 0 else "", FAINT, small)
