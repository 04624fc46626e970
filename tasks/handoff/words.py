"""The buckets as a table, for the end of a run and the Prefect UI."""

from __future__ import annotations

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
