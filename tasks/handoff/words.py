"""The buckets as a table, for the end of a run and the Prefect UI, and every picture's as CSV."""

from __future__ import annotations

import csv
import io

from models.handoff import Preflight

HEAD = (
    "trainer",
    "buckets",
    "small",
    "enlarged",
    "cropped",
    "steps/epoch",
    "epochs",
    "card",
)


def rows(found: Preflight) -> list[list[str]]:
    """A head and a line for each trainer.

    Small buckets have fewer samples than a batch; the memory of the card is an estimate.
    """
    lines = [
        [
            trainer.trainer,
            f"{len(trainer.buckets):,}",
            f"{trainer.small_buckets:,}",
            f"{trainer.upscaled:,}",
            f"{trainer.cropped_mean:.1%}",
            f"{trainer.steps_an_epoch:,}",
            f"{trainer.epochs:,}",
            f"~{trainer.vram_gb} GB",
        ]
        for trainer in found.trainers
    ]
    return [list(HEAD), *lines]


def pictures(found: Preflight) -> str:
    """CSV: for each trainer where every picture goes, those that lose most first."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("trainer", "file_name", "bucket", "scale", "cropped"))
    for trainer in found.trainers:
        for name, at in sorted(trainer.placed.items(), key=lambda item: -item[1].cropped):
            bucket = f"{at.width}x{at.height}"
            writer.writerow((trainer.trainer, name, bucket, f"{at.scale:.4f}", f"{at.cropped:.4f}"))
    return stream.getvalue()
