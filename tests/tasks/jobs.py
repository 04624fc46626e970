"""Jobs for the worker pool's tests: well-behaved ones, and every way to go wrong."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

from models.errors import DamagedPage


def double(number: int) -> int:
    return 2 * number


def sleep_then(seconds: float, value: object = None) -> object:
    time.sleep(seconds)
    return value


def mark_then_sleep(mark: str, seconds: float) -> int:
    """Leave a file behind as soon as the job has begun."""
    Path(mark).write_text(str(os.getpid()))
    time.sleep(seconds)
    return os.getpid()


def pid(*_: object) -> int:
    return os.getpid()


def modules() -> list[str]:
    return sorted(sys.modules)


def main_module() -> tuple[str | None, str | None]:
    main = sys.modules["__main__"]
    return getattr(main, "__file__", None), getattr(main.__spec__, "name", None)


def kill_self(number: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)


def kill_self_once(mark: str) -> str:
    """The first time crash, the second time answer."""
    if not Path(mark).exists():
        Path(mark).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def segfault() -> None:
    ctypes.string_at(0)


def hang_in_c() -> None:
    """Never come back to the interpreter, and hold its lock all the while."""
    ctypes.PyDLL(None).pause()


def hang_in_c_with(*_: object) -> None:
    hang_in_c()


def hang_once(mark: str) -> str:
    """The first time hang, the second time answer."""
    if not Path(mark).exists():
        Path(mark).write_text("")
        hang_in_c()
    return "survived"


def fail_to_read(code: int) -> None:
    raise OSError(code, os.strerror(code))


def loop_forever() -> None:
    while True:
        pass


def ignore_signals_and_hang() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    threading.Event().wait()


def allocate(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))


def blob(size: int) -> bytes:
    return bytes(size)


def count_bytes(data: bytes) -> int:
    return len(data)


def exit_quietly(code: int) -> None:
    os._exit(code)


def leave() -> None:
    raise SystemExit(3)


def damaged() -> None:
    raise DamagedPage("page 7 is torn", cure="Glue it.")


class Picky(Exception):
    """Travels well and cannot be put together again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


class Local(Exception):
    """Cannot travel at all."""

    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


def raise_picky() -> None:
    raise Picky("one", "two")


def raise_local() -> None:
    raise Local


def return_unpicklable() -> object:
    return threading.Lock()


class Bomb:
    """A result that cannot be put together again."""

    def __reduce__(self) -> tuple[object, ...]:
        return ctypes.c_int, ("no number",)


def return_bomb() -> object:
    return Bomb()


def blame(path: str) -> None:
    raise DamagedPage(f"{path}, page 7 is torn")


def kill_self_with(*_: object) -> None:
    """Crash, whatever is asked."""
    os.kill(os.getpid(), signal.SIGABRT)


def be_killed(*_: object) -> None:
    """Die as if the system had ended the process for lack of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
