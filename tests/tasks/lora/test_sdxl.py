"""What is no SDXL base, or not whole, is told from the files of the model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from models.errors import BadSettings
from tasks.lora.sdxl import check_base

Spoil = Callable[[Path], None]
UNET = "unet/diffusion_pytorch_model.safetensors"


@pytest.fixture
def model(tiny_sdxl: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_sdxl, tmp_path / "model"))


def changed(file: str, **fields: object) -> Spoil:
    def spoil(model: Path) -> None:
        path = model / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return spoil


def removed(name: str) -> Spoil:
    def spoil(model: Path) -> None:
        path = model / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return spoil


def cut(name: str) -> Spoil:
    return lambda model: os.truncate(model / name, (model / name).stat().st_size * 2 // 3)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        # As of SDXL's refiner: one text encoder, and a U-Net for it alone.
        (
            changed("model_index.json", text_encoder=[None, None], tokenizer=[None, None]),
            "model_index.json names no text_encoder",
        ),
        (
            changed("unet/config.json", cross_attention_dim=16),
            "unet/config.json has cross_attention_dim 16, .* 32",
        ),
        (changed("unet/config.json", addition_time_embed_dim=16), "embeddings_input_dim 64, .*112"),
        (changed("unet/config.json", addition_embed_type=None), "addition_embed_type None"),
        (changed("unet/config.json", in_channels=9), "in_channels 9, .* 4"),
        (removed("tokenizer_2"), "tokenizer_2/tokenizer_config.json cannot be read"),
        (removed("scheduler"), "scheduler/scheduler_config.json cannot be read"),
        (removed("text_encoder/config.json"), "text_encoder/config.json cannot be read"),
        (removed(UNET), "unet has none of diffusion_pytorch_model.safetensors"),
        (cut(UNET), f"{UNET} is damaged or cut short"),
        (cut("text_encoder_2/model.safetensors"), "text_encoder_2/model.safetensors is damaged"),
        (cut("vae/config.json"), "vae/config.json cannot be read"),
    ],
)
def test_what_is_no_sdxl_base_or_not_whole(model: Path, spoil: Spoil, said: str) -> None:
    spoil(model)
    with pytest.raises(BadSettings, match=f"lora.base_model: .*{said}") as refused:
        check_base(str(model))
    assert str(model) in refused.value.message and "fetch it again" in refused.value.cure


def test_a_model_in_a_copy_is_the_same_and_with_other_weights_is_not(
    model: Path, tiny_sdxl: Path
) -> None:
    first = check_base(str(model))
    assert first == check_base(str(tiny_sdxl)), "times of files say nothing of what is in them"
    data = bytearray((model / UNET).read_bytes())
    data[len(data) // 2 :] = bytes(255 - byte for byte in data[len(data) // 2 :])
    (model / UNET).write_bytes(data)
    assert check_base(str(model)) != first


def test_the_revision_tells_models_of_a_hub_apart(
    tiny_sdxl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's cache on the disk, as after a download, without the network."""
    cache = tmp_path / "hub" / "models--someone--sdxl"
    for revision in ("1" * 40, "2" * 40):
        shutil.copytree(tiny_sdxl, cache / "snapshots" / revision)
    (cache / "refs").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for revision in ("1" * 40, "2" * 40):
        (cache / "refs" / "main").write_text(revision)
        assert check_base("someone/sdxl") == revision
    with pytest.raises(BadSettings, match=r"someone/other: model_index\.json cannot be read"):
        check_base("someone/other")
