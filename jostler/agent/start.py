"""The agent's start: wait for the lock of the state directory, then for the bucket's table schemas.

**Invariant:** no file is read before the agent has the lock.  While it waits for the schemas, files
are only read ahead (`jostler.agent.ahead`).  Each wait ends when `Meanwhile.stop` is set.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future
from typing import IO, TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from jostler import build
from jostler.agent import asset_sync
from jostler.agent.schema_sync import digest, keep, sync
from jostler.bundle import Archiver, Backoff, FailedAttempt, Stamp, native_reader
from jostler.bundle.index_fields import IndexFields
from jostler.config import Mode, Validate
from jostler.errors import ConfigError, TransientError, stable_text
from jostler.format.names import INDEX
from jostler.log import Log
from jostler.schema import Judge, object_judge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jostler.bundle import Journal, ReadBatch, UploadStats
    from jostler.config import Config
    from jostler.schema import Fields, Flaw, Native
    from jostler.storage import Storage

log = Log("jostler.agent")

LOCK_TRY_S = 1.0
TURN_S = 1.0
ASK_BACKOFF = Backoff(cap_s=30.0)
SCHEMAS = "table schemas"
T = TypeVar("T")


class Meanwhile(Struct, frozen=True, kw_only=True):
    """The work that goes on while the agent waits at its start.

    Attributes:
        stop: set by another thread or a signal handler to end the wait.
        read: takes some files ahead of the bucket's first answer; returns whether there were any.
        turn: collects file events and updates the status for the given seconds, or until `wake`.
        wake: ends a running `turn`; any thread may call it.
        stats: counts the requests to the bucket and their failures.
    """

    stop: threading.Event
    read: Callable[[], bool]
    turn: Callable[[float], None]
    wake: Callable[[], None]
    stats: UploadStats

    def rest(self, seconds: float) -> None:
        """Call `turn` repeatedly for the given seconds, or until `stop` is set."""
        until_s = time.monotonic() + seconds
        while not self.stop.is_set() and (left_s := until_s - time.monotonic()) > 0:
            self.turn(min(left_s, TURN_S))

    def result_of(self, ask: Callable[[], T], *, reads: bool) -> T | None:
        """Run `ask` in a thread and call `turn` until it ends; return its result.

        Args:
            ask: what to run.
            reads: whether to call `read` meanwhile, as long as it takes files.

        Returns:
            What `ask` returned, or None if `stop` was set first.

        Raises:
            Exception: whatever `ask` raised.
        """
        # A request to the bucket can take a minute, and a Python thread cannot be interrupted.
        # When the agent stops first, the thread is abandoned.  It is a daemon thread, so it does
        # not keep the process alive, and it has nothing to clean up.
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(ask())
            except BaseException as exc:  # noqa: BLE001 - raised again by the thread that waits
                answer.set_exception(exc)
            self.wake()  # after the answer is set: the woken thread looks for it at once

        threading.Thread(target=run, name="schemas", daemon=True).start()
        while not answer.done():
            if self.stop.is_set():
                return None
            if not (reads and self.read()):
                self.turn(TURN_S)
        return answer.result()


def await_lock(config: Config, journal: Journal, meanwhile: Meanwhile) -> IO[bytes] | None:
    """Wait until no other agent uses the state directory.

    Returns:
        The open lock file; the lock lasts until it is closed.  None if `stop` was set first or,
        with `-once`, if another agent holds the lock.

    Raises:
        ConfigError: the directory cannot be created or written, or other users may write in it.
    """
    warned = False
    while not meanwhile.stop.is_set():
        try:
            lock = journal.open()
        except OSError as exc:
            raise ConfigError([f"-state-dir: {exc}"]) from exc
        if lock is not None:
            return lock
        if config.mode is Mode.ONCE:
            log.error("state.in_use", dir=str(config.state_dir))
            return None
        if not warned:
            warned = True
            log.warning("state.in_use", dir=str(config.state_dir), next="waiting for it")
        meanwhile.rest(LOCK_TRY_S)
    return None


class Agreed(Struct, frozen=True, kw_only=True):
    """How files are judged: by the node's own table schemas, or by those agreed with the bucket.

    Attributes:
        judges: by datatype, a function that returns the first flaw of a document, or None for a
            good one.
        counts: by datatype, a function that returns how many documents are good, counted from the
            first one to the first bad one.  Datatypes that no table schema judges are missing.
        readers: by datatype, a function that reads batches.  Datatypes that the native module does
            not judge are missing.
        kept: by datatype, the digest under which the bucket keeps the schema that files are judged
            by; empty if it could not be stored.  Datatypes that no table schema judges are missing.
            Of the node's own schemas: the digest that it will be kept under, if it is agreed.
    """

    judges: dict[str, Callable[[bytes], Flaw | None]] = field(default_factory=dict)
    counts: dict[str, Callable[[Sequence[bytes]], int]] = field(default_factory=dict)
    readers: dict[str, ReadBatch] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    def take_over(self, other: Agreed) -> None:
        """Fill these dictionaries with what was agreed; objects that hold them see it at once."""
        self.judges.update(other.judges)
        self.counts.update(other.counts)
        self.readers.update(other.readers)
        self.kept.update(other.kept)


def await_schemas(
    config: Config,
    tables: Mapping[str, Fields],
    open_storage: Callable[[str], Storage],
    meanwhile: Meanwhile,
    *,
    own: Agreed,
    native: Native,
) -> Agreed | None:
    """Synchronise all table schemas with the bucket's; try again until the bucket can be reached.

    Right after the start of a pod, its network or its service-account token may not be ready.  Once
    a request has failed, no further file is read, as while uploads fail.

    Args:
        config: the settings.
        tables: the table schemas, by datatype.
        open_storage: opens the bucket.
        meanwhile: what goes on during the wait.
        own: how files are judged by these schemas.
        native: where native judges come from.

    Returns:
        The judges and digests; None if `stop` was set first.

    Raises:
        SchemaError: a schema conflicts with the stored one, or may not be written.
        TransientError: with `-once`, the bucket did not answer within `-flush-timeout`.
    """
    failures = 0
    started_s = time.monotonic()
    while not meanwhile.stop.is_set():
        meanwhile.stats.begun("")
        try:
            agreed = meanwhile.result_of(
                lambda: _agreed(config, tables, own, open_storage(config.bucket), native),
                reads=not failures,
            )
        except TransientError as exc:
            failures += 1
            waited_s = time.monotonic() - started_s
            if config.mode is Mode.ONCE and waited_s >= config.flush_timeout_s:
                raise
            meanwhile.rest(_unreachable(exc, meanwhile.stats, failures))
        else:
            meanwhile.stats.ended("", SCHEMAS)
            meanwhile.stats.forget("")
            return agreed
    return None


def _unreachable(error: TransientError, stats: UploadStats, tries: int) -> float:
    """Count and log that the bucket did not answer; return the seconds to wait before a retry."""
    wait_s = ASK_BACKOFF.wait_s(tries, random.random())  # noqa: S311 - jitter
    failure = FailedAttempt.of(error, SCHEMAS, hint=error.hint, tries=tries, next_try_s=wait_s)
    stats.failed("", "", failure)
    log.warning(
        "bucket.unreachable",
        error_class=type(error).__name__,
        error=stable_text(error),
        hint=error.hint,
        tries=tries,
        next_try_s=round(wait_s, 1),
    )
    return wait_s


def _agreed(
    config: Config,
    tables: Mapping[str, Fields],
    own: Agreed,
    storage: Storage,
    native: Native,
) -> Agreed:
    agreed = {
        name: sync(storage, config.place, name, ours, upload=config.upload_schema)
        for name, ours in tables.items()
    }
    asset_sync.upload(storage, config)
    judged = own if agreed == tables else judged_by(config, agreed, native)
    # The schemas are stored before any bundle names one, so a reader always finds them.
    kept = {name: keep(storage, config.place, name, agreed[name]) for name in judged.kept}
    return replace(judged, kept=kept)


def judged_by(config: Config, tables: Mapping[str, Fields], native: Native) -> Agreed:
    """Return how files are judged by table schemas; nothing is asked or stored."""
    if config.validate is Validate.JSON:
        judge = native.judge(None)
        return Agreed(
            judges=dict.fromkeys(tables, object_judge(native)),
            readers=dict.fromkeys(tables, native_reader(judge)) if judge else {},
        )
    judges = {name: Judge(raw_fields(table), native) for name, table in tables.items()}
    return Agreed(
        judges={name: judge.flaw for name, judge in judges.items()},
        counts={name: judge.count_good for name, judge in judges.items()},
        readers={
            name: native_reader(judge.native) for name, judge in judges.items() if judge.native
        },
        kept={name: digest(table) for name, table in tables.items() if name != INDEX},
    )


def raw_fields(table: Fields) -> Fields:
    """Return the fields of a table's column `raw`; a file of the datatype must match them."""
    return next(field.fields for field in table if field.name.lower() == "raw")


def index_fields(config: Config) -> dict[str, IndexFields]:
    """Return, by datatype, the sources of the index columns that `-index-field` sets."""
    datatypes = {field.datatype for field in config.index_fields}
    return {
        datatype: IndexFields(field for field in config.index_fields if field.datatype == datatype)
        for datatype in datatypes
    }


def stamp(config: Config, schemas: Mapping[str, str]) -> Stamp:
    """Return the values that are the same in every bundle of this agent, such as its node."""
    return Stamp(
        bucket=config.bucket,
        place=config.place,
        node=config.node,
        archiver=Archiver(version=f"jostler@{build.version()}", commit=build.commit()),
        compression=config.compression,
        schemas=schemas,
    )


def watched(config: Config) -> list[str]:
    """Return the directories to watch: one for each datatype."""
    return [str(config.spool / datatype.name) for datatype in config.datatypes]
