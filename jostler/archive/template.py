"""Names for fetched files, made of index columns: `{Datatype}/{start_iso}-{Node}.json`.

**Invariant:** only the fields listed here can be used, and nothing of their values is evaluated.

Pure.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING

from jostler.words import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from jostler.archive.files import File


def _iso(when: datetime | None) -> str:
    return rfc3339(when) if when else ""


FIELDS: dict[str, Callable[[File], str]] = {
    "Filename": lambda file: file.path,
    "Name": lambda file: file.name,
    "Size": lambda file: str(file.size),
    "TimeAdded": lambda file: _iso(file.added),
    "Datatype": lambda file: file.datatype,
    "Node": lambda file: file.node,
    "ArchiveURL": lambda file: file.origin.url,
    "Line": lambda file: str(file.line),
    "Hash": lambda file: file.hash,
    "Offset": lambda file: "" if file.offset is None else str(file.offset),
    "Length": lambda file: "" if file.length is None else str(file.length),
    "Start": lambda file: _iso(file.start),
    "End": lambda file: _iso(file.end),
    "WorkID": lambda file: file.work_id or "",
    "start_iso": lambda file: f"{file.begin:%Y%m%dT%H%M%SZ}",
    "end_iso": lambda file: f"{file.finish:%Y%m%dT%H%M%SZ}",
}
"""Each field with its value: the columns of index1, Name (the end of Filename), and the first and
the last instant as `20260102T101112Z`, which never are empty."""


class Template:
    """A parsed template.

    Args:
        text: with fields in braces; `{{` and `}}` are braces.

    Raises:
        ValueError: it has an unknown field, or is no template.
    """

    def __init__(self, text: str) -> None:
        self._parts: list[tuple[str, str]] = []
        for before, name, spec, conversion in Formatter().parse(text):
            if name is not None and (name not in FIELDS or spec or conversion):
                known = ", ".join(FIELDS)
                raise ValueError(f"{{{name}}} is no field of a template; there are {known}")
            self._parts.append((before, name or ""))
        if not text or text.endswith("/"):
            raise ValueError(f"{text!r} names no file")

    def name(self, file: File) -> str:
        """Return the name for a file; slashes separate directories."""
        return "".join(
            before + (FIELDS[name](file) if name else "") for before, name in self._parts
        )
