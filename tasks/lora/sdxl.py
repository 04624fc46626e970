"""Whether a model is an SDXL base, and which one: told from its files before any is loaded."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from models.errors import BadSettings

ENCODERS = ("text_encoder", "text_encoder_2")
TOKENIZERS = ("tokenizer", "tokenizer_2")
WEIGHTS = {
    "unet": ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin"),
    "vae": ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin"),
    "text_encoder": ("model.safetensors", "pytorch_model.bin"),
    "text_encoder_2": ("model.safetensors", "pytorch_model.bin"),
}
"""Files that the weights of a part may be in."""
CURE = (
    "Name an SDXL base model in diffusers' format: a folder with model_index.json, or on a hub; if "
    "it is one, fetch it again."
)
LOOKS, BLOCK = 64, 4096
"""Places of a file that are looked at, and bytes at each."""


def check_base(name: str) -> str:
    """Look at what a model says of itself, and at whether its files are whole.

    Of a model on a hub the weights are not looked at, as they need not be here yet.

    Args:
        name: Folder, or name on a hub.

    Returns:
        What tells it from another of the same name: of a folder a hash over its settings and
        samples of its weights, of a hub's the revision.

    Raises:
        BadSettings: It is no SDXL base, lacks a file, or cannot be found.
    """
    index = _settings(name, "model_index.json")
    kind = str(index.get("_class_name"))
    if not kind.startswith("StableDiffusionXL"):
        raise BadSettings(f"lora.base_model: {name} is no SDXL but a {kind}.", CURE)
    for part in (*WEIGHTS, *TOKENIZERS, "scheduler"):
        if not any(index.get(part) or ()):
            raise _bad(name, "model_index.json", f"names no {part}, which every SDXL base has")
    _settings(name, "scheduler/scheduler_config.json")
    _check_widths(name)
    for part in TOKENIZERS:
        _settings(name, f"{part}/tokenizer_config.json")
        _any_of(name, part, ("tokenizer.json", "vocab.json"))
    if not os.path.isdir(name):
        return _file(name, "model_index.json").parent.name
    return _sample(name, [_weights(name, part) for part in WEIGHTS])


def _check_widths(name: str) -> None:
    """What one part makes must be as wide as what another takes."""
    from transformers import CLIPTextConfig

    unet, vae = (_settings(name, f"{part}/config.json") for part in ("unet", "vae"))
    first, second = (
        CLIPTextConfig.from_dict(_settings(name, f"{part}/config.json")) for part in ENCODERS
    )
    pooled = second.projection_dim + 6 * (unet.get("addition_time_embed_dim") or 0)
    for setting, wanted in (
        ("addition_embed_type", "text_time"),
        ("cross_attention_dim", first.hidden_size + second.hidden_size),
        ("projection_class_embeddings_input_dim", pooled),
        ("in_channels", vae.get("latent_channels", 4)),
    ):
        if (given := unet.get(setting)) != wanted:
            raise _bad(
                name, "unet/config.json", f"has {setting} {given}, an SDXL base of its other parts "
                f"{wanted}"
            )  # fmt: skip


def _settings(name: str, file: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = dict(json.loads(_file(name, file).read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise _bad(name, file, f"cannot be read: {error}") from error
    return found


def _file(name: str, file: str) -> Path:
    if os.path.isdir(name):
        return Path(name) / file
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(name, file))


def _any_of(name: str, part: str, files: tuple[str, ...]) -> None:
    error: Exception | None = None
    for file in files:
        try:
            if _file(name, f"{part}/{file}").is_file():
                return
        except OSError as missing:
            error = missing
    raise _bad(name, part, f"has none of {', '.join(files)}") from error


def _weights(name: str, part: str) -> list[Path]:
    """The files that hold a part's weights, in a folder."""
    for file in WEIGHTS[part]:
        path = Path(name) / part / file
        if (index := path.with_name(f"{file}.index.json")).is_file():
            shards = _settings(name, f"{part}/{index.name}").get("weight_map", {})
            return [_whole(name, path.with_name(shard)) for shard in sorted({*shards.values()})]
        if path.is_file():
            return [_whole(name, path)]
    raise _bad(name, part, f"has none of {', '.join(WEIGHTS[part])}")


def _whole(name: str, path: Path) -> Path:
    """A file of weights, if it is as long as its header says."""
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb"):
            pass
        if path.suffix == ".safetensors":
            with safe_open(path, "pt"):
                pass
    except (OSError, SafetensorError) as error:
        file = f"{path.parent.name}/{path.name}"
        raise _bad(name, file, f"is damaged or cut short: {error}") from error
    return path


def _sample(name: str, weights: list[list[Path]]) -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(name).glob("*/*config.json")):
        digest.update(path.read_bytes())
    for path in (path for paths in weights for path in paths):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(name)} {size}\n".encode())
        with path.open("rb") as stream:
            for look in range(LOOKS):
                stream.seek(max(0, size - BLOCK) * look // (LOOKS - 1))
                digest.update(stream.read(BLOCK))
    return digest.hexdigest()[:16]


def _bad(name: str, file: str, what: str) -> BadSettings:
    return BadSettings(f"lora.base_model: {name}: {file} {what}.", CURE)
