"""The finished LoRA as files: diffusers' format and kohya's, with where it comes from inside."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tasks.storage import Storage

DIFFUSERS, KOHYA = "lora-diffusers.safetensors", "lora-kohya.safetensors"


def export(output: Storage, unet: Any, metadata: dict[str, str], alpha: int) -> None:
    """Write both files.

    Args:
        output: Where to.
        unet: The U-Net with its LoRA.
        metadata: What to say of it, in both.
        alpha: Of the LoRA.
    """
    from peft import get_peft_model_state_dict

    weights = {key: value.detach().cpu() for key, value in get_peft_model_state_dict(unet).items()}
    config: dict[str, Any] = {
        # A set has another order in every process.
        key: sorted(value) if isinstance(value, set) else value
        for key, value in unet.peft_config["default"].to_dict().items()
    }
    output.write(DIFFUSERS, _diffusers(weights, config, metadata))
    output.write(KOHYA, _kohya(weights, config["r"], alpha, metadata))


def _diffusers(weights: dict[str, Any], config: dict[str, Any], metadata: dict[str, str]) -> bytes:
    """As diffusers itself writes it, with our metadata beside its own."""
    from diffusers import StableDiffusionXLPipeline
    from diffusers.utils import convert_state_dict_to_diffusers
    from safetensors import safe_open
    from safetensors.torch import load_file, save

    with tempfile.TemporaryDirectory() as folder:
        StableDiffusionXLPipeline.save_lora_weights(
            folder,
            unet_lora_layers=convert_state_dict_to_diffusers(weights),
            unet_lora_adapter_metadata=config,
            weight_name=DIFFUSERS,
        )
        path = Path(folder) / DIFFUSERS
        with safe_open(path, "pt") as file:
            own = file.metadata() or {}
        return _in_order(save(load_file(path), {**metadata, **own}))


def _kohya(weights: dict[str, Any], rank: int, alpha: int, metadata: dict[str, str]) -> bytes:
    """Keys as ``lora_unet_..._attn1_to_q.lora_down.weight``, and an alpha beside each.

    The conversion takes peft's names with ``unet.`` before them; with any other it gives names
    that load as nothing, without a word.
    """
    import torch
    from diffusers.utils import convert_state_dict_to_kohya
    from safetensors.torch import save

    named = {f"unet.{key}": value for key, value in weights.items()}
    converted = convert_state_dict_to_kohya(named)
    for key in converted:
        if key.endswith(".alpha"):
            converted[key] = torch.tensor(float(alpha))
    about = {
        "ss_network_module": "networks.lora",
        "ss_network_dim": str(rank),
        "ss_network_alpha": str(float(alpha)),
        "ss_base_model_version": "sdxl_base_v1-0",
        "modelspec.architecture": "stable-diffusion-xl-v1-base/lora",
        "modelspec.title": "intaglio",
    }
    return _in_order(save(converted, {**about, **metadata}))


def _in_order(data: bytes) -> bytes:
    """A safetensors file with its metadata sorted: the library's order changes from run to run.

    The file begins with the length of its header, in 8 bytes; the header is JSON, padded with
    spaces.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def describe(values: dict[str, Any]) -> dict[str, str]:
    """Metadata as safetensors takes it: text alone."""
    return {
        f"intaglio_{name}": value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in values.items()
    }
