"""Bringing remote PDFs to the local disk, within a budget."""

from __future__ import annotations

import hashlib
import shutil
import threading
from pathlib import Path

import fsspec
from fsspec.implementations.local import LocalFileSystem

from models.errors import InputFault
from models.records import Pdf
from tasks.storage import named_errors

MB = 1024 * 1024


class Staging:
    """Local copies of remote PDFs; a local PDF is its own copy.

    A copy is pinned while somebody works on it. Copies nobody works on stay as long as their room
    is not needed, so that a small archive is fetched once.

    Args:
        folder: Where copies go; emptied at the start and at the end.
        budget_mb: Most space the copies may take together, in MB.
    """

    def __init__(self, folder: Path, budget_mb: int) -> None:
        self._folder = folder
        self._budget = budget_mb * MB
        self._sizes: dict[Path, int] = {}
        self._pins: dict[Path, int] = {}
        self._change = threading.Condition()
        shutil.rmtree(folder, ignore_errors=True)

    def fetch(self, pdf: Pdf) -> str:
        """The local path of a PDF, fetched if need be and pinned until :meth:`release`.

        Waits until the budget has room.

        Raises:
            InputFault: The PDF alone is larger than the budget.
            FileNotFoundError: It is gone.
            StorageGone: It cannot be fetched.
        """
        fs, remote = fsspec.url_to_fs(pdf.path)
        if isinstance(fs, LocalFileSystem):
            return str(remote)
        if pdf.size > self._budget:
            raise InputFault(
                f"{pdf.name} has {pdf.size // MB} MB; scratch may take {self._budget // MB} MB.",
                cure="Raise --run.scratch-budget-mb and run again.",
            )
        copy = self._copy(pdf)
        with self._change:
            self._pins[copy] = self._pins.get(copy, 0) + 1
            if copy in self._sizes:
                self._change.wait_for(copy.exists)
                return str(copy)
            self._change.wait_for(lambda: self._make_room(pdf.size))
            self._sizes[copy] = pdf.size
        try:
            with named_errors(f"fetching {pdf.path}"):
                self._folder.mkdir(parents=True, exist_ok=True)
                fs.get_file(remote, f"{copy}.part")
                Path(f"{copy}.part").rename(copy)
        except BaseException:
            with self._change:
                Path(f"{copy}.part").unlink(missing_ok=True)
                del self._sizes[copy]
                self._unpin(copy)
            raise
        with self._change:
            self._change.notify_all()
        return str(copy)

    def release(self, pdf: Pdf) -> None:
        """Unpin a copy."""
        with self._change:
            self._unpin(self._copy(pdf))

    def close(self) -> None:
        """Remove all copies."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copy(self, pdf: Pdf) -> Path:
        name = hashlib.sha256(f"{pdf.path}\n{pdf.stamp}".encode()).hexdigest()[:24]
        return self._folder / f"{name}.pdf"

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
