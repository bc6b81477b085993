"""Contents: why a file's bytes cannot be archived as data.

**Invariant:** a file is judged whole, by the table schema of its datatype, unless its size alone
decides, or the agent died twice while it judged the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.bundle import Rejection
from jostler.bundle.rejections import refused
from jostler.schema import Reason

if TYPE_CHECKING:
    from jostler.agent.rules import Rules
    from jostler.bundle import FileState, Judging
    from jostler.bundle.file import Read


class Contents:
    """Judges contents; any thread may call `flaw` and `deadly`.

    Args:
        rules: the judges, and the maximum size.
        judging: records which large file is being judged; None for no record.

    Attributes:
        max_bytes: the maximum size of a file that can be archived.
    """

    def __init__(self, rules: Rules, judging: Judging | None = None) -> None:
        self._judges = rules.judges
        self.max_bytes = rules.max_bytes
        self._judging = judging

    def flaw_of_large(self, path: str, datatype: str, read: Read) -> Rejection | None:
        """Judge a large file; reject it unjudged if the agent died twice while judging it."""
        if self._judging is None:
            return self.flaw(datatype, read)
        if rejection := self.deadly(path, datatype, read.state):
            return rejection
        with self._judging.noted(path, read.state):
            return self.flaw(datatype, read)

    def deadly(self, path: str, datatype: str, state: FileState) -> Rejection | None:
        """Return why a file is not judged at all."""
        if self._judging is None or not self._judging.is_deadly(path, state):
            return None
        detail = "the agent died twice while it judged this file"
        return Rejection(datatype=datatype, reason=str(Reason.TOO_COMPLEX), detail=detail)

    def flaw(self, datatype: str, read: Read) -> Rejection | None:
        """Return why the content cannot be archived as data."""
        judge = self._judges[datatype]
        return refused(datatype, read.content, read.state.size, self.max_bytes, judge)
