"""kohya sd-scripts: the traps that cost people nights, one test each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from models.handoff import HandoffSettings
from tasks.storage import Storage
from tests.tasks.handoff import schemas
from tests.tasks.handoff.conftest import hand_over_all, make_dataset


@pytest.fixture(scope="module")
def bundle(bundles: Path) -> Path:
    return bundles / "kohya"


@pytest.fixture(scope="module")
def config(bundle: Path) -> dict[str, Any]:
    return tomllib.loads((bundle / "dataset.toml").read_text())


@pytest.fixture(scope="module")
def command(bundle: Path) -> dict[str, list[str]]:
    return schemas.options(bundle / "train.sh")


def general(config: dict[str, Any]) -> dict[str, Any]:
    return config["general"]


def test_an_unknown_key_is_refused(config: dict[str, Any]) -> None:
    subset = schemas.KOHYA_SUBSET | schemas.KOHYA_DREAMBOOTH
    dataset = schemas.KOHYA_DATASET | schemas.KOHYA_SUBSET | {"subsets": [subset]}
    schema = {"general": schemas.KOHYA_DATASET | schemas.KOHYA_SUBSET, "datasets": [dataset]}
    schemas.refuse_unknown(config, schema)
    with pytest.raises(ValueError, match="extra keys not allowed"):
        schemas.refuse_unknown({**config, "general": {"caption_ext": ".txt"}}, schema)


def test_caption_extension_defaults_to_caption(config: dict[str, Any], bundle: Path) -> None:
    assert general(config)["caption_extension"] == ".txt"
    pictures = list((bundle / "images").glob("*.jpg"))
    assert len(pictures) == 5
    assert all(picture.with_suffix(".txt").is_file() for picture in pictures)


def test_buckets_are_off_by_default_and_none_longer_than_1024(config: dict[str, Any]) -> None:
    dataset = config["datasets"][0]
    assert dataset["enable_bucket"] and dataset["max_bucket_reso"] == 2048
    assert dataset["bucket_no_upscale"] and dataset["resolution"] == [1024, 1024]


@pytest.mark.parametrize(("resolution", "smallest"), [(64, 64), (256, 256), (1024, 256)])
def test_the_smallest_bucket_must_not_be_larger_than_the_resolution(
    tmp_path: Path, resolution: int, smallest: int
) -> None:
    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    place = hand_over_all(dataset, trainers=["kohya"], plan={"resolution": resolution})
    (written,) = tomllib.loads((place / "kohya" / "dataset.toml").read_text())["datasets"]
    assert written["min_bucket_reso"] == smallest
    assert written["resolution"] == [resolution, resolution]


def test_bucket_steps_are_a_multiple_of_32(config: dict[str, Any]) -> None:
    assert config["datasets"][0]["bucket_reso_steps"] % 32 == 0
    with pytest.raises(ValidationError):
        HandoffSettings(dataset="x", plan={"step": 72})


def test_images_lie_directly_in_image_dir(config: dict[str, Any], bundle: Path) -> None:
    folder = bundle / config["datasets"][0]["subsets"][0]["image_dir"]
    assert not [path for path in folder.iterdir() if path.is_dir()]
    assert {path.suffix for path in folder.iterdir()} == {".jpg", ".txt"}


def test_all_subsets_of_a_dataset_must_be_of_one_kind(config: dict[str, Any], bundle: Path) -> None:
    """DreamBooth's kind: that of fine-tuning has a metadata file, and trusts its image_size."""
    (subset,) = config["datasets"][0]["subsets"]
    assert "image_dir" in subset and "metadata_file" not in subset
    assert not list(bundle.glob("meta*.json*")), "no image_size that could be wrong"


def test_folder_name_repeats_are_ignored_with_a_toml(tmp_path: Path) -> None:
    place = hand_over_all(make_dataset(tmp_path / "d"), trainers=["kohya"], plan={"repeats": 7})
    config = tomllib.loads((place / "kohya" / "dataset.toml").read_text())
    (subset,) = config["datasets"][0]["subsets"]
    assert subset == {"image_dir": "images", "num_repeats": 7}


def test_a_duplicate_image_dir_is_ignored_so_there_is_one(config: dict[str, Any]) -> None:
    assert [len(dataset["subsets"]) for dataset in config["datasets"]] == [1]


def test_only_the_first_line_of_a_caption_is_read(tmp_path: Path) -> None:
    title = "One\nTwo\r\nThree\u2028Four"
    dataset = make_dataset(tmp_path / "d", metadata={"title": title})
    place = hand_over_all(dataset, trainers=["kohya"], captions={"medium": title})
    for path in (place / "kohya" / "images").glob("*.txt"):
        assert path.read_bytes().decode() == "intaglio, One Two Three Four, 1880s"


def test_an_empty_caption_is_an_assertion_so_there_is_none(bundle: Path) -> None:
    texts = [path.read_text("utf-8") for path in (bundle / "images").glob("*.txt")]
    assert len(texts) == 5 and all(text.strip() for text in texts)


def test_braces_are_a_choice(config: dict[str, Any], tmp_path: Path) -> None:
    assert general(config)["enable_wildcard"] is False
    dataset = make_dataset(tmp_path / "d")
    place = hand_over_all(dataset, trainers=["kohya"], captions={"medium": "{a|b} plate"})
    texts = {path.read_text() for path in (place / "kohya" / "images").glob("*.txt")}
    assert texts == {"intaglio, (a|b) plate, 1880s"}


def test_five_underscores_in_a_stem_borrow_another_caption(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "d", volume="a_b_c_d_e_f")
    place = hand_over_all(dataset, trainers=["kohya"])
    stems = [path.stem for path in (place / "kohya" / "images").iterdir()]
    assert stems and not [stem for stem in stems if "_" in stem]


def test_one_stem_with_two_extensions_shares_a_caption(tmp_path: Path) -> None:
    """Two volumes whose names become one, differing in case, too."""
    one = make_dataset(tmp_path / "d", volume="A_b")
    manifest = one.read("manifest.jsonl")
    make_dataset(tmp_path / "d", volume="a-b", suffix="png")
    one.write("manifest.jsonl", manifest + one.read("manifest.jsonl"))
    place = hand_over_all(one, trainers=["kohya"])
    names = [path.name.casefold() for path in (place / "kohya" / "images").iterdir()]
    assert len({Path(name).stem for name in names}) == 10 and len(names) == 20


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_extensions_are_lower_or_upper_case_never_mixed(tmp_path: Path, suffix: str) -> None:
    """A volume may be called whatever it likes."""
    dataset = make_dataset(tmp_path / "d", volume="Mode.Jpg", suffix=suffix)
    place = hand_over_all(dataset, trainers=["kohya"])
    names = [path.name for path in (place / "kohya" / "images").iterdir()]
    assert sorted({name.partition(".")[2] for name in names}) == sorted({suffix, "txt"})


def test_caching_text_encoder_outputs_excludes_training_them(
    command: dict[str, list[str]], config: dict[str, Any]
) -> None:
    assert command.keys() <= schemas.KOHYA_OPTIONS
    assert "cache_text_encoder_outputs" in command and "network_train_unet_only" in command
    assert not command.keys() & {"text_encoder_lr1", "text_encoder_lr2"}
    varying = {"caption_dropout_rate", "token_warmup_step", "caption_tag_dropout_rate"}
    assert not general(config).keys() & varying and not general(config)["shuffle_caption"]


def test_lettering_is_not_mirrored(config: dict[str, Any]) -> None:
    assert general(config)["flip_aug"] is False


def test_the_trigger_begins_each_caption_as_class_tokens_count_only_without_one(
    config: dict[str, Any], bundle: Path
) -> None:
    assert general(config)["keep_tokens"] == 1
    assert "class_tokens" not in config["datasets"][0]["subsets"][0]
    texts = [path.read_text() for path in (bundle / "images").glob("*.txt")]
    assert all(text.startswith("intaglio, ") for text in texts)


def test_half_precision_needs_the_vae_in_full(command: dict[str, list[str]]) -> None:
    assert command["mixed_precision"] == ["fp16"] and "no_half_vae" in command


def test_files_are_at_the_size_of_their_bucket_so_nothing_is_resized(
    bundle: Path, bundles: Path
) -> None:
    from models.handoff import Preflight

    found = Preflight.model_validate_json((bundles / "preflight.json").read_text())
    kohya = next(trainer for trainer in found.trainers if trainer.trainer == "kohya")
    assert (kohya.upscaled, kohya.cropped_most) == (0, 0)
    assert Storage(str(bundle)).size("images/ladies-mirror-1887-03-p0001-1.jpg")
