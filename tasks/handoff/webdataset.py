"""WebDataset shards: ``KEY.jpg``, ``KEY.txt`` and ``KEY.json`` one after the other in tars.

open_clip needs a shard for each of its workers, and ``sizes.json`` to know how many samples there
are.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from typing import IO

from models.handoff import BundleSample
from tasks.handoff.content import Content

FOLDER = ""
"""There is no folder of pictures."""
SHARDS = "shards"
SHARD = 1000
"""Samples in a shard at most."""
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
            _write_shard(content, samples, stream)
        content.written.add(f"{SHARDS}/{name}")
        sizes[name] = len(samples)
    content.write(f"{SHARDS}/sizes.json", json.dumps(sizes, indent=1))


def _write_shard(content: Content, samples: Sequence[BundleSample], stream: IO[bytes]) -> None:
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
        for sample in samples:
            members = (
                (sample.image, content.dataset.read(sample.file_name)),
                (f"{sample.stem}.txt", sample.caption.encode()),
                (f"{sample.stem}.json", sample.model_dump_json().encode()),
            )
            for name, data in members:
                # A fresh TarInfo has no owner and no time.
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
            content.progress.advance()
