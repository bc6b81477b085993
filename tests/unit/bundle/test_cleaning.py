"""Clean-ups in a thread of their own: the caller goes on, is woken, and gets what was raised."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import pytest

from jostler.bundle import Beside
from jostler.bundle.cleaning import FILES_AT_ONCE, FILES_BESIDE

if TYPE_CHECKING:
    from jostler.bundle import Cleanup


class Parts:
    """A clean-up that waits in each of its parts until it is told to end."""

    def __init__(self, files: int, error: Exception | None = None) -> None:
        self.left = files
        self.go_on = threading.Semaphore(0)
        self.threads: list[str] = []
        self._error = error

    def step(self, most: int) -> bool:
        self.threads.append(threading.current_thread().name)
        if self.threads[-1] == "cleanup":
            assert self.go_on.acquire(timeout=60)
        error, self._error = self._error, None
        self.left = max(0, self.left - most)
        if error:
            raise error
        return not self.left


class Woken:
    """Counts how often it was called, and waits for that.

    Attributes:
        cleaning: who calls; a part that ended must be seen to have ended then.
        were_at_work: whether it still said that it is at work, at each call.
    """

    def __init__(self) -> None:
        self._rung = threading.Semaphore(0)
        self.cleaning: Beside | None = None
        self.were_at_work: list[bool] = []

    def __call__(self) -> None:
        if self.cleaning:
            self.were_at_work.append(self.cleaning.is_at_work)
        self._rung.release()

    def wait(self) -> None:
        assert self._rung.acquire(timeout=60)


def step(cleaning: Beside, parts: Parts) -> bool:
    return cleaning.step(cast("Cleanup", parts))


def test_the_caller_goes_on_meanwhile_and_is_woken_after_each_part() -> None:
    woken, parts = Woken(), Parts(2 * FILES_BESIDE)
    cleaning = woken.cleaning = Beside(woken)
    for left in (FILES_BESIDE, 0):
        assert not cleaning.is_at_work
        assert not step(cleaning, parts)
        assert cleaning.is_at_work
        assert not step(cleaning, parts)  # nothing is begun twice
        parts.go_on.release()
        woken.wait()
        assert not cleaning.is_at_work
        assert parts.left == left
        assert step(cleaning, parts) is (left == 0)
    assert parts.threads == ["cleanup", "cleanup"]
    assert woken.were_at_work == [False, False]


def test_a_few_files_are_done_by_the_caller() -> None:
    parts = Parts(FILES_AT_ONCE)
    assert step(Beside(Woken()), parts)
    assert parts.threads == [threading.current_thread().name]


def test_an_unforeseen_error_is_raised_in_the_caller_and_the_rest_goes_on() -> None:
    woken, parts = Woken(), Parts(FILES_BESIDE + 1, ValueError("odd"))
    cleaning = Beside(woken)
    assert not step(cleaning, parts)
    parts.go_on.release()
    woken.wait()
    with pytest.raises(ValueError, match="odd"):
        step(cleaning, parts)
    assert step(cleaning, parts)  # one file is left
