"""Bundles read back by the libraries that will read them."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from PIL import Image

from models.handoff import BundleSample
from tests.tasks.handoff import schemas
from tests.tasks.handoff.conftest import SIZES, hand_over_all, make_dataset


def samples(bundle: Path) -> list[BundleSample]:
    lines = (bundle / "samples.jsonl").read_text().splitlines()
    return [BundleSample.model_validate_json(line) for line in lines]


@pytest.mark.parametrize("trainer", ["diffusers", "huggingface"])
def test_metadata_lies_inside_the_image_folder_with_a_row_for_each_picture(
    bundles: Path, trainer: str, tmp_path: Path
) -> None:
    from datasets import load_dataset

    loaded = load_dataset(
        "imagefolder", data_dir=str(bundles / trainer), cache_dir=str(tmp_path), split="train"
    )
    assert loaded.column_names == ["image", "text", "pdf", "page_index", "kind"]
    assert [row["text"] for row in loaded] == ["intaglio, engraving, 1880s"] * 5
    assert [row["page_index"] for row in loaded] == [0, 1, 2, 3, 4]
    # Not made square: the scripts crop, and tell SDXL the original size.
    assert [row["image"].size for row in loaded] == [*SIZES]


def test_file_name_is_relative_to_the_metadata_file_and_no_picture_is_an_orphan(
    bundles: Path,
) -> None:
    folder = bundles / "diffusers" / "train"
    rows = [json.loads(line) for line in (folder / "metadata.jsonl").read_text().splitlines()]
    there = {path.name for path in folder.iterdir()} - {"metadata.jsonl"}
    assert {row["file_name"] for row in rows} == there and len(rows) == len(there)


@pytest.mark.parametrize("trainer", ["diffusers", "huggingface"])
def test_folders_make_splits_and_no_labels_where_there_is_metadata(
    bundles: Path, trainer: str, tmp_path: Path
) -> None:
    from datasets import load_dataset

    found = load_dataset("imagefolder", data_dir=str(bundles / trainer), cache_dir=str(tmp_path))
    splits = {name: len(split) for name, split in found.items()}
    assert splits["train"] == 5 and "label" not in found["train"].column_names


def test_diffusers_crops_squares_itself_and_tells_sdxl_the_original_size(
    bundles: Path,
) -> None:
    """Of squares made beforehand it would tell SDXL that they were the originals."""
    command = schemas.options(bundles / "diffusers" / "train.sh")
    assert "center_crop" in command and command["resolution"] == ["1024"]
    sizes = {s.image: (s.width, s.height) for s in samples(bundles / "diffusers")}
    folder = bundles / "diffusers" / command["train_data_dir"][0]
    assert {p.name: Image.open(p).size for p in folder.glob("*.jpg")} == sizes
    assert len({width == height for width, height in sizes.values()}) == 2


def test_diffusers_finds_the_caption_column(bundles: Path) -> None:
    command = schemas.options(bundles / "diffusers" / "train.sh")
    assert command.keys() <= schemas.DIFFUSERS_OPTIONS
    assert (command["caption_column"], command["train_data_dir"]) == (["text"], ["train"])
    assert "random_flip" not in command
    assert "sdxl-vae-fp16-fix" in command["pretrained_vae_model_name_or_path"][0]


def test_diffusers_dreambooth_opens_every_file_in_its_folder(bundles: Path) -> None:
    command = schemas.options(bundles / "diffusers" / "train-dreambooth.sh")
    assert command.keys() <= schemas.DREAMBOOTH_OPTIONS and command["instance_prompt"]
    files = list((bundles / "diffusers" / command["instance_data_dir"][0]).iterdir())
    assert sorted(Image.open(path).size for path in files) == sorted(SIZES)


def test_huggingface_card_has_licence_notes_and_provenance(bundles: Path) -> None:
    card = (bundles / "huggingface" / "README.md").read_text()
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head)["license"] == "cc0-1.0"
    assert "Scans of a library." in body and "not scored" in body


def test_webdataset_keys_have_no_dot_and_shards_say_their_size(
    bundles: Path, tmp_path: Path
) -> None:
    import webdataset

    dataset = make_dataset(tmp_path / "d", volume="v.1-1887")
    for place in (bundles, hand_over_all(dataset, trainers=["webdataset"])):
        folder = place / "webdataset" / "shards"
        sizes = json.loads((folder / "sizes.json").read_text())
        assert list(sizes) == [path.name for path in sorted(folder.glob("*.tar"))]
        assert sum(sizes.values()) == 5 and len(sizes) == 5, "a shard for each worker"
        urls = [str(folder / name) for name in sizes]
        reader = webdataset.WebDataset(urls, shardshuffle=False).decode("pil")
        records = list(reader)
        assert [record["jpg"].size for record in records] == [*SIZES]
        assert {record["txt"] for record in records} == {"intaglio, engraving, 1880s"}
        wanted = samples(place / "webdataset")
        assert [record["json"]["sha256"] for record in records] == [s.sha256 for s in wanted]
        assert [record["__key__"] for record in records] == [s.stem for s in wanted]


def test_open_clip_reads_tabs_between_filepath_and_title(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the trainer's own reader, and its own parser of options: 3.3.0, as on PyPI."""
    from open_clip_train.data import CsvDataset
    from open_clip_train.params import parse_args

    bundle = bundles / "open-clip"
    command = schemas.options(bundle / "train.sh")
    words = [word for name, values in command.items() for word in (f"--{name}", *values)]
    arguments = parse_args(words)
    assert arguments.precision == "amp" and arguments.csv_separator == "\t"
    monkeypatch.chdir(bundle)
    table = CsvDataset(
        arguments.train_data,
        lambda image: image.size,
        arguments.csv_img_key,
        arguments.csv_caption_key,
        sep=arguments.csv_separator,
        tokenizer=lambda texts: texts,
    )
    assert [table[n] for n in range(len(table))] == [
        (size, "intaglio, engraving, 1880s") for size in SIZES
    ]


def test_open_clip_on_pypi_has_fewer_options_than_the_repository(bundles: Path) -> None:
    from open_clip_train.params import parse_args

    assert version("open_clip_torch") == "3.3.0"
    command = schemas.options(bundles / "open-clip" / "train.sh")
    later = {
        "image-key", "text-key", "json-text-key", "json-text-key-probs", "max-image-pixels",
        "fsdp", "image-layer-decay", "use-naflex",
    }  # fmt: skip
    assert not command.keys() & later
    with pytest.raises(SystemExit):
        parse_args(["--max-image-pixels", "1000"])


def test_open_clip_wants_quickgelu_with_the_weights_that_had_it(bundles: Path) -> None:
    import open_clip

    command = schemas.options(bundles / "open-clip" / "train.sh")
    (model,), (weights,) = command["model"], command["pretrained"]
    trained_with = open_clip.get_pretrained_cfg(model, weights).get("quick_gelu", False)
    assert open_clip.get_model_config(model).get("quick_gelu", False) == trained_with
    assert open_clip.get_pretrained_cfg("ViT-B-32", "openai")["quick_gelu"], "it can differ"


@pytest.mark.parametrize(("count", "batch"), [(5, 5), (40, 32)])
def test_open_clip_leaves_out_a_batch_that_is_not_full(
    tmp_path: Path, count: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from open_clip_train.data import get_csv_dataset
    from open_clip_train.params import parse_args

    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)] * count)
    bundle = hand_over_all(dataset, trainers=["open-clip"]) / "open-clip"
    command = schemas.options(bundle / "train.sh")
    arguments = parse_args([w for name, values in command.items() for w in (f"--{name}", *values)])
    arguments.distributed = False
    monkeypatch.chdir(bundle)
    table = get_csv_dataset(arguments, lambda image: image, is_train=True, tokenizer=lambda t: t)
    assert (arguments.batch_size, table.dataloader.num_batches) == (batch, 1)


def test_open_clip_captions_with_quotes_and_tabs_stay_whole(tmp_path: Path) -> None:
    import pandas

    dataset = make_dataset(tmp_path / "d", sizes=[(64, 64)])
    medium = '"a plate", so\tcalled'
    place = hand_over_all(
        dataset, trainers=["open-clip"], captions={"medium": medium, "trigger": ""}
    )
    table = pandas.read_csv(place / "open-clip" / "train.tsv", sep="\t")
    assert table["title"].tolist() == ['"a plate", so called, 1880s']
    assert not os.path.isabs(table["filepath"][0])
