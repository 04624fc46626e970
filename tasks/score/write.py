"""Writing the scores: a table, the embeddings, and what is dropped."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from tasks.dataset import write_dropped
from tasks.score.judge import Scores, volume
from tasks.score.spread import year
from tasks.storage import Storage

TABLE = "scores.parquet"
EMBEDDINGS, EMBEDDED = "embeddings.npy", "embeddings.txt"
VERDICT = "verdict.json"


def write_scores(output: Storage, scores: Scores) -> None:
    """Write ``scores.parquet``, ``embeddings.npy`` and ``embeddings.txt`` (a file name a row)."""
    import pyarrow as pa
    import pyarrow.parquet

    with output.writer(TABLE) as stream:
        pyarrow.parquet.write_table(pa.Table.from_pydict(columns(scores)), stream)
    good = scores.good
    with output.writer(EMBEDDINGS) as stream:
        array = BytesIO()
        np.save(array, scores.vectors[good])
        stream.write(array.getbuffer())
    names = "".join(f"{scores.samples[i].file_name}\n" for i in good)
    output.write(EMBEDDED, names.encode())


def columns(scores: Scores) -> dict[str, list[Any]]:
    """A row a sample in the order of the manifest: what the manifest says, and the scores."""
    everything = range(len(scores.samples))
    group = {at: number for number, of in enumerate(scores.groups, 1) for at in of}
    original = {at: of[0] for of in scores.groups for at in of[1:]}
    table: dict[str, list[Any]] = {
        name: [getattr(sample, name) for sample in scores.samples]
        for name in type(scores.samples[0]).model_fields
        if name not in ("metadata", "kind")
    }
    table["kind"] = [sample.kind.value for sample in scores.samples]
    table |= {
        "volume": [volume(sample) for sample in scores.samples],
        "year": [year(sample) for sample in scores.samples],
        "kept": [at not in scores.reasons for at in everything],
        "reason": [scores.reasons.get(at) for at in everything],
        "fault": [scores.faults[at].message if at in scores.faults else None for at in everything],
        "probability": scores.probability.tolist(),
        "margin": scores.margins.margin.tolist(),
        "wanted": scores.margins.wanted,
        "unwanted": scores.margins.unwanted,
        "text_area": [measure.text_area for measure in scores.measures],
        "label": [scores.labels.get(sample.file_name) for sample in scores.samples],
        "cluster": scores.cluster.tolist(),
        "map_x": scores.place[:, 0].tolist(),
        "map_y": scores.place[:, 1].tolist(),
        "duplicate_group": [group.get(at) for at in everything],
        "duplicate_of": [
            scores.samples[original[at]].file_name if at in original else None for at in everything
        ],
        "selected": [scores.rank.get(at) for at in everything],
        "pixels_sha256": [measure.pixels_sha256 for measure in scores.measures],
        "phash": [measure.phash for measure in scores.measures],
    }
    return table


def drop(output: Storage, scores: Scores) -> None:
    """Take the dropped samples out of the dataset, and the others back in."""
    named = {scores.samples[at].file_name: reason for at, reason in scores.reasons.items()}
    write_dropped(output, scores.samples, named)
