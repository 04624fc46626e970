"""The README of a bundle: what it is, how to use it, where it comes from."""

from __future__ import annotations

from pydantic import ValidationError

from models.handoff import Bundle, TrainerName
from models.score import Verdict
from tasks.score.words import purity

USE: dict[TrainerName, str] = {
    "kohya": "SD_SCRIPTS=/path/to/sd-scripts bash train.sh",
    "diffusers": "DIFFUSERS=/path/to/diffusers bash train.sh            # or train-dreambooth.sh",
    "ai-toolkit": "AI_TOOLKIT=/path/to/ai-toolkit bash train.sh",
    "onetrainer": "ONETRAINER=/path/to/OneTrainer bash train.sh",
    "simpletuner": "bash train.sh                                     # pip install simpletuner",
    "huggingface": 'datasets.load_dataset("imagefolder", data_dir="this folder")',
    "webdataset": 'webdataset.WebDataset("shards/{00000..00007}.tar")   # as many as there are',
    "open-clip": "bash train.sh                  # pip install open_clip_torch[training]",
}


def readme(bundle: Bundle, card: str) -> str:
    """The text; for Hugging Face it is the dataset's card.

    Args:
        bundle: The record.
        card: What the hub wants at its head.
    """
    rows = [
        ("pictures", f"{bundle.samples:,}"),
        ("trigger", bundle.trigger or "none"),
        ("licence", bundle.license or "not stated"),
        ("purity", _purity(bundle)),
        ("dataset", f"`{bundle.dataset_sha256}`"),
        ("captions", f"`{bundle.captions_sha256}`"),
    ]
    notes = f"\n{bundle.notes}\n" if bundle.notes else ""
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        f"{card if bundle.trainer == 'huggingface' else ''}"
        f"# Illustrations for {bundle.trainer}\n{notes}\n"
        f"    {USE[bundle.trainer]}\n\n"
        "The folder may be moved as a whole. `samples.jsonl` says of each picture which page of "
        "which PDF it was cut from.\n\n"
        f"| | |\n|---|---|\n{table}\n\n"
        "Made by Intaglio from scanned periodicals.\n"
    )


def _purity(bundle: Bundle) -> str:
    if bundle.purity is None:
        return "not scored"
    try:
        return purity(Verdict.model_validate({**bundle.purity, "settings": {}}))
    except ValidationError:
        # Of another version.
        return "see bundle.json"
