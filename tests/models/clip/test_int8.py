"""INT8: smaller, kept in the cache, and used only where it decides as fp32 does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

pytest.importorskip("open_clip")

from models.clip.engine import ClipEngine
from models.clip.errors import Int8Refused
from models.clip.int8 import cache_folder, check_int8, compare, int8_tower
from models.clip.settings import ClipSettings
from tests.models.clip.conftest import ARCHITECTURE

Encoder = Callable[..., bytes]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "int8-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture
def settings(weights: Path) -> ClipSettings:
    return ClipSettings(model=ARCHITECTURE, pretrained=str(weights), precision="int8", device="cpu")


def photographs(encoded: Encoder) -> list[tuple[str, Callable[[], bytes]]]:
    return [(str(n), lambda n=n: encoded(n)) for n in range(12)]  # type: ignore[misc]


def test_the_tower_is_a_quarter_and_is_made_once(encoded: Encoder, settings: ClipSettings) -> None:
    with ClipEngine(settings) as engine:
        assert engine.name.endswith("int8")
        first = [vector for _, vector in engine.embed_images(photographs(encoded))]
    (made,) = cache_folder().iterdir()
    stamp = made.stat()
    import open_clip

    tower = open_clip.create_model(ARCHITECTURE).visual
    exact = sum(value.numel() * 4 for value in tower.parameters())
    # The patches, which stay as they are, weigh more in this small model.
    assert stamp.st_size <= 0.298 * exact
    with ClipEngine(settings) as engine:
        again = [vector for _, vector in engine.embed_images(photographs(encoded))]
    np.testing.assert_array_equal(first, again)
    assert [path.name for path in cache_folder().iterdir()] == [made.name]
    assert made.stat().st_mtime_ns == stamp.st_mtime_ns


@pytest.mark.nightly
def test_the_tower_of_vit_b_32_has_28_per_cent_of_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import open_clip

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tower = open_clip.create_model("ViT-B-32").visual.eval()
    int8_tower(tower, 224)
    (made,) = cache_folder().iterdir()
    assert made.stat().st_size <= 0.28 * sum(value.numel() * 4 for value in tower.parameters())


def test_the_gate_lets_through_what_decides_alike(encoded: Encoder, settings: ClipSettings) -> None:
    check = check_int8(settings, photographs(encoded), lambda _, vectors: vectors[:, 0] > -2)
    assert check.images == 12 and check.cosine >= 0.99 and check.flipped == 0


def test_the_gate_stops_what_decides_otherwise_and_says_how_much(
    encoded: Encoder, settings: ClipSettings
) -> None:
    calls = []

    def fickle(names: list[str], vectors: np.ndarray) -> np.ndarray:
        assert names == [name for name, _ in photographs(encoded)]
        calls.append(1)
        return np.arange(len(vectors)) < (6 if len(calls) == 1 else 4)

    with pytest.raises(Int8Refused, match=r"0\.99\d+.*16\.67%"):
        check_int8(settings, photographs(encoded), fickle)


def test_a_shared_direction_does_not_hide_a_difference() -> None:
    rng = np.random.default_rng(0)
    shared = np.full(64, 10.0)
    exact = shared + rng.standard_normal((50, 64))
    other = shared + rng.standard_normal((50, 64))
    plain = np.mean(
        (exact * other).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(other, axis=1)
    )
    check = compare(exact, other, lambda vectors: vectors[:, 0] > 0)
    assert plain > 0.98 and check.cosine < 0.3 and not check.passed


def test_the_small_model_is_not_quantised() -> None:
    with pytest.raises(ValidationError, match="print"):
        ClipSettings(model="print", precision="int8")
