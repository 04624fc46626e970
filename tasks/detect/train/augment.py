"""From a scene to what the network is shown: a crop of a scan as it might have been made."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from models.records import RelativeBox
from tasks.detect.layout import LONG_SIDE, STRIDE
from tasks.detect.page import Gray, normalise
from tasks.detect.train.compose import Bank, make_scene, make_spread
from tasks.detect.train.pages import Scene

PORTRAIT, LANDSCAPE = (512, 384), (384, 512)
"""Height and width of training images."""


def draw_example(
    bank: Bank, wide: bool, rng: Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """An example of a page made up: see `make_example`.

    Args:
        bank: What it is made from.
        wide: Whether the image lies on its side; then it may show two pages.
        rng: Settles everything.
    """
    scene = make_scene(bank, rng)
    ghost = bank.plain[int(rng.integers(len(bank.plain)))].gray
    if wide and scene.gray.shape[0] > scene.gray.shape[1]:
        scene = make_spread(scene, make_scene(bank, rng))
    return make_example(scene, ghost, LANDSCAPE if wide else PORTRAIT, rng)


def make_example(
    scene: Scene, ghost: Gray, canvas: tuple[int, int], rng: Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """An image (1, H, W) and its target maps (4, H/4, W/4), where H and W are the canvas's.

    ``ghost`` is another page, which may show through from the back.
    """
    gray = scene.gray
    if rng.random() < 0.25:
        gray = _show_through(gray, ghost, rng)
    if rng.random() < 0.25:
        gray = _binarise(gray, rng)
    matrix = _placement(gray.shape, canvas, rng)
    fill = int(rng.choice([0, 20, 255, int(np.percentile(gray[::4, ::4], 90))]))
    border = cv2.BORDER_REPLICATE if rng.random() < 0.25 else cv2.BORDER_CONSTANT
    page = cv2.warpAffine(
        gray, matrix, canvas[::-1], flags=cv2.INTER_LINEAR, borderMode=border, borderValue=fill
    )
    image = _develop(page.astype(np.float32), rng)
    small = matrix / STRIDE
    target = np.zeros((4, canvas[0] // STRIDE, canvas[1] // STRIDE), np.float32)
    for channel, boxes in enumerate((scene.pictures, scene.ornaments, scene.ruled)):
        for box in boxes:
            cv2.fillPoly(target[channel], [_corners(box, gray.shape, small)], 1.0)
    text = cv2.warpAffine(
        scene.text, small, (target.shape[2], target.shape[1]), flags=cv2.INTER_LINEAR
    )
    target[3] = text > 127
    return normalise(image)[None], target


def _placement(
    shape: tuple[int, ...], canvas: tuple[int, int], rng: Generator
) -> NDArray[np.float64]:
    """The affine map, 2 x 3, from a scene's pixels to the canvas."""
    height, width = shape
    scale = LONG_SIDE / max(height, width)
    if rng.random() < 0.6:
        scale *= float(np.exp(rng.uniform(-0.45, 0.3)))
    stretch = float(np.exp(rng.normal(0, 0.06)))
    angle = float(rng.normal(0, 1.3))
    turned = rng.random()
    if turned < 0.06:
        angle += 90.0 if turned < 0.03 else -90.0
    elif rng.random() < 0.05:
        angle += float(rng.normal(0, 8))
    mirror = -1.0 if rng.random() < 0.3 else 1.0
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    turn = np.array([[cos, -sin], [sin, cos]]) @ np.diag([scale * mirror, scale * stretch])
    corners = turn @ np.array([[0, width, 0, width], [0, 0, height, height]], np.float64)
    low, high = corners.min(axis=1), corners.max(axis=1)
    room = np.array([canvas[1], canvas[0]]) - (high - low)
    shift = rng.uniform(np.minimum(room, 0), np.maximum(room, 0)) - low
    return np.hstack([turn, shift[:, None]])


def _corners(
    box: RelativeBox, shape: tuple[int, ...], matrix: NDArray[np.float64]
) -> NDArray[np.int32]:
    height, width = shape
    x0, y0, x1, y1 = box[0] * width, box[1] * height, box[2] * width, box[3] * height
    corners = np.array([[x0, x1, x1, x0], [y0, y0, y1, y1], [1, 1, 1, 1]], np.float64)
    return np.rint((matrix @ corners).T - 0.5).astype(np.int32)


def _show_through(gray: Gray, ghost: Gray, rng: Generator) -> Gray:
    """The other side of the leaf, mirrored and blurred, shimmering through."""
    height, width = gray.shape
    back = cv2.resize(ghost[:, ::-1], (width, height), interpolation=cv2.INTER_AREA)
    back = cv2.GaussianBlur(back, (0, 0), rng.uniform(0.7, 3.0))
    veil = 1.0 - rng.uniform(0.05, 0.3) * (1.0 - back / 255.0)
    return (gray * veil).astype(np.uint8)


def _binarise(gray: Gray, rng: Generator) -> Gray:
    """A bilevel scan: by a threshold for the page, or by one for the neighbourhood."""
    if rng.random() < 0.6:
        low, high = np.percentile(gray[::3, ::3], (2, 90))
        return np.where(gray > low + rng.uniform(0.4, 0.85) * (high - low), 255, 0).astype(np.uint8)
    window = int(rng.integers(8, 40)) * 2 + 1
    offset = float(rng.uniform(6, 25))
    mode = cv2.ADAPTIVE_THRESH_MEAN_C
    binary = cv2.adaptiveThreshold(gray, 255, mode, cv2.THRESH_BINARY, window, offset)
    return binary.astype(np.uint8)


def _develop(page: NDArray[np.float32], rng: Generator) -> NDArray[np.float32]:
    """Blur, contrast, tone, shadow, dark edges, specks and noise."""
    height, width = page.shape
    if rng.random() < 0.35:
        page = cv2.GaussianBlur(page, (0, 0), rng.uniform(0.3, 1.2)).astype(np.float32)
    elif rng.random() < 0.2:
        soft = cv2.GaussianBlur(page, (0, 0), 1.0)
        page = np.clip(page + rng.uniform(0.3, 1.2) * (page - soft), 0, 255).astype(np.float32)
    if rng.random() < 0.5:
        page = (255.0 * (page / 255.0) ** float(np.exp(rng.normal(0, 0.35)))).astype(np.float32)
    if rng.random() < 0.5:  # ink fades, paper darkens
        ink, tone = rng.uniform(0, 120), rng.uniform(140, 255)
        page = (ink + page / 255.0 * (tone - ink)).astype(np.float32)
    if rng.random() < 0.3:
        ramp = np.linspace(rng.uniform(0.5, 1.0), rng.uniform(0.8, 1.0), width)
        ramp = ramp ** rng.uniform(0.5, 3)
        page *= ramp[None, :] if rng.random() < 0.6 else np.resize(ramp, height)[:, None]
    if rng.random() < 0.2:
        _dark_edges(page, rng)
    if rng.random() < 0.2:
        count = int(rng.integers(10, 300))
        page[rng.integers(0, height, count), rng.integers(0, width, count)] = rng.uniform(0, 120)
    if rng.random() < 0.4:
        page += rng.standard_normal(page.shape, np.float32) * np.float32(rng.uniform(1, 14))
    return np.clip(page, 0, 255).astype(np.float32)


def _dark_edges(page: NDArray[np.float32], rng: Generator) -> None:
    """Black or grey bars at one to three edges, as of a scanner's lid or the next page."""
    height, width = page.shape
    for edge in rng.choice(4, int(rng.integers(1, 4)), replace=False):
        depth = int(rng.integers(2, 40))
        tone = float(rng.choice([0.0, rng.uniform(0, 90)]))
        if edge == 0:
            page[:depth] = tone
        elif edge == 1:
            page[height - depth :] = tone
        elif edge == 2:
            page[:, :depth] = tone
        else:
            page[:, width - depth :] = tone
