"""Scoring on S3: the same files as on the disk, and samples that move between folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.storage import Storage
from tests.resources.make_dataset import jpeg, make_dataset
from tests.tasks.detect.drawn import text_page
from tests.tasks.score.conftest import Score, files, model, places, score

__all__ = ["model", "score"]
SAME = ("scores.parquet", "embeddings.npy", "embeddings.txt", "dropped.jsonl", "report/data.js")


def test_a_dataset_on_s3_is_scored_as_on_the_disk(
    bucket: Storage, tmp_path: Path, score: Score
) -> None:
    pytest.importorskip("pyarrow")
    made = files(12) | {"paper-1890/p0002-1.jpg": jpeg(text_page(3))}
    made["paper-1890/p0001-1.jpg"] = made["paper-1880/p0001-1.jpg"]
    local = Storage(str(tmp_path / "out"))
    for storage in (local, bucket):
        make_dataset(storage, made.items())
        verdict = score(storage.url, select=6).verdict
        assert (verdict.kept, verdict.embedded) == (6, 13), "the copy has the same bytes"
        assert verdict.dropped == {"text": 1, "duplicate": 1, "not_selected": 6}
    assert places(bucket.url) == places(local.url)
    for name in SAME:
        assert bucket.read(name) == local.read(name), name
    # Again, without the choice: nothing is embedded anew, and files come back.
    verdict = score(bucket.url).verdict
    assert (verdict.kept, verdict.embedded) == (12, 0)
    assert len(places(bucket.url)["images"]) == 12
