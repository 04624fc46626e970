"""Storage on a real S3 server, in good and bad weather."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadSettings, StorageGone, StorageRefused
from tasks.discover import find_pdfs
from tasks.places import filesystem
from tasks.storage import Storage
from tests.s3.conftest import BUCKET, account
from tests.services.proxy import Fault, Proxy
from tests.services.radosgw import Radosgw

ROOT = Path(__file__).resolve().parents[2]
BIG = 40 * 1024 * 1024
"""Bytes that take three parts."""


def uploads(place: str) -> list[Any]:
    """What hangs unfinished below a folder."""
    from tasks.s3 import client

    prefix = place.removeprefix(f"s3://{BUCKET}/")
    found = client().call_s3("list_multipart_uploads", Bucket=BUCKET, Prefix=prefix)
    return list(found.get("Uploads", []))


def test_what_is_written_can_be_read_listed_moved_and_removed(bucket: Storage) -> None:
    bucket.write("a/b/c.txt", b"one\ntwo\n")
    bucket.write("d.txt", b"")
    assert bucket.read("a/b/c.txt") == b"one\ntwo\n"
    assert list(bucket.lines("a/b/c.txt")) == [b"one", b"two"]
    assert bucket.names("") == {"a/b/c.txt": 8, "d.txt": 0}
    assert bucket.names("a") == {"a/b/c.txt": 8}
    assert bucket.size("d.txt") == 0 and bucket.size("none") is None
    bucket.move("a/b/c.txt", "e.txt")
    assert bucket.names("") == {"e.txt": 8, "d.txt": 0}
    bucket.remove("e.txt")
    bucket.remove("e.txt")
    assert bucket.names("") == {"d.txt": 0}
    assert bucket.names("nowhere") == {} and list(bucket.lines("nowhere")) == []
    with pytest.raises(FileNotFoundError):
        bucket.read("nowhere")


@pytest.mark.parametrize("size", [0, 10, BIG])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_an_exception_in_mid_write_publishes_nothing(
    bucket: Storage, place: str, size: int, error: BaseException
) -> None:
    bucket.write("old", b"old")
    for name in ("old", "new"):
        with pytest.raises(type(error)), bucket.writer(name) as stream:
            stream.write(bytes(size))
            raise error
    assert bucket.names("") == {"old": 3} and bucket.read("old") == b"old"
    assert not uploads(place)


def test_a_large_file_is_there_whole_or_not_at_all(bucket: Storage, place: str) -> None:
    data = os.urandom(BIG)
    with bucket.writer("big") as stream:
        stream.write(data)
        assert bucket.names("") == {} and not uploads(place)
    assert bucket.read("big") == data
    with bucket.reader("big") as stream:
        assert stream.read() == data
    assert not uploads(place)


WRITER = """
import sys
import threading
from tasks.storage import Storage
from tasks import s3
def put(self, what, kept, body, size):
    upload = self.call_s3("create_multipart_upload", **what, **kept)["UploadId"]
    self.call_s3("upload_part", **what, UploadId=upload, PartNumber=1, Body=body.read(s3.PART))
    print("half", flush=True)
    sys.stdin.read()
s3.S3._put_parts = put
with Storage(sys.argv[1]).writer("big") as stream:
    stream.write(bytes(int(sys.argv[2])))
"""


def test_what_a_killed_writer_left_is_cleared_and_a_neighbours_is_not(
    bucket: Storage, place: str
) -> None:
    from tasks.s3 import client

    prefix = place.removeprefix(f"s3://{BUCKET}/")
    neighbour = {"Bucket": BUCKET, "Key": f"{prefix}-neighbour/big"}
    client().call_s3("create_multipart_upload", **neighbour)
    killed = subprocess.Popen(
        [sys.executable, "-c", WRITER, place, str(BIG)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert killed.stdout is not None and killed.stdout.readline() == b"half\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert bucket.names("") == {}
    assert {each["Key"] for each in uploads(place)} == {f"{prefix}/big", neighbour["Key"]}
    bucket.sweep()
    assert [each["Key"] for each in uploads(place)] == [neighbour["Key"]]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=503, times=3),
        Fault(status=500, times=2),
        Fault(refuse=True, times=3),
        Fault(cut_up=1000, times=2),
        Fault(cut_down=100, times=2),
        Fault(flip=True, times=2, only="PUT"),
    ],
    ids=["503", "500", "refused", "cut going up", "cut coming down", "a flipped bit"],
)
def test_bad_weather_that_passes_is_ridden_out(
    weather: Proxy, bucket: Storage, fault: Fault
) -> None:
    data = os.urandom(300_000)
    bucket.write("before", data)
    with weather.spoiling(replace(fault)):
        bucket.write("file", data)
        assert weather.met
    with weather.spoiling(replace(fault, only="")):
        assert bucket.read("before") == data
        assert set(bucket.names("")) == {"before", "file"}
    assert bucket.read("file") == data


def test_a_large_file_is_sent_part_by_part_in_bad_weather(weather: Proxy, bucket: Storage) -> None:
    data = os.urandom(BIG)
    with weather.spoiling(Fault(cut_up=10 << 20, times=2, only="partNumber=2")):
        with bucket.writer("big") as stream:
            stream.write(data)
        assert weather.met == 2
        parts = [line for line in weather.requests if line.startswith("PUT")]
        assert len(parts) == 3 + 2
    with (
        weather.spoiling(Fault(cut_down=10 << 20, times=2, only="GET")),
        bucket.reader("big") as stream,
    ):
        assert stream.read() == data


STAYING = {
    "hanging": Fault(hang=True),
    "503": Fault(status=503),
    "refused": Fault(refuse=True),
    "cut": Fault(cut_up=0, cut_down=100),
    "flipped bits": Fault(flip=True),
}


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("write", "hanging"),
        ("write", "cut"),
        ("write", "flipped bits"),
        ("read", "503"),
        ("names", "refused"),
        *(
            pytest.param(operation, fault, marks=pytest.mark.nightly)
            for operation in ("write", "read", "names", "move", "remove")
            for fault in ("hanging", "503", "refused", "cut")
        ),
    ],
)
def test_bad_weather_that_stays_ends_in_time_with_our_error(
    weather: Proxy,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    operation: str,
) -> None:
    from tasks import s3

    monkeypatch.setattr(s3, "PATIENCE_S", 1.0)
    monkeypatch.setattr(s3, "READ_S", 1)
    s3.client.cache_clear()
    storage = Storage(place)
    storage.write("file", b"old")
    begun = time.monotonic()
    doing: Callable[[], Any] = {
        "write": lambda: storage.write("file", b"new"),
        "read": lambda: storage.read("file"),
        "names": lambda: storage.names(""),
        "move": lambda: storage.move("file", "other"),
        "remove": lambda: storage.remove("file"),
    }[operation]
    with weather.spoiling(STAYING[fault]), pytest.raises(StorageGone, match=place) as caught:
        doing()
    assert time.monotonic() - begun < 5
    assert not isinstance(caught.value, StorageRefused)
    assert "same command again" in caught.value.cure
    if (operation, fault) != ("remove", "cut"):  # it may have been done, and only the answer cut
        assert storage.read("file") == b"old"


def test_the_bounds_are_what_the_documentation_says() -> None:
    from tasks import s3

    assert (s3.PATIENCE_S, s3.CONNECT_S, s3.READ_S) == (20, 5, 10)


def test_what_the_server_has_is_compared_with_what_was_sent(
    direct: Radosgw, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.s3 import S3, client

    fs = client()
    real = fs._fs.call_s3

    def careless(method: str, **what: Any) -> Any:
        if method == "put_object":
            what.pop("ContentMD5")
            what["Body"] = what["Body"][:-1]
        return real(method, **what)

    monkeypatch.setattr(fs._fs, "call_s3", careless)
    assert isinstance(fs, S3)
    with pytest.raises(StorageGone, match="the server has 3 bytes"):
        Storage(place).write("file", b"four")


@pytest.mark.parametrize("wrong", ["key", "secret", "none", "bucket"])
def test_a_refusal_names_place_and_cure_at_once(
    server: Radosgw,
    fresh_client: None,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    wrong: str,
) -> None:
    given = account(
        server.url,
        "unknown" if wrong == "key" else server.key,
        "wrong" if wrong == "secret" else server.secret,
    )
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    if wrong == "none":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        monkeypatch.setenv("HOME", "/nowhere")
    place = "s3://no-such-bucket/x" if wrong == "bucket" else place
    begun = time.monotonic()
    with pytest.raises(StorageRefused, match=f"{place}/file") as caught:
        Storage(place).write("file", b"x")
    assert time.monotonic() - begun < 5
    assert ("bucket" if wrong == "bucket" else "AWS_ACCESS_KEY_ID") in caught.value.cure
    assert server.secret not in str(caught.value) and caught.value.exit_code == 3


def test_credentials_and_endpoint_from_a_profile(
    server: Radosgw, fresh_client: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    for name in account("", "", ""):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config").write_text(
        f"[profile scans]\nendpoint_url = {server.url}\nregion = us-east-1\n"
        f"aws_access_key_id = {server.key}\naws_secret_access_key = {server.secret}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_PROFILE", "scans")
    storage = Storage(place)
    storage.write("file", b"x")
    assert storage.read("file") == b"x"


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/x", "s3://", "s3:///x"])
def test_impossible_places_are_bad_settings(url: str) -> None:
    with pytest.raises(BadSettings) as caught:
        Storage(url)
    assert "secret" not in str(caught.value)


def test_the_gateway_killed_and_back(direct: Radosgw, bucket: Storage) -> None:
    bucket.write("before", b"x")
    direct.kill_gateway()
    timer = threading.Timer(3, direct.start_gateway)
    timer.start()
    bucket.write("after", b"y")
    timer.join()
    assert bucket.read("before") == b"x" and bucket.read("after") == b"y"


def test_an_upload_that_is_gone_already_is_no_failure(
    bucket: Storage, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing may be older than what it lists, and an answer may be lost."""
    from tasks.s3 import client

    fs = client()
    what = {"Bucket": BUCKET, "Key": f"{place.removeprefix(f's3://{BUCKET}/')}/big"}
    upload = fs.call_s3("create_multipart_upload", **what)["UploadId"]
    real = fs._fs.call_s3
    old = real("list_multipart_uploads", Bucket=BUCKET, Prefix=what["Key"])
    real("abort_multipart_upload", **what, UploadId=upload)
    assert old["Uploads"]

    def stale(method: str, **given: Any) -> Any:
        return old if method == "list_multipart_uploads" else real(method, **given)

    monkeypatch.setattr(fs._fs, "call_s3", stale)
    bucket.sweep()


def test_nothing_where_something_was_sent_is_no_missing_bucket(
    direct: Radosgw, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks.s3 import client

    fs = client()
    real = fs._fs.call_s3

    def losing(method: str, **what: Any) -> Any:
        return {} if method == "put_object" else real(method, **what)

    monkeypatch.setattr(fs._fs, "call_s3", losing)
    with pytest.raises(StorageGone, match="nothing is there after the upload") as caught:
        Storage(place).write("file", b"four")
    assert "bucket" not in caught.value.cure


def test_an_archive_is_listed_with_few_requests(weather: Proxy, place: str) -> None:
    source = Storage(f"{place}-source")
    for number in range(12):
        source.write(f"{number}.pdf", b"%d" % number)
    with weather.spoiling(Fault(only="nothing")):
        found = find_pdfs(source.url, Storage(place))
        assert len(weather.requests) < 6
    assert len(found) == 12
    for pdf in found:
        fs, path = filesystem(pdf.path)
        assert (pdf.size, pdf.stamp) == (fs.info(path)["size"], fs.info(path)["ETag"])


def test_a_busy_server_stops_discovery_and_condemns_nothing(
    weather: Proxy, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks import s3

    source = Storage(f"{place}-source")
    source.write("a.pdf", b"1")
    (tmp_path / "list.txt").write_text(f"{source.url}/a.pdf\n")
    monkeypatch.setattr(s3, "PATIENCE_S", 0.5)
    for at in (str(tmp_path / "list.txt"), source.url):
        with weather.spoiling(Fault(status=503)), pytest.raises(StorageGone, match="listing"):
            find_pdfs(at, Storage(place))
