"""The pipeline says at once what a later stage would lack."""

from __future__ import annotations

import socket
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
        ({"clip": {"model": "ViT-B32"}}, "clip.model: open_clip knows no ViT-B32"),
        ({"clip": {"pretrained": "openai"}}, "openai is neither a file nor a tag of ViT-B-32-256"),
        ({"clip": {"pretrained": "local-dir:mistyped"}}, "clip.pretrained: there is no mistyped/"),
        ({"like": "mistyped"}, "like: there is no folder .*mistyped"),
        (
            {"trainers": ["kohya"], "captions": {"by": ["clip"], "vocabulary": "mistyped"}},
            "captions.vocabulary: .*mistyped",
        ),
        ({"train": True, "lora": {"allow_cpu": True, "base_model": "."}}, "lora.base_model: "),
        ({"train": True, "trainers": ["webdataset"]}, "webdataset has no folder of pictures"),
        (
            {"trainers": ["kohya", "ai-toolkit"], "encode": {"format": "webp"}},
            "trainers: ai-toolkit does not read webp",
        ),
        (
            {"train": True, "captions": {"by": ["blip"], "blip_model": "./mistyped"}},
            r"captions.blip_model: \./mistyped",
        ),
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


def test_an_mlflow_that_does_not_answer_is_said_before_extraction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("mlflow")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(BadSettings, match=f"tracking_uri: MLflow at {uri}"):
        check(PipelineSettings(source="x", output="y", train=True))
