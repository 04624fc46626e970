"""Captions by a BLIP model: random weights, but the real classes, read from a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from models.errors import BadSettings
from models.handoff import HandoffSettings
from models.records import Sample
from tasks.captions.blip import check_blip
from tasks.captions.write import write_all
from tasks.dataset import read_samples
from tasks.progress import Progress
from tasks.storage import Storage
from tests.resources.tiny_blip import make_blip
from tests.tasks.handoff.conftest import make_dataset


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_blip(tmp_path_factory.mktemp("blip"))


@pytest.fixture
def dataset(tmp_path: Path) -> Storage:
    return make_dataset(tmp_path / "d", sizes=[(64, 64), (64, 96), (96, 64)])


def captions(dataset: Storage, model: Path) -> dict[str, tuple[str, str]]:
    """Text and source by file name."""
    settings = HandoffSettings.model_validate(
        {"dataset": dataset.url, "captions": {"by": ["blip"], "blip_model": str(model)}}
    )
    samples: list[Sample] = list(read_samples(dataset))
    written = write_all(settings, dataset, samples, {}, Progress())
    return {name: (said.text, said.source) for name, said in written.items()}


def test_every_picture_gets_a_sentence_of_its_own_and_the_same_again(
    dataset: Storage, blip: Path
) -> None:
    said = captions(dataset, blip)
    texts = {text for text, _ in said.values()}
    assert len(said) == 3 and {source for _, source in said.values()} == {"blip"}
    assert all(text.startswith("intaglio, ") and "[" not in text for text in texts)
    assert len(texts) > 1, "the pictures are looked at"
    assert captions(dataset, blip) == said


def test_of_a_picture_that_is_damaged_or_gone_nothing_is_said(dataset: Storage, blip: Path) -> None:
    damaged, gone, good = [sample.file_name for sample in read_samples(dataset)]
    dataset.write(damaged, dataset.read(damaged)[:100])
    dataset.remove(gone)
    said = captions(dataset, blip)
    assert said[damaged] == said[gone] == ("intaglio", "trigger") and said[good][1] == "blip"


def test_a_model_that_cannot_be_loaded_is_named_with_a_cure(
    dataset: Storage, blip: Path, tmp_path: Path
) -> None:
    torn = Path(shutil.copytree(blip, tmp_path / "torn"))
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    for folder in (torn, tmp_path / "nowhere", tmp_path):
        with pytest.raises(BadSettings, match=f"blip_model: {folder} cannot be loaded") as caught:
            captions(dataset, folder)
        assert "Name a folder with a BLIP model" in caught.value.cure


def test_a_model_that_is_missing_is_said_before_any_work(blip: Path, tmp_path: Path) -> None:
    check_blip(str(blip))
    model = Path(shutil.copytree(blip, tmp_path / "model"))
    (model / "model.safetensors").unlink()
    for folder in (model, tmp_path / "nowhere", tmp_path):
        with pytest.raises(BadSettings, match=f"blip_model: {folder} cannot be loaded"):
            check_blip(str(folder))
    (model / "config.json").write_text('{"model_type": "clip"}')
    (model / "pytorch_model.bin").touch()
    with pytest.raises(BadSettings, match="is no BLIP but a clip"):
        check_blip(str(model))
