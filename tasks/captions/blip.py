"""A sentence for each picture, by a BLIP model through transformers (the ``train`` extra)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.clip.pixels import decode
from models.errors import BadSettings, InputFault
from models.handoff import Captions
from models.records import Sample
from tasks.progress import Progress
from tasks.storage import Storage

MOST_TOKENS = 40
"""Of a sentence."""


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


def _load(name: str) -> tuple[Any, Any]:
    try:
        import torch
        from transformers import BlipForConditionalGeneration, BlipProcessor
    except ImportError as error:
        raise BadSettings(
            "captions.by blip: transformers is not installed.", "pip install 'intaglio[train]'"
        ) from error
    try:
        processor = BlipProcessor.from_pretrained(name)
        model: Any = BlipForConditionalGeneration.from_pretrained(name)
    except Exception as error:
        # Damaged weights raise an error of safetensors' own, others what they like.
        raise BadSettings(
            f"captions.blip_model: {name} cannot be loaded: {error}",
            "Name a folder with a BLIP model, or a model on a hub that this machine reaches.",
        ) from error
    return processor, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
