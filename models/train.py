"""The nouns of training: its settings, its errors and what came of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from models.errors import ExitCode, StopRun
from models.records import Record, Sha256
from models.settings import Group


class Lora(Group):
    """Our own SDXL LoRA trainer; the defaults fit a card of 16 GB (T4)."""

    base_model: str = ""
    """Folder or hub name of the SDXL model; empty takes the bundle's."""
    epochs: int = Field(default=500, ge=1, le=100_000)
    """Times all samples are seen, at most."""
    steps: int = Field(default=0, ge=0, le=10_000_000)
    """Optimiser steps at most; 0 takes the bundle's. What comes first, epochs or steps, ends it."""
    optimizer: Literal["adamw", "adamw8bit"] = "adamw"
    """adamw8bit needs bitsandbytes and a GPU. A LoRA has few weights, so little is saved."""
    min_snr_gamma: float = Field(default=5.0, ge=0, le=100)
    """Weight steps of little noise down (Hang et al. 2023); 0 weights all alike."""
    gradient_checkpointing: bool = True
    """Compute activations twice instead of keeping them: slower, and what fits SDXL on a T4."""
    checkpoint_every: int = Field(default=250, ge=1, le=1_000_000)
    """Steps between checkpoints: what a killed run loses at most."""
    validation_share: float = Field(default=0.1, ge=0, le=0.5)
    """Share of the samples kept back to measure the validation loss on."""
    validate_every: int = Field(default=250, ge=1, le=1_000_000)
    """Steps between measurements of the validation loss."""
    patience: int = Field(default=8, ge=0, le=1000)
    """Stop after so many measurements in a row without a better one; 0 never stops early."""
    prompts: list[str] = Field(default=[])
    """Prompts of the sample images, without the trigger; empty takes the bundle's."""
    images_every: int = Field(default=500, ge=0, le=1_000_000)
    """Steps between sample images; 0 makes none before the end."""
    image_steps: int = Field(default=25, ge=1, le=200)
    """Denoising steps of a sample image."""
    allow_cpu: bool = False
    """Train without a GPU all the same; for tiny models."""


class TrainSettings(Group):
    """Train a LoRA on a bundle."""

    bundle: str = Field(min_length=1)
    """Folder of a bundle that flows.handoff made, for instance DATASET/bundles/kohya."""
    output: str = ""
    """builtin: folder or fsspec URL of the LoRA, its checkpoints and logs; empty takes a folder in
    BUNDLE/output/ named after what decides the weights, so that a dataset that has grown gets
    another."""
    by: Literal["builtin", "launch"] = "builtin"
    """builtin trains here; launch runs the trainer the bundle was made for."""
    home: str = ""
    """launch: folder of the trainer; empty takes it from its environment variable (SD_SCRIPTS,
    DIFFUSERS, AI_TOOLKIT, ONETRAINER)."""
    lora: Lora = Lora()
    tracking_uri: str = ""
    """MLflow server or folder for settings, metrics and the LoRA; empty takes MLFLOW_TRACKING_URI,
    and without that nothing is sent."""


class TrainerMissing(StopRun):
    """A trainer, or a library it needs, is not installed."""

    kind = "trainer_missing"
    exit_code = ExitCode.USAGE
    cure = "pip install 'intaglio[train]'."


class TrainerFailed(StopRun):
    """Another project's trainer ended with an error."""

    kind = "trainer_failed"
    cure = "Its own last lines above say why; the same command goes on from its last checkpoint."


class Diverged(StopRun):
    """The numbers of a training are no numbers any more."""

    kind = "diverged"
    cure = (
        "Make the bundle anew with a lower --plan.learning-rate or, on a GPU that has it, "
        "--plan.precision bf16; the last good checkpoint is kept."
    )


class Trained(Record):
    """``training.json``: what a training came to.

    Attributes:
        key: Of what decides the weights: dataset, captions, plan, base model.
        steps: Optimiser steps done.
        ended: Why it ended: ``steps``, ``epochs`` or ``flat`` (validation loss no longer falls).
        loss_first: Mean loss of the first tenth of the steps.
        loss_last: Mean loss of the last tenth.
        validation: Validation loss by step.
        diffusers: LoRA in diffusers' format, relative to the output.
        kohya: The same in kohya's.
    """

    key: str
    steps: int
    epochs: float
    ended: Literal["steps", "epochs", "flat"]
    loss_first: float
    loss_last: float
    validation: dict[int, float]
    diffusers: str
    kohya: str
    dataset_sha256: Sha256
    captions_sha256: Sha256
    settings: dict[str, Any]
