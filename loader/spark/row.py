"""One row taken apart: whose file it was, and what makes it the same row as another.

**Invariant:** equal (node, Filename, bytes of `raw`) give equal identities, whichever agent wrote
the row, and in whatever order or case its keys stand; nothing is parsed that need not be.

An identity lives no longer than a run.  Node and Filename go through BLAKE2b, 8 bytes of it: who
wants a row that stands for another node's must try 2^64 names.  Contents matter only under one node
and Filename, and go through XXH3: two that differ are taken for one another once in 2^128 by
chance, else only if the producer of both made them so; and it is fifteen times as fast.

Pure.  The rules of writing are docs/format.md's; rows of m-lab's Go agent say `Date`, `Archiver`
and `Raw`, have an absolute Filename, and those of its index1 have no standard columns at all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import orjson
from xxhash import xxh3_128_digest

from jostler.schema import Field

if TYPE_CHECKING:
    from jostler.format.names import Day
    from jostler.schema import Fields

KEY_BYTES = 24
STANDARD = ("date", "archiver", "raw")
_FILENAME = b'"Filename":"'
_ENDS = (b'"},"raw":', b'"},"Raw":')
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Head:
    """What all rows of a bundle begin with, and how they go on after the Filename.

    Attributes:
        start: everything before the Filename.
        end: from the quote after the Filename to before `raw`.  When rows have to be parsed one
            by one, both are a line feed, which no line has.
    """

    start: bytes
    end: bytes


NO_HEAD = Head(b"\n", b"\n")


@dataclass(frozen=True, slots=True)
class Parts:
    """A row's file and content; `date` is what its column says, None when it says nothing."""

    date: object
    filename: str
    raw: bytes


def head_of(line: bytes, day: Day) -> Head:
    """Learn from a row how rows of its bundle begin, if it is of the usual form."""
    place = line.find(_FILENAME)
    for end in _ENDS:
        stop = line.find(end, place)
        if place < 0 or stop < 0:
            continue
        start = line[: place + len(_FILENAME)]
        try:
            columns = orjson.loads(start + b'"}}')
        except ValueError:
            continue
        keys = {key.lower(): value for key, value in columns.items()}
        archiver = keys.get("archiver")
        if (
            list(keys) == ["date", "archiver"]
            and len(columns) == len(keys)
            and keys["date"] == day.iso
            and isinstance(archiver, dict)
            and "Filename" in archiver
        ):
            return Head(start, end)
    return NO_HEAD


def parts(line: bytes) -> Parts | None:
    """Take any row apart by parsing it; None when it is not an object with an archiver."""
    try:
        columns = {key.lower(): bytes(value) for key, value in _TOP.decode(line).items()}
        archiver = orjson.loads(columns["archiver"])
        names = {key.lower(): value for key, value in archiver.items()}
        date = orjson.loads(columns.get("date", b"null"))
        return Parts(date, str(names.get("filename") or ""), columns["raw"])
    except (msgspec.DecodeError, ValueError, KeyError, AttributeError):
        return None


def lacking(line: bytes) -> str:
    """Name the standard column for want of which a row cannot be taken apart."""
    columns = {key.lower() for key in _TOP.decode(line)}
    return next((name for name in ("archiver", "raw") if name not in columns), "archiver")


def relative(filename: bytes, day: bytes) -> bytes:
    """Cut a Filename to the part from its day on, `2022/09/29/name`, if it has one.

    Args:
        filename: relative, or absolute as the Go agent writes it.
        day: `2022/09/29/`.
    """
    if filename.startswith(day):
        return filename
    place = filename.find(b"/" + day)
    return filename[place + 1 :] if place >= 0 else filename


def identities(table: int, day: Day, node: str) -> Any:  # noqa: ANN401 - hashlib's type is private
    """Return the hash that each identity begins with: days and tables are apart, and nodes."""
    return hashlib.blake2b(f"{table}\0{day.iso}\0{node}\0".encode(), digest_size=8)


def identity(begun: Any, filename: bytes, raw: bytes | memoryview) -> bytes:  # noqa: ANN401 - as above
    """Return 24 bytes: 8 that stand for node and Filename, 16 for the content."""
    digest = begun.copy()
    digest.update(filename)
    name: bytes = digest.digest()
    return name + xxh3_128_digest(raw)


def wrapped(line: bytes, day: Day, url: str, filename: str) -> bytes:
    """Put the standard columns around a bare line; the day is that of the bundle's path."""
    columns = {
        "date": day.iso,
        "archiver": {"Version": "", "GitCommit": "", "ArchiveURL": url, "Filename": filename},
    }
    return orjson.dumps(columns)[:-1] + b',"raw":' + line + b"}"


def capitalised(fields: Fields) -> Fields:
    """Spell the standard columns as the Go agent's rows do, which keeps the judge fast."""
    return tuple(
        replace(field, name=field.name.capitalize()) if field.key in STANDARD else field
        for field in fields
    )


def raw_fields(fields: Fields) -> Fields:
    """Return the columns inside of `raw`; those of the table itself if it has no `raw`."""
    found = [field for field in fields if field.key == "raw" and isinstance(field, Field)]
    return found[0].fields if found else fields
