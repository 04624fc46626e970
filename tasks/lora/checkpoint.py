"""Checkpoints: what a training needs to go on as if nothing had happened."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from models.errors import BadSettings
from tasks.storage import Storage

FOLDER = "checkpoints"
KEPT = 2
"""Checkpoints that are not removed: the last, and the one before."""
PARTS = ("key", "step", "losses", "validation", "weights", "optimizer", "scaler")
"""What is in a checkpoint."""
_NAME = re.compile(rf"{FOLDER}/step-(\d{{8}})\.pt")
logger = logging.getLogger("intaglio.train")


@dataclass
class Progressed:
    """How far a training is.

    Attributes:
        step: Steps done.
        losses: Of each step.
        validation: Validation loss by step.
    """

    step: int = 0
    losses: list[float] = field(default_factory=list)
    validation: dict[int, float] = field(default_factory=dict)


def save(
    output: Storage, key: str, done: Progressed, weights: Any, optimizer: Any, scaler: Any
) -> None:
    """Write a checkpoint, whole or not at all; noise and order follow from the step.

    Args:
        output: Of the training.
        key: Of the settings that decide the weights.
        done: How far it is.
        weights: Of the LoRA.
        optimizer: Whose state it is.
        scaler: Of gradients in half precision, or None.
    """
    import torch

    state = {
        "key": key,
        "step": done.step,
        "losses": done.losses,
        "validation": done.validation,
        "weights": weights,
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict() if scaler is not None else None,
    }
    stream = BytesIO()
    torch.save(state, stream)
    output.write(f"{FOLDER}/step-{done.step:08d}.pt", stream.getvalue())
    for name in sorted(_names(output))[:-KEPT]:
        output.remove(name)


def load(output: Storage, key: str) -> tuple[Progressed, dict[str, Any]] | None:
    """The last checkpoint: how far it is, and its state. None if there is none.

    One that is damaged is put aside, and the one before it taken.

    Raises:
        BadSettings: It is of a training with other settings.
    """
    for name in sorted(_names(output), reverse=True):
        state = _read(output, name)
        if state is None:
            continue
        if state["key"] != key:
            raise BadSettings(
                f"output: {output.url} holds a training of another dataset, model or settings.",
                "Choose another --output, or remove that one.",
            )
        return Progressed(state["step"], state["losses"], state["validation"]), state
    return None


def _read(output: Storage, name: str) -> dict[str, Any] | None:
    import torch

    data = output.read(name)
    try:
        state = torch.load(BytesIO(data), map_location="cpu", weights_only=True)
        return {part: state[part] for part in PARTS}
    except MemoryError:
        raise
    except Exception as error:
        # A file that was cut short or overwritten fails in many ways.
        aside = f"{name}.damaged"
        logger.warning(
            "%s cannot be read (%s): it is now %s, and the training goes on from the one before "
            "it, or from the start if there is none.",
            output.path(name),
            error,
            aside,
        )
        output.move(name, aside)
        return None


def _names(output: Storage) -> list[str]:
    return [name for name in output.names(FOLDER) if _NAME.fullmatch(name)]
