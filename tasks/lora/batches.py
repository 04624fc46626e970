"""Which samples are in which step: decided by the seed alone, so that a run can go on anywhere."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from models.handoff import BundleSample, Placed, Plan
from tasks.handoff.buckets import RULES


@dataclass(frozen=True)
class Item:
    """A sample and its place in a bucket."""

    sample: BundleSample
    placed: Placed


def fill(samples: Sequence[BundleSample], plan: Plan) -> list[Item]:
    """Put samples in the buckets of our own trainer."""
    rule = RULES["builtin"].place
    return [
        Item(sample, rule(sample.width, sample.height, plan.resolution, plan.step))
        for sample in samples
    ]


def divide(items: Sequence[Item], share: float) -> tuple[list[Item], list[Item]]:
    """Keep a share back for validation: those with the first hashes, whatever the order of all.

    Returns:
        Those to train on, at least one, and those kept back.
    """
    count = min(round(len(items) * share), len(items) - 1)
    held = {item.sample.sha256 for item in sorted(items, key=lambda i: i.sample.sha256)[:count]}
    train = [item for item in items if item.sample.sha256 not in held]
    return train or list(items), [item for item in items if item.sample.sha256 in held]


def epoch_batches(items: Sequence[Item], plan: Plan, epoch: int) -> list[list[Item]]:
    """The batches of an epoch in their order.

    Each is of one bucket; the last of a bucket may be smaller.
    """
    order = random.Random(f"{plan.seed} {epoch}")
    buckets: dict[tuple[int, int], list[Item]] = defaultdict(list)
    for item in items:
        buckets[item.placed.width, item.placed.height] += [item] * plan.repeats
    batches = []
    for size in sorted(buckets):
        bucket = buckets[size]
        order.shuffle(bucket)
        starts = range(0, len(bucket), plan.batch_size)
        batches += [bucket[start : start + plan.batch_size] for start in starts]
    order.shuffle(batches)
    return batches


def count_batches(items: Sequence[Item], plan: Plan) -> int:
    """Steps of an epoch."""
    return len(epoch_batches(items, plan, 0))


def count_steps(epoch_steps: int, epochs: int, steps: int) -> int:
    """Steps until epochs or steps come to their end."""
    return min(epoch_steps * epochs, steps)


def epoch_of(step: int, epoch_steps: int) -> tuple[int, int]:
    """Epoch of a step and its place in it, both 0-based."""
    return divmod(step, epoch_steps)


def epochs_done(step: int, epoch_steps: int) -> float:
    """Epochs after so many steps."""
    return math.floor(100 * step / epoch_steps) / 100
