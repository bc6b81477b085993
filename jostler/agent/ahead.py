"""Reading ahead: the good files that an agent takes at its start before the bucket has answered.

The import of the Cloud Storage client and the first requests take longer than the rest of the
start; meanwhile the agent reads the first files by the node's own table schemas.

**Invariant:** nothing is stored, rejected or deleted before the bucket has answered: uploads have
not begun, and the first file that is not good ends the reading.  If the bucket's schemas turn out
to be others, what was read is given back and read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.log import Log

if TYPE_CHECKING:
    from jostler.agent.loop import Loop
    from jostler.agent.start import Agreed
    from jostler.bundle import Uploads

log = Log("jostler.agent")


class Ahead:
    """Belongs to the agent's thread.

    Args:
        loop: the steps of the agent.
        uploads: that have not begun.
    """

    def __init__(self, loop: Loop, uploads: Uploads) -> None:
        self._loop = loop
        self._uploads = uploads
        self._reads = True

    def step(self) -> bool:
        """Read some files; return whether there may be more."""
        if self._reads:
            more = self._loop.read_ahead()
            self._reads = more is not None
            return bool(more)
        return False

    def forgo(self) -> None:
        """Read nothing ahead: bundles of an earlier process may have the files."""
        self._reads = False

    def end(self, own: Agreed, agreed: Agreed) -> None:
        """Keep what was read if it was judged by the schemas agreed on; else give it back.

        Args:
            own: how the files that were read were judged.
            agreed: how files are judged from now on.
        """
        # Equal digests are equal schemas.  If only one datatype differs, all is read again.
        if own.kept != agreed.kept:
            self._loop.seal_all()
            if bundles := self._uploads.give_back():
                log.info("ahead.given_back", bundles=bundles, next="their files are read again")
