"""What a health check is given, and what it finds.

Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from jostler.agent.observe.snapshot import Snapshot
    from jostler.agent.observe.survey import Surveyed
    from jostler.bundle import UploadCounts

HOUR_S = 3600.0


class Level(StrEnum):
    """How bad a problem is."""

    OK = "ok"
    ATTENTION = "attention"
    BAD = "bad"


class Problem(Struct, frozen=True, kw_only=True):
    """One problem; `since_s` is Unix time, 0 if unknown.

    `datatypes` are the datatypes that it concerns; none if it concerns the agent as a whole.
    """

    code: str
    level: Level
    since_s: float
    text: str
    hint: str
    datatypes: tuple[str, ...] = ()


class Facts(Struct, frozen=True, kw_only=True):
    """The input of the health checks.

    Attributes:
        now_s: the current time, Unix time.
        still_s: seconds since the loop last turned.
        started_s: when the agent was started, Unix time.
        waits_for: what a starting agent waits for; empty once it takes files.
        snapshot: the agent's last snapshot.
        uploads: the upload statistics.
        disk: the result of the last survey.
    """

    now_s: float
    still_s: float
    started_s: float
    waits_for: str
    snapshot: Snapshot
    uploads: UploadCounts
    disk: Surveyed


def files_of(count: int) -> str:
    """Return a number of files in words."""
    return "1 file" if count == 1 else f"{count:,} files"
