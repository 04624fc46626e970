"""Shards: the same members give the same bytes, wherever and whenever they are written."""

from __future__ import annotations

import io
import tarfile
import time

import pytest

from tasks.shards import write_shard

MEMBERS = [("a.jpg", b"picture"), ("a.txt", "ein Kleid für Bälle".encode()), ("b.jpg", b"")]


def shard() -> bytes:
    stream = io.BytesIO()
    write_shard(stream, iter(MEMBERS))
    return stream.getvalue()


def test_nothing_of_the_machine_or_the_hour_is_in_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    made = shard()
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert shard() == made
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        members = archive.getmembers()
        assert [(m.name, archive.extractfile(m).read()) for m in members] == MEMBERS  # type: ignore[union-attr]
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
