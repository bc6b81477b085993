"""The optional module `jostler_native`, written in Rust: whether it can be used, and its judges.

**Invariant:** it only accepts; a document that it does not accept is undecided and goes to the
judges in Python.  So it changes how long an answer takes, and never the answer.  For the
archive it hashes, too: `jostler.archive.hashes`.

It is a distribution of its own (`native/`).  A module that is missing, cannot be imported, is of
another version, lacks something or does not answer as it should is not used; `Native.why_not` says
which.
"""

from __future__ import annotations

import importlib
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from jostler.errors import ConfigError
from jostler.schema.fields import Field, Mode

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Sequence

    from jostler.schema.fields import Fields

VERSION = "1.4.0"
"""The version that goes with these judges; native/Cargo.toml has the same."""
NONE = "none"
_MODULE = "jostler_native"
# All that is called: a module that was built between two versions may lack some of it.
_CALLED = (
    *("Judge.accepts", "Judge.read_batch", "Judge.take_rows", "digests", "index_rows"),
    *("Index.of", "Index.name_keys", "Index.name_keys_of", "Index.take", "Merge.index_text"),
    "unlink_unchanged",
)
_ALL = attrgetter(*_CALLED)
# A document for each thing that must be right before its word is taken.
_COLUMNS = (
    Field(name="A", type="INTEGER", mode=Mode.REQUIRED),
    Field(name="B", type="TIMESTAMP", mode=Mode.REPEATED),
)
_GOOD = (b'{"A":1}', b'{"a":-1,"B":["2020-02-29T00:00:00.1Z"],"x":null}')
_BAD = (
    *(b"", b"{}", b"[]", b'{"A":1.5}', b'{"A":1}{"A":1}', b'{"A":9223372036854775808}'),
    *(b'{"A":1,"a":2}', b'{"A":1,"x":1}', b'{"A":1,"B":[null]}', b'{"A":"\xff"}'),
    b'{"A":1,"B":["2021-02-29T00:00:00Z"]}',
)


class Use(StrEnum):
    """Whether the native module is used: if it is there, never, or as a condition to start."""

    AUTO = "auto"
    OFF = "off"
    REQUIRE = "require"


class UnlinkMany(Protocol):
    """Unlinks files of one directory that certainly still are what was read."""

    def __call__(self, directory: int, paths: Sequence[str], skip: int, numbers: array[int]) -> int:
        """Unlink files, up to the first about which anything has to be decided.

        Args:
            directory: descriptor of the directory.
            paths: of files in it.
            skip: characters of each path before its name.
            numbers: five for each file, as `jostler.bundle.entry.EntryRow` has them.

        Returns:
            How many were unlinked, counted from the first.
        """


class NativeJudge(Protocol):
    """Accepts good documents of one table; any number of threads may share one."""

    def accepts(self, document: bytes) -> bool:
        """Return True if the document is certainly good; False means undecided."""

    def take_rows(
        self,
        block: bytes,
        at: int,
        *,
        start: bytes,
        end: bytes,
        day: bytes,
        salt: bytes,
        most: int,
    ) -> tuple[int, int, bytes]:
        """Judge and identify the rows of a bundle, up to the first that is not usual and good.

        Args:
            block: lines.
            at: where in the block the first line begins.
            start: what the usual rows have before their Filename.
            end: what they have between Filename and `raw`.
            day: `2022/09/29/`.
            salt: what names are hashed after.
            most: the size of the longest row that is taken, in bytes.

        Returns:
            Where the first line begins that was not taken, how many rows were taken, and their
            identities, concatenated.
        """

    def read_batch(
        self,
        directory: int,
        names: Sequence[str],
        *,
        head: bytes,
        folder: bytes,
        room_bytes: int,
        ask_writer: bool,
        lease_suffices: bool,
        settled_ns: int,
    ) -> tuple[list[bytes], list[int], list[bytes], bool]:
        """Read files of a directory, up to the first that is not usual and good.

        Args:
            directory: descriptor of the directory.
            names: of files in it; each is allowed by `check_file_name`.
            head: the part of each row before the Filename.
            folder: the day's directory as it stands in Filenames.
            room_bytes: the size that all rows together may have.
            ask_writer: whether to ask the kernel if a process has a file open for writing.
            lease_suffices: whether a file is taken at any age if the kernel says that no process
                writes it.
            settled_ns: with `ask_writer`, other files are taken if they did not change since.

        Returns:
            Their rows, five numbers for each (inode, size, mtime and ctime in nanoseconds, when it
            was read in microseconds), the hashes of their documents, and whether it ended at a
            file that is not usual and good.
        """


class Native(Struct, frozen=True, kw_only=True):
    """The native module, if it is used.

    Attributes:
        use: what was asked for.
        module: the module; None if it is not used.
        why_not: why it is not used although it was asked for; else empty.
        is_absent: whether that is because it is not installed.
    """

    use: Use
    module: Any = None
    why_not: str = ""
    is_absent: bool = False

    @property
    def version(self) -> str:
        """The version that is used, or `none`."""
        return VERSION if self.module else NONE

    @property
    def description(self) -> str:
        """The version that is used, or `none` and why, for people."""
        return f"{NONE}: {self.why_not}" if self.why_not else self.version

    @property
    def unlink_many(self) -> UnlinkMany | None:
        """What unlinks many files in one call; None if the module is not used."""
        many: UnlinkMany | None = self.module and self.module.unlink_unchanged
        return many

    def judge(self, fields: Fields | None) -> NativeJudge | None:
        """Return the judge of rows with these columns, or with None of any JSON objects.

        Returns None if the module is not used, or cannot judge such columns.
        """
        if not self.module:
            return None
        try:
            judge: NativeJudge = self.module.Judge(fields)
        except (ValueError, TypeError, OverflowError):  # columns that only a strange table has
            return None
        return judge


UNUSED = Native(use=Use.OFF)


def find(use: Use, load: Callable[[str], Any] = importlib.import_module) -> Native:
    """Look for the native module.

    Args:
        use: whether it is wanted.
        load: imports a module by its name.

    Raises:
        ConfigError: it is required and cannot be used.
    """
    if use is Use.OFF:
        return UNUSED
    found = _found(use, load)
    if use is Use.REQUIRE and not found.module:
        hint = "install the jostler-native of this version, or give auto"
        raise ConfigError([f"-native require: {found.why_not}; {hint}"])
    return found


def _found(use: Use, load: Callable[[str], Any]) -> Native:
    try:
        module = load(_MODULE)
    except Exception as exc:  # noqa: BLE001 - a broken module may raise anything
        # What it imports itself may be missing, too.
        if isinstance(exc, ModuleNotFoundError) and exc.name == _MODULE:
            return Native(use=use, why_not="jostler-native is not installed", is_absent=True)
        error = f"{type(exc).__name__}: {exc}"
        return Native(use=use, why_not=f"jostler-native cannot be imported: {error}")
    why_not = _fault(module)
    return Native(use=use, why_not=why_not) if why_not else Native(use=use, module=module)


def _fault(module: Any) -> str:  # noqa: ANN401 - a module
    """Return why a module cannot be used; empty if it can."""
    version = getattr(module, "VERSION", "unknown")
    if version != VERSION:
        return f"jostler-native is of version {version}, and {VERSION} is needed"
    if lacking := _lacking(module):
        return f"jostler-native lacks {lacking}; it was built before {VERSION} was complete"
    try:
        answers = _answers(module.Judge(_COLUMNS))
    except Exception as exc:  # noqa: BLE001 - a broken module may raise anything
        return f"jostler-native does not work: {type(exc).__name__}: {exc}"
    return "" if answers else "jostler-native does not judge as it should"


def _lacking(module: Any) -> str:  # noqa: ANN401 - a module
    """Return what a module has not of all that is called; empty if nothing."""
    try:
        _ALL(module)  # this is asked for each bundle, so all at once
    except AttributeError:
        return ", ".join(name for name in _CALLED if not _has(module, name))
    return ""


def _has(module: Any, name: str) -> bool:  # noqa: ANN401 - a module
    """Return whether a module has something, by its dotted name."""
    try:
        attrgetter(name)(module)
    except AttributeError:
        return False
    return True


def _answers(judge: NativeJudge) -> bool:
    """Return whether a judge answers as it should: the module may be built wrongly."""
    return all(map(judge.accepts, _GOOD)) and not any(map(judge.accepts, _BAD))
