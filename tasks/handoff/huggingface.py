"""A Hugging Face dataset: an ImageFolder with its metadata, and a card."""

from __future__ import annotations

import yaml

from tasks.handoff.content import Content
from tasks.handoff.diffusers import FOLDER, write_metadata

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


def write(content: Content) -> None:
    """Write the bundle; its card is the README."""
    content.pictures(FOLDER)
    write_metadata(content)


def card(content: Content) -> str:
    """What stands at the head of the card for the hub to read."""
    count = len(content.samples)
    head = {
        **({"license": content.record.license} if content.record.license else {}),
        "task_categories": ["text-to-image", "image-to-text"],
        "tags": ["illustration", "engraving", "historical", "intaglio"],
        "size_categories": [next((name for most, name in SIZES if count < most), "100K<n<1M")],
        "configs": [
            {"config_name": "default", "data_files": [{"split": "train", "path": f"{FOLDER}/*"}]}
        ],
    }
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n"
