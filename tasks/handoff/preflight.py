"""What each trainer would do to the dataset, said before anything is written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from models.handoff import (
    Bucket,
    BundleSample,
    Caption,
    Placed,
    Plan,
    Preflight,
    TrainerPreflight,
)
from models.records import Sample
from tasks.captions.text import MOST_TOKENS
from tasks.handoff.buckets import RULES, Rule

VRAM_CLASSES = (8, 12, 16, 24, 40, 48, 80)
"""Memory of graphics cards, in GB."""
UNET_GB, ENCODERS_GB, VAE_GB = 5.1, 1.6, 0.2
"""SDXL's weights at two bytes a parameter: 2.57, 0.82 and 0.08 thousand million parameters."""
ACTIVATIONS_GB = 3.0
"""For each sample of a batch at 1024×1024 with gradient checkpointing: a guess on the safe side."""
CONTEXT_GB = 1.0
"""What CUDA and its libraries take for themselves, the same."""
MUCH_CROPPED = 0.1


def preflight(
    plan: Plan, trainers: Sequence[str], samples: Sequence[Sample], captions: Mapping[str, Caption]
) -> Preflight:
    """Put every sample in its bucket, for each trainer that has buckets.

    Args:
        plan: Resolution, step, batch and repeats.
        trainers: Whose rules to follow; that of our own trainer is added.
        samples: Of the dataset, at least one.
        captions: By file name.
    """
    names = [name for name in (*trainers, "builtin") if name in RULES]
    found = [_trainer(name, RULES[name], plan, samples) for name in names]
    names = [sample.file_name for sample in samples]
    long = [name for name in names if captions[name].tokens > MOST_TOKENS]
    return Preflight(
        samples=len(samples),
        batch_size=plan.batch_size,
        repeats=plan.repeats,
        long_captions=long,
        trainers=found,
        warnings=[
            *_warn_captions(len(long)),
            *(w for one in found for w in _warn(one, plan, samples)),
        ],
    )


def _trainer(name: str, rule: Rule, plan: Plan, samples: Sequence[Sample]) -> TrainerPreflight:
    places = _places(rule, plan, samples)
    sizes = Counter((place.width, place.height) for place in places)
    order = sorted(sizes, key=lambda size: (-size[0] * size[1], size))
    counts = [count * (plan.repeats if rule.repeats else 1) for count in sizes.values()]
    rest = [count % plan.batch_size for count in counts] if rule.drops_rest else []
    steps = steps_an_epoch(rule, plan, samples)
    most = max(range(len(samples)), key=lambda n: places[n].cropped)
    return TrainerPreflight(
        trainer=name,
        rule=rule.words,
        buckets=[Bucket(width=w, height=h, samples=sizes[w, h]) for w, h in order],
        upscaled=sum(place.scale > 1 for place in places),
        cropped_mean=sum(place.cropped for place in places) / len(places),
        cropped_most=places[most].cropped,
        cropped_file=samples[most].file_name if places[most].cropped else "",
        placed=dict(zip((sample.file_name for sample in samples), places, strict=True)),
        small_buckets=sum(count < plan.batch_size for count in counts),
        left_out=sum(rest),
        steps_an_epoch=steps,
        epochs=math.ceil(plan.steps / steps) if steps else 0,
        vram_gb=_vram(places, plan),
    )


def steps_an_epoch(rule: Rule, plan: Plan, samples: Sequence[Sample | BundleSample]) -> int:
    """Optimiser steps until every sample was seen as often as it should; 0 if no batch is full."""
    sizes = Counter((place.width, place.height) for place in _places(rule, plan, samples))
    repeats = plan.repeats if rule.repeats else 1
    batches = (count * repeats / plan.batch_size for count in sizes.values())
    return sum(math.floor(n) if rule.drops_rest else math.ceil(n) for n in batches)


def _places(rule: Rule, plan: Plan, samples: Sequence[Sample | BundleSample]) -> list[Placed]:
    return [rule.place(s.width, s.height, plan.resolution, plan.step) for s in samples]


def _vram(places: Sequence[Placed], plan: Plan) -> int:
    """The smallest class of card that should fit, in GB.

    For a LoRA of the U-Net in half precision, with latents and text embeddings cached and
    gradient checkpointing.
    """
    pixels = max(place.width * place.height for place in places)
    needed = UNET_GB + CONTEXT_GB + plan.batch_size * ACTIVATIONS_GB * pixels / 1024**2
    # While the cache is filled, encoders and VAE are there instead of activations.
    needed = max(needed, ENCODERS_GB + VAE_GB + CONTEXT_GB + ACTIVATIONS_GB)
    return next((size for size in VRAM_CLASSES if size > needed), VRAM_CLASSES[-1])


def _warn_captions(long: int) -> list[str]:
    if not long:
        return []
    return [f"{long:,} captions have more than {MOST_TOKENS} tokens; trainers cut them there."]


def _warn(found: TrainerPreflight, plan: Plan, samples: Sequence[Sample]) -> list[str]:
    said = []
    rule = RULES[found.trainer]
    if plan.repeats > 1 and not rule.repeats:
        said.append("its script knows no repeats; each sample comes once an epoch.")
    if plan.alpha != plan.rank and not rule.alpha:
        said.append(f"its scripts take the rank, {plan.rank}, for alpha.")
    if found.trainer == "simpletuner" and plan.precision != "bf16":
        said.append(f"it trains in bf16, not in {plan.precision}: a T4 will not do.")
    if found.upscaled:
        cure = ""
        if found.trainer == "diffusers":
            shortest = min(min(sample.width, sample.height) for sample in samples)
            cure = f" At --plan.resolution {shortest} none would be."
        said.append(f"{found.upscaled:,} of {len(samples):,} samples would be enlarged.{cure}")
    if found.cropped_most > MUCH_CROPPED:
        share = f"{found.cropped_most:.0%}"
        said.append(f"up to {share} of a picture would be cut off ({found.cropped_file}).")
    singles = {(b.width, b.height) for b in found.buckets if b.samples == 1}
    if singles:
        alone = next(name for name, at in found.placed.items() if (at.width, at.height) in singles)
        said.append(f"{len(singles):,} buckets have a single sample ({alone} for one).")
    if found.left_out:
        said.append(f"{found.left_out:,} samples an epoch fill no batch and are left out.")
    if not found.steps_an_epoch:
        said.append("no bucket fills a batch: nothing would be trained.")
    return [f"{found.trainer}: {sentence}" for sentence in said]
