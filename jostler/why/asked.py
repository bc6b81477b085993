"""The question of `jostler why`: the typed text, split into datatype, directory and name.

**Invariant:** a part that the text does not contain stays empty and matches anything; no part is
guessed.

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
    """The file that a user asks about.

    Attributes:
        text: what the user typed.
        path: below the experiment's spool, when the text is a path of that spool; else empty.
        datatype: empty when it is not known.
        directory: the path below the datatype's directory, normally `yyyy/mm/dd`; None when not
            known.
        name: the file's own name.
    """

    text: str
    path: str
    datatype: str
    directory: str | None
    name: str

    @property
    def day(self) -> date | None:
        """The day in the path; None if there is none."""
        try:
            return Day.parse(self.directory or "").date
        except ValueError:
            return None

    @property
    def filename(self) -> str | None:
        """The path below the datatype's directory, as in a row; None when not known."""
        if self.directory is None:
            return None
        return f"{self.directory}/{self.name}" if self.directory else self.name

    def matches(self, path: str) -> bool:
        """Return whether a path below the experiment's spool may be this file."""
        if self.path:
            return path == self.path
        datatype, _, filename = path.partition("/")
        if self.datatype not in {"", datatype}:
            return False
        if self.filename is not None:
            return filename == self.filename
        return filename.rpartition("/")[2] == self.name

    def matches_row(self, filename: str) -> bool:
        """Return whether a row's Filename may be this file; the Go agent's is an absolute path."""
        wanted = display(self.name if self.filename is None else self.filename)
        if not filename.startswith("/") and self.filename is not None:
            return filename == wanted
        tail = f"/{wanted}"
        if filename.startswith("/") and self.datatype and self.filename is not None:
            tail = f"/{self.datatype}/{wanted}"
        return f"/{filename}".endswith(tail)


def parse(text: str, *, spool: str, datatypes: Collection[str]) -> Asked:
    """Parse what the user typed: a path, a Filename, or a bare file name.

    Args:
        text: an absolute path; a path below the experiment or below a datatype; or a name.
        spool: the experiment's directory, without a slash at its end; may be empty.
        datatypes: the known datatypes.

    Raises:
        ValueError: the text names no file.
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
    """Return the datatype and the directory of a file from the folders of its path."""
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
