"""A real S3 server for the session, and a proxy before it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.storage import Storage
from tests.services.proxy import Proxy
from tests.services.radosgw import Radosgw, missing

BUCKET = "intaglio"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radosgw]:
    """Ceph's gateway with one bucket; skips where it is not installed."""
    pytest.importorskip("s3fs", reason="the extra intaglio[s3] is not installed")
    if absent := missing():
        pytest.skip(f"no S3 server: {', '.join(absent)} not installed; .ci/run installs them")
    with Radosgw(tmp_path_factory.mktemp("radosgw") / "data") as server:
        import s3fs

        fs = s3fs.S3FileSystem(endpoint_url=server.url, key=server.key, secret=server.secret)
        fs.call_s3("create_bucket", Bucket=BUCKET)
        yield server


@pytest.fixture(scope="session")
def proxy(server: Radosgw) -> Iterator[Proxy]:
    with Proxy(server.port) as proxy:
        yield proxy


def account(url: str, key: str, secret: str) -> dict[str, str]:
    """An environment that leads to a server, and to nothing else the machine may know."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture
def fresh_client() -> Iterator[None]:
    """Neither this test's client nor an earlier one's outlives the test."""
    from tasks.s3 import client

    client.cache_clear()
    yield
    client.cache_clear()


@pytest.fixture
def direct(server: Radosgw, fresh_client: None, monkeypatch: pytest.MonkeyPatch) -> Radosgw:
    """This process reaches the server itself."""
    for name, value in account(server.url, server.key, server.secret).items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def weather(
    server: Radosgw, proxy: Proxy, fresh_client: None, monkeypatch: pytest.MonkeyPatch
) -> Proxy:
    """This process reaches the server through the proxy."""
    for name, value in account(proxy.url, server.key, server.secret).items():
        monkeypatch.setenv(name, value)
    return proxy


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A folder in the bucket that nobody else uses."""
    return f"s3://{BUCKET}/{tmp_path.name}"


@pytest.fixture
def bucket(place: str, request: pytest.FixtureRequest) -> Storage:
    """That folder as storage."""
    if "weather" not in request.fixturenames:
        request.getfixturevalue("direct")
    return Storage(place)


def take_over(output: Storage) -> str:
    """Put the lease of another machine, process 7, in the place of the one there; its path."""
    other = Storage(output.url)
    (path,) = other.names(".intaglio/leases")
    theirs = json.dumps({"host": "elsewhere", "pid": 7}).encode()
    while other.read(path) != theirs:
        # A renewal that is under way writes over it once.
        other.write(path, theirs)
        time.sleep(1.5)
    return path
