"""One folder, local or remote, through which every read and write of the project goes.

A write is atomic: the name appears when all bytes are there, or never.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EBADF, EDQUOT, EINVAL, ENOSPC, ENOTSUP
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.local import LocalFileSystem

from models.errors import BadSettings, DiskLow, IntaglioError, StorageGone

PARTIAL = ".partial"
"""Suffix of a local file that is still being written."""
SPOOL = 64 * 1024 * 1024
"""Bytes held in memory before a temporary file takes them."""


@contextmanager
def named_errors(what: str) -> Iterator[None]:
    """Turn whatever a filesystem raises into the project's own errors.

    ``FileNotFoundError`` passes unchanged: absence is an answer, not a failure.

    Args:
        what: What was being done, for the message: "writing s3://bucket/key".

    Raises:
        DiskLow: The device or the quota is full.
        StorageGone: Anything else.
    """
    try:
        yield
    except (IntaglioError, FileNotFoundError):
        raise
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise DiskLow(f"No space left while {what}.") from error
        raise StorageGone(f"Failed while {what}: {error}") from error
    except Exception as error:
        # Network filesystems raise errors of their own that are no OSError.
        if type(error).__module__.partition(".")[0] in ("botocore", "aiobotocore", "aiohttp"):
            raise StorageGone(f"Failed while {what}: {error}") from error
        raise


def filesystem(place: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of a local path or an fsspec URL, and its own path of the place.

    Raises:
        BadSettings: There is no such filesystem here.
    """
    if "://" not in place:
        # Not left to fsspec, which takes "::" in a file's name for a chain of filesystems.
        return LocalFileSystem(), LocalFileSystem._strip_protocol(place)
    try:
        fs, path = fsspec.url_to_fs(place)
    except ImportError as error:
        raise BadSettings(f"{place}: {error}", "pip install 'intaglio[s3]' for s3://.") from error
    except ValueError as error:
        raise BadSettings(f"{place}: {error}.") from error
    return fs, str(path)


class Storage:
    """A folder on any filesystem that fsspec knows.

    Args:
        root: Local path or fsspec URL. It need not exist yet.

    Attributes:
        url: The root as a person would write it.
        local: Whether the root lies on this machine's disk.
    """

    def __init__(self, root: str) -> None:
        with named_errors(f"opening {root}"):
            self.fs, self._root = filesystem(root)
        self.local = isinstance(self.fs, LocalFileSystem)
        self.url = self._root if self.local else self.fs.unstrip_protocol(self._root)

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
            A binary stream; seekable only on local storage.

        Raises:
            DiskLow: The disk is full.
            StorageGone: The storage cannot be written.
        """
        path = self.path(name)
        with named_errors(f"writing {path}"):
            if self.local:
                with _local_writer(path) as stream:
                    yield stream
            else:
                with _remote_writer(self.fs, path) as stream:
                    yield stream

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: There is no such file.
            StorageGone: It cannot be read.
        """
        with named_errors(f"reading {self.path(name)}"):
            data: bytes = self.fs.cat_file(self.path(name))
            return data

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file, one at a time, without their ends; none if it does not exist."""
        path = self.path(name)
        with named_errors(f"reading {path}"):
            try:
                stream = self.fs.open(path, "rb")
            except FileNotFoundError:
                return
            with stream:
                yield from (line.rstrip(b"\n") for line in stream)

    def names(self, folder: str) -> dict[str, int]:
        """All files below a folder: path relative to the root, and size in bytes."""
        with named_errors(f"listing {self.path(folder)}"):
            self.fs.invalidate_cache()
            try:
                found: dict[str, Any] = self.fs.find(self.path(folder), detail=True)
            except FileNotFoundError:
                return {}
        start = len(self.path()) + 1
        return {path[start:]: info["size"] for path, info in found.items()}

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None if there is none."""
        with named_errors(f"looking at {self.path(name)}"):
            self.fs.invalidate_cache()
            try:
                size: int = self.fs.size(self.path(name))
            except FileNotFoundError:
                return None
            return size

    def remove(self, name: str) -> None:
        """Remove a file; it is no error if it is gone already."""
        with named_errors(f"removing {self.path(name)}"), suppress(FileNotFoundError):
            self.fs.rm_file(self.path(name))

    def move(self, name: str, to: str) -> None:
        """Give a file another name; what had that name is replaced.

        On object storage this is a copy and a removal: a kill in between leaves both.

        Raises:
            FileNotFoundError: There is no such file.
        """
        old, new = self.path(name), self.path(to)
        with named_errors(f"moving {old} to {new}"):
            if self.local:
                os.makedirs(os.path.dirname(new), exist_ok=True)
                os.replace(old, new)
            else:
                self.fs.cp_file(old, new)
                self.fs.rm_file(old)

    def sweep(self, pattern: str) -> None:
        """Remove what a killed run was writing.

        Args:
            pattern: Of the folders to look in, relative to the root, as ``Path.glob`` takes it.
        """
        if self.local:
            with named_errors(f"tidying {self.path()}"):
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


@contextmanager
def _remote_writer(fs: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    """Commit by hand: closing an fsspec file publishes what it holds, even after an error."""
    if not isinstance(fs, AsyncFileSystem):
        # Only object stores hold a file back; elsewhere nothing is opened before all is there.
        with tempfile.SpooledTemporaryFile(SPOOL) as spool:
            yield spool
            spool.seek(0)
            with fs.open(path, "wb") as whole:
                shutil.copyfileobj(spool, whole)
        return
    stream = fs.open(path, "wb", autocommit=False)
    try:
        yield stream
        stream.close()
        stream.commit()
    except BaseException:
        stream.closed = True
        with suppress(Exception):
            stream.discard()
        raise
