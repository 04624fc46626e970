"""Which model is trained: its configuration, and how open_clip's trainer is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from models.clip.load import SHIPPED
from models.clip.settings import SMALL
from models.errors import BadSettings
from models.finetune import FinetuneSettings
from tasks.finetune.keep import CONFIG
from tasks.storage import Storage

START = "start"
"""Folder of the configuration alone: a model that begins from nothing."""


def configuration(settings: FinetuneSettings) -> dict[str, Any]:
    """The ``open_clip_config.json`` of the model that is trained.

    Raises:
        BadSettings: open_clip knows no such architecture.
    """
    if settings.model == SMALL:
        shipped: dict[str, Any] = json.loads((SHIPPED / CONFIG).read_text(encoding="utf-8"))
        return shipped
    import open_clip

    model = open_clip.get_model_config(settings.model)
    if model is None:
        raise BadSettings(f"model: open_clip knows no {settings.model}.")
    tag = open_clip.get_pretrained_cfg(settings.model, settings.pretrained) or {}
    shape = {
        "mean": tag.get("mean") or open_clip.OPENAI_DATASET_MEAN,
        "std": tag.get("std") or open_clip.OPENAI_DATASET_STD,
    }
    return {"model_cfg": model, "preprocess_cfg": shape}


def image_side(config: dict[str, Any]) -> int:
    """Side of the images a model takes, in pixels."""
    size = config["model_cfg"]["vision_cfg"]["image_size"]
    return int(size if isinstance(size, int) else size[0])


def model_argument(settings: FinetuneSettings, config: dict[str, Any], output: Storage) -> str:
    """The trainer's ``--model``; writes the configuration where open_clip has none by that name."""
    if settings.model != SMALL:
        return settings.model
    output.write(f"{START}/{CONFIG}", json.dumps(config, indent=1).encode())
    return f"local-dir:{Path(output.path(START)).absolute()}"
