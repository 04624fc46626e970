"""One folder, local or remote, through which every read and write of the project goes.

A write is atomic: the name appears when all bytes are there, or never. What goes to another machine
is gathered here first and sent when it is whole, so that an error in the middle sends nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EBADF, EDQUOT, EINVAL, ENOSPC, ENOTSUP, EROFS
from pathlib import Path
from typing import IO, Any

from fsspec.implementations.local import LocalFileSystem

from models.errors import DiskLow, IntaglioError, StorageGone, StorageRefused
from tasks.places import filesystem, is_s3

PARTIAL = ".partial"
"""Suffix of a local file that is still being written."""
SPOOL = 8 * 1024 * 1024
"""Bytes on their way to another machine held in memory before a temporary file takes them."""
TRANSPORT = {
    "ConnectionError",
    "HTTPClientError",
    "ClientError",
    "ResponseParserError",
    "IncompleteReadError",
}
"""Names of botocore's and aiohttp's errors for a connection that failed; none is an OSError."""
NO_BUCKET = "Make the bucket, or correct its name, and run the same command again."
RIGHTS = "Check the rights of this file or folder, and run the same command again."
WRITABLE = (
    "Make it writable again (a system turns a disk read-only when it finds errors on it), and run "
    "the same command again."
)
FULL = (ENOSPC, EDQUOT)


@contextmanager
def named_errors(what: str, absent: str = "") -> Iterator[None]:
    """Turn whatever a filesystem raises into the project's own errors.

    Args:
        what: What was being done, for the message: "writing s3://bucket/key".
        absent: What to do if something is not there. If empty, ``FileNotFoundError`` passes
            unchanged: absence is an answer, not a failure.

    Raises:
        DiskLow: The device or the quota is full.
        StorageRefused: We may not do that, and trying again will not help.
        StorageGone: Anything else.
    """
    try:
        yield
    except IntaglioError:
        raise
    except FileNotFoundError as error:
        if behind := web_error(error):
            raise _of_connection(what, behind) from error
        if not absent:
            raise
        raise StorageRefused(f"Failed while {what}: {_reason(error)}.", absent) from error
    except PermissionError as error:
        # Where no server refused it, no credentials would help.
        cure = None if _answer(error) else RIGHTS
        raise StorageRefused(f"Not allowed while {what}: {_reason(error)}.", cure) from error
    except IsADirectoryError as error:
        at = f" ({error.filename})" if error.filename else ""
        raise StorageRefused(
            f"Failed while {what}: a folder lies where a file belongs{at}.",
            "Remove or rename this folder, and run the same command again.",
        ) from error
    except OSError as error:
        if error.errno in FULL:
            raise DiskLow(f"No space left while {what}.") from error
        if error.errno == EROFS:
            why = f"Not allowed while {what}: {error.strerror}."
            raise StorageRefused(why, WRITABLE) from error
        raise StorageGone(f"Failed while {what}: {_reason(error)}.") from error
    except Exception as error:
        # Network filesystems raise errors of their own that are no OSError.
        family = {each.__name__ for each in type(error).__mro__}
        if family & TRANSPORT:
            raise _of_connection(what, error) from error
        if "BotoCoreError" in family:
            # No credentials, half of them, an unknown profile, an impossible name of a bucket.
            raise StorageRefused(f"Failed while {what}: {_reason(error)}.") from error
        raise


def web_error(error: FileNotFoundError) -> BaseException | None:
    """What is behind a "not found" from the web: fsspec says so whatever went wrong."""
    behind = error.__cause__
    absent = getattr(behind, "status", 0) in (404, 410)
    return None if absent or not type(behind).__module__.startswith("aiohttp") else behind


def is_refusal(error: BaseException | None) -> bool:
    """Whether a filesystem says that we may not."""
    return isinstance(error, PermissionError) or getattr(error, "status", 0) in (401, 403)


def _of_connection(what: str, error: BaseException) -> StorageGone:
    kind = StorageRefused if is_refusal(error) else StorageGone
    return kind(f"Failed while {what}: {_reason(error)}.")


@contextmanager
def full_scratch(folder: object) -> Iterator[None]:
    """Say that it is scratch which is full, not the storage its files come from or go to."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskLow(
            f"No space left in scratch, {folder}.",
            "Free some space there or set --run.scratch, and run the same command again.",
        ) from error


def _answer(error: BaseException) -> dict[str, Any]:
    """What an S3 server said; empty if an error is not its answer."""
    answer = getattr(error.__cause__, "response", None)
    return answer if isinstance(answer, dict) else {}


def _reason(error: BaseException) -> str:
    """What went wrong, in words; some S3 servers give a code without a message."""
    if answer := _answer(error):
        told = answer.get("Error", {})
        return ": ".join(filter(None, (told.get("Code"), told.get("Message"))))
    told = str(error).rstrip(".") or type(error).__name__
    # The libraries quote the URL they asked, and a proxy's or an endpoint's may hold a password.
    return re.sub(r"://[^/\s]*:\S*@", "://...@", told)


class Storage:
    """A folder on any filesystem that fsspec knows.

    Args:
        root: Local path or fsspec URL. It need not exist yet.
        scratch: Folder for what is on its way to another machine; the system's own if empty.

    Attributes:
        url: The root as a person would write it.
        local: Whether the root lies on this machine's disk.
        s3: Whether it lies on S3.
        fence: Called before anything is changed; raises when this run may not any more.
    """

    def __init__(self, root: str, scratch: str = "") -> None:
        with named_errors(f"opening {root}"):
            self.fs, self._root = filesystem(root)
        self.local = isinstance(self.fs, LocalFileSystem)
        self.s3 = is_s3(root)
        self.url = self._root if self.local else self.fs.unstrip_protocol(self._root)
        self._scratch = scratch or None
        self.fence: Callable[[], None] = lambda: None

    def path(self, name: str = "") -> str:
        """The filesystem's own path of a name relative to the root."""
        return f"{self._root}/{name}" if name else str(self._root)

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file atomically."""
        with self.writer(name) as stream:
            stream.write(data)

    @contextmanager
    def writer(self, name: str) -> Iterator[IO[bytes]]:
        """A stream whose file appears when the block ends well, and never when it does not.

        Args:
            name: Path relative to the root.

        Yields:
            A binary stream, seekable.

        Raises:
            DiskLow: The disk is full.
            StorageGone: The storage cannot be written.
        """
        self.fence()
        with named_errors(f"writing {self._shown(name)}"):
            if self.local:
                with _local_writer(self.path(name)) as stream:
                    yield stream
                return
            with self._spool() as spool:
                yield spool
                size = spool.seek(0, os.SEEK_END)
                spool.seek(0)
                self.fence()
                with named_errors(f"writing {self._shown(name)}", absent=NO_BUCKET):
                    self._send(name, spool, size)

    @contextmanager
    def _spool(self) -> Iterator[IO[bytes]]:
        """A temporary file for what is on its way to or from another machine."""
        with full_scratch(self._scratch or tempfile.gettempdir()):
            if self._scratch:
                os.makedirs(self._scratch, exist_ok=True)
            with tempfile.SpooledTemporaryFile(SPOOL, dir=self._scratch) as spool:
                yield spool

    def _send(self, name: str, body: IO[bytes], size: int) -> None:
        if self.s3:
            self.fs.put(self.path(name), body, size)
            return
        with self.fs.open(self.path(name), "wb") as whole:
            shutil.copyfileobj(body, whole, 1 << 20)

    def _shown(self, name: str = "") -> str:
        """A name as a person would write it, for messages."""
        return f"{self.url}/{name}" if name else self.url

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: There is no such file.
            StorageGone: It cannot be read.
        """
        with named_errors(f"reading {self._shown(name)}"):
            data: bytes = self.fs.cat_file(self.path(name))
            return data

    @contextmanager
    def reader(self, name: str) -> Iterator[IO[bytes]]:
        """A file for reading, seekable; what lies elsewhere is fetched to scratch first.

        Raises:
            FileNotFoundError: There is no such file.
            StorageGone: It cannot be read.
        """
        with named_errors(f"reading {self._shown(name)}"):
            if self.local:
                with open(self.path(name), "rb") as stream:
                    yield stream
                return
            with self._spool() as spool:
                for piece in pieces(self.fs, self.path(name)):
                    spool.write(piece)
                spool.seek(0)
                yield spool

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file, one at a time, without their ends; none if it does not exist."""
        try:
            with self.reader(name) as stream:
                yield from (line.rstrip(b"\n") for line in stream)
        except FileNotFoundError:
            return

    def names(self, folder: str) -> dict[str, int]:
        """All files below a folder: path relative to the root, and size in bytes."""
        with named_errors(f"listing {self._shown(folder)}"):
            self.fs.invalidate_cache()
            try:
                found: dict[str, Any] = self.fs.find(self.path(folder), detail=True)
            except FileNotFoundError:
                return {}
        start = len(self.path()) + 1
        return {path[start:]: info["size"] for path, info in found.items()}

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None if there is none."""
        with named_errors(f"looking at {self._shown(name)}"):
            self.fs.invalidate_cache()
            try:
                size: int = self.fs.size(self.path(name))
            except FileNotFoundError:
                return None
            return size

    def remove(self, name: str) -> None:
        """Remove a file; it is no error if it is gone already."""
        self.fence()
        with named_errors(f"removing {self._shown(name)}"), suppress(FileNotFoundError):
            self.fs.rm_file(self.path(name))

    def move(self, name: str, to: str) -> None:
        """Give a file another name; what had that name is replaced.

        On object storage this is a copy and a removal: a kill in between leaves both.

        Raises:
            FileNotFoundError: There is no such file.
        """
        old, new = self.path(name), self.path(to)
        self.fence()
        with named_errors(f"moving {self._shown(name)} to {self._shown(to)}"):
            if self.local:
                os.makedirs(os.path.dirname(new), exist_ok=True)
                os.replace(old, new)
            else:
                self.fs.cp_file(old, new)
                self.fs.rm_file(old)

    def sweep(self, *patterns: str) -> None:
        """Remove what a killed run was writing; nobody else may be writing here.

        Args:
            patterns: Of the folders to look in, relative to the root, as ``Path.glob`` takes them;
                on S3 all below the root is looked at.
        """
        with named_errors(f"tidying {self._shown()}"):
            if self.s3:
                self.fs.abort_uploads(self.path())
            elif self.local:
                for pattern in patterns:
                    for partial in list(Path(self.path()).glob(f"{pattern}.*{PARTIAL}")):
                        partial.unlink(missing_ok=True)

    def remove_empty(self, folder: str) -> None:
        """Remove the empty folders right below a folder; object stores have none."""
        if self.local and os.path.isdir(self.path(folder)):
            with named_errors(f"tidying {self.path(folder)}"):
                for entry in list(os.scandir(self.path(folder))):
                    if entry.is_dir(follow_symlinks=False) and not any(os.scandir(entry.path)):
                        os.rmdir(entry.path)

    def free_bytes(self) -> int | None:
        """Free space in bytes; None where storage has no such notion."""
        if not self.local:
            return None
        with named_errors(f"looking for free space at {self.path()}"):
            return shutil.disk_usage(_nearest_existing(self.path())).free


def _nearest_existing(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path) or "/"
    return path


@contextmanager
def _local_writer(path: str) -> Iterator[IO[bytes]]:
    folder, base = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    # Always the same for a name, so that what a killed run left is overwritten by the next.
    short = base if len(os.fsencode(base)) <= 200 else hashlib.sha256(os.fsencode(base)).hexdigest()
    partial = os.path.join(folder, f".{short}{PARTIAL}")
    try:
        with open(partial, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            os.remove(partial)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make a rename outlive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network and FUSE filesystems cannot do this for a folder.
        if error.errno not in (EINVAL, ENOTSUP, EBADF):
            raise
    finally:
        os.close(handle)


def pieces(fs: Any, path: str, size: int | None = None) -> Iterator[bytes]:
    """The bytes of a file on another machine, some at a time.

    Args:
        fs: Its filesystem.
        path: The filesystem's own path.
        size: Bytes, if they are known already.
    """
    if hasattr(fs, "blocks"):
        yield from fs.blocks(path, fs.size(path) if size is None else size)
        return
    # A web server need not be able to begin in the middle of a file.
    streamed = {"block_size": 0} if "http" in fs.protocol else {}
    with fs.open(path, "rb", **streamed) as stream:
        while piece := stream.read(1 << 20):
            yield piece
