"""The best checkpoint as a model to use: half-precision weights beside their configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tasks.finetune.launch import BEST, CHECKPOINTS
from tasks.storage import Storage

CONFIG = "open_clip_config.json"
WEIGHTS = "open_clip_model.safetensors"


def keep(run: Path, target: Storage, config: dict[str, Any], texts: Iterable[str] | None) -> None:
    """Write the model of the best epoch as open_clip's ``local-dir:`` reads it.

    Args:
        run: Folder of the training.
        target: Folder to write to.
        config: The model's configuration: ``model_cfg`` and ``preprocess_cfg``.
        texts: All captions, where the model began from nothing: words that were in none of them
            are set to zero, so that they say nothing rather than something by chance.
    """
    import torch
    from safetensors.torch import save

    checkpoint = torch.load(run / CHECKPOINTS / BEST, map_location="cpu", weights_only=True)
    weights = {
        name.removeprefix("module."): value.contiguous()
        for name, value in checkpoint["state_dict"].items()
    }
    if texts is not None:
        embedding = weights["token_embedding.weight"]
        unseen = torch.ones(len(embedding), dtype=torch.bool)
        unseen[sorted(_tokens(texts))] = False
        embedding[unseen] = 0
    half = {
        name: value.half() if value.is_floating_point() else value
        for name, value in weights.items()
    }
    target.write(WEIGHTS, save(half))
    target.write(CONFIG, (json.dumps(config, indent=1) + "\n").encode())


def _tokens(texts: Iterable[str]) -> set[int]:
    import open_clip

    return {int(token) for token in open_clip.SimpleTokenizer()(sorted(set(texts))).unique()}
