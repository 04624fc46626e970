"""The dataset as it stands: what extraction made, less what scoring took out.

``manifest.jsonl`` has every sample that was extracted. ``dropped.jsonl``, if there is one, names
those that were judged not to belong, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.records import DroppedLine, Sample
from tasks.publish import MANIFEST
from tasks.storage import Storage

DROPPED = "dropped.jsonl"


def read_samples(output: Storage) -> Iterator[Sample]:
    """The samples of the dataset in the order of the manifest, dropped ones left out."""
    dropped = read_dropped(output)
    for line in output.lines(MANIFEST):
        sample = Sample.model_validate_json(line)
        if sample.file_name not in dropped:
            yield sample


def read_dropped(output: Storage) -> dict[str, str]:
    """Why samples were taken out, by file name."""
    lines = map(DroppedLine.model_validate_json, output.lines(DROPPED))
    return {line.file_name: line.reason for line in lines}
