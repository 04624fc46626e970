"""The built-in trainer on a tiny SDXL: the real classes, random weights, real files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings
from models.train import Trained, TrainerMissing, TrainSettings
from tasks.lora.log import Log
from tasks.lora.run import begin as start
from tasks.lora.train import Training
from tasks.storage import Storage
from tests.tasks.conftest import tree
from tests.tasks.lora.conftest import LORA, Begin

UNFINISHED = ("lora-diffusers.safetensors", "lora-kohya.safetensors", "training.json")
"""Files that a training without them has not ended."""


def weights(output: Path, name: str = "lora-diffusers.safetensors") -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(output / name)


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(bool((one[key] == two[key]).all()) for key in one)


def test_the_loss_falls(trained: tuple[Path, Trained]) -> None:
    _, result = trained
    assert (result.steps, result.ended) == (16, "steps")
    # Measured on samples kept back, with the same noise each time.
    assert list(result.validation) == [8, 16]
    assert result.validation[16] < result.validation[8]


def test_both_formats_reload_to_the_image_the_trainer_saw(
    trained: tuple[Path, Trained], tiny_sdxl: Path
) -> None:
    import numpy as np
    import torch
    from diffusers import StableDiffusionXLPipeline
    from PIL import Image

    output, result = trained
    images = {}
    for name in ("", result.diffusers, result.kohya):
        pipeline = StableDiffusionXLPipeline.from_pretrained(tiny_sdxl)
        pipeline.set_progress_bar_config(disable=True)
        if name:
            pipeline.load_lora_weights(output, weight_name=name)
        images[name] = pipeline(
            "intaglio, a cyber monocle in the style of an 1890s engraving",
            width=64, height=64, num_inference_steps=2, guidance_scale=6.0,
            generator=torch.Generator().manual_seed(1885), output_type="np",
        ).images[0]  # fmt: skip
    assert (images[result.diffusers] == images[result.kohya]).all()
    seen = np.asarray(Image.open(output / "images" / "final-1.png"))
    assert ((images[result.kohya] * 255).round().astype(np.uint8) == seen).all()
    assert np.abs(images[result.kohya] - images[""]).max() > 0.001, "the LoRA does something"


def test_the_files_say_where_they_come_from(trained: tuple[Path, Trained]) -> None:
    from safetensors import safe_open

    output, result = trained
    for name in (result.diffusers, result.kohya):
        with safe_open(output / name, "pt") as file:
            metadata = file.metadata()
        assert metadata["intaglio_dataset_sha256"] == result.dataset_sha256
        assert metadata["intaglio_trigger"] == "intaglio" and metadata["intaglio_rank"] == "4"
    assert (metadata["ss_network_dim"], metadata["ss_network_alpha"]) == ("4", "8.0")
    kohya = weights(output, result.kohya)
    assert {float(v) for k, v in kohya.items() if k.endswith(".alpha")} == {8.0}
    assert all(key.startswith("lora_unet_") for key in kohya)


def test_going_on_from_any_checkpoint_gives_the_same_weights(
    trained: tuple[Path, Trained], begin: Begin, tmp_path: Path
) -> None:
    output, result = trained
    shutil.copytree(output, tmp_path / "lora")
    (tmp_path / "lora" / "checkpoints" / "step-00000016.pt").unlink()
    for name in UNFINISHED:
        (tmp_path / "lora" / name).unlink()
    again = begin(tmp_path / "lora").run()
    assert same(weights(tmp_path / "lora"), weights(output))
    assert again == result
    assert (tmp_path / "lora" / result.kohya).read_bytes() == (output / result.kohya).read_bytes()


def test_a_finished_training_is_not_trained_again_but_may_go_on(
    trained: tuple[Path, Trained], begin: Begin, tmp_path: Path
) -> None:
    shutil.copytree(trained[0], tmp_path / "lora")
    before = times(tmp_path)
    assert begin(tmp_path / "lora").run() == trained[1]
    assert times(tmp_path) == before, "nothing is drawn or written again"
    longer = begin(tmp_path / "lora", steps=18, patience=1).run()
    assert longer.steps == 18 and list(longer.validation) == [8, 16, 18]


def test_a_bundle_that_has_grown_is_trained_on_beside_what_was_before(
    bundle: Path, tmp_path: Path
) -> None:
    shutil.copytree(bundle / "kohya", tmp_path / "kohya")
    settings = TrainSettings(bundle=str(tmp_path / "kohya"), lora=LORA)
    places = []
    for digit in "12":
        record = json.loads((tmp_path / "kohya" / "bundle.json").read_text())
        record["dataset_sha256"] = digit * 64
        (tmp_path / "kohya" / "bundle.json").write_text(json.dumps(record))
        training = start(settings)
        assert isinstance(training, Training)
        places.append(training.output.url)
    assert len({*places}) == 2
    assert all(place.startswith(f"{tmp_path}/kohya/output/") for place in places)


def test_another_training_in_the_output_is_refused(
    trained: tuple[Path, Trained], begin: Begin, tmp_path: Path
) -> None:
    shutil.copytree(trained[0], tmp_path / "lora")
    before = tree(tmp_path)
    with pytest.raises(BadSettings, match="another dataset, model or settings"):
        begin(tmp_path / "lora", min_snr_gamma=0).run()
    assert tree(tmp_path) == before


def test_it_stops_when_the_validation_loss_no_longer_falls(
    begin: Begin, bundle: Path, tmp_path: Path
) -> None:
    shutil.copytree(bundle / "kohya", tmp_path / "kohya")
    record = json.loads((tmp_path / "kohya" / "bundle.json").read_text())
    record["plan"]["learning_rate"] = 1.0
    (tmp_path / "kohya" / "bundle.json").write_text(json.dumps(record))
    training = begin(tmp_path / "lora", validate_every=1, patience=2)
    training.plan = training.plan.model_copy(update={"learning_rate": 1.0})
    result = training.run()
    assert result.ended == "flat" and result.steps < 16


def test_pictures_go_into_their_buckets_unstretched(begin: Begin, tmp_path: Path) -> None:
    training = begin(tmp_path / "lora")
    for item in training.items:
        assert item.placed.scale <= 1
        assert item.placed.width % 32 == item.placed.height % 32 == 0
    assert not (tmp_path / "lora").exists(), "nothing is written before it runs"


@pytest.mark.parametrize(
    ("index", "said"),
    [({"_class_name": "StableDiffusionPipeline"}, "is no SDXL but a StableDiffusionPipeline"),
     (None, "cannot be read")],
)  # fmt: skip
def test_a_base_model_that_is_no_sdxl(
    begin: Begin, tmp_path: Path, index: dict[str, str] | None, said: str
) -> None:
    (tmp_path / "model").mkdir()
    if index:
        (tmp_path / "model" / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(BadSettings, match=said):
        begin(tmp_path / "lora", base_model=str(tmp_path / "model"))
    assert not (tmp_path / "lora").exists()


def test_a_machine_without_a_gpu_refuses_sdxl(begin: Begin, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(BadSettings, match="no GPU") as refused:
        begin(tmp_path / "lora", allow_cpu=False)
    assert "--lora.allow-cpu" in refused.value.cure
    assert not (tmp_path / "lora").exists()


def test_a_missing_library_is_named(begin: Begin, tmp_path: Path) -> None:
    with pytest.raises(TrainerMissing, match="bitsandbytes"):
        begin(tmp_path / "lora", optimizer="adamw8bit")


def test_a_bundle_of_shards_has_no_pictures_to_train_on(begin: Begin, tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="no folder of pictures"):
        begin(tmp_path / "lora", trainer="webdataset")


def test_mlflow_gets_metrics_settings_and_the_lora(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    training: Training = begin(tmp_path / "lora", steps=2, tracking_uri=uri)
    result = training.run()
    # Run again, it is not another version.
    assert begin(tmp_path / "lora", steps=2, tracking_uri=uri).run() == result
    client = MlflowClient(uri, uri)
    (version,) = client.search_model_versions("name='intaglio-lora'")
    assert version.tags["dataset_sha256"] == result.dataset_sha256
    run = client.get_run(version.run_id)
    assert run.info.status == "FINISHED" and run.data.params["rank"] == "4"
    assert len(client.get_metric_history(version.run_id, "loss")) == 2
    names = {Path(file.path).name for file in client.list_artifacts(version.run_id, "lora")}
    assert names == {"lora-diffusers.safetensors", "lora-kohya.safetensors", "training.json"}


def test_a_lost_mlflow_does_not_end_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import sqlite3

    monkeypatch.chdir(tmp_path)
    with Log(Storage(str(tmp_path)), f"sqlite:///{tmp_path}/mlflow.db", 0, {"rank": 4}) as log:
        log.number("loss", 1.0, 1)
        with sqlite3.connect(tmp_path / "mlflow.db") as database:
            database.execute("DROP TABLE metrics")
        for step in (2, 3):
            log.number("loss", 1.0, step)
        log.register({"training.json": b"{}"}, {})
    assert caplog.text.count("MLflow is lost") == 1


def test_tensorboard_has_the_losses_once_each(trained: tuple[Path, Trained]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(trained[0] / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss")] == list(range(1, 17))
    assert events.Tags()["images"] == ["prompt-1"]
