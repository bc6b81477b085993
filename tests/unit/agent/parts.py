"""An intake on a directory, for the tests of what it decides."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from jostler.agent.ages import Ages
from jostler.agent.intake import Intake
from jostler.agent.left import LeftFiles
from jostler.agent.rules import Rules
from jostler.bundle import Confined, InFlightBundles, Judging, read_batch
from jostler.schema import json_object_flaw
from jostler.watchdir import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jostler.agent.verdicts import Verdict
    from jostler.bundle import ReadBatch
    from jostler.schema import Flaw

MAX_BYTES = 4 << 20
HOUR_S = 3600.0
DAY = "foo1/2026/01/02"


class Looking:
    """An intake on a directory."""

    def __init__(
        self,
        root: Path,
        *,
        settle_s: float = 0.0,
        missed_s: float = HOUR_S,
        once: bool = False,
        judge: Callable[[bytes], Flaw | None] = json_object_flaw,
        reader: ReadBatch = read_batch,
    ) -> None:
        self.root = root
        self.in_flight = InFlightBundles()
        ages = Ages(settle_s, missed_s)
        self.left = LeftFiles(ages, root / "kept")
        rules = Rules(
            judges={"foo1": judge},
            readers={"foo1": reader},
            max_bytes=MAX_BYTES,
            read_tries=3,
            once=once,
        )
        files = Confined(str(root))
        judging = Judging(root / "judging", files)
        self.intake = Intake(rules, files, self.in_flight, self.left, judging)

    def write(self, path: str, content: bytes = b"{}") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def look(self, path: str, how: How = How.EVENT) -> Verdict:
        return self.intake.look(f"{self.root}/{path}", how)


def refuse_leases(_fd: int, _command: int, _argument: int = 0) -> int:
    """Stand in for `fcntl` on a file system without leases, or as another user."""
    raise PermissionError(errno.EACCES, "Permission denied")
