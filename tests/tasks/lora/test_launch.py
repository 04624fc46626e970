"""Launching another project's trainer: a real process, its output, its exit code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from models.errors import BadSettings
from models.train import TrainerFailed, TrainerMissing, TrainSettings
from tasks.end import end
from tasks.handoff.bundle import read_bundle
from tasks.lora.run import begin, train
from tasks.storage import Storage
from tests.tasks.handoff.conftest import hand_over_all, make_dataset

TRAINER = """import os, pathlib, sys
print("config", sys.argv[1], pathlib.Path(sys.argv[1]).is_file(), flush=True)
print("step 1\\rstep 2\\rstep 3", flush=True)
pathlib.Path("output").mkdir(exist_ok=True)
pathlib.Path("output/lora.safetensors").write_bytes(b"x")
sys.exit(int(os.environ.get("END", "0")))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = make_dataset(tmp_path_factory.mktemp("launch") / "d", sizes=[(64, 64), (64, 96)])
    return hand_over_all(dataset)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A trainer of the shape of ai-toolkit."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "run.py").write_text(TRAINER)
    return tmp_path / "home"


def settings(bundle: Path, home: object = "") -> TrainSettings:
    return TrainSettings(bundle=str(bundle), by="launch", home=str(home))


def test_it_runs_in_the_bundle_and_tells_what_the_trainer_prints(
    place: Path, home: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "a moved bundle"
    shutil.copytree(place / "ai-toolkit", bundle)
    said: list[str] = []
    launch = begin(settings(bundle, home))
    assert "run.py" in launch.command and "config.yaml" in launch.command
    launch.run(said.append)
    assert said == ["config config.yaml True", "step 3"]
    assert (bundle / "output" / "lora.safetensors").exists()


def test_its_exit_code_is_honoured(
    place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("END", "3")
    with pytest.raises(TrainerFailed, match="exit code 3"):
        train(settings(place / "ai-toolkit", home))


def test_a_missing_trainer_is_named(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AI_TOOLKIT", raising=False)
    with pytest.raises(TrainerMissing, match="Where is ai-toolkit") as missing:
        begin(settings(place / "ai-toolkit"))
    assert "AI_TOOLKIT" in missing.value.cure
    with pytest.raises(TrainerMissing, match=r"has no run\.py"):
        begin(settings(place / "ai-toolkit", tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TrainerMissing, match="simpletuner"):
        begin(settings(place / "simpletuner"))


def test_a_format_without_a_trainer_cannot_be_launched(place: Path) -> None:
    with pytest.raises(BadSettings, match="huggingface is no trainer's"):
        begin(settings(place / "huggingface"))


def test_a_bundle_moved_without_its_pictures(place: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "kohya"
    shutil.copytree(place / "kohya", bundle)
    shutil.rmtree(bundle / "images")
    for by in ("builtin", "launch"):
        with pytest.raises(BadSettings, match=r"lacks 2 of its 2 pictures.*moved without them"):
            begin(TrainSettings(bundle=str(bundle), by=by))
    with pytest.raises(BadSettings, match="no finished bundle"):
        begin(TrainSettings(bundle=str(tmp_path)))


def test_a_caption_edited_since_is_trained_on(place: Path, tmp_path: Path) -> None:
    """Where a model is trained the dataset may be missing, and with it flows.handoff."""
    bundle = tmp_path / "kohya"
    shutil.copytree(place / "kohya", bundle)
    before, _ = read_bundle(Storage(str(bundle)))
    min((bundle / "images").glob("*.txt")).write_text("intaglio, a lady")
    record, samples = read_bundle(Storage(str(bundle)))
    assert [s.caption for s in samples] == ["intaglio, a lady", "intaglio, engraving, 1880s"]
    assert record.captions_sha256 != before.captions_sha256
    assert record.dataset_sha256 == before.dataset_sha256


def program(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{says} $@"\n')
    path.chmod(0o755)


def test_the_trainers_own_environment_goes_before_the_path_and_that_before_ours(
    place: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "python", "activated")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    said: list[str] = []
    begin(settings(place / "ai-toolkit", home)).run(said.append)
    program(home / ".venv" / "bin" / "python", "the trainer's")
    begin(settings(place / "ai-toolkit", home)).run(said.append)
    assert [line.partition(f" {home}")[0] for line in said] == ["activated", "the trainer's"]


def test_an_output_of_its_own_is_refused(place: Path, home: Path) -> None:
    chosen = settings(place / "ai-toolkit", home).model_copy(update={"output": "lora/"})
    with pytest.raises(BadSettings, match="writes into the bundle"):
        begin(chosen)


def test_all_of_a_program_is_ended_though_it_will_not_and_though_it_has(tmp_path: Path) -> None:
    deaf = "trap '' TERM; sleep 100 & echo $!; while :; do sleep 1; done"
    process = subprocess.Popen(["bash", "-c", deaf], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    end(process, grace_s=0.2)
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(child, 0)
            time.sleep(0.05)
    end(process)


def test_kohya_goes_on_from_its_last_state(place: Path, tmp_path: Path) -> None:
    """The script itself, with a program in accelerate's place that shows how it was called."""
    bundle = tmp_path / "kohya"
    shutil.copytree(place / "kohya", bundle)
    stub = tmp_path / "bin" / "accelerate"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\necho "$@"\n')
    stub.chmod(0o755)
    environment = {"PATH": f"{stub.parent}:{os.environ['PATH']}", "SD_SCRIPTS": "/opt/sd scripts"}

    def run() -> str:
        done = subprocess.run(
            ["bash", str(bundle / "train.sh")], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run()
    assert first.startswith("launch /opt/sd scripts/sdxl_train_network.py --pretrained")
    assert "--resume" not in first
    # A resumed training counts from where its epoch began; the last of them was not written whole.
    for age, step in ((30, "000500"), (20, "001000"), (10, "000200")):
        state = bundle / "output" / f"lora-step00{step}-state" / "random_states_0.pkl"
        state.parent.mkdir(parents=True)
        state.touch()
        os.utime(state, (time.time() - age, time.time() - age))
    (bundle / "output" / "lora-step00000400-state").mkdir()
    wanted = "--resume output/lora-step00000200-state --skip_until_initial_step"
    assert run().rstrip().endswith(wanted)


def test_onetrainer_is_pointed_at_where_the_bundle_lies_now(place: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "moved 'here'"
    shutil.copytree(place / "onetrainer", bundle)
    scripts = tmp_path / "home" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "train.py").write_text(
        "import json, os, sys\n"
        "config = json.load(open(sys.argv[2]))\n"
        "(concept,) = json.load(open(config['concept_file_name']))\n"
        "print(os.getcwd(), concept['path'], len(os.listdir(concept['path'])))\n"
    )
    said: list[str] = []
    begin(settings(bundle, tmp_path / "home")).run(said.append)
    assert said == [f"{tmp_path / 'home'} {bundle / 'images'} 4"]
