"""What the agent waits for before it takes a file: its state directory and the bucket's schemas.

**Invariant:** nothing of the spool is read before both are there; a wait ends when the agent is
told to stop.
"""

from __future__ import annotations

import random
import time
from typing import IO, TYPE_CHECKING

from jostler import build
from jostler.agent.tables import settle
from jostler.bundle import Archiver, Backoff, Stamp
from jostler.config import Mode, Validate
from jostler.errors import ConfigError, TransientError
from jostler.log import Log
from jostler.schema import Judge, json_object_flaw

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from jostler.bundle import Journal
    from jostler.config import Config
    from jostler.schema import Fields, Flaw
    from jostler.storage import Storage

    Judges = Mapping[str, Callable[[bytes], Flaw | None]]

log = Log("jostler.agent")

LOCK_TRY_S = 1.0
ASK_BACKOFF = Backoff(cap_s=30.0)


def await_lock(
    config: Config, journal: Journal, stop: threading.Event, beat: Callable[[], None]
) -> IO[bytes] | None:
    """Wait until no other agent uses the state directory.

    Returns:
        The lock, to be held as long as the agent works; None if told to stop first or, with
        `-once`, if another agent has it.

    Raises:
        ConfigError: the directory cannot be made or written.
    """
    said = False
    while not stop.is_set():
        beat()
        try:
            lock = journal.open()
        except OSError as exc:
            raise ConfigError([f"-state-dir: {exc}"]) from exc
        if lock is not None:
            return lock
        if config.mode is Mode.ONCE:
            log.error("state.in_use", dir=str(config.state_dir))
            return None
        if not said:
            said = True
            log.warning("state.in_use", dir=str(config.state_dir), next="waiting for it")
        stop.wait(LOCK_TRY_S)
    return None


def await_judges(
    config: Config,
    tables: Mapping[str, Fields],
    open_storage: Callable[[str], Storage],
    stop: threading.Event,
    beat: Callable[[], None],
) -> Judges | None:
    """Agree with the bucket on all table schemas, asking until it answers.

    Right after a pod's start there may be neither token nor network.

    Returns:
        What finds the flaw in a document of each datatype; None if told to stop first.

    Raises:
        SchemaError: a schema cannot agree with the stored one.
        TransientError: with `-once`, the bucket did not answer within `-flush-timeout`.
    """
    failures = 0
    started_s = time.monotonic()
    while not stop.is_set():
        beat()
        try:
            return _judges(config, tables, open_storage(config.bucket))
        except TransientError as exc:
            failures += 1
            waited_s = time.monotonic() - started_s
            if config.mode is Mode.ONCE and waited_s >= config.flush_timeout_s:
                raise
            wait_s = ASK_BACKOFF.wait_s(failures, random.random())  # noqa: S311 - jitter
            log.warning(
                "bucket.unreachable",
                error_class=type(exc).__name__,
                error=str(exc),
                hint=exc.hint,
                tries=failures,
                next_try_s=round(wait_s, 1),
            )
            stop.wait(wait_s)
    return None


def _judges(config: Config, tables: Mapping[str, Fields], storage: Storage) -> Judges:
    agreed = {
        name: settle(storage, config.place, name, ours, upload=config.upload_schema)
        for name, ours in tables.items()
    }
    if config.validate is Validate.JSON:
        return dict.fromkeys(agreed, json_object_flaw)
    return {name: Judge(raw_fields(table)).flaw for name, table in agreed.items()}


def raw_fields(table: Fields) -> Fields:
    """Return the fields of a table's column `raw`: what a datatype's file is judged by."""
    return next(field.fields for field in table if field.name.lower() == "raw")


def stamp(config: Config) -> Stamp:
    """Return what every bundle of this agent carries."""
    return Stamp(
        bucket=config.bucket,
        place=config.place,
        node=config.node,
        archiver=Archiver(version=f"jostler@{build.version()}", commit=build.commit()),
        level=config.compression_level,
    )


def watched(config: Config) -> list[str]:
    """Return the directories to watch: one for each datatype."""
    return [str(config.spool / datatype.name) for datatype in config.datatypes]
