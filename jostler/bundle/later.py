"""Actions that wait for their time.

**Invariant:** an action runs once, in the thread that calls `run_due`, and may add others.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Later:
    """Actions, each with the time at which it is due; used by one thread only."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Callable[[], None]]] = []

    def __bool__(self) -> bool:
        """Whether any action waits."""
        return bool(self._waiting)

    @property
    def next_s(self) -> float:
        """When the next action is due, monotonic seconds; inf if none waits."""
        return min((due_s for due_s, _ in self._waiting), default=inf)

    def add(self, due_s: float, action: Callable[[], None]) -> None:
        """Run an action once the monotonic clock shows `due_s`."""
        self._waiting.append((due_s, action))

    def run_due(self, now_s: float) -> None:
        """Run the actions that are due, in the order in which they were added."""
        if self.next_s > now_s:
            return
        due = [action for due_s, action in self._waiting if due_s <= now_s]
        # Before they run: an action that fails may add itself again.
        self._waiting = [waiting for waiting in self._waiting if waiting[0] > now_s]
        for action in due:
            action()
