"""S3 as it is in bad weather: bounded waits, requests asked again, puts that are verified.

Only ``tasks/places.py`` makes its client. It is imported when a place is on
S3, because it needs the extra ``intaglio[s3]``.
"""

from __future__ import annotations

import base64
import hashlib
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import IO, Any

import aiohttp
from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.parsers import ResponseParserError
from s3fs import S3FileSystem

PATIENCE_S = 20.0
"""A request that fails for a reason that may pass is asked again for so long."""
CONNECT_S, READ_S = 5, 10
"""Seconds a server may take to accept a connection, and between two pieces of an answer."""
PART = 16 * 1024 * 1024
"""Bytes in one request, up and down: what is held in memory, and what is sent again at most."""
MOST_PARTS = 10_000
PASSING_CODES = {"BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch"}
"""Refusals with a 4xx status that say the request was damaged or late, not wrong."""


class DamagedUpload(OSError):
    """What lies on the server is not what was sent."""


class S3:
    """A :class:`s3fs.S3FileSystem` all of whose calls are asked again while the fault may pass.

    It has all methods of the filesystem. Files it opens are not so protected: read with
    ``cat_file``.
    """

    def __init__(self) -> None:
        self._fs = S3FileSystem(
            config_kwargs={
                "connect_timeout": CONNECT_S,
                "read_timeout": READ_S,
                # Asking again happens in one place, here; the layers would multiply.
                "retries": {"max_attempts": 0},
                # The server refuses a body whose SHA-256 is not the signed one, with TLS or not.
                "s3": {"payload_signing_enabled": True},
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
            },
            use_listings_cache=False,
            max_concurrency=1,
            # client() keeps one for the process; a new one reads environment and profile anew.
            skip_instance_cache=True,
        )
        self._fs.retries = 1

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._fs, name)
        if not callable(value):
            return value
        return lambda *args, **kwargs: patiently(lambda: value(*args, **kwargs))

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The bytes of an object, some at a time; a cut connection costs one block.

        Args:
            path: Bucket and key.
            size: Bytes of the object.
        """
        for start in range(0, size, PART):
            yield self.cat_file(path, start=start, end=min(size, start + PART))

    def put(self, path: str, body: IO[bytes], size: int) -> None:
        """Write an object; it appears when all bytes are there, or never.

        Its SHA-256 is kept beside it, and both are compared with what the server says it has.

        Args:
            path: Bucket and key.
            body: At its beginning.
            size: Bytes in it.
        """
        sha256 = hashlib.sha256()
        while data := body.read(1 << 20):
            sha256.update(data)
        body.seek(0)
        bucket, key, _ = self.split_path(path)
        what = {"Bucket": bucket, "Key": key}
        kept = {"Metadata": {"sha256": sha256.hexdigest()}}
        if size <= PART:
            data = body.read()
            self.call_s3("put_object", **what, **kept, Body=data, ContentMD5=_md5(data))
        else:
            self._put_parts(what, kept, body, size)
        try:
            there = self.call_s3("head_object", **what)
        except FileNotFoundError as error:
            raise DamagedUpload("nothing is there after the upload") from error
        if (there["ContentLength"], there["Metadata"].get("sha256")) != (size, sha256.hexdigest()):
            raise DamagedUpload(
                f"the server has {there['ContentLength']} bytes, with another hash; "
                f"{size} were sent"
            )

    def _put_parts(
        self, what: dict[str, str], kept: dict[str, Any], body: IO[bytes], size: int
    ) -> None:
        length = max(PART, -(-size // MOST_PARTS))
        upload = self.call_s3("create_multipart_upload", **what, **kept)["UploadId"]
        mine = {**what, "UploadId": upload}
        try:
            parts: list[dict[str, Any]] = []
            while data := body.read(length):
                number = len(parts) + 1
                sent = self.call_s3(
                    "upload_part", **mine, PartNumber=number, Body=data, ContentMD5=_md5(data)
                )
                parts.append({"PartNumber": number, "ETag": sent["ETag"]})
            self._complete(mine, parts)
        except BaseException:
            # Whatever ended it matters more than a server that does not answer any more.
            with suppress(Exception):
                self._fs.call_s3("abort_multipart_upload", **mine)
            raise

    def _complete(self, mine: dict[str, str], parts: list[dict[str, Any]]) -> None:
        # Unknown is an upload whose first answer was lost; the caller looks at what is there.
        with suppress(FileNotFoundError):
            self.call_s3("complete_multipart_upload", **mine, MultipartUpload={"Parts": parts})

    def abort_uploads(self, folder: str) -> None:
        """Remove the parts that killed writers left below a folder; they are invisible, and cost.

        Args:
            folder: Bucket and prefix. A whole bucket is left alone: others may write to it.
        """
        bucket, prefix, _ = self.split_path(folder)
        if not prefix:
            return
        what = {"Bucket": bucket, "Prefix": f"{prefix}/"}
        done: set[str] = set()
        while True:
            listed = self.call_s3("list_multipart_uploads", **what).get("Uploads", [])
            found = {each["UploadId"]: each["Key"] for each in listed}
            if found.keys() <= done:
                return
            for upload, key in found.items():
                # Gone already is one whose answer was lost, or that somebody else removed.
                with suppress(FileNotFoundError):
                    self.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=upload)
            done |= found.keys()

    def create(self, path: str, data: bytes) -> bool:
        """Write a small object unless there is one; whether it was written."""
        bucket, key, _ = self.split_path(path)
        try:
            self.call_s3("put_object", Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except FileExistsError:
            return False
        except OSError as error:
            if _status(error) in (409, 412):
                return False
            raise
        return True

    def remove_if(self, path: str, data: bytes) -> bool:
        """Remove a small object if these bytes are in it; whether it is gone.

        Every try looks again right before, so that none removes what somebody wrote meanwhile.
        """
        return bool(patiently(lambda: self._remove_if(path, data)))

    def _remove_if(self, path: str, data: bytes) -> bool:
        with suppress(FileNotFoundError):
            if self._fs.cat_file(path) != data:
                return False
            self._fs.rm_file(path)
        return True

    def written(self, prefix: str) -> dict[str, tuple[datetime, float]]:
        """When objects were written, and how many seconds ago, by the server's own clock.

        Args:
            prefix: Bucket and beginning of the keys; a thousand at most are looked at.

        Returns:
            By bucket and key.
        """
        bucket, key, _ = self.split_path(prefix)
        found = self.call_s3("list_objects_v2", Bucket=bucket, Prefix=key)
        now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
        return {
            f"{bucket}/{each['Key']}": (
                each["LastModified"],
                (now - each["LastModified"]).total_seconds(),
            )
            for each in found.get("Contents", [])
        }


@lru_cache(maxsize=1)
def client() -> S3:
    """The one client of this process; threads share it."""
    return S3()


def patiently(call: Callable[[], Any]) -> Any:
    """Do a call, again and again while it fails for a reason that may pass.

    Waits between tries grow from a fifth of a second to five, and vary so that many clients do
    not come back at once.

    Raises:
        Exception: What the last try raised, after :data:`PATIENCE_S`.
    """
    begun, wait = time.monotonic(), 0.2
    while True:
        try:
            return call()
        except Exception as error:
            if not may_pass(error) or time.monotonic() - begun + wait > PATIENCE_S:
                raise
        time.sleep(wait * random.uniform(0.7, 1.0))
        wait = min(5.0, wait * 2)


def may_pass(error: BaseException) -> bool:
    """Whether a fault lies in the connection or in a busy server, and not in the request."""
    status = _status(error)
    if status is not None:
        return status >= 500 or status in (408, 429) or _code(error) in PASSING_CODES
    passing = (HTTPClientError, NoConnection, IncompleteReadError, ResponseParserError)
    return isinstance(error, (*passing, aiohttp.ClientError, TimeoutError, ConnectionError))


def _status(error: BaseException) -> int | None:
    """The HTTP status behind an error; None if the server gave no answer."""
    cause = error if isinstance(error, ClientError) else error.__cause__
    if not isinstance(cause, ClientError):
        return None
    status: int | None = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status


def _code(error: BaseException) -> str:
    cause = error if isinstance(error, ClientError) else error.__cause__
    assert isinstance(cause, ClientError)
    return str(cause.response.get("Error", {}).get("Code", ""))


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
