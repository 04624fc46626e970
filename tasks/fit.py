"""Bringing a crop to its final size. Nothing is enlarged or distorted but by ``stretch``."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from models.settings import Fit

# Read when libvips is loaded: a worker has one processor to itself.
os.environ.setdefault("VIPS_CONCURRENCY", "1")
import pyvips

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Fitted:
    """A crop at its final size.

    Attributes:
        pixels: (H, W) grey or (H, W, 3) RGB.
        scale: Final pixels per pixel of the crop (geometric mean where stretched).
        transforms: What was done, in order.
    """

    pixels: Pixels
    scale: float
    transforms: tuple[str, ...]


@dataclass(frozen=True)
class _Plan:
    """Resize by ``scale``, then cut or pad the middle to ``width`` × ``height``."""

    width: int
    height: int
    scale: float


def fit(pixels: Pixels, margin: int, settings: Fit) -> Fitted:
    """Fit a crop.

    Args:
        pixels: (H, W) grey or (H, W, 3) RGB.
        margin: Paper around the illustration in pixels, at least this much on each side. A bucket
            may cut into it, never into the illustration.
        settings: Mode and sizes.
    """
    height, width = pixels.shape[:2]
    side = settings.side
    match settings.mode:
        case "stretch":
            scale = math.sqrt(side * side / (width * height))
            done = _resize(pixels, side, side)
            return Fitted(done, scale, (f"stretch {width}x{height} to {side}x{side} lanczos",))
        case "long-side":
            scale = min(1.0, side / max(width, height))
            plan = _Plan(_scaled(width, scale), _scaled(height, scale), scale)
        case "pad":
            square = min(side, max(width, height))
            plan = _Plan(square, square, square / max(width, height))
        case "crop":
            square = min(side, min(width, height))
            plan = _Plan(square, square, square / min(width, height))
        case "bucket":
            plan = _bucket(width, height, margin, settings)
    return _carry_out(pixels, plan)


def _bucket(width: int, height: int, margin: int, settings: Fit) -> _Plan:
    """The SDXL size that needs least padding, and of those the largest.

    A bucket has sides that are multiples of ``step`` and at most ``max_side``, and an area of at
    most ``side``² (the rule of the common trainers).
    """
    step = settings.step
    # The longest side that still has an area of at most side² when the other is one step.
    most = min(settings.max_side, settings.side**2 // step) // step * step
    natural = min(1.0, settings.side / math.sqrt(width * height), most / max(width, height))
    plans = []
    for round_w, round_h in product((math.floor, math.ceil), repeat=2):
        w = min(max(round_w(width * natural / step), 1) * step, most)
        h = min(max(round_h(height * natural / step), 1) * step, most)
        if w * h > settings.side**2:
            continue
        core_w, core_h = max(1, width - 2 * margin), max(1, height - 2 * margin)
        cover = max(w / width, h / height)
        scale = min(1.0, cover, w / core_w, h / core_h)
        filled = min(w, width * scale) * min(h, height * scale) / (w * h)
        plans.append((round(filled, 6), w * h, w, _Plan(w, h, scale)))
    return max(plans, key=lambda plan: plan[:3])[3]


def _carry_out(pixels: Pixels, plan: _Plan) -> Fitted:
    height, width = pixels.shape[:2]
    new_w, new_h = _scaled(width, plan.scale), _scaled(height, plan.scale)
    transforms = []
    if (new_w, new_h) != (width, height):
        pixels = _resize(pixels, new_w, new_h)
        transforms.append(f"resize {width}x{height} to {new_w}x{new_h} lanczos")
    cut_w, cut_h = min(new_w, plan.width), min(new_h, plan.height)
    if (cut_w, cut_h) != (new_w, new_h):
        left, top = (new_w - cut_w) // 2, (new_h - cut_h) // 2
        pixels = pixels[top : top + cut_h, left : left + cut_w]
        transforms.append(f"crop {cut_w}x{cut_h} at {left},{top}")
    if (cut_w, cut_h) != (plan.width, plan.height):
        left, top = (plan.width - cut_w) // 2, (plan.height - cut_h) // 2
        canvas = np.empty((plan.height, plan.width, *pixels.shape[2:]), np.uint8)
        canvas[:] = _paper(pixels)
        canvas[top : top + cut_h, left : left + cut_w] = pixels
        pixels = canvas
        transforms.append(f"pad to {plan.width}x{plan.height} at {left},{top}")
    return Fitted(np.ascontiguousarray(pixels), plan.scale, tuple(transforms))


def _paper(pixels: Pixels) -> NDArray[np.uint8]:
    """The tone of the paper: the median of the crop's outermost pixels."""
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    tone: NDArray[np.uint8] = np.median(edge, axis=0).astype(np.uint8)
    return tone


def _resize(pixels: Pixels, width: int, height: int) -> Pixels:
    across, down = width / pixels.shape[1], height / pixels.shape[0]
    image = pyvips.Image.new_from_array(pixels)
    resized = image.resize(across, vscale=down, kernel="lanczos3").numpy()
    array: Pixels = resized.reshape(height, width, *pixels.shape[2:])
    return array


def _scaled(length: int, scale: float) -> int:
    return max(1, round(length * scale))
