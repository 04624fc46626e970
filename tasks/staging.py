"""Bringing remote PDFs to the local disk, within a budget."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from fsspec.implementations.local import LocalFileSystem

from models.errors import DiskLow, StorageRefused, TooLargeForScratch, UnreadableFile
from models.records import Pdf
from tasks.places import filesystem
from tasks.read import unreadable
from tasks.storage import full_scratch, named_errors, pieces

MB = 1024 * 1024
MOST_ASKED = 10
"""PDFs that are tried when one is refused, to see whether it is that one alone."""


class Staging:
    """Local copies of remote PDFs; a local PDF is its own copy.

    A copy is pinned while somebody works on it. Copies nobody works on stay as long as their room
    is not needed, so that a small archive is fetched once.

    Args:
        scratch: Copies go into a folder of this process's own here, made when first needed.
        name: Beginning of that folder's name. Folders of killed runs that begin so are removed.
        budget_mb: Most space the copies may take together, in MB.
        check_space: Called with the bytes about to come; raises if the disk has no room for them.

    Attributes:
        archive: PDFs to ask for when one is refused.
    """

    def __init__(
        self,
        scratch: Path,
        name: str,
        budget_mb: int,
        check_space: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.archive: Sequence[Pdf] = ()
        self._read: dict[str, Pdf] = {}
        self._check_space = check_space
        self._scratch = scratch
        self._name = name
        self._budget = budget_mb * MB
        self._folder: Path | None = None
        self._lock: FileLock | None = None
        self._sizes: dict[Path, int] = {}
        self._pins: dict[Path, int] = {}
        self._fetching: set[Path] = set()
        self._change = threading.Condition()

    def fetch(self, pdf: Pdf) -> str:
        """The local path of a PDF, fetched if need be and pinned until :meth:`release`.

        Waits until the budget has room; one of unknown size waits for all of it.

        Raises:
            InputFault: The PDF alone is larger than the budget, or refused, or it is gone.
            DiskLow: There is no room for it on the disk.
            StorageRefused: The storage refuses it, and all others, too.
            StorageGone: It cannot be fetched.
        """
        fs, remote = filesystem(pdf.path, listed=True)
        if isinstance(fs, LocalFileSystem):
            return str(remote)
        if pdf.size > self._budget:
            raise self._too_large(pdf)
        size = pdf.size or self._budget
        part = Path(f"{self._copy(pdf)}.part")
        copy = part.with_suffix("")
        with self._change:
            self._pins[copy] = self._pins.get(copy, 0) + 1
            # Somebody else may fetch the same one meanwhile, or fail to: look again after a wait.
            self._change.wait_for(
                lambda: (
                    copy not in self._fetching and (copy in self._sizes or self._make_room(size))
                )
            )
            if copy in self._sizes:
                return str(copy)
            self._sizes[copy] = size
            self._fetching.add(copy)
        try:
            self._bring(pdf, fs, remote, part)
            part.rename(copy)
        except BaseException as error:
            with self._change:
                part.unlink(missing_ok=True)
                self._fetching.remove(copy)
                del self._sizes[copy]
                self._unpin(copy)
            if isinstance(error, FileNotFoundError):
                raise UnreadableFile(f"{pdf.name} vanished while the run was going on.") from error
            raise
        with self._change:
            self._fetching.remove(copy)
            self._sizes[copy] = copy.stat().st_size
            self._read[_place_of(pdf)] = pdf
            self._change.notify_all()
        return str(copy)

    def changed(self, pdf: Pdf) -> UnreadableFile | None:
        """What to say of a local PDF that is no longer the file it was when it was found.

        Raises:
            StorageGone: Nobody can tell.
        """
        fs, path = filesystem(pdf.path, listed=True)
        if not pdf.stamp or not isinstance(fs, LocalFileSystem):
            return None
        try:
            status = os.stat(path)
        except OSError as error:
            return unreadable(pdf.name, error)
        if (status.st_size, str(status.st_mtime_ns)) == (pdf.size, pdf.stamp):
            return None
        return _changed(pdf)

    def release(self, pdf: Pdf) -> None:
        """Unpin a copy."""
        if self._folder is not None:
            with self._change:
                self._unpin(self._copy(pdf))

    def close(self) -> None:
        """Remove all copies."""
        with self._change:
            if self._folder is not None and self._lock is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._lock.release(force=True)

    def _copy(self, pdf: Pdf) -> Path:
        what = f"{pdf.path}\n{pdf.stamp}".encode("utf-8", "surrogateescape")
        return self._own_folder() / f"{hashlib.sha256(what).hexdigest()[:24]}.pdf"

    def _own_folder(self) -> Path:
        """This process's folder; a lock in it tells other runs that it is in use."""
        with self._change:
            if self._folder is None:
                with named_errors(f"making a folder in {self._scratch}"):
                    self._scratch.mkdir(parents=True, exist_ok=True)
                    with _one_after_the_other(self._scratch):
                        for old in self._scratch.glob(f"{self._name}-*"):
                            with suppress(Timeout, FileNotFoundError), _lock(old):
                                shutil.rmtree(old, ignore_errors=True)
                        folder = Path(tempfile.mkdtemp(prefix=f"{self._name}-", dir=self._scratch))
                        self._lock = _lock(folder)
                        self._lock.acquire()
                self._folder = folder
            return self._folder

    def _bring(self, pdf: Pdf, fs: Any, remote: str, part: Path) -> None:
        """Copy a PDF here; of one that is larger than it may be nothing more is written."""
        self._check_room(pdf.size)
        most = pdf.size or self._budget
        with named_errors(f"writing {part}"), full_scratch(self._scratch):
            part.touch()  # so that what is refused below is the PDF
        try:
            with named_errors(f"fetching {pdf.path}"):
                with full_scratch(self._scratch), open(part, "wb") as target:
                    for piece in pieces(fs, remote, pdf.size or None):
                        if target.tell() + len(piece) > most:
                            raise _changed(pdf) if pdf.size else self._too_large(pdf, "over ")
                        target.write(piece)
                fs.invalidate_cache()
                if pdf.stamp and stamp_of(fs.info(remote)) != pdf.stamp:
                    raise _changed(pdf)
        except StorageRefused as error:
            if not self._may_read_another(pdf):
                raise
            raise UnreadableFile(
                f"{pdf.name} cannot be read, though others can: {error.message}"
            ) from error

    def _check_room(self, size: int) -> None:
        try:
            self._check_space(size)
        except DiskLow:
            with self._change:
                self._make_room(self._budget)
            self._check_space(size)

    def _may_read_another(self, pdf: Pdf) -> bool:
        """Whether other PDFs of the same place are not refused.

        Raises:
            StorageGone: Nobody can tell.
        """
        place = _place_of(pdf)
        others = [other for other in self.archive if _place_of(other) == place]
        others = others[:: max(1, len(others) // MOST_ASKED)][:MOST_ASKED]
        for other in filter(None, (self._read.get(place), *others)):
            if other.path == pdf.path:
                continue
            fs, remote = filesystem(other.path, listed=True)
            with suppress(StorageRefused, FileNotFoundError):
                with named_errors(f"fetching {other.path}"):
                    next(pieces(fs, remote, 1), b"")
                return True
        return False

    def _too_large(self, pdf: Pdf, over: str = "") -> TooLargeForScratch:
        size, allowed = (pdf.size or self._budget) // MB, self._budget // MB
        return TooLargeForScratch(f"{pdf.name} has {over}{size} MB; scratch may take {allowed} MB.")

    def _unpin(self, copy: Path) -> None:
        if copy in self._pins:
            self._pins[copy] -= 1
            if not self._pins[copy]:
                del self._pins[copy]
            self._change.notify_all()

    def _make_room(self, size: int) -> bool:
        """Remove unpinned copies until ``size`` more bytes fit; False if they never will yet."""
        for copy in [c for c in self._sizes if c not in self._pins]:
            if sum(self._sizes.values()) + size <= self._budget:
                break
            copy.unlink(missing_ok=True)
            del self._sizes[copy]
        return sum(self._sizes.values()) + size <= self._budget


def _place_of(pdf: Pdf) -> str:
    """Bucket or host of a PDF: what one set of credentials is for."""
    return "/".join(pdf.path.split("/")[:3])


def stamp_of(info: dict[str, Any]) -> str:
    """What a storage says of a file that changes with it; empty if it says nothing."""
    return str(info.get("ETag") or info.get("LastModified") or info.get("created") or "")


def _changed(pdf: Pdf) -> UnreadableFile:
    return UnreadableFile(
        f"{pdf.name} changed while the run was going on.",
        "Wait until it is written to its end, and run again.",
    )


@contextmanager
def _one_after_the_other(folder: Path) -> Iterator[None]:
    """Keep others from tidying a folder while something in it is made and not yet locked.

    The folder itself is locked: a file for it would have to stay behind.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # NFS cannot
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock(folder: Path) -> FileLock:
    return FileLock(folder / "lock", timeout=0, thread_local=False)
