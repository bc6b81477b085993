"""The configuration: everything that a command line decides, as one frozen value.

Pure: `jostler.cli.command_line` fills it, everything else reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.bundle import Limits
    from jostler.format.names import Place
    from jostler.watchdir import Watch


class Mode(StrEnum):
    """What the program was started for."""

    RUN = "run"
    ONCE = "once"
    CHECK = "check"
    SCHEMA = "schema"


class BadFiles(StrEnum):
    """What becomes of a file that cannot be archived as data."""

    UPLOAD = "upload"
    KEEP = "keep"
    DELETE = "delete"


class Validate(StrEnum):
    """How closely a file is looked at before it is archived."""

    SCHEMA = "schema"
    JSON = "json"


class LogFormat(StrEnum):
    """How logs are written; `auto` is text on a terminal, JSON lines elsewhere."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Datatype:
    """A datatype and the file that holds its schema."""

    name: str
    schema_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the agent is to do.  Names follow the flags; docs/agent.md describes each.

    Attributes:
        bucket: URL `gs://…` or `file:///…`; empty in schema mode without a bucket.
        place: where in the bucket the experiment's objects lie.
        node: as object names have it; empty in schema mode.
        memory_max: bytes of bundles that may be held at once.
        old_state_dir: where an earlier version left its journal; None with `-state-dir`.
        memory_raised_from: its default, if that holds no bundle and was raised; else 0.
        overruled: flags given by argument, each with the variable that says otherwise and is not
            obeyed.
        allow_empty: with -check, a datatype without a directory in the spool is no error.
        listen: host (empty for all) and port of the status server; None for no server.
        allowed_hosts: names, beside those of this machine, by which the status server may be asked.
        runbook_url: where problems are explained; empty when nobody said.
    """

    mode: Mode
    bucket: str
    place: Place
    upload_schema: bool
    node: str
    datatypes: tuple[Datatype, ...]
    limits: Limits
    local_data_dir: Path
    extensions: tuple[str, ...]
    watch: Watch
    missed_age_s: float
    missed_interval_s: float
    settle_age_s: float
    flush_timeout_s: float
    bad_files: BadFiles
    validate: Validate
    state_dir: Path
    old_state_dir: Path | None
    compression_level: int
    upload_concurrency: int
    memory_max: int
    memory_raised_from: int
    overruled: tuple[tuple[str, str], ...]
    allow_empty: bool
    from_samples: Path | None
    verbose: bool
    log_format: LogFormat
    test_interval_s: float
    listen: tuple[str, int] | None
    allowed_hosts: tuple[str, ...] = ()
    runbook_url: str = ""

    @property
    def spool(self) -> Path:
        """The experiment's directory; each datatype has one below it."""
        return self.local_data_dir / self.place.experiment
