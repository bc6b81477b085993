"""Find a file in the spool, and say why the agent has not taken it yet.

**Invariant:** it only reads.  It decides with the agent's own code (`Wanted`, `Ages`, `placed`,
`read_file`), so both cannot disagree.
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

from jostler.agent.paths import placed
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
    """The part of an agent's configuration that decides whether and when it takes a file.

    Attributes:
        spool: the experiment's directory.
        datatypes: the datatypes that it takes; empty if they are not known.
        extensions: the endings of the names that it takes.
        state_dir: the directory of its journal.
        ages: how old a file must be before a scan takes it.
    """

    spool: Path
    datatypes: tuple[str, ...]
    extensions: tuple[str, ...]
    state_dir: Path
    ages: Ages

    @classmethod
    def of(cls, config: Config, ages: Ages) -> Setting:
        """Return the setting of a configuration."""
        return cls(
            spool=config.spool,
            datatypes=tuple(datatype.name for datatype in config.datatypes),
            extensions=config.extensions,
            state_dir=config.state_dir,
            ages=ages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """What is known about the agent that should take the files.

    Attributes:
        runs: whether it answers.
        holds_back: why it takes no file at all now, in words; empty if it takes files.
        scan: when the next scan of the whole spool begins, in words; empty if not known.
    """

    runs: bool
    holds_back: str = ""
    scan: str = ""


def files(asked: Asked, setting: Setting) -> tuple[list[str], Looked]:
    """Return the paths, below the spool, of the files that the user may mean; at most `FOUND_MOST`.

    Returns:
        The paths, and what was searched, or why it could not be.
    """
    try:
        os.scandir(setting.spool).close()
    except OSError as exc:
        here = Looked(WHERE, False, f"{setting.spool}: {exc.strerror}")
    else:
        here = Looked(WHERE, True, str(setting.spool))
    found = list(islice(_files(asked, setting), FOUND_MOST))
    if here.done:
        more = " and perhaps more: give its path" if len(found) == FOUND_MOST else ""
        here = replace(here, text=f"{here.text}: {len(found)} files of this name{more}")
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
            pass  # it may exist: `waiting` reports why it cannot be read
        yield path


def _directories(top: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(top) if entry.is_dir())
    except OSError:
        return []


def _walk(asked: Asked, setting: Setting) -> Iterator[str]:
    """Yield the paths of files with this name in all directories except the journal's."""
    top = setting.spool / asked.datatype if asked.datatype else setting.spool
    for folder, folders, names in os.walk(top):
        if folder == str(setting.state_dir):
            folders.clear()
        elif asked.name in names:
            yield os.path.relpath(f"{folder}/{asked.name}", setting.spool)


def waiting(path: str, setting: Setting, agent: AgentView) -> Finding | None:
    """Return why the agent has not taken a file that no bundle holds; None if there is no file.

    Args:
        path: the path below the spool.
        setting: the agent's configuration.
        agent: whether the agent takes files now.
    """
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
    why, following = _reason(path, state, setting, agent)
    if read.writer and not agent.holds_back:
        why = "a process has it open for writing"
        following = "the agent takes it when that process closes it"
    evidence = on_disk(str(setting.spool), path, state)
    return replace(found, state=State.WAITING, why=why, next=following, evidence=evidence)


def _ignored(path: str, setting: Setting, status: os.stat_result) -> tuple[str, str]:
    """Return why the agent ignores a file, and what a person can do.

    Both texts are empty if the agent does not ignore it.  `status` is the status of the path
    itself, not of what a link points to.
    """
    datatype, slash, rest = path.partition("/")
    wanted = Wanted(setting.extensions)
    if not slash:
        return "it is in no datatype's directory", "move it to <datatype>/<yyyy>/<mm>/<dd>/"
    if setting.datatypes and datatype not in setting.datatypes:
        known = ", ".join(setting.datatypes)
        why = f"the agent does not take datatype {datatype!r}, only {known}"
        following = "add the datatype to the agent's -datatype"
    elif not wanted.below(rest):
        why = "a name in its path begins with a dot, which marks unfinished files"
        following = "the agent takes it when the service renames it"
    elif not wanted.file(rest):
        why = f"its name does not end with {' or '.join(setting.extensions)}"
        following = "rename it, or add its ending to the agent's -extensions"
    elif not stat.S_ISREG(status.st_mode):
        why = "it is a link, a directory or a pipe, not a regular file"
        following = "write a regular file"
    elif link := _link_above(path, setting.spool):
        why = f"{link} is a symbolic link, and the agent follows none"
        following = "use a real directory"
    else:
        why = following = ""
    return why, following


def _link_above(path: str, top: Path) -> str:
    """Return the first directory on the path below `top` that is a symbolic link; empty if none."""
    folder = top
    for part in path.split("/")[:-1]:
        folder /= part
        if folder.is_symlink():
            return str(folder)
    return ""


def _reason(path: str, state: FileState, setting: Setting, agent: AgentView) -> tuple[str, str]:
    """Return why a file that the agent should take is not taken yet, and what happens next."""
    datatype, _, filename = path.partition("/")
    _, rejection = placed(datatype, filename)
    bad = f"it cannot be archived ({rejection.reason}: {rejection.detail})" if rejection else ""
    if agent.holds_back:
        following = "the agent takes it when that is over, without help"
        if not agent.runs:
            following = "start the agent; if it runs, give its address: -address HOST:PORT"
        return f"{agent.holds_back}; and {bad}" if bad else agent.holds_back, following
    now_ns = time.time_ns()
    missed_s = setting.ages.until_missed_s(state, now_ns)
    settled_s = setting.ages.until_settled_s(state, now_ns)
    if bad:
        return bad, f"the agent rejects it when it is closed, or by a scan {_when(missed_s)}"
    if settled_s > 0:
        why = "no event has announced its close yet, and its last change is less than"
        return (
            f"{why} {duration(setting.ages.settle_s)} (-settle-age) ago",
            f"the agent takes it when it is closed, or by a scan {_when(settled_s)}",
        )
    return (
        "it is old enough, but no event has announced it and no scan has reached it yet",
        f"the next scan takes it{f', {agent.scan}' if agent.scan else ''}",
    )


def _when(seconds: float) -> str:
    return f"in {duration(seconds)}" if seconds > 0 else "by the next scan"


def _unreadable(path: str, full: str, exc: OSError) -> Finding:
    return Finding(
        state=State.WAITING,
        file=path,
        since=None,
        why=f"the user of this program (uid {os.geteuid()}) cannot read it: {exc.strerror}",
        next="give that user access; after three scans the agent rejects it as unreadable",
        evidence={"path": full},
    )


def on_disk(spool: str, path: str, state: FileState) -> dict[str, Value]:
    """Return the evidence for a file on the disk: path, size, mtime and, for a small file, hash.

    The hash is the one in index rows.
    """
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
    """Return since when a file has its content and its name: the later of mtime and ctime."""
    return instant(max(state.mtime_ns, state.ctime_ns))


def instant(nanoseconds: int) -> datetime:
    """Return nanoseconds since 1970 as a UTC time, truncated to microseconds."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1000)
