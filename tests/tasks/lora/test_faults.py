"""What goes wrong around a training: damaged files, numbers that are none, a silent server."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from models.errors import BadSettings, OutputInUse, StorageRefused
from models.train import Diverged, Trained, TrainerMissing, TrainSettings
from tasks.lock import locked
from tasks.lora.checkpoint import load
from tasks.lora.log import check_tracking
from tasks.lora.run import begin as start
from tasks.lora.run import train
from tasks.lora.train import Training
from tasks.storage import Storage
from tests.tasks.lora.conftest import LORA, Begin
from tests.tasks.lora.test_train import UNFINISHED, same, weights


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_checkpoint_is_put_aside_and_the_one_before_it_taken(
    damaged: int,
    trained: tuple[Path, Trained],
    begin: Begin,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    output, result = trained
    shutil.copytree(output, tmp_path / "lora")
    checkpoints = sorted((tmp_path / "lora" / "checkpoints").iterdir())
    for path in checkpoints[-damaged:]:
        cut(path)
    for name in UNFINISHED:
        (tmp_path / "lora" / name).unlink()
    assert begin(tmp_path / "lora").run() == result
    assert same(weights(tmp_path / "lora"), weights(output))
    assert caplog.text.count("cannot be read") == damaged
    kept = sorted(path.name for path in (tmp_path / "lora" / "checkpoints").glob("*.pt"))
    assert kept == ["step-00000012.pt", "step-00000016.pt"]


@pytest.mark.parametrize("text", ["{", '{"steps": null}'])
def test_a_damaged_record_is_made_again(
    text: str, trained: tuple[Path, Trained], begin: Begin, tmp_path: Path
) -> None:
    shutil.copytree(trained[0], tmp_path / "lora")
    (tmp_path / "lora" / "training.json").write_text(text)
    assert begin(tmp_path / "lora").run() == trained[1]
    record = Trained.model_validate_json((tmp_path / "lora" / "training.json").read_text())
    assert record == trained[1]


def test_a_picture_that_cannot_be_read_is_named(begin: Begin, bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle / "kohya", tmp_path / "kohya")
    training = begin(tmp_path / "lora")
    training.source = Storage(str(tmp_path / "kohya"))
    broken = min((tmp_path / "kohya" / "images").glob("*.jpg"))
    cut(broken)
    with pytest.raises(BadSettings, match=f"{broken} cannot be decoded") as refused:
        training.run()
    assert "flows.verify --repair" in refused.value.cure


def test_a_damaged_cache_is_named(
    trained: tuple[Path, Trained], begin: Begin, tmp_path: Path
) -> None:
    shutil.copytree(trained[0], tmp_path / "lora")
    for path in (tmp_path / "lora" / "cache").glob("texts-*/*"):
        cut(path)
    with pytest.raises(BadSettings, match=r"cache/texts-.* is damaged") as refused:
        begin(tmp_path / "lora", steps=18).run()
    assert "Remove this file" in refused.value.cure


@pytest.mark.parametrize(
    ("rate", "said", "kept"),
    # After the first step the weights are still numbers, or are too large to have a sum.
    [(1e30, "the loss at step 2 is", 1), (3e37, "the sum of the weights at step 1 is", 0)],
)
def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(
    rate: float, said: str, kept: int, begin: Begin, tmp_path: Path
) -> None:
    for _ in range(2):
        training = begin(tmp_path / "lora", checkpoint_every=1, validation_share=0)
        training.plan = training.plan.model_copy(update={"learning_rate": rate})
        with pytest.raises(Diverged, match=f"lora: {said}"):
            training.run()
        found = load(training.output, training.key)
        assert (found[0].step if found else 0) == kept
    assert not (tmp_path / "lora" / "training.json").exists()


def test_a_base_model_swapped_under_its_name_is_another_training(
    bundle: Path, tiny_sdxl: Path, tmp_path: Path
) -> None:
    from tests.resources.make_sdxl import make

    model = tmp_path / "model"
    shutil.copytree(tiny_sdxl, model)
    settings = TrainSettings(
        bundle=str(bundle / "kohya"), lora={**LORA, "base_model": str(model), "steps": 4}
    )
    chosen = settings.model_copy(update={"output": str(tmp_path / "lora")})
    first = start(settings)
    assert train(chosen) is not None
    shutil.rmtree(model)
    make(model, seed=7)
    second = start(settings)
    assert isinstance(first, Training) and isinstance(second, Training)
    assert first.output.url != second.output.url, "beside the old one"
    with pytest.raises(BadSettings, match="another dataset, model or settings"):
        train(chosen)


def test_an_mlflow_that_does_not_answer_is_said_before_anything(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{closed.getsockname()[1]}"
    before = dict(os.environ)
    begun = time.monotonic()
    with pytest.raises(BadSettings, match=f"MLflow at {uri}") as refused:
        begin(tmp_path / "lora", tracking_uri=uri)
    assert time.monotonic() - begun < 60 and "unset MLFLOW_TRACKING_URI" in refused.value.cure
    assert {k: v for k, v in os.environ.items() if k in before} == before
    assert "MLFLOW_HTTP_REQUEST_TIMEOUT" not in os.environ
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setattr("tasks.lora.log.find_spec", lambda name: None)
    with pytest.raises(TrainerMissing, match="needs MLflow"):
        check_tracking("")
    assert not (tmp_path / "lora").exists()


def test_an_output_that_cannot_be_written_is_cured_by_another(bundle: Path) -> None:
    if not Path("/sys/kernel").is_dir():
        pytest.skip("no folder here in which nobody may make another")
    settings = TrainSettings(bundle=str(bundle / "kohya"), output="/sys/kernel/lora", lora=LORA)
    with pytest.raises(StorageRefused) as refused:
        train(settings)
    assert "--output" in refused.value.cure


def launched(bundle: Path, home: Path) -> TrainSettings:
    home.mkdir()
    (home / "run.py").write_text("print('trained')\n")
    return TrainSettings(bundle=str(bundle), by="launch", home=str(home))


def test_a_launched_trainer_has_its_output_to_itself(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle / "ai-toolkit", tmp_path / "bundle")
    settings = launched(tmp_path / "bundle", tmp_path / "home")
    with (
        locked(Storage(str(tmp_path / "bundle" / "output"))),
        pytest.raises(OutputInUse, match="bundle/output is being worked by process"),
    ):
        train(settings)
    train(settings)


@pytest.mark.parametrize("text", ["", "\ufeff \r\n"])
def test_an_emptied_caption_is_said(
    text: str, bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(bundle / "ai-toolkit", tmp_path / "bundle")
    settings = launched(tmp_path / "bundle", tmp_path / "home")
    train(settings)
    assert "empty" not in caplog.text
    sidecar = min((tmp_path / "bundle" / "images").glob("*.txt"))
    sidecar.write_text(text, encoding="utf-8")
    train(settings)
    assert f"1 captions are empty, {sidecar} for one: the trainer trains without" in caplog.text


def test_eight_bits_need_a_gpu(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.lora.train.find_spec", lambda name: name)
    with pytest.raises(BadSettings, match="adamw8bit needs a GPU"):
        begin(tmp_path / "lora", optimizer="adamw8bit")
