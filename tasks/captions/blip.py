"""A sentence for each picture, by a BLIP model through transformers (the ``train`` extra)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from PIL import Image

from models.errors import BadSettings
from models.handoff import Captions
from models.records import Sample
from tasks.progress import Progress
from tasks.storage import Storage

MOST_TOKENS = 40
"""Of a sentence."""


def blip_captions(
    settings: Captions, output: Storage, samples: Sequence[Sample], progress: Progress
) -> Mapping[str, str]:
    """What BLIP says of each sample.

    Raises:
        BadSettings: The model or transformers is missing.
    """
    if not samples:
        return {}
    processor, model = _load(settings.blip_model)
    captions: dict[str, str] = {}
    progress.start(len(samples), "describing")
    for sample in samples:
        image = Image.open(BytesIO(output.read(sample.file_name))).convert("RGB")
        inputs = processor(images=image, return_tensors="pt").to(model.device)
        tokens = model.generate(**inputs, max_new_tokens=MOST_TOKENS, do_sample=False)
        captions[sample.file_name] = processor.decode(tokens[0], skip_special_tokens=True)
        progress.advance()
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
    except (OSError, ValueError) as error:
        raise BadSettings(
            f"captions.blip_model: {name} cannot be loaded: {error}",
            "Name a folder with a BLIP model, or a model on a hub that this machine reaches.",
        ) from error
    return processor, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
