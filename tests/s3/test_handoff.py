"""Bundles on S3: copied by the server itself, packed, and read back."""

from __future__ import annotations

import io
import zipfile

import pytest

from models.errors import OutputInUse
from models.handoff import HandoffSettings
from tasks import lease
from tasks.handoff.bundle import bundle_place, make_bundle, read_bundle, while_ours
from tasks.handoff.place import place as put
from tasks.lock import locked
from tasks.progress import Progress
from tasks.storage import Storage
from tests.s3.conftest import take_over
from tests.tasks.handoff.conftest import hand_over_all, make_dataset


def test_bundles_are_made_packed_and_brought_up_to_date(bucket: Storage) -> None:
    dataset = make_dataset(bucket.url, sizes=[(64, 64), (64, 96)])
    trainers = {"trainers": ["kohya", "webdataset"]}
    for medium in ("engraving", "woodcut"):
        hand_over_all(dataset, captions={"medium": medium}, zip=True, **trainers)
        settings = HandoffSettings(dataset=bucket.url)
        bundle = bundle_place(settings, "kohya")
        record, samples = read_bundle(bundle)
        assert record.samples == 2
        for sample in samples:
            assert bundle.read(f"images/{sample.image}") == dataset.read(sample.file_name)
            text = bundle.read(f"images/{sample.stem}.txt").decode()
            assert text == sample.caption == f"intaglio, {medium}, 1880s"
    archive = zipfile.ZipFile(io.BytesIO(Storage(settings.place).read("kohya.zip")))
    assert f"kohya/images/{samples[0].image}" in archive.namelist()
    assert archive.testzip() is None


@pytest.mark.parametrize("trainer", ["kohya", "webdataset"])
def test_a_hand_off_that_lost_its_dataset_writes_nothing_more(
    bucket: Storage, monkeypatch: pytest.MonkeyPatch, trainer: str
) -> None:
    monkeypatch.setattr(lease, "RENEW_S", 0.2)
    dataset = make_dataset(bucket.url, sizes=[(64, 64), (64, 96)])
    with locked(dataset):
        hand_over_all(dataset, trainers=[trainer])
        take_over(dataset)
        before = Storage(f"{bucket.url}/bundles").names("")
        settings = HandoffSettings(dataset=bucket.url)
        place = bundle_place(settings, trainer)
        with pytest.raises(OutputInUse, match="process 7 on elsewhere"):
            hand_over_all(dataset, trainers=[trainer])
        samples = read_bundle(place)[1]
        for doing in (
            lambda: make_bundle(settings, dataset, samples, trainer, Progress()),
            lambda: put(dataset, samples[0].file_name, while_ours(place, dataset), "images/x.jpg"),
        ):
            with pytest.raises(OutputInUse, match="process 7 on elsewhere"):
                doing()
        assert Storage(f"{bucket.url}/bundles").names("") == before and place.size("bundle.json")
