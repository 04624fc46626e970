"""WebDataset shards: tars in which the files of a sample lie one after the other."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from io import BytesIO
from typing import IO

SHARD = 1000
"""Samples in a shard at most."""


def write_shard(stream: IO[bytes], members: Iterable[tuple[str, bytes]]) -> None:
    """Write a shard; the same members give the same bytes.

    Args:
        stream: Where it goes.
        members: Names and contents. What stands before the first dot is the sample's key; files
            with the same key must follow each other.
    """
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            # A fresh TarInfo has no owner and no time.
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
