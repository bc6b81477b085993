"""An intake and what it needs, for the tests of what it does."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jostler.agent.intake import Rules
from jostler.bundle import Archiver, Limits, OpenBundles, Stamp
from jostler.config import BadFiles
from jostler.schema import json_object_flaw
from tests.unit.bundle.parts import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jostler.schema import Flaw

MEMORY = 8 << 20


def open_bundles() -> OpenBundles:
    stamp = Stamp(
        bucket="gs://bkt",
        place=PLACE,
        node="node1",
        archiver=Archiver(version="jostler@1", commit="abc"),
        level=2,
    )
    return OpenBundles(
        stamp,
        Limits(max_bytes=MEMORY, max_age_s=3600),
        memory_max=MEMORY,
        sealed=lambda _: None,
        monotonic_s=time.monotonic,
        now=lambda: datetime.now(UTC),
    )


def rules_of(
    spool: Path,
    *,
    judge: Callable[[bytes], Flaw | None] = json_object_flaw,
    settle_age_s: float = 0.0,
    missed_age_s: float = 0.0,
    once: bool = False,
) -> Rules:
    return Rules(
        spool=str(spool),
        judges={"foo1": judge},
        max_bytes=MEMORY // 2,
        settle_age_s=settle_age_s,
        missed_age_s=missed_age_s,
        bad_files=BadFiles.UPLOAD,
        read_tries=1,
        once=once,
    )
