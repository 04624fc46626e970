"""Fitting crops: whatever their size, the picture stays whole, unstretched and no larger."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from models.settings import Fit
from tasks.fit import Fitted, _resize, fit

PAPER, MARGIN, CORE = 200, 120, 20
length = st.one_of(st.integers(1, 300), st.integers(1, 1500))


def crop(width: int, height: int, margin: int, color: bool = False) -> NDArray[np.uint8]:
    """A dark picture within a margin, with a rim of paper."""
    pixels = np.full((height, width), MARGIN, np.uint8)
    pixels[margin : height - margin, margin : width - margin] = CORE
    return np.stack([pixels] * 3, axis=2) if color else pixels


def check_common(done: Fitted, pixels: NDArray[np.uint8]) -> None:
    assert done.pixels.dtype == np.uint8 and done.pixels.ndim == pixels.ndim
    assert done.pixels.flags.c_contiguous
    assert 0 < done.scale <= 1
    assert bool(done.transforms) == (
        done.pixels.shape != pixels.shape or not np.array_equal(done.pixels, pixels)
    )


@settings(max_examples=150, deadline=None)
@given(
    width=length,
    height=length,
    share=st.floats(0, 0.45),
    side=st.sampled_from([64, 128, 256, 320, 512, 1000, 1024]),
    step=st.sampled_from([8, 64]),
    color=st.booleans(),
)
@example(width=2500, height=100, share=0, side=256, step=64, color=False)
@example(width=1, height=1500, share=0, side=64, step=64, color=False)
@example(width=1200, height=1200, share=0.0125, side=1024, step=64, color=False)
def test_buckets(width: int, height: int, share: float, side: int, step: int, color: bool) -> None:
    margin = int(share * min(width, height))
    pixels = crop(width, height, margin, color)
    most = 2048
    done = fit(pixels, margin, Fit(side=side, step=step, max_side=most))
    high, wide = done.pixels.shape[:2]
    assert high % step == 0 and wide % step == 0
    assert high * wide <= side * side and max(high, wide) <= most
    check_common(done, pixels)
    # The picture within the margin is never cut: all of it is there, at one scale.
    core_w, core_h = width - 2 * margin, height - 2 * margin
    assert wide >= core_w * done.scale - 1 and high >= core_h * done.scale - 1
    if margin == 0 and min(core_w, core_h) * done.scale >= 8:
        gray = done.pixels if done.pixels.ndim == 2 else done.pixels[:, :, 0]
        assert gray[high // 2, wide // 2] == CORE


@settings(max_examples=60, deadline=None)
@given(width=length, height=length, side=st.sampled_from([64, 256, 1024]), color=st.booleans())
@pytest.mark.parametrize("mode", ["pad", "crop", "long-side", "stretch"])
def test_other_modes(mode: str, width: int, height: int, side: int, color: bool) -> None:
    pixels = crop(width, height, 0, color)
    done = fit(pixels, 0, Fit.model_validate({"mode": mode, "side": side}))
    high, wide = done.pixels.shape[:2]
    if mode == "stretch":
        assert (wide, high) == (side, side)
        return
    check_common(done, pixels)
    if mode == "long-side":
        assert max(high, wide) == min(side, max(width, height))
        assert abs(wide - width * done.scale) <= 1 and abs(high - height * done.scale) <= 1
    else:
        longest = max(width, height) if mode == "pad" else min(width, height)
        assert wide == high == min(side, longest)


def test_padding_has_the_tone_of_the_paper() -> None:
    pixels = np.full((100, 400, 3), (210, 200, 180), np.uint8)
    pixels[20:80, 20:380] = 15
    done = fit(pixels, 10, Fit(mode="pad", side=400))
    assert done.pixels.shape == (400, 400, 3)
    assert (done.pixels[0, 0] == (210, 200, 180)).all()
    assert (done.pixels[200, 200] == 15).all()
    assert done.transforms == ("pad to 400x400 at 0,150",)


def test_a_bucket_cuts_into_the_margin_and_no_further() -> None:
    pixels = crop(1100, 1000, 60)
    pixels[60, 60:1040] = pixels[939, 60:1040] = 255
    pixels[60:940, 60] = pixels[60:940, 1039] = 255  # the outermost lines of the picture
    done = fit(pixels, 60, Fit())
    middle = done.pixels.shape[0] // 2
    across = np.flatnonzero(done.pixels[middle] > 200)
    assert len(across) >= 2 and across[-1] - across[0] >= 979 * done.scale - 2


def test_what_has_the_right_size_is_left_alone() -> None:
    pixels = crop(1024, 1024, 5)
    done = fit(pixels, 5, Fit())
    assert done.transforms == () and done.scale == 1
    assert np.array_equal(done.pixels, pixels)


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("size", [(900, 700), (451, 333), (60, 1), (1, 1)])
def test_resizing_is_lanczos(size: tuple[int, int], colour: bool) -> None:
    """As Pillow does it, to 1.7 grey levels on the mean."""
    rows, columns = np.mgrid[0:1000, 0:800]
    waves = 127 + 100 * np.sin(rows / 3.1) * np.sin((columns + rows) / 4.7)
    pixels = waves.astype(np.uint8)
    if colour:
        pixels = np.dstack([pixels, 255 - pixels, pixels])
    width, height = size[1], size[0]
    ours = _resize(pixels, width, height)
    theirs = Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS)
    assert ours.shape == np.asarray(theirs).shape
    error = np.square(ours.astype(float) - np.asarray(theirs).astype(float)).mean()
    assert error < 3.0
