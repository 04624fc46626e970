"""Progress: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from tasks import progress
from tasks.progress import Progress


@pytest.fixture(params=[False, True])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: request.param, raising=False)
    return bool(request.param)


def test_pages_are_counted_from_many_threads(terminal: bool) -> None:
    told = Progress()
    told.start(4000)
    assert (told._bar is not None) == terminal

    def work() -> None:
        for n in range(500):
            told.advance(1, kept=n % 2)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (told.done, told.kept) == (4000, 2000)
    told.stop()
    told.stop()


def test_stopping_while_others_count_is_safe(terminal: bool) -> None:
    told = Progress()
    errors: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        try:
            while not over.is_set():
                told.advance()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for stage in range(15):
        told.start(1000, f"stage {stage}")
        told.stop()
    over.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_log_is_told_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    monkeypatch.setattr(progress, "LOG_EVERY_S", 0.0)
    logging.getLogger("intaglio").propagate = True
    told = Progress()
    told.start(10)
    with caplog.at_level(logging.INFO, "intaglio.progress"):
        for _ in range(3):
            told.advance(3, kept=1)
    assert "pages: 9 of 10, 3 kept" in caplog.messages[-1]
    monkeypatch.setattr(progress, "LOG_EVERY_S", 1e9)
    caplog.clear()
    told.advance()
    assert not caplog.messages


def test_more_than_was_announced_is_no_error(terminal: bool) -> None:
    told = Progress()
    told.start(1)
    told.advance(5)
    told.start(0)
    told.advance()
    told.stop()
