"""From PDFs to a trained tiny LoRA by the commands, killed on the way, to the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from models.train import Trained

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = (
    *("--lora.allow-cpu", "--lora.image-steps", "1", "--lora.images-every", "0"),
    *("--lora.checkpoint-every", "4", "--lora.validate-every", "8"),
)
PLAN = (
    *("--plan.resolution", 64, "--plan.step", 32, "--plan.batch-size", 2),
    *("--plan.rank", 4, "--plan.learning-rate", 0.003),
)


def start(url: str, flow: str, *arguments: object) -> subprocess.Popen[str]:
    """Start ``python -m flows.FLOW``."""
    return subprocess.Popen(
        [sys.executable, "-m", f"flows.{flow}", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PREFECT_API_URL": url, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(url: str, flow: str, *arguments: object) -> str:
    process = start(url, flow, *arguments)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    return printed


def kill_after(process: subprocess.Popen[str], path: Path) -> None:
    """Kill a process when a file is there."""
    deadline = time.monotonic() + 300
    while not path.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.nightly
def test_from_pdfs_to_a_lora_killed_twice_to_the_same_weights(
    demo: Path,
    extract: Callable[..., tuple[int, str]],
    prefect_url: str,
    tiny_sdxl: Path,
    tmp_path: Path,
) -> None:
    code, printed = extract("--source", demo, "--output", tmp_path / "d", "--fit.side", 256)
    assert code == 0, printed
    plan = (*PLAN, "--plan.base-model", tiny_sdxl, "--plan.steps", 32)
    run(prefect_url, "handoff", "--dataset", tmp_path / "d", *plan, "--trainers", "kohya")
    bundle = tmp_path / "d" / "bundles" / "kohya"
    train = ("--bundle", bundle, *SMALL)
    printed = run(prefect_url, "train", *train, "--output", tmp_path / "whole")
    assert "all steps done" in printed and "Traceback" not in printed
    broken = tmp_path / "broken"
    for step in ("00000004", "00000016"):
        process = start(prefect_url, "train", *train, "--output", broken)
        kill_after(process, broken / "checkpoints" / f"step-{step}.pt")
        assert not (broken / "training.json").exists()
    run(prefect_url, "train", *train, "--output", broken)
    for name in ("lora-diffusers.safetensors", "lora-kohya.safetensors", "images/final-1.png"):
        assert (broken / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    result = Trained.model_validate_json((broken / "training.json").read_text())
    measured = list(result.validation.values())
    assert len(measured) == 4 and measured[-1] < measured[0], "the loss falls"
    assert (
        result.dataset_sha256 == json.loads((bundle / "bundle.json").read_text())["dataset_sha256"]
    )


@pytest.mark.nightly
def test_one_command_from_real_scans_to_a_lora_killed_twice_to_the_same_weights(
    corpus: Path, prefect_url: str, tiny_sdxl: Path, tmp_path: Path
) -> None:
    pytest.importorskip("open_clip")
    settings = (
        *("--source", corpus / "pdf", "--fit.side", 256, "--clip.model", "print"),
        *("--train", *PLAN, "--plan.base-model", tiny_sdxl, "--plan.steps", 16, *SMALL),
    )
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(prefect_url, "pipeline", *settings, "--output", whole)
    names = [json.loads(line)["file_name"] for line in (whole / "manifest.jsonl").open()]
    (trained,) = whole.glob("bundles/kohya/output/*")
    output = broken / trained.relative_to(whole)

    process = start(prefect_url, "pipeline", *settings, "--output", broken)
    kill_after(process, broken / names[len(names) // 2])
    assert not (broken / "manifest.jsonl").exists(), "killed while extracting"
    process = start(prefect_url, "pipeline", *settings, "--output", broken)
    kill_after(process, output / "checkpoints" / "step-00000004.pt")
    assert not (output / "training.json").exists(), "killed while training"
    run(prefect_url, "pipeline", *settings, "--output", broken)

    for name in ("lora-diffusers.safetensors", "lora-kohya.safetensors"):
        assert (output / name).read_bytes() == (trained / name).read_bytes()
    assert (broken / "dataset.zip").read_bytes() == (whole / "dataset.zip").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bundle", "nowhere"), "no finished bundle"),
        (("--bundle", "nowhere", "--lora.epochs", "0"), "greater than or equal to 1"),
    ],
)
def test_bad_usage_ends_before_anything_starts(
    prefect_url: str, arguments: tuple[str, ...], said: str
) -> None:
    process = start(prefect_url, "train", *arguments)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 2 and said in printed, printed
    assert "Starting Prefect" not in printed and not (ROOT / "nowhere").exists()
