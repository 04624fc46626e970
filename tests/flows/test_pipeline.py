"""The pipeline says at once what a later stage would lack."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("open_clip")

from flows.pipeline import check
from models.errors import BadSettings, StopRun
from models.score import PipelineSettings


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"prompts": "mistyped.yaml"}, "prompts: there is no file"),
        ({"labels": "mistyped.csv"}, "labels: there is no file"),
        ({"like": "mistyped"}, "like: there is no folder .*mistyped"),
        ({"clip": {"model": "ViT-B32"}}, "clip.model: open_clip knows no ViT-B32"),
        ({"clip": {"pretrained": "openai"}}, "openai is neither a file nor a tag of ViT-B-32-256"),
        ({"clip": {"pretrained": "local-dir:mistyped"}}, "clip.pretrained: there is no mistyped/"),
        (
            {"trainers": ["kohya"], "captions": {"by": ["clip"], "vocabulary": "mistyped"}},
            "captions.vocabulary: .*mistyped",
        ),
        ({"train": True, "lora": {"allow_cpu": True, "base_model": "."}}, "lora.base_model: "),
    ],
)
def test_what_a_later_stage_would_lack(
    given: dict[str, object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(PipelineSettings(source="x", output="y"))
    with pytest.raises(BadSettings, match=says):
        check(PipelineSettings.model_validate({"source": "x", "output": "y", **given}))


def test_training_without_a_gpu_is_said_before_extraction() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(StopRun, match="There is no GPU"):
        check(PipelineSettings(source="x", output="y", train=True))
