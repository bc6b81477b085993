"""The spool: which files of the name lie there, and why the agent has not taken them.

**Invariant:** looks, opens for reading, and changes nothing.  Each rule is asked of the code that
the agent itself goes by: `Wanted`, `Ages`, `placed`, `read_file`.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from jostler.agent.intake import placed
from jostler.bundle import REJECT_WHOLE_BYTES, Confined, FileState, read_file
from jostler.bundle.file import hash_file
from jostler.watchdir.walk import Wanted
from jostler.why.finding import Finding, Looked, State, Value
from jostler.words import duration, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.agent.ages import Ages
    from jostler.config import Config
    from jostler.why.asked import Asked

WHERE = "spool"
FOUND_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an agent was told that decides about a file.

    Attributes:
        spool: the experiment's directory.
        datatypes: that it takes; empty when that is not known.
        extensions: of files that it takes.
        state_dir: of its journal.
        ages: when a scan takes a file.
    """

    spool: Path
    datatypes: tuple[str, ...]
    extensions: tuple[str, ...]
    state_dir: Path
    ages: Ages

    @classmethod
    def of(cls, config: Config, ages: Ages) -> Setting:
        """Take it from an agent's configuration."""
        return cls(
            spool=config.spool,
            datatypes=tuple(datatype.name for datatype in config.datatypes),
            extensions=config.extensions,
            state_dir=config.state_dir,
            ages=ages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Doer:
    """The agent that is to take files, as far as it is known.

    Attributes:
        runs: whether it answers.
        holds_back: why it takes no file at all at the moment; empty if it takes them.
        scan: when the next scan of everything begins, in words; empty when not known.
    """

    runs: bool
    holds_back: str = ""
    scan: str = ""


def files(asked: Asked, setting: Setting) -> tuple[list[str], Looked]:
    """Return the paths, below the spool, of files that may be meant, and what was looked at."""
    try:
        os.scandir(setting.spool).close()
    except OSError as exc:
        here = Looked(WHERE, False, f"{setting.spool}: {exc.strerror}")
    else:
        here = Looked(WHERE, True, str(setting.spool))
    found = list(islice(_files(asked, setting), FOUND_MOST))
    if here.done:
        more = " and perhaps more: give its path" if len(found) == FOUND_MOST else ""
        here = replace(here, told=f"{here.told}: {len(found)} files of this name{more}")
    return found, here


def _files(asked: Asked, setting: Setting) -> Iterator[str]:
    if asked.path:
        candidates = [asked.path]
    elif asked.filename is not None:
        datatypes = [asked.datatype] if asked.datatype else _directories(setting.spool)
        candidates = [f"{datatype}/{asked.filename}" for datatype in datatypes]
    else:
        yield from _walk(asked, setting)
        return
    for path in candidates:
        try:
            os.lstat(setting.spool / path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            pass  # it may be there, and `waiting` says what hinders
        yield path


def _directories(top: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(top) if entry.is_dir())
    except OSError:
        return []


def _walk(asked: Asked, setting: Setting) -> Iterator[str]:
    """Look for a bare name in all directories but the journal's."""
    top = setting.spool / asked.datatype if asked.datatype else setting.spool
    for folder, folders, names in os.walk(top):
        if folder == str(setting.state_dir):
            folders.clear()
        elif asked.name in names:
            yield os.path.relpath(f"{folder}/{asked.name}", setting.spool)


def waiting(path: str, setting: Setting, doer: Doer) -> Finding | None:
    """Say why a file that no bundle holds was not taken yet; None when there is no such file."""
    full = f"{setting.spool}/{path}"
    try:
        status = os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        return _unreadable(path, full, exc)
    state = FileState.of(status)
    found = Finding(
        state=State.IGNORED, file=path, since=arrived(state), why="", next="", evidence={}
    )
    why, following = _ignored(path, setting, status)
    if why:
        return replace(found, why=why, next=following, evidence={"path": full})
    try:
        read = read_file(Confined(str(setting.spool)), path, 0, ask_writer=True)
    except OSError as exc:
        return replace(_unreadable(path, full, exc), since=found.since)
    why, following = _reason(path, state, setting, doer)
    if read.writer and not doer.holds_back:
        why = "a process has it open for writing"
        following = "it is taken when that process closes it"
    evidence = on_disk(str(setting.spool), path, state)
    return replace(found, state=State.WAITING, why=why, next=following, evidence=evidence)


def _ignored(path: str, setting: Setting, status: os.stat_result) -> tuple[str, str]:
    """Say why the agent never looks at such a file, and what would change that; or nothing."""
    datatype, slash, rest = path.partition("/")
    wanted = Wanted(setting.extensions)
    if not slash:
        return "it lies in no datatype's directory", "move it to <datatype>/<yyyy>/<mm>/<dd>/"
    if setting.datatypes and datatype not in setting.datatypes:
        known = ", ".join(setting.datatypes)
        why = f"the agent does not look at datatype {datatype!r}, only at {known}"
        following = "add the datatype to the agent's -datatype"
    elif not wanted.below(rest):
        why = "a name in its path begins with a dot, as those of unfinished files do"
        following = "its writer renames it when it is complete"
    elif not wanted.file(rest):
        why = f"its name does not end with {' or '.join(setting.extensions)}"
        following = "rename it, or add its ending to the agent's -extensions"
    elif not stat.S_ISREG(status.st_mode):
        why = "it is a link, a directory or a pipe, not a regular file"
        following = "write a regular file"
    elif link := _link_above(path, setting.spool):
        why, following = f"{link} is a symbolic link; none is followed", "use a real directory"
    else:
        why = following = ""
    return why, following


def _link_above(path: str, top: Path) -> str:
    """Return the directory below the spool, on the way to a file, that is a link; or nothing."""
    folder = top
    for part in path.split("/")[:-1]:
        folder /= part
        if folder.is_symlink():
            return str(folder)
    return ""


def _reason(path: str, state: FileState, setting: Setting, doer: Doer) -> tuple[str, str]:
    """Say why a file that the agent is to take was not taken yet, and what comes of it."""
    datatype, _, filename = path.partition("/")
    _, rejection = placed(datatype, filename)
    bad = f"it cannot be archived ({rejection.reason}: {rejection.detail})" if rejection else ""
    if doer.holds_back:
        following = "it is taken when that is over, without anybody's help"
        if not doer.runs:
            following = "start the agent, or ask it: -address HOST:PORT"
        return f"{doer.holds_back}; and {bad}" if bad else doer.holds_back, following
    now_ns = time.time_ns()
    missed_s = setting.ages.until_missed_s(state, now_ns)
    settled_s = setting.ages.until_settled_s(state, now_ns)
    if bad:
        return bad, f"it is rejected when it is closed, or else by a scan {_when(missed_s)}"
    if settled_s > 0:
        why = "as far as the agent knows nobody has closed it yet, and since its last change"
        return (
            f"{why} {duration(setting.ages.settle_s)} (-settle-age) have not passed",
            f"it is taken when it is closed, or else by a scan {_when(settled_s)}",
        )
    return (
        "it is old enough, and neither an event nor a scan has brought it to its turn yet",
        f"it is taken by the next scan{f', {doer.scan}' if doer.scan else ''}",
    )


def _when(seconds: float) -> str:
    return f"in {duration(seconds)}" if seconds > 0 else "by the next scan"


def _unreadable(path: str, full: str, exc: OSError) -> Finding:
    return Finding(
        state=State.WAITING,
        file=path,
        since=None,
        why=f"the user of this program (uid {os.geteuid()}) cannot read it: {exc.strerror}",
        next="give that user access; after three scans in vain the agent rejects it as unreadable",
        evidence={"path": full},
    )


def on_disk(spool: str, path: str, state: FileState) -> dict[str, Value]:
    """Return the facts of a file on the disk; its hash, as index rows have it, if it is small."""
    evidence: dict[str, Value] = {
        "path": f"{spool}/{path}",
        "size": state.size,
        "mtime": rfc3339(instant(state.mtime_ns)),
    }
    if state.size <= REJECT_WHOLE_BYTES:
        with suppress(OSError):
            evidence["hash"] = hash_file(Confined(spool), path).hex()
    return evidence


def arrived(state: FileState) -> datetime:
    """Return since when a file is as it is under its name."""
    return instant(max(state.mtime_ns, state.ctime_ns))


def instant(nanoseconds: int) -> datetime:
    """Make an aware instant of nanoseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1000)
