"""What the agent waits for before it takes a file: its state directory and the bucket's schemas.

**Invariant:** nothing of the spool is read before both are there; a wait ends when the agent is
told to stop.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TypeVar

from jostler import build
from jostler.agent.schema_sync import sync
from jostler.bundle import Archiver, Backoff, Stamp, Trouble
from jostler.config import Mode, Validate
from jostler.errors import ConfigError, TransientError, stable_text
from jostler.log import Log
from jostler.schema import Judge, json_object_flaw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jostler.bundle import Journal, UploadStats
    from jostler.config import Config
    from jostler.schema import Fields, Flaw
    from jostler.storage import Storage

    Judges = Mapping[str, Callable[[bytes], Flaw | None]]

log = Log("jostler.agent")

LOCK_TRY_S = 1.0
TURN_S = 1.0
ASK_BACKOFF = Backoff(cap_s=30.0)
SCHEMAS = "table schemas"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """What the agent goes on with while it waits at its start.

    Attributes:
        stop: set to end the wait.
        turn: notices what arrives and shows how things are, for so many seconds; `wake` ends it.
        wake: safe in any thread.
        stats: learns how the requests to the bucket fare.
    """

    stop: threading.Event
    turn: Callable[[float], None]
    wake: Callable[[], None]
    stats: UploadStats

    def rest(self, seconds: float) -> None:
        """Turn for so long, or until told to stop."""
        until_s = time.monotonic() + seconds
        while not self.stop.is_set() and (left_s := until_s - time.monotonic()) > 0:
            self.turn(min(left_s, TURN_S))

    def result_of(self, ask: Callable[[], T]) -> T | None:
        """Turn until `ask`, which runs in a thread, returns or raises; None if told to stop first.

        The bucket may keep a request for a minute.  A thread that is asked to stop meanwhile is
        left alone: it holds nothing, and ends with the process.
        """
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(ask())
            except BaseException as exc:  # noqa: BLE001 - raised again by the thread that waits
                answer.set_exception(exc)
            self.wake()

        threading.Thread(target=run, name="schemas", daemon=True).start()
        while not answer.done():
            if self.stop.is_set():
                return None
            self.turn(TURN_S)
        return answer.result()


def await_lock(config: Config, journal: Journal, meanwhile: Meanwhile) -> IO[bytes] | None:
    """Wait until no other agent uses the state directory.

    Returns:
        The lock, to be held as long as the agent works; None if told to stop first or, with
        `-once`, if another agent has it.

    Raises:
        ConfigError: the directory cannot be made or written.
    """
    said = False
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
        if not said:
            said = True
            log.warning("state.in_use", dir=str(config.state_dir), next="waiting for it")
        meanwhile.rest(LOCK_TRY_S)
    return None


def await_judges(
    config: Config,
    tables: Mapping[str, Fields],
    open_storage: Callable[[str], Storage],
    meanwhile: Meanwhile,
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
    while not meanwhile.stop.is_set():
        meanwhile.stats.begun("")
        try:
            judges = meanwhile.result_of(
                lambda: _judges(config, tables, open_storage(config.bucket))
            )
        except TransientError as exc:
            failures += 1
            waited_s = time.monotonic() - started_s
            if config.mode is Mode.ONCE and waited_s >= config.flush_timeout_s:
                raise
            wait_s = ASK_BACKOFF.wait_s(failures, random.random())  # noqa: S311 - jitter
            trouble = Trouble.of(exc, SCHEMAS, hint=exc.hint, tries=failures, next_try_s=wait_s)
            meanwhile.stats.failed("", "", trouble)
            log.warning(
                "bucket.unreachable",
                error_class=type(exc).__name__,
                error=stable_text(exc),
                hint=exc.hint,
                tries=failures,
                next_try_s=round(wait_s, 1),
            )
            meanwhile.rest(wait_s)
        else:
            meanwhile.stats.ended("", SCHEMAS)
            meanwhile.stats.forget("")
            return judges
    return None


def _judges(config: Config, tables: Mapping[str, Fields], storage: Storage) -> Judges:
    agreed = {
        name: sync(storage, config.place, name, ours, upload=config.upload_schema)
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
