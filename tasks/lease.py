"""Leases: locks on storage that several machines share and no operating system watches over.

A lease is a small object that its owner writes anew every :data:`RENEW_S` seconds. Whoever comes
while it is there watches it: if it is renewed, its owner lives; if it grows older than
:data:`LEASE_S` by the storage's own clock, it has lapsed and is taken over. An owner on the same
machine whose process is gone need not be waited for.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Self
from uuid import uuid4

import psutil

from models.errors import OutputInUse, StopRun
from tasks.storage import NO_BUCKET, Storage, named_errors

LEASE_S = 45.0
"""Age at which a lease has lapsed."""
RENEW_S = 10.0
"""Seconds between renewals."""
RELEASE_S = 5.0
"""Seconds that giving a lease back may hold up the end of a run."""
SETTLE_S = 1.0
"""After a lapsed lease was removed, others who saw the same may still remove ours: look again."""
PREFIX = "lease"
log = logging.getLogger("intaglio")
_held: set[str] = set()
"""Tokens of the leases this process holds; it may end one run and begin another."""


class Lease:
    """A lease, held while it is used as a context.

    Args:
        output: On S3.
        folder: Folder of the leases, relative to the output.
        name: What is held; leases of one name exclude each other.
        excludes: Whether we and the holder of another name exclude each other, too.
        wait: Wait for whoever holds it, instead of giving up.
    """

    def __init__(
        self,
        output: Storage,
        folder: str,
        name: str,
        excludes: Callable[[str], bool] = lambda _: False,
        wait: bool = False,
    ) -> None:
        self._fs = output.fs
        self._url = output.url
        self._prefix = output.path(f"{folder}/{PREFIX}-")
        self._path = self._path_of(name)
        self._excluded: Callable[[str], bool] = lambda other: other == name or excludes(other)
        self._wait = wait
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "machine": _machine()}
        self._token = uuid4().hex
        self._mine = json.dumps({**owner, "token": self._token}).encode()
        self._lost: OutputInUse | None = None
        self._renewed = 0.0
        self._busy = threading.Lock()
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> Self:
        _held.add(self._token)
        try:
            with named_errors(f"locking {self._url}", absent=NO_BUCKET):
                self._acquire()
        except BaseException:
            _held.discard(self._token)
            raise
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        _held.discard(self._token)
        # A storage that is gone must not hold up who presses Ctrl-C; the lease then lapses.
        self._keeper.join(RELEASE_S)

    def check(self) -> None:
        """Make sure that the lease is still ours.

        Raises:
            OutputInUse: Somebody else has taken it over.
            StorageGone: It would lapse soon, and cannot be renewed.
            StopRun: It was given back.
        """
        # Early, so that what is written next is there before the lease lapses.
        if self._is_old():
            with named_errors(f"locking {self._url}"), self._busy:
                if self._is_old():  # others who waited may have done it
                    self._renew()
        if self._lost:
            raise self._lost
        if self._over.is_set():
            raise StopRun(
                "The run was stopped.", "Run the same command again; it goes on from here."
            )

    def _is_old(self) -> bool:
        """Whether a lease that is still held has not been renewed for too long."""
        # The wall clock, because it goes on while a machine sleeps.
        age = time.time() - self._renewed
        return age > LEASE_S / 3 and not self._lost and not self._over.is_set()

    def _acquire(self) -> None:
        while True:
            removed = [self._outlast(path) for path in self._others()]
            # Before it is written, not after: the answer may be long in coming.
            self._renewed = time.time()
            # "There is one" may be the answer to a second try, after the answer to the first,
            # which wrote it, was lost.
            if self._fs.create(self._path, self._mine) or self._read(self._path) == self._mine:
                break
        if any(removed):
            time.sleep(SETTLE_S)
        # Two that started at the same moment under different names see each other here.
        others = [path for path in self._others() if path != self._path]
        if self._read(self._path) != self._mine or others:
            owner = self._read((others or [self._path])[0])
            if others:
                self._fs.remove_if(self._path, self._mine)
            raise self._in_use(owner)

    def _others(self) -> list[str]:
        """The leases there are that exclude ours."""
        names = {path: path[len(self._prefix) :][: -len(".json")] for path in self._written()}
        return [path for path, name in names.items() if self._excluded(name)]

    def _outlast(self, path: str) -> bool:
        """Wait until a lease has gone or lapsed, and remove it; whether there was one to remove.

        Raises:
            OutputInUse: It was renewed meanwhile.
        """
        first: datetime | None = None
        while True:
            # Where we wait, one owner may follow another.
            owner, written = self._read(path), self._written().get(path)
            if owner is None or written is None:
                return False
            last, age = written
            if age > LEASE_S or _is_dead(owner):
                if self._fs.remove_if(path, owner):
                    return True
                continue
            if first is None:
                first = last
                log.info("Waiting for %s, or for a sign that it is alive ...", name_of(owner))
            elif last != first and not self._wait:
                raise self._in_use(owner)
            time.sleep(1)

    def _keep(self) -> None:
        """Renew the lease until it is over, then give it back."""
        while not self._over.wait(RENEW_S) and not self._lost:
            with suppress(Exception), self._busy:
                if not self._over.is_set():
                    self._renew()
        with suppress(Exception), self._busy:
            if not self._lost:
                self._fs.remove_if(self._path, self._mine)

    def _renew(self) -> None:
        there = self._read(self._path)
        if there != self._mine:
            self._lost = self._in_use(there)
            return
        asked = time.time()
        self._fs.pipe_file(self._path, self._mine)
        self._renewed = asked

    def _read(self, path: str) -> bytes | None:
        try:
            data: bytes = self._fs.cat_file(path)
        except FileNotFoundError:
            return None
        return data

    def _written(self) -> dict[str, tuple[datetime, float]]:
        found: dict[str, tuple[datetime, float]] = self._fs.written(self._prefix)
        return found

    def _path_of(self, name: str) -> str:
        return f"{self._prefix}{name}.json"

    def _in_use(self, owner: bytes | None) -> OutputInUse:
        return OutputInUse(f"{self._url} is being worked by {name_of(owner)}.")


def _machine() -> str:
    """This machine since its start, and whose process numbers count here; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return ""


def _is_dead(owner: bytes) -> bool:
    """Whether the owner is a run of this machine that is no more."""
    with suppress(ValueError, KeyError, TypeError):
        who = json.loads(owner)
        if who["machine"] == _machine() != "":
            own = who["pid"] == os.getpid()
            return who["token"] not in _held if own else not psutil.pid_exists(who["pid"])
    return False


def name_of(owner: bytes | None) -> str:
    """Who holds a lock, in words, from what it wrote there."""
    with suppress(ValueError, KeyError, TypeError):
        who = json.loads(owner or b"")
        return f"process {who['pid']} on {who['host']}"
    return "another run"
