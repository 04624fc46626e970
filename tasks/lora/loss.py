"""The loss of a batch: how far the U-Net's guess is from the noise that was added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasks.lora.base import Device
from tasks.lora.batches import Item
from tasks.lora.cache import Latents, Texts


class Batcher:
    """Puts a batch's cached tensors together.

    Args:
        latents: Of the pictures.
        texts: Of the captions.
        device: Where to put them.
    """

    def __init__(self, latents: Latents, texts: Texts, device: Device) -> None:
        self._latents, self._texts, self._device = latents, texts, device

    def __call__(self, items: Sequence[Item]) -> dict[str, Any]:
        """``latents`` (n, 4, h, w), ``embeds`` (n, 77, d), ``pooled`` (n, d), ``time_ids`` (n, 6).

        All in full precision: half cannot hold every size in pixels.
        """
        import torch

        pictures = [self._latents.read(item) for item in items]
        texts = [self._texts.read(item.sample.caption) for item in items]
        parts = {
            "latents": [picture["latents"] for picture in pictures],
            "time_ids": [picture["time_ids"] for picture in pictures],
            "embeds": [text["embeds"] for text in texts],
            "pooled": [text["pooled"] for text in texts],
        }
        return {key: torch.stack(value).to(self._device.name) for key, value in parts.items()}


def losses(
    unet: Any, schedule: Any, batch: dict[str, Any], noise: Any, times: Any, dtype: Any
) -> Any:
    """Mean squared error of each sample of a batch, (n,).

    Args:
        unet: The model.
        schedule: Of the noise; its ``prediction_type`` says what the U-Net guesses.
        batch: See :class:`Batcher`.
        noise: Like the latents.
        times: (n,) steps of the schedule.
        dtype: Of the U-Net.
    """
    noisy = schedule.add_noise(batch["latents"], noise, times)
    pooled, embeds = batch["pooled"].to(dtype), batch["embeds"].to(dtype)
    conditions = {"text_embeds": pooled, "time_ids": batch["time_ids"]}
    guess = unet(noisy.to(dtype), times, embeds, added_cond_kwargs=conditions).sample
    if schedule.config.prediction_type == "v_prediction":
        target = schedule.get_velocity(batch["latents"], noise, times)
    else:
        target = noise
    return (guess.float() - target.float()).square().mean(dim=(1, 2, 3))


def weights(schedule: Any, times: Any, gamma: float) -> Any:
    """Min-SNR weights (Hang et al. 2023, arXiv:2303.09556), (n,); all 1 where gamma is 0."""
    import torch
    from diffusers.training_utils import compute_snr

    snr = compute_snr(schedule, times)
    if not gamma:
        return torch.ones_like(snr)
    capped = snr.clamp(max=gamma)
    return capped / (snr + 1 if schedule.config.prediction_type == "v_prediction" else snr)


def draw(seed: int, step: int, shape: Any, train_steps: int, device: Device) -> tuple[Any, Any]:
    """Noise and times of a step, decided by seed and step alone and the same on any device."""
    import torch

    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    noise = torch.randn(shape, generator=generator)
    times = torch.randint(0, train_steps, (shape[0],), generator=generator)
    return noise.to(device.name), times.to(device.name)
