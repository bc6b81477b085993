"""The configuration: everything that a command line decides, as one frozen value.

Pure: `jostler.cli.command_line` creates it, all other modules read it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.bundle import Limits
    from jostler.bundle.index_fields import IndexField
    from jostler.format.compression import CompressionChoice
    from jostler.format.names import Place
    from jostler.schema import Use
    from jostler.watchdir import Watch


class Mode(StrEnum):
    """What the program was started for."""

    RUN = "run"
    ONCE = "once"
    CHECK = "check"
    SCHEMA = "schema"


class BadFiles(StrEnum):
    """What the agent does with a file that cannot be archived as data."""

    UPLOAD = "upload"
    KEEP = "keep"
    DELETE = "delete"


class DiskLackAction(StrEnum):
    """What the agent does while the spool's disk has less than `-min-free-disk` left."""

    FLUSH = "flush"
    STOP = "stop"
    REMOVE_OLDEST = "remove-oldest"


class MinFree(Struct, frozen=True, kw_only=True):
    """The value of `-min-free-disk`: a share of the disk's size, or bytes; one of them is 0."""

    share: float = 0.0
    size_bytes: int = 0

    def of(self, disk_bytes: int) -> int:
        """Return the bytes that are to stay free on a disk of this size."""
        return self.size_bytes or int(self.share * disk_bytes)


class Validate(StrEnum):
    """How strictly a file's content is checked before it is archived."""

    SCHEMA = "schema"
    JSON = "json"


class LogFormat(StrEnum):
    """How logs are written; `auto` is text on a terminal, JSON lines elsewhere."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class Datatype(Struct, frozen=True, kw_only=True):
    """A datatype and the file that holds its schema."""

    name: str
    schema_file: Path


class Config(Struct, frozen=True, kw_only=True):
    """The settings of one run.  Attributes are named after their flags; see docs/agent.md.

    Attributes:
        bucket: URL `gs://…` or `file:///…`; empty in schema mode without a bucket.
        place: where in the bucket the experiment's objects lie.
        node: the node's name as it stands in object names; empty in schema mode.
        memory_max: bytes of bundles that the agent may hold at once.
        old_state_dir: where an earlier version kept its journal; None with `-state-dir`.
        memory_raised_from: the default of `memory_max`, if it was raised because one bundle did
            not fit; else 0.
        index_fields: what fills Start, End and WorkID of index rows.
        overruled: flags set by an argument although an environment variable sets another value;
            each with the name of the ignored variable.
        allow_empty: with -check, a datatype without a directory in the spool is no error.
        listen: host (empty for all) and port of the status server; None for no server.
        allowed_hosts: values of the Host header that the status server accepts beside this
            machine's own names.
        runbook_url: address of the runbook that the status page links to; empty when not set.
    """

    mode: Mode
    bucket: str
    place: Place
    upload_schema: bool
    index_fields: tuple[IndexField, ...]
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
    min_free_disk: MinFree
    disk_lack_action: DiskLackAction
    validate: Validate
    native: Use
    state_dir: Path
    old_state_dir: Path | None
    compression: CompressionChoice
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
