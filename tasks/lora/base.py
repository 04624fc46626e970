"""The SDXL model that a LoRA is trained on, loaded part by part, and where it is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from models.errors import BadSettings
from models.train import TrainerMissing

NEEDED = ("torch", "diffusers", "transformers", "peft", "accelerate")
TARGETS = ["to_k", "to_q", "to_v", "to_out.0"]
"""Layers of the U-Net that get a LoRA: the projections of its attention."""


@dataclass(frozen=True)
class Device:
    """Where to train.

    Attributes:
        name: ``cuda`` or ``cpu``.
        precision: Of accelerate: ``fp16``, ``bf16`` or ``no``.
        dtype: Of the frozen weights.
    """

    name: str
    precision: str
    dtype: Any


def choose_device(precision: str, allow_cpu: bool) -> Device:
    """The GPU, or the processor if that is allowed.

    Raises:
        TrainerMissing: The libraries are not installed.
        BadSettings: There is no GPU, or it has no bf16.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise TrainerMissing(f"Training needs {', '.join(missing)}.")
    import torch

    if torch.cuda.is_available():
        if precision == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
            raise BadSettings(
                "plan.precision bf16: this GPU does not have it.",
                "Make the bundle with --plan.precision fp16.",
            )
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[precision]
        return Device("cuda", precision, dtype)
    if not allow_cpu:
        raise BadSettings(
            "There is no GPU here (torch sees no CUDA device), and SDXL's U-Net has 2.6 thousand "
            "million parameters: on a processor a training would not end.",
            "Take the bundle to a machine with a GPU of 16 GB or more (--zip packs it), or say "
            "--lora.allow-cpu for a tiny model.",
        )
    return Device("cpu", "no", torch.float32)


def load_part(name: str, part: str, device: Device) -> Any:
    """A part of the model (``unet``, ``vae``, ``text_encoder_2``, ...) without gradients.

    Raises:
        BadSettings: It cannot be loaded.
    """
    import diffusers
    import transformers

    kinds = {
        "unet": diffusers.UNet2DConditionModel,
        "vae": diffusers.AutoencoderKL,
        "text_encoder": transformers.CLIPTextModel,
        "text_encoder_2": transformers.CLIPTextModelWithProjection,
    }
    # SDXL's VAE gives NaN in half precision.
    dtype = None if part == "vae" else device.dtype
    with _named(name, part):
        model = kinds[part].from_pretrained(name, subfolder=part, torch_dtype=dtype)
    return model.float().requires_grad_(False) if part == "vae" else model.requires_grad_(False)


def load_tokenizers(name: str) -> list[Any]:
    """The tokenizers of both text encoders.

    Raises:
        BadSettings: One cannot be loaded.
    """
    from transformers import CLIPTokenizer

    found = []
    for part in ("tokenizer", "tokenizer_2"):
        with _named(name, part):
            found.append(CLIPTokenizer.from_pretrained(name, subfolder=part))
    return found


def load_schedule(name: str) -> Any:
    """The noise schedule for training (Ho et al. 2020) with the model's own parameters.

    Raises:
        BadSettings: It cannot be loaded.
    """
    from diffusers import DDPMScheduler

    with _named(name, "scheduler"):
        return DDPMScheduler.from_pretrained(name, subfolder="scheduler")


@contextmanager
def _named(name: str, part: str) -> Iterator[None]:
    """Say which part of a model cannot be loaded; each library has errors of its own for that."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise BadSettings(
            f"lora.base_model: {name} has no usable {part}: {error}", "Fetch the model again."
        ) from error


def fingerprint(model: Any) -> str:
    """A hash of a model's weights: 16 hexadecimal digits."""
    import torch

    digest = hashlib.sha256()
    for key, value in sorted(model.state_dict().items()):
        digest.update(key.encode())
        digest.update(value.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def give_back() -> None:
    """Give the GPU's memory back for what is loaded next."""
    import gc

    import torch

    gc.collect()
    with suppress(RuntimeError):
        torch.cuda.empty_cache()
