"""The budget of pixels: small pages together, large ones one after the other."""

from __future__ import annotations

import threading

from tasks.budget import PixelBudget, affordable_pixels


def waits(budget: PixelBudget, pixels: int) -> tuple[threading.Thread, threading.Event]:
    """Take from another thread; the event says that it was let in."""
    done = threading.Event()

    def take() -> None:
        budget.take(pixels)
        done.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread, done


def test_pages_that_fit_go_together_and_others_wait() -> None:
    budget = PixelBudget(100)
    budget.take(60)
    budget.take(40)
    thread, let_in = waits(budget, 30)
    assert not let_in.wait(0.1)
    budget.give(40)
    assert let_in.wait(5)
    thread.join()


def test_a_page_larger_than_all_goes_alone() -> None:
    budget = PixelBudget(100)
    budget.take(10)
    _, let_in = waits(budget, 500)
    assert not let_in.wait(0.1)
    budget.give(10)
    assert let_in.wait(5)


def test_what_needs_no_memory_does_not_wait() -> None:
    budget = PixelBudget(100)
    budget.take(500)
    thread, let_in = waits(budget, 0)
    assert let_in.wait(5)
    thread.join()


def test_this_machine_has_room_for_a_page() -> None:
    assert affordable_pixels() > 10_000_000
