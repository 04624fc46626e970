"""Leases on a real S3 server: who holds an output, and who takes it over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings, OutputInUse, StopRun, StorageRefused
from tasks import lease
from tasks.lease import Lease
from tasks.lock import alone, locked
from tasks.storage import Storage
from tests.s3.conftest import take_over
from tests.services.proxy import Fault, Proxy

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from tasks import lease
lease.RENEW_S = 0.5
if sys.argv[3] == "elsewhere":
    lease._machine = lambda: "another machine"
from tasks.lock import locked
from tasks.storage import Storage
with locked(Storage(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", 4.0)
    monkeypatch.setattr(lease, "RENEW_S", 0.5)
    monkeypatch.setattr(lease, "SETTLE_S", 0.2)


@contextmanager
def holder(output: Storage, shard: str = "", where: str = "here") -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, output.url, shard, where],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_run_is_refused_with_the_owners_name(bucket: Storage) -> None:
    with (
        holder(bucket) as owner,
        pytest.raises(OutputInUse, match=f"{bucket.url} .* process {owner.pid} on "),
        locked(bucket),
    ):
        pass
    with locked(bucket):
        assert len(bucket.names(".intaglio")) == 1
    assert bucket.names("") == {}


@pytest.mark.parametrize(("where", "at_least", "at_most"), [("here", 0, 3), ("elsewhere", 2, 9)])
def test_the_lease_of_a_killed_run_is_taken_over(
    bucket: Storage, where: str, at_least: float, at_most: float
) -> None:
    """At once on the owner's machine, where it can be seen that it is dead; else when it lapses."""
    with holder(bucket, where=where) as owner:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    begun = time.monotonic()
    with locked(bucket) as still_ours:
        assert at_least < time.monotonic() - begun < at_most
        still_ours()


def test_whoever_slept_through_the_end_of_its_lease_stops(
    bucket: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(bucket) as still_ours:
        bucket.fence = still_ours
        bucket.write("file", b"old")
        monkeypatch.setattr(lease, "_machine", lambda: "another machine")
        theirs = Storage(bucket.url)
        mine = take_over(bucket)
        for change in (
            lambda: bucket.write("file", b"new"),
            lambda: bucket.remove("file"),
            lambda: bucket.move("file", "other"),
        ):
            with pytest.raises(OutputInUse, match="process 7 on elsewhere"):
                change()
    assert theirs.read("file") == b"old"
    assert theirs.read(mine), "the new owner's lease stays"


def test_of_many_that_take_over_at_once_one_gets_it(bucket: Storage) -> None:
    with holder(bucket) as owner:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    held: list[int] = []
    refused: list[str] = []
    done = threading.Event()

    def take(number: int) -> None:
        try:
            with locked(Storage(bucket.url)) as still_ours:
                held.append(number)
                done.wait(20)
                still_ours()
        except OutputInUse as error:
            refused.append(str(error))

    threads = [threading.Thread(target=take, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 20
    while len(held) + len(refused) < 5 and time.monotonic() < deadline:
        time.sleep(0.1)
    done.set()
    for thread in threads:
        thread.join()
    assert len(held) == 1 and len(refused) == 4
    assert all(str(os.getpid()) in each for each in refused)


@pytest.mark.nightly
def test_shards_live_side_by_side_and_with_nobody_else(bucket: Storage) -> None:
    with holder(bucket, "1/3"), locked(bucket, "2/3"), locked(Storage(bucket.url), "3/3"):
        for other in ("", "1/3", "1/2", "2/4"):
            with pytest.raises(OutputInUse), locked(Storage(bucket.url), other):
                pass
    with holder(bucket), pytest.raises(OutputInUse), locked(bucket, "1/3"):
        pass


def test_shards_take_turns(bucket: Storage) -> None:
    inside: list[int] = []
    most: list[int] = []

    def turn(number: int) -> None:
        with alone(Storage(bucket.url), f"{number}/3"):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.5)
            inside.remove(number)

    threads = [threading.Thread(target=turn, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1, 1, 1]


def test_shards_need_storage_that_machines_can_share(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="not on S3"), locked(Storage(str(tmp_path)), "1/2"):
        pass


def test_a_bucket_that_is_not_there_is_told_at_the_start(direct: object) -> None:
    with (
        pytest.raises(StorageRefused, match="locking s3://no-such-bucket/x") as caught,
        locked(Storage("s3://no-such-bucket/x")),
    ):
        pass
    assert "Make the bucket" in caught.value.cure


def test_a_lease_whose_first_answer_was_lost_is_ours(weather: Proxy, bucket: Storage) -> None:
    begun = time.monotonic()
    with (
        weather.spoiling(Fault(cut_down=1, times=1, only="PUT")),
        locked(bucket) as still_ours,
    ):
        assert weather.met == 1
        still_ours()
    assert time.monotonic() - begun < 3


def test_a_lease_counts_from_before_it_was_written(
    bucket: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's clock runs while its answer is on the way."""
    monkeypatch.setattr(lease, "RENEW_S", 60)
    fs = bucket.fs._fs
    real = fs.call_s3

    def slow(method: str, **what: Any) -> Any:
        answer = real(method, **what)
        if method == "put_object":
            time.sleep(1.5)
        return answer

    monkeypatch.setattr(fs, "call_s3", slow)
    with Lease(bucket, "leases", "x") as held:
        assert time.time() - held._renewed > 1.5


def test_a_lease_nobody_renewed_is_renewed_before_it_lapses(
    bucket: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_S", 60)
    with Lease(bucket, "leases", "x") as held:
        time.sleep(lease.LEASE_S / 3 + 0.2)
        held.check()
        assert time.time() - held._renewed < 1
    with pytest.raises(StopRun, match="was stopped") as caught:
        held.check()
    assert not isinstance(caught.value, OutputInUse)


def test_what_another_took_over_meanwhile_is_not_removed(bucket: Storage) -> None:
    bucket.write("a", b"theirs")
    assert not bucket.fs.remove_if(bucket.path("a"), b"ours")
    assert bucket.read("a") == b"theirs"
    assert bucket.fs.remove_if(bucket.path("a"), b"theirs") and bucket.names("") == {}
    assert bucket.fs.remove_if(bucket.path("a"), b"ours"), "gone it is"


def test_a_run_ends_in_time_though_its_lease_cannot_be_given_back(
    weather: Proxy, bucket: Storage
) -> None:
    with ExitStack() as held, weather.spoiling(Fault(hang=True)):
        weather._fault, hanging = None, weather._fault
        held.enter_context(locked(bucket))
        weather._fault = hanging
        time.sleep(1)  # in mid-renewal
        begun = time.monotonic()
        held.close()
        assert time.monotonic() - begun < 8


def test_the_storage_that_is_locked_is_fenced(bucket: Storage) -> None:
    with locked(bucket):
        bucket.write("a", b"x")
        take_over(bucket)
        with pytest.raises(OutputInUse, match="process 7 on elsewhere"):
            bucket.write("a", b"y")
    bucket.write("a", b"z")
