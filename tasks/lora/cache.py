"""Latents and text embeddings on the disk.

Neither VAE nor text encoders need be in memory while the U-Net is trained.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from models.errors import BadSettings
from tasks.lora.base import Device, fingerprint, give_back, load_part, load_tokenizers
from tasks.lora.batches import Item
from tasks.progress import Progress
from tasks.storage import Storage

FOLDER = "cache"
Cache = dict[str, Any]
"""Tensors by name."""


class Latents:
    """The latents of samples at their buckets, in a folder of the output.

    Args:
        output: Where they are kept.
        bundle: Where the pictures lie.
        images: Folder of the pictures in the bundle.
        model: Fingerprint of the VAE.
    """

    def __init__(self, output: Storage, bundle: Storage, images: str, model: str) -> None:
        self._output, self._bundle, self._images, self._model = output, bundle, images, model

    def name(self, item: Item) -> str:
        """File of an item."""
        size = f"{item.placed.width}x{item.placed.height}"
        return f"{FOLDER}/latents-{self._model}/{item.sample.sha256[:32]}-{size}.safetensors"

    def read(self, item: Item) -> Cache:
        """``latents`` (4, h, w) and ``time_ids`` (6,)."""
        return _load(self._output, self.name(item))

    def fill(self, items: Sequence[Item], vae: Any, device: Device, progress: Progress) -> None:
        """Encode what is not there yet.

        A picture is represented by the mean of its latent distribution, so that a cache that was
        filled anew is the same.
        """
        import torch

        there = self._output.names(f"{FOLDER}/latents-{self._model}")
        todo = [item for item in items if self.name(item) not in there]
        progress.start(len(todo), "encoding pictures")
        for item in todo:
            name = f"{self._images}/{item.sample.image}"
            try:
                pixels, time_ids = prepare(self._bundle.read(name), item)
            except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
                raise BadSettings(
                    f"bundle: {self._bundle.path(name)} cannot be decoded: {error}.",
                    "Mend the dataset (python -m flows.verify --repair) and make the bundle again "
                    "(python -m flows.handoff).",
                ) from error
            with torch.inference_mode():
                batch = torch.from_numpy(pixels)[None].to(device.name, vae.dtype)
                latents = vae.encode(batch).latent_dist.mode()[0] * vae.config.scaling_factor
            tensors = {"latents": latents.float().cpu(), "time_ids": torch.tensor(time_ids)}
            _save(self._output, self.name(item), tensors)
            progress.advance()
        progress.stop()


def prepare(data: bytes, item: Item) -> tuple[np.ndarray[Any, Any], list[float]]:
    """A picture at its bucket.

    Args:
        data: The image file.
        item: Where it belongs.

    Returns:
        (3, H, W) from -1 to 1, and SDXL's size conditioning: original height and width, top and
        left of the crop, height and width of the bucket (Podell et al. 2023, 2.2).
    """
    image = Image.open(BytesIO(data)).convert("RGB")
    placed = item.placed
    width = max(placed.width, round(image.width * placed.scale))
    height = max(placed.height, round(image.height * placed.scale))
    resized = image.resize((width, height), Image.Resampling.LANCZOS)
    left, top = (width - placed.width) // 2, (height - placed.height) // 2
    cut = resized.crop((left, top, left + placed.width, top + placed.height))
    pixels = np.asarray(cut, np.float32).transpose(2, 0, 1) / 127.5 - 1
    conditioning = (image.height, image.width, top, left, placed.height, placed.width)
    return pixels, [float(number) for number in conditioning]


class Texts:
    """The embeddings of captions and prompts.

    Args:
        output: Where they are kept.
        model: Fingerprint of both text encoders.
    """

    def __init__(self, output: Storage, model: str) -> None:
        self._output, self._model = output, model

    def name(self, text: str) -> str:
        """File of a text."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return f"{FOLDER}/texts-{self._model}/{digest}.safetensors"

    def read(self, text: str) -> Cache:
        """``embeds`` (77, dim) and ``pooled`` (dim,)."""
        return _load(self._output, self.name(text))

    def fill(
        self, texts: Sequence[str], encoders: Sequence[Any], base: str, progress: Progress
    ) -> None:
        """Encode what is not there yet."""
        there = self._output.names(f"{FOLDER}/texts-{self._model}")
        todo = [text for text in dict.fromkeys(texts) if self.name(text) not in there]
        tokenizers = load_tokenizers(base)
        progress.start(len(todo), "encoding captions")
        for text in todo:
            _save(self._output, self.name(text), embed(text, tokenizers, encoders))
            progress.advance()
        progress.stop()


def embed(text: str, tokenizers: Sequence[Any], encoders: Sequence[Any]) -> Cache:
    """What SDXL's U-Net is told of a text.

    The last layer but one of both encoders side by side, and the pooled output of the second.
    """
    import torch

    hidden, pooled = [], None
    with torch.inference_mode():
        for tokenizer, encoder in zip(tokenizers, encoders, strict=True):
            ids = tokenizer(
                text,
                padding="max_length",
                max_length=tokenizer.model_max_length,
                truncation=True,
                return_tensors="pt",
            ).input_ids
            output = encoder(ids.to(encoder.device), output_hidden_states=True)
            hidden.append(output.hidden_states[-2][0])
            pooled = output[0][0]
    assert pooled is not None
    return {"embeds": torch.cat(hidden, -1).float().cpu(), "pooled": pooled.float().cpu()}


def fill_all(
    output: Storage,
    bundle: Storage,
    images: str,
    base: str,
    items: Sequence[Item],
    prompts: Sequence[str],
    device: Device,
    progress: Progress,
) -> tuple[Latents, Texts]:
    """Fill both caches, one model in memory at a time.

    Raises:
        StopRun: A picture or the model cannot be read, or the storage is full.
    """
    vae = load_part(base, "vae", device).to(device.name)
    latents = Latents(output, bundle, images, fingerprint(vae))
    latents.fill(items, vae, device, progress)
    del vae
    give_back()
    parts = ("text_encoder", "text_encoder_2")
    encoders = [load_part(base, part, device).to(device.name) for part in parts]
    texts = Texts(output, "-".join(map(fingerprint, encoders)))
    texts.fill([*(item.sample.caption for item in items), *prompts], encoders, base, progress)
    del encoders
    give_back()
    return latents, texts


def _save(output: Storage, name: str, tensors: Cache) -> None:
    from safetensors.torch import save

    output.write(name, save({key: value.contiguous() for key, value in tensors.items()}))


def _load(output: Storage, name: str) -> Cache:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors: Cache = load(output.read(name))
    except SafetensorError as error:
        raise BadSettings(
            f"output: {output.path(name)} is damaged: {error}.",
            "Remove this file; the same command makes it again.",
        ) from error
    return tensors
