"""Wait until files of the spool are stored, or store them here: `-now` and `-wait` of `push`.

**Invariant:** a file counts as stored only when its bundle and index are durable.  At most one
agent works on a state directory: while another one does, this one waits for it.
"""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from jostler.agent.agent import Agent
from jostler.agent.schema_sync import read_schemas
from jostler.agent.why.journal import locked_by
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.query import Query
from jostler.bundle import Journal, content_hash, one_line
from jostler.errors import ConfigError
from jostler.format.names import REJECTED, parse_file
from jostler.storage import open_storage
from jostler.watchdir import GivenArrivals
from jostler.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from jostler.bundle import UploadJob
    from jostler.cli.producer_flags import Setting

LOOK_S = 0.2
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Stored:
    """The result for files: addresses by Filename, reasons by Filename, and what is not stored."""

    addresses: dict[str, str]
    rejected: dict[str, str]
    missing: tuple[str, ...]


class Storing:
    """Stores or awaits files of one datatype.

    Args:
        setting: with bucket and node.
        filenames: `yyyy/mm/dd/<name>`, all in the spool or stored a moment ago.
        say: called with a message about what is waited for.
    """

    def __init__(
        self, setting: Setting, filenames: Iterable[str], say: Callable[[str], None]
    ) -> None:
        self._setting = setting
        self._left = dict.fromkeys(filenames)
        self._say = say
        self._addresses: dict[str, str] = {}
        self._rejected: dict[str, str] = {}
        self._stop, self._abort = threading.Event(), threading.Event()

    def now(self) -> Stored:
        """Store the files by an agent of our own, or wait for the one that runs.

        Raises:
            ConfigError: the state directory or `-native` cannot be used.
            SchemaError: the table schemas conflict.
        """
        while self._left:
            if self._in_use():
                self._wait(while_in_use=True)
                continue
            self._archive()
            if not self._in_use():
                break
        return self._stored()

    def wait(self) -> Stored:
        """Wait until an agent has stored the files."""
        self._wait(while_in_use=False)
        return self._stored()

    def stop(self) -> None:
        """End soon; a second call ends at once."""
        (self._abort if self._stop.is_set() else self._stop).set()

    def _archive(self) -> None:
        """Run an agent over these files, from its journal to the last unlink."""
        config, datatype = self._setting.config, self._setting.datatype
        paths = [f"{self._setting.top}/{filename}" for filename in self._left]
        with GivenArrivals(paths) as arrivals:
            agent = Agent(
                config,
                read_schemas(config.datatypes),
                arrivals,
                stop=self._stop,
                abort=self._abort,
                on_stored=lambda job: self._learn(job, datatype),
            )
            agent.run()

    def _learn(self, job: UploadJob, datatype: str) -> None:
        """Note the addresses of files in a bundle that became durable."""
        for path in job.record.attempts[-1].entries.paths:
            of, _, filename = path.partition("/")
            if of != datatype or filename not in self._left:
                continue
            del self._left[filename]
            if rejection := job.record.rejections.get(path):
                self._rejected[filename] = f"{rejection.reason}: {rejection.detail}"
            else:
                self._addresses[filename] = f"{job.header.url}#{quote(filename)}"

    def _in_use(self) -> bool:
        """Return whether another agent has the state directory."""
        config = self._setting.config
        try:
            lock = Journal(config.state_dir, config.old_state_dir).open()
        except OSError as exc:
            raise ConfigError([f"-state-dir: {exc}"]) from exc
        if lock is None:
            return True
        lock.close()
        return False

    def _wait(self, *, while_in_use: bool) -> None:
        """Wait until the files are gone from the spool: an agent unlinks what is stored."""
        top, state_dir = self._setting.top, self._setting.config.state_dir
        pid = locked_by(state_dir)
        who = f"process {pid}" if pid is not None else "another agent" if while_in_use else "none"
        waits = counted(len(self._left), "file")
        if pid is None and not while_in_use:
            self._say(f"no agent is seen that uses {state_dir}; waiting until one stores {waits}")
        else:
            self._say(f"the agent that runs ({who}, {state_dir}) is to store {waits}; waiting")
        gone: list[str] = []
        waiting = list(self._left)
        hashes = {name: _hash(top / name) for name in waiting}
        while waiting and not self._stop.is_set():
            there = [name for name in waiting if (top / name).exists()]
            gone += set(waiting) - set(there)
            waiting = there
            if not waiting or (while_in_use and not self._in_use()):
                break
            self._stop.wait(LOOK_S)
        if gone:
            self._find({name: hashes[name] for name in gone})

    def _find(self, hashes: Mapping[str, set[str]]) -> None:
        """Find the addresses of files in the bucket's indexes.

        Args:
            hashes: by Filename, those that its row may have; none if they are not known.
        """
        config = self._setting.config
        bucket = open_storage(config.bucket, PATIENCE_S)
        days = {parse_file(name)[0].date for name in hashes}
        with closing(BucketCatalogue(bucket, [config.place], IndexCache(None, 0))) as catalogue:
            for datatype in (self._setting.datatype, REJECTED):
                query = Query(
                    datatypes=(datatype,),
                    nodes=(config.node,),
                    first_day=min(days),
                    last_day=max(days),
                )
                for file in catalogue.files(query):
                    of = hashes.get(file.path)
                    if of is None or (of and file.hash not in of):
                        continue
                    if datatype == REJECTED:
                        if file.path not in self._addresses:
                            self._rejected[file.path] = f"see {file.address}"
                    else:  # the last one counts: an earlier one may be of an earlier file
                        self._addresses[file.path] = file.address
                    self._left.pop(file.path, None)

    def _stored(self) -> Stored:
        return Stored(self._addresses, self._rejected, tuple(self._left))


def _hash(path: Path) -> set[str]:
    """Return the hashes that the row of a file has, as data and as rejected."""
    try:
        content = path.read_bytes()
    except OSError:
        return set()  # it is stored already
    return {content_hash(one_line(content)).hex(), content_hash(content).hex()}
