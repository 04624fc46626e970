"""ai-toolkit, OneTrainer and SimpleTuner: their traps, one test each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.errors import BadSettings
from tasks.handoff.diffusers import PROGRAM as DIFFUSERS
from tests.tasks.handoff import schemas
from tests.tasks.handoff.conftest import hand_over_all, make_dataset


@pytest.fixture(scope="module")
def ai_toolkit(bundles: Path) -> dict[str, Any]:
    config = yaml.safe_load((bundles / "ai-toolkit" / "config.yaml").read_text())
    assert config["job"] == "extension"
    (process,) = config["config"]["process"]
    return process


@pytest.fixture(scope="module")
def concepts(bundles: Path) -> list[dict[str, Any]]:
    return json.loads((bundles / "onetrainer" / "concepts.json").read_text())


@pytest.fixture(scope="module")
def onetrainer(bundles: Path) -> dict[str, Any]:
    return json.loads((bundles / "onetrainer" / "train.json").read_text())


@pytest.fixture(scope="module")
def backends(bundles: Path) -> list[dict[str, Any]]:
    path = bundles / "simpletuner" / "config" / "multidatabackend.json"
    return json.loads(path.read_text())


def test_ai_toolkit_ignores_keys_it_does_not_know(ai_toolkit: dict[str, Any]) -> None:
    schemas.refuse_unknown(ai_toolkit, schemas.AI_TOOLKIT)


def test_ai_toolkit_takes_sdxl_only_with_arch_and_ddpm(ai_toolkit: dict[str, Any]) -> None:
    assert ai_toolkit["model"]["arch"] == "sdxl"
    assert ai_toolkit["train"]["noise_scheduler"] == ai_toolkit["sample"]["sampler"] == "ddpm"


def test_ai_toolkit_does_not_read_webp(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)], suffix="webp")
    with pytest.raises(BadSettings, match=r"ai-toolkit does not read images/.*webp"):
        hand_over_all(dataset)
    assert not (tmp_path / "d" / "bundles").exists()
    assert (hand_over_all(dataset, trainers=["kohya"]) / "kohya" / "bundle.json").exists()


def test_ai_toolkit_fills_in_brackets_in_captions(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    place = hand_over_all(dataset, trainers=["ai-toolkit"], captions={"medium": "a [name] plate"})
    (caption,) = (place / "ai-toolkit" / "images").glob("*.txt")
    assert caption.read_text() == "intaglio, a (name) plate, 1880s"
    config = yaml.safe_load((place / "ai-toolkit" / "config.yaml").read_text())
    assert config["config"]["process"][0]["trigger_word"] == "intaglio"


def test_ai_toolkit_finds_captions_by_extension_without_a_dot(ai_toolkit: dict[str, Any]) -> None:
    (dataset,) = ai_toolkit["datasets"]
    assert dataset["caption_ext"] == "txt" and dataset["buckets"]
    assert dataset["resolution"] == [1024], "each number would be a dataset of its own"


def test_ai_toolkit_walks_subfolders(bundles: Path, ai_toolkit: dict[str, Any]) -> None:
    """What it caches and makes would else be trained on."""
    images = bundles / "ai-toolkit" / ai_toolkit["datasets"][0]["folder_path"]
    output = bundles / "ai-toolkit" / ai_toolkit["training_folder"]
    assert not [path for path in images.iterdir() if path.is_dir()]
    assert len([*images.rglob("*.jpg")]) == 5 and images not in (output, *output.parents)


def test_onetrainer_ignores_keys_it_does_not_know(
    concepts: list[dict[str, Any]], onetrainer: dict[str, Any]
) -> None:
    schemas.refuse_unknown(concepts, [schemas.ONETRAINER_CONCEPT])
    schemas.refuse_unknown(onetrainer, schemas.ONETRAINER_CONFIG)


def test_onetrainer_wants_a_list_of_concepts(concepts: list[dict[str, Any]]) -> None:
    assert isinstance(concepts, list) and len(concepts) == 1
    assert concepts[0]["__version"] == 2


def test_onetrainer_jitters_crops_and_flips_by_default(concepts: list[dict[str, Any]]) -> None:
    image = concepts[0]["image"]
    assert image["enable_crop_jitter"] is False and image["enable_random_flip"] is False


def test_onetrainer_runs_in_its_own_folder_so_the_script_makes_paths_absolute(
    concepts: list[dict[str, Any]], onetrainer: dict[str, Any], bundles: Path, tmp_path: Path
) -> None:
    assert concepts[0]["path"] == "images" and onetrainer["concept_file_name"] == "concepts.json"
    bundle = Path(shutil.copytree(bundles / "onetrainer", tmp_path / "moved"))
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").touch()
    environment = {**os.environ, "ONETRAINER": str(tmp_path)}
    subprocess.run(["bash", str(bundle / "train.sh")], env=environment, check=True)
    (concept,) = json.loads((bundle / "concepts.json").read_text())
    assert concept["path"] == str(bundle / "images")
    config = json.loads((bundle / "train.json").read_text())
    assert config["concept_file_name"] == str(bundle / "concepts.json")
    assert config["output_model_destination"] == str(bundle / "output" / "lora.safetensors")


def test_onetrainer_takes_resolution_as_text(onetrainer: dict[str, Any]) -> None:
    assert onetrainer["resolution"] == "1024"
    assert onetrainer["model_type"] == "STABLE_DIFFUSION_XL_10_BASE"
    assert onetrainer["training_method"] == "LORA"


def test_onetrainer_trains_the_text_encoders_and_takes_an_old_version_by_default(
    onetrainer: dict[str, Any],
) -> None:
    assert onetrainer["__version"] == 10
    trained = {
        part: onetrainer[part]["train"] for part in ("unet", "text_encoder", "text_encoder_2")
    }
    assert trained == {"unet": True, "text_encoder": False, "text_encoder_2": False}
    assert onetrainer["vae"]["weight_dtype"] == "FLOAT_32"


def test_onetrainer_leaves_out_what_fills_no_batch_so_it_takes_more_epochs(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * 5)
    plan = {"batch_size": 4, "steps": 10}
    place = hand_over_all(dataset, trainers=["onetrainer"], plan=plan)
    assert json.loads((place / "onetrainer" / "train.json").read_text())["epochs"] == 10


def test_a_shell_fills_in_nothing_of_ours(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    text = "$(touch here) ${HOME} `id`"
    place = hand_over_all(
        dataset, trainers=["diffusers"], captions={"trigger": ""}, plan={"prompt": text}
    )
    script = place / "diffusers" / "train.sh"
    stub = tmp_path / "bin" / "accelerate"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    stub.chmod(0o755)
    environment = {"PATH": f"{stub.parent}:{os.environ['PATH']}", "DIFFUSERS": "/opt/$x y"}
    done = subprocess.run(
        ["bash", str(script)], env=environment, capture_output=True, text=True, check=True
    )
    words = done.stdout.splitlines()
    assert text in words and f"/opt/$x y/{DIFFUSERS}" in words


def test_onetrainer_takes_lines_for_alternatives(
    concepts: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert concepts[0]["text"]["prompt_source"] == "sample"
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    chosen = {"trainers": ["onetrainer"], "captions": {"medium": "one\ntwo"}}
    (caption,) = (hand_over_all(dataset, **chosen) / "onetrainer" / "images").glob("*.txt")
    assert caption.read_text() == "intaglio, one two, 1880s"


@pytest.mark.parametrize("mark", ["masklabel", "condlabel"])
def test_onetrainer_takes_names_that_end_so_for_masks(tmp_path: Path, mark: str) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)], volume=f"plates-{mark}")
    images = hand_over_all(dataset, trainers=["onetrainer"]) / "onetrainer" / "images"
    stems = {path.stem for path in images.iterdir()}
    assert stems == {f"plates-{mark}-p0001-1"}, "the page's number comes last"


def test_simpletuner_ignores_keys_it_does_not_know(
    bundles: Path, backends: list[dict[str, Any]]
) -> None:
    images, texts = backends
    schemas.refuse_unknown(images, schemas.SIMPLETUNER_IMAGES)
    schemas.refuse_unknown(texts, schemas.SIMPLETUNER_TEXTS)
    config = json.loads((bundles / "simpletuner" / "config" / "config.json").read_text())
    schemas.refuse_unknown(config, schemas.SIMPLETUNER_CONFIG)
    assert (bundles / "simpletuner" / config["data_backend_config"]).is_file()


def test_simpletuner_wants_exactly_one_default_for_text_embeddings(
    backends: list[dict[str, Any]],
) -> None:
    texts = [backend for backend in backends if backend["dataset_type"] == "text_embeds"]
    assert len(texts) == 1 and texts[0]["default"] is True


def test_simpletuner_counts_repeats_after_the_first(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    for repeats, said in ((1, 0), (3, 2)):
        place = hand_over_all(dataset, trainers=["simpletuner"], plan={"repeats": repeats})
        config = json.loads((place / "simpletuner/config/multidatabackend.json").read_text())
        assert config[0]["repeats"] == said


def test_simpletuner_could_delete_pictures(bundles: Path) -> None:
    for path in (bundles / "simpletuner" / "config").iterdir():
        assert "delete" not in path.read_text()


def test_simpletuner_splits_captions_at_line_ends(backends: list[dict[str, Any]]) -> None:
    assert backends[0]["disable_multiline_split"] is True
    assert backends[0]["caption_strategy"] == "textfile"


def test_simpletuner_resizes_before_the_crop_only_with_two_keys(
    backends: list[dict[str, Any]],
) -> None:
    assert not backends[0].keys() & {"maximum_image_size", "target_downsample_size"}
