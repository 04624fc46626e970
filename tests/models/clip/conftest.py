"""Weights of a middling architecture, made at random: large enough to be seen in memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("open_clip")

ARCHITECTURE = "ViT-S-32"


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of weights for ``ARCHITECTURE``, 126 MB in half precision."""
    import open_clip
    import torch

    torch.manual_seed(0)
    model = open_clip.create_model(ARCHITECTURE, precision="fp32")
    path = tmp_path_factory.mktemp("weights") / "random.pt"
    torch.save({name: value.half() for name, value in model.state_dict().items()}, path)
    return path


Encoder = Callable[..., bytes]


@pytest.fixture(scope="session")
def encoded() -> Encoder:
    """Encode a picture drawn by its seed: ``encoded(seed, format="JPEG", mode="RGB")``."""

    def encode(
        seed: int, form: str = "JPEG", mode: str = "RGB", size: tuple[int, int] = (96, 144)
    ) -> bytes:
        rng = np.random.default_rng(seed)
        small = rng.integers(0, 256, (6, 4, 3), np.uint8)
        picture = Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).convert(mode)
        stream = io.BytesIO()
        picture.save(stream, form)
        return stream.getvalue()

    return encode
