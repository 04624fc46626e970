"""Into which bucket each trainer puts a picture, and what it does to it on the way.

Each rule was written anew from what the trainer's own code does; the tests hold it against sizes
worked out by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from models.handoff import Placed

ASPECTS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0)
"""OneTrainer's proportions, long side to short."""


@dataclass(frozen=True)
class Rule:
    """How a trainer chooses buckets.

    Attributes:
        words: The same for a person.
        place: Width, height, resolution and step to where the picture ends.
        drops_rest: Whether samples that fill no batch are left out of an epoch.
        repeats: Whether it can see a sample several times in an epoch.
        alpha: Whether it can be told another alpha than the rank.
    """

    words: str
    place: Callable[[int, int, int, int], Placed]
    drops_rest: bool = False
    repeats: bool = True
    alpha: bool = True


def _cover(width: int, height: int, bucket: tuple[int, int]) -> Placed:
    """Resize so that the picture covers the bucket, and crop the middle."""
    bucket_w, bucket_h = bucket
    scale = max(bucket_w / width, bucket_h / height)
    cropped = 1 - bucket_w * bucket_h / (width * height * scale * scale)
    return Placed(width=bucket_w, height=bucket_h, scale=scale, cropped=max(0.0, cropped))


def kohya(width: int, height: int, resolution: int, step: int) -> Placed:
    """sd-scripts with ``bucket_no_upscale``: the largest multiples of the step, never enlarged.

    Above the area, the side that keeps the proportions better is brought to a multiple first.
    """
    new_w, new_h = width, height
    area = resolution * resolution
    if width * height > area:
        aspect = width / height
        ideal_w, ideal_h = math.sqrt(area * aspect), math.sqrt(area / aspect)
        by_w, by_h = _down(ideal_w + 0.5, step), _down(ideal_h + 0.5, step)
        of_w, of_h = _down(by_w / aspect + 0.5, step), _down(by_h * aspect + 0.5, step)
        if abs(by_w / of_w - aspect) < abs(of_h / by_h - aspect):
            new_w, new_h = by_w, int(by_w / aspect + 0.5)
        else:
            new_w, new_h = int(by_h * aspect + 0.5), by_h
    bucket_w, bucket_h = _down(new_w, step), _down(new_h, step)
    if new_w < bucket_w or new_h < bucket_h:
        # Narrower than one step.
        return _cover(width, height, (bucket_w, bucket_h))
    cropped = 1 - bucket_w * bucket_h / (new_w * new_h)
    return Placed(width=bucket_w, height=bucket_h, scale=new_w / width, cropped=cropped)


def square(width: int, height: int, resolution: int, step: int) -> Placed:
    """Diffusers' scripts: the shorter side to the resolution, then a square from the middle."""
    return _cover(width, height, (resolution, resolution))


def ai_toolkit(width: int, height: int, resolution: int, step: int) -> Placed:
    """ai-toolkit: multiples of the step nearest in area, never above that of the resolution."""
    most = resolution * resolution
    target = min(width * height, most)
    scale = math.sqrt(target / (width * height))
    sides = [
        (wide * step, high * step)
        for wide, high in product(_around(width * scale / step), _around(height * scale / step))
        if wide and high and wide * high * step * step <= most
    ]
    bucket = min(sides, key=lambda side: abs(side[0] * side[1] - target), default=(step, step))
    return _cover(width, height, bucket)


def onetrainer(width: int, height: int, resolution: int, step: int) -> Placed:
    """OneTrainer: the nearest of 17 proportions, at full area, enlarged if need be."""
    buckets = []
    for aspect in ASPECTS:
        long = round(resolution * math.sqrt(aspect) / step) * step
        short = round(resolution / math.sqrt(aspect) / step) * step
        buckets += [(long, short), (short, long)]
    nearest = min(buckets, key=lambda side: abs(side[1] / side[0] - height / width))
    return _cover(width, height, nearest)


def simpletuner(width: int, height: int, resolution: int, step: int) -> Placed:
    """SimpleTuner's ``pixel_area``: own proportions, at full area, enlarged if need be."""
    aspect = round(width / height, 2)
    wide = max(step, round(resolution * math.sqrt(aspect) / step) * step)
    high = max(step, round(resolution / math.sqrt(aspect) / step) * step)
    return _cover(width, height, (wide, high))


RULES = {
    "kohya": Rule("multiples of the step, never enlarged", kohya),
    "diffusers": Rule(
        "shorter side to the resolution, a square from the middle",
        square,
        repeats=False,
        alpha=False,
    ),
    "ai-toolkit": Rule("multiples of the step nearest in area", ai_toolkit),
    "onetrainer": Rule("nearest of 17 proportions at full area", onetrainer, drops_rest=True),
    "simpletuner": Rule("own proportions at full area", simpletuner),
    "builtin": Rule("multiples of the step, never enlarged", kohya),
}
"""By trainer; formats without a trainer of SDXL have no buckets."""


def _down(length: float, step: int) -> int:
    """The largest multiple of the step that is no longer, one step at least."""
    return max(step, int(length) // step * step)


def _around(steps: float) -> tuple[int, int]:
    return math.floor(steps), math.ceil(steps)
