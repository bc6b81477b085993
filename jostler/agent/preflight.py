"""`-check`: test whether the agent could do its work here, and write one line for each test.

**Invariant:** it creates no directory and keeps no file.  It removes the files and the object that
it writes to test permissions; if it may not remove the object, it names it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from jostler.agent import asset_sync, schema_sync
from jostler.agent.asset_sync import AssetFile, Stored
from jostler.agent.low_disk import space_of
from jostler.bundle import state_dir
from jostler.config import DiskLackAction
from jostler.errors import AuthError, ConflictError, JostlerError, SchemaError
from jostler.format.names import OWN_DATATYPES
from jostler.schema import Relation, native
from jostler.storage import open_storage
from jostler.watchdir import Watch, open_arrivals

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from jostler.config import Config
    from jostler.schema import Fields
    from jostler.storage import Storage

# GCS refuses signed requests whose time differs by more than 15 minutes from its own
# (https://cloud.google.com/storage/docs/xml-api/reference-status, RequestTimeTooSkewed).  The limit
# here is lower, because a wrong clock also makes wrong bundle names and wrong TimeAdded values.
SKEW_MAX_S = 60.0
FREE_MIN_BYTES = 1 << 30
INOTIFY = Path("/proc/sys/fs/inotify")


class CheckError(Exception):
    """A test failed: something is missing that the agent needs."""


def check(config: Config, out: TextIO | None = None) -> bool:
    """Run all tests and write one line each to `out`; return whether all succeeded.

    Args:
        config: the agent's configuration.
        out: where to write; None for standard output.
    """
    return _Preflight(config, out or sys.stdout).run()


class _Preflight:
    def __init__(self, config: Config, out: TextIO) -> None:
        self._config = config
        self._out = out
        self._storage: Storage | None = None
        self._tables: dict[str, Fields] = {}
        self._assets: list[AssetFile] = []
        self._good = True

    def run(self) -> bool:
        self._line("flags", lambda: "all understood")
        self._line("node", lambda: self._config.node)
        self._line("spool", self._spool)
        self._line("state-dir", self._state_dir)
        self._line("free disk", self._free_disk)
        self._line("min-free-disk", self._min_free_disk)
        self._line("inotify", self._inotify)
        self._line("native", lambda: native.find(self._config.native).description)
        self._line("datatype schemas", self._schemas)
        self._line("assets", self._asset_files)
        self._line("credentials", self._credentials)
        if self._storage:
            storage = self._storage
            self._line("bucket", lambda: self._bucket(storage))
            self._line("clock", lambda: self._clock(storage))
            for file in self._assets:
                self._line(f"asset {file.path.name}", partial(self._compares, storage, file))
            for datatype, fields in self._tables.items():
                self._line(f"schema {datatype}", partial(self._fits, datatype, fields))
        return self._good

    def _line(self, what: str, look: Callable[[], str]) -> None:
        try:
            verdict, text = "ok", look()
        except CheckError as exc:
            verdict, text = "FAIL", str(exc)
        except JostlerError as exc:
            verdict, text = "FAIL", f"{exc}" + (f" (hint: {exc.hint})" if exc.hint else "")
        except OSError as exc:
            verdict, text = "FAIL", str(exc)
        self._good &= verdict == "ok"
        self._out.write(f"{verdict:4} {what}: {text}\n")

    def _spool(self) -> str:
        """Test that files of every directory of the spool can be read and deleted.

        Subdirectories are tested, too, because services create them with their own owner and umask.
        """
        looked = 0
        missing: list[str] = []
        for datatype in self._config.datatypes:
            root = self._config.spool / datatype.name
            if not root.is_dir():
                missing.append(str(root))
                continue
            for directory, below, _ in os.walk(root):
                below[:] = [name for name in below if not name.startswith(".")]
                looked += 1
                if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
                    raise CheckError(
                        f"files of {directory} cannot be read and deleted by uid {os.getuid()}"
                    )
            _try_to_write(root)
        if missing and not self._config.allow_empty:
            raise CheckError(
                f"{', '.join(missing)}: no such directory, so no file was ever written there; "
                "correct -datatype or -local-data-dir, or give -allow-empty"
            )
        absent = f"; not there yet: {', '.join(missing)}" if missing else ""
        return f"{self._config.spool}: can read and delete in {looked} directories{absent}"

    def _state_dir(self) -> str:
        there = _existing(self._config.state_dir)
        if there == self._config.state_dir:
            state_dir.make(there)
        _try_to_write(there)
        made = (
            "" if there == self._config.state_dir else f" in {there}, where the agent will make it"
        )
        return f"{self._config.state_dir}: can write{made}"

    def _free_disk(self) -> str:
        free = shutil.disk_usage(_existing(self._config.state_dir)).free
        if free < FREE_MIN_BYTES:
            raise CheckError(f"{free >> 20} MiB free, expected at least {FREE_MIN_BYTES >> 20}")
        return f"{free >> 20} MiB"

    def _min_free_disk(self) -> str:
        """Test that the spool's disk has so much left that the agent would take files as usual."""
        action = self._config.disk_lack_action
        space = space_of(_existing(self._config.spool), self._config.min_free_disk)
        limit, free = space.shown(space.limit_bytes), space.shown(space.free_bytes)
        if space.limit_bytes >= space.size_bytes:
            whole = space.shown(space.size_bytes)
            raise CheckError(f"{limit} are never free on a disk of {whole}")
        if space.free_bytes >= space.limit_bytes:
            return f"{free} are free in the spool, {action} below {limit}"
        lacks = f"only {free} are free in the spool, of {limit} at least"
        if action is not DiskLackAction.FLUSH:
            raise CheckError(f"{lacks}; the agent would begin with -disk-lack-action {action}")
        return f"{lacks}: bundles are sealed early"

    def _inotify(self) -> str:
        if self._config.watch in {Watch.SCAN, Watch.WATCHDOG}:
            return f"not used: -watch is {self._config.watch}"
        if not INOTIFY.is_dir():
            raise CheckError("not on this system; the agent will scan instead")
        limits = {
            name: int((INOTIFY / name).read_text())
            for name in ("max_user_instances", "max_user_watches", "max_queued_events")
        }
        text = ", ".join(f"{name} {value}" for name, value in limits.items())
        roots = [str(self._config.spool / datatype.name) for datatype in self._config.datatypes]
        with open_arrivals(roots, extensions=self._config.extensions) as arrivals:
            if arrivals.degraded:
                raise CheckError(f"{arrivals.degraded}; the agent will scan instead ({text})")
        return text

    def _schemas(self) -> str:
        self._tables = schema_sync.read_schemas(self._config.datatypes)
        return f"{len(self._config.datatypes)} good"

    def _asset_files(self) -> str:
        """Test the asset files; a wrong one keeps no agent from starting, but is not uploaded."""
        self._assets, errors = asset_sync.read_files(self._config)
        if errors:
            raise CheckError("; ".join(str(error) for error in errors))
        return f"{len(self._assets)} good" if self._assets else "none"

    def _compares(self, storage: Storage, file: AssetFile) -> str:
        """Test that the bucket has the asset, or that the agent will store it."""
        pair = asset_sync.compare(storage, self._config.place, file.datatype, file.asset)
        newer = pair.stored in {Stored.ABSENT, Stored.OLDER}
        if pair.stored in {Stored.DIFFERS, Stored.UNREADABLE}:
            raise CheckError(asset_sync.explain(pair))
        if newer and not self._config.upload_schema:
            raise CheckError(f"{asset_sync.explain(pair)}; and -upload-schema is false")
        return asset_sync.explain(pair)

    def _credentials(self) -> str:
        self._storage = open_storage(self._config.bucket)
        return "found" if self._config.bucket.startswith("gs:") else "not needed"

    def _bucket(self, storage: Storage) -> str:
        """Test that an object can be created and read; name it if it may not be removed."""
        name = f"{self._config.place.root}/.check/{self._config.node}-{uuid4().hex}"
        content = b'{"jostler": "pre-flight check"}\n'
        storage.put_new(name, content, {})
        if storage.read(name).data != content:
            raise CheckError(f"{name} was read with other bytes than were written")
        try:
            storage.remove(name)
        except JostlerError as exc:
            return f"{storage.url}: can create and read; {name} could not be removed ({exc})"
        return f"{storage.url}: can create and read"

    def _clock(self, storage: Storage) -> str:
        theirs = storage.clock()
        if theirs is None:
            return "the same as the bucket's, which is on this machine"
        skew_s = (datetime.now(UTC) - theirs).total_seconds()
        if abs(skew_s) > SKEW_MAX_S:
            raise CheckError(f"differs by {skew_s:+.0f} s from the bucket's clock; set up NTP")
        return f"within {abs(skew_s) + 1:.0f} s of the bucket's clock"

    def _fits(self, datatype: str, fields: Fields) -> str:
        """Test that the agent would start with this table schema; say how it differs."""
        assert self._storage
        found = schema_sync.compare_stored(self._storage, self._config.place, datatype, fields)
        if found.comparison is None:
            if not self._config.upload_schema and datatype not in OWN_DATATYPES:
                raise CheckError(f"{found.name} is not stored and -upload-schema is false")
            return "new"
        match found.comparison.relation:
            case Relation.EQUAL:
                return "as stored"
            case Relation.ADDITIONS if self._config.upload_schema:
                _try_to_replace(self._storage, found)
                return f"adds {', '.join((*found.comparison.added, *found.comparison.relaxed))}"
            case Relation.ADDITIONS:
                differences = "; ".join(schema_sync.additions(found.comparison))
                raise CheckError(f"{differences}; and -upload-schema is false")
            case Relation.OLDER:
                lacks = ", ".join(found.comparison.missing)
                raise CheckError(f"older than the stored schema: lacks {lacks}")
            case _:
                raise SchemaError(f"{found.name} conflicts:", list(found.comparison.conflicts))


def _try_to_replace(storage: Storage, pair: schema_sync.SchemaPair) -> None:
    """Replace a stored schema with its own bytes, to test the permission to replace it.

    `testIamPermissions` answers for the bucket as a whole, and IAM conditions may grant the
    permission for some object names only.

    Raises:
        CheckError: the agent may not replace the object.
    """
    try:
        storage.replace(pair.name, pair.data, pair.version)
    except ConflictError:  # another node replaced it just now; the agent will compare again
        return
    except AuthError as exc:
        raise CheckError(
            f"must be extended, but may not be written: {exc}; {schema_sync.MAY_NOT_WRITE}"
        ) from exc


def _existing(directory: Path) -> Path:
    """Return the directory, or the nearest one above it that exists."""
    return next(path for path in (directory, *directory.parents) if path.is_dir())


def _try_to_write(directory: Path) -> None:
    """Create and delete a hidden file."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".jostler-check-"):
        pass
