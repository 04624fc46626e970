"""A sentence for each picture, by a BLIP model through transformers (the ``train`` extra)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from models.clip.pixels import decode
from models.errors import BadSettings, InputFault
from models.handoff import Captions
from models.records import Sample
from tasks.progress import Progress
from tasks.storage import Storage

MOST_TOKENS = 40
"""Of a sentence."""
MISSING = ("captions.by blip: transformers is not installed.", "pip install 'intaglio[train]'")
CURE = "Name a folder with a BLIP model, or a model on a hub that this machine reaches."


def blip_captions(
    settings: Captions, output: Storage, samples: Sequence[Sample], progress: Progress
) -> Mapping[str, str]:
    """What BLIP says of each sample; nothing of those that cannot be read.

    Raises:
        BadSettings: The model or transformers is missing.
    """
    if not samples:
        return {}
    processor, model = _load(settings.blip_model)
    captions: dict[str, str] = {}
    side = model.config.vision_config.image_size
    progress.start(len(samples), "describing")
    try:
        for sample in samples:
            name = sample.file_name
            progress.advance()
            try:
                image = decode(name, output.read(name), side)
            except (InputFault, FileNotFoundError):
                # The making of the bundles says what is missing.
                continue
            inputs = processor(images=image, return_tensors="pt").to(model.device)
            tokens = model.generate(**inputs, max_new_tokens=MOST_TOKENS, do_sample=False)
            captions[name] = processor.decode(tokens[0], skip_special_tokens=True)
    finally:
        progress.stop()
    return captions


def check_blip(name: str) -> None:
    """See that a model is there, before hours of other work; of its weights only that they are.

    Args:
        name: Folder, or name on a hub.

    Raises:
        BadSettings: The model or transformers is missing, or it is no BLIP.
    """
    if find_spec("transformers") is None:
        raise BadSettings(*MISSING)
    from huggingface_hub import hf_hub_download

    here = Path(name)
    try:
        path = here / "config.json" if here.is_dir() else hf_hub_download(name, "config.json")
        kind = str(json.loads(Path(path).read_bytes()).get("model_type"))
    except (OSError, ValueError) as error:
        raise BadSettings(f"captions.blip_model: {name} cannot be loaded: {error}", CURE) from error
    if here.is_dir() and not any((*here.glob("*.safetensors"), *here.glob("*.bin"))):
        raise BadSettings(f"captions.blip_model: {name} cannot be loaded: no weights.", CURE)
    if kind != "blip":
        raise BadSettings(f"captions.blip_model: {name} is no BLIP but a {kind}.", CURE)


def _load(name: str) -> tuple[Any, Any]:
    try:
        import torch
        from transformers import BlipForConditionalGeneration, BlipProcessor
    except ImportError as error:
        raise BadSettings(*MISSING) from error
    try:
        processor = BlipProcessor.from_pretrained(name)
        model: Any = BlipForConditionalGeneration.from_pretrained(name)
    except Exception as error:
        # Damaged weights raise an error of safetensors' own, others what they like.
        raise BadSettings(f"captions.blip_model: {name} cannot be loaded: {error}", CURE) from error
    return processor, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
