"""Sample images: what the LoRA makes of a prompt at present."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from tasks.lora.base import Device, load_part
from tasks.lora.cache import Texts
from tasks.storage import Storage

FOLDER = "images"
GUIDANCE = 6.0


def preview(
    base: str,
    unet: Any,
    texts: Texts,
    prompts: Sequence[str],
    side: int,
    steps: int,
    seed: int,
    device: Device,
) -> Iterator[Any]:
    """Make an image of each prompt, the same ones each time if the weights are the same.

    Args:
        base: The model.
        unet: With its LoRA, on the device.
        texts: Cached embeddings of the prompts.
        prompts: What to make.
        side: Of the square images, in pixels.
        steps: Of denoising.
        seed: Of the noise.
        device: Where to make them.

    Yields:
        Pillow images.
    """
    import torch
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline

    pipeline = StableDiffusionXLPipeline(
        vae=load_part(base, "vae", device).to(device.name),
        text_encoder=None,
        text_encoder_2=None,
        tokenizer=None,
        tokenizer_2=None,
        unet=unet,
        scheduler=EulerDiscreteScheduler.from_pretrained(base, subfolder="scheduler"),
        add_watermarker=False,
    )
    pipeline.set_progress_bar_config(disable=True)
    for number, prompt in enumerate(prompts):
        embeds, pooled = _embeds(texts, prompt, device)
        with torch.inference_mode():
            yield pipeline(
                prompt_embeds=embeds,
                pooled_prompt_embeds=pooled,
                # What SDXL takes for no negative prompt: not the empty one, but zeros.
                negative_prompt_embeds=torch.zeros_like(embeds),
                negative_pooled_prompt_embeds=torch.zeros_like(pooled),
                width=side,
                height=side,
                num_inference_steps=steps,
                guidance_scale=GUIDANCE,
                generator=torch.Generator().manual_seed(seed + number),
            ).images[0]


def write_image(output: Storage, name: str, image: Any) -> None:
    """Write a Pillow image as PNG."""
    stream = BytesIO()
    image.save(stream, "PNG")
    output.write(f"{FOLDER}/{name}.png", stream.getvalue())


def _embeds(texts: Texts, text: str, device: Device) -> tuple[Any, Any]:
    cached = texts.read(text)
    to = {"device": device.name, "dtype": device.dtype}
    return cached["embeds"][None].to(**to), cached["pooled"][None].to(**to)
