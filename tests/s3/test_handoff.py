"""Bundles on S3: copied by the server itself, packed, and read back."""

from __future__ import annotations

import io
import zipfile

from models.handoff import HandoffSettings
from tasks.handoff.bundle import bundle_place, read_bundle
from tasks.storage import Storage
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
