"""The question: what somebody typed, taken apart as far as it can be.

**Invariant:** what is not known stays empty, and matches anything; nothing is guessed that a
reader could not see in the text.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.format.names import Day, display

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date

_DAY_PARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A file that somebody asks for.

    Attributes:
        text: as it was typed.
        path: below the experiment's spool, when the text is a path of that spool; else empty.
        datatype: empty when it is not known.
        directory: below the datatype's directory, normally `yyyy/mm/dd`; None when not known.
        name: of the file itself.
    """

    text: str
    path: str
    datatype: str
    directory: str | None
    name: str

    @property
    def day(self) -> date | None:
        """The day that the path names, if it names one."""
        try:
            return Day.parse(self.directory or "").date
        except ValueError:
            return None

    @property
    def filename(self) -> str | None:
        """The path below the datatype's directory, as rows have it; None when not known."""
        if self.directory is None:
            return None
        return f"{self.directory}/{self.name}" if self.directory else self.name

    def matches(self, path: str) -> bool:
        """Say whether a path below the experiment's spool may be the one that is meant."""
        if self.path:
            return path == self.path
        datatype, _, filename = path.partition("/")
        if self.datatype not in {"", datatype}:
            return False
        if self.filename is not None:
            return filename == self.filename
        return filename.rpartition("/")[2] == self.name

    def matches_row(self, filename: str) -> bool:
        """Say the same of the Filename of a row; the Go agent writes an absolute path."""
        wanted = display(self.name if self.filename is None else self.filename)
        if not filename.startswith("/") and self.filename is not None:
            return filename == wanted
        tail = f"/{wanted}"
        if filename.startswith("/") and self.datatype and self.filename is not None:
            tail = f"/{self.datatype}/{wanted}"
        return f"/{filename}".endswith(tail)


def parse(text: str, *, spool: str, datatypes: Collection[str]) -> Asked:
    """Take apart what was typed: a path, a Filename, or a bare file name.

    Args:
        text: an absolute path; a path below the experiment or below a datatype; or a name.
        spool: the experiment's directory, without a slash at its end; may be empty.
        datatypes: that are known.

    Raises:
        ValueError: it names no file.
    """
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if not parts or text.endswith("/") or "\0" in text or ".." in parts:
        raise ValueError(f"{text!r} names no file")
    path = ""
    if spool and text.startswith(f"{spool}/"):
        path = "/".join(part for part in text[len(spool) :].split("/") if part not in {"", "."})
        parts = path.split("/")
    *folders, name = parts
    datatype, directory = _folders(folders, datatypes, inside=bool(path))
    if not path and not text.startswith("/") and datatype and directory is not None:
        path = "/".join(part for part in (datatype, directory, name) if part)
    return Asked(text=text, path=path, datatype=datatype, directory=directory, name=name)


def _folders(
    folders: list[str], datatypes: Collection[str], *, inside: bool
) -> tuple[str, str | None]:
    """Return datatype and directory of a file in these folders."""
    if not folders:
        return "", None
    day = "/".join(folders[-_DAY_PARTS:])
    rest = folders[:-_DAY_PARTS]
    is_day = _is_day(day)
    if not inside and is_day and not rest:
        return "", day
    if inside or folders[0] in datatypes:
        return folders[0], "/".join(folders[1:])
    if is_day:
        return rest[-1], day
    if folders[0].isdecimal():  # a Filename whose day does not exist
        return "", "/".join(folders)
    return folders[0], "/".join(folders[1:])


def _is_day(path: str) -> bool:
    try:
        Day.parse(path)
    except ValueError:
        return False
    return True
