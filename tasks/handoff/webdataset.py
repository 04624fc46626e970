"""WebDataset shards: ``KEY.jpg``, ``KEY.txt`` and ``KEY.json`` one after the other in tars.

open_clip needs a shard for each of its workers, and ``sizes.json`` to know how many samples there
are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from models.handoff import BundleSample
from tasks.handoff.content import Content
from tasks.shards import SHARD, write_shard

FOLDER = ""
"""There is no folder of pictures."""
SHARDS = "shards"
FEWEST = 8
"""Shards at least, if there are as many samples: enough for two processes of four workers."""


def write(content: Content) -> None:
    """Write the bundle; the same dataset gives the same bytes."""
    count = len(content.samples)
    shards = max(min(FEWEST, count), -(-count // SHARD))
    sizes = {}
    for number in range(shards):
        samples = content.samples[number * count // shards : (number + 1) * count // shards]
        name = f"{number:05d}.tar"
        with content.target.writer(f"{SHARDS}/{name}") as stream:
            write_shard(stream, _members(content, samples))
        content.written.add(f"{SHARDS}/{name}")
        sizes[name] = len(samples)
    content.write(f"{SHARDS}/sizes.json", json.dumps(sizes, indent=1))


def _members(content: Content, samples: Sequence[BundleSample]) -> Iterator[tuple[str, bytes]]:
    for sample in samples:
        yield sample.image, content.dataset.read(sample.file_name)
        yield f"{sample.stem}.txt", sample.caption.encode()
        yield f"{sample.stem}.json", sample.model_dump_json().encode()
        content.progress.advance()
