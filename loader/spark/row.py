"""Split a row into its parts and compute its identity, by which repeated rows are found.

**Invariant:** rows with equal node, Filename and bytes of `raw` have equal identities, whichever
agent wrote them and whatever the order and letter case of their keys.  Rows are not parsed as JSON
where that can be avoided.

Identities are used only within a run.  Node and Filename are hashed by 8 bytes of BLAKE2b: to forge
a row that counts as another node's, one must try about 2^64 names.  Contents are compared only
within one node and Filename, and are hashed by XXH3 with 128 bits, which is fifteen times as fast.
By chance, different contents collide once in 2^128; somebody could construct a collision, but only
between files of the same node and name.

Pure.  docs/format.md has the rules of the format.  Rows of m-lab's Go agent have the columns
`Date`, `Archiver` and `Raw` and an absolute Filename; its index1 rows have no standard columns.
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
    """The bytes around the Filename that all usual rows of a bundle share.

    Attributes:
        start: everything before the Filename.
        end: from the quote after the Filename to before `raw`.  If rows must be parsed one by one,
            both are a line feed, which matches no row.
    """

    start: bytes
    end: bytes


NO_HEAD = Head(b"\n", b"\n")


@dataclass(frozen=True, slots=True)
class Parts:
    """The file and content of a row; `date` is the value of the column, None if there is none."""

    date: object
    filename: str
    raw: bytes


def head_of(line: bytes, day: Day) -> Head:
    """Return how the rows of a bundle begin, given one of them, if it has the usual form."""
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
    """Parse a row of any form; return None if it is not an object with an archiver."""
    try:
        columns = {key.lower(): bytes(value) for key, value in _TOP.decode(line).items()}
        archiver = orjson.loads(columns["archiver"])
        names = {key.lower(): value for key, value in archiver.items()}
        date = orjson.loads(columns.get("date", b"null"))
        return Parts(date, str(names.get("filename") or ""), columns["raw"])
    except (msgspec.DecodeError, ValueError, KeyError, AttributeError, RecursionError):
        return None


def lacking(line: bytes) -> str:
    """Return the name of the standard column that a row lacks."""
    columns = {key.lower() for key in _TOP.decode(line)}
    return next((name for name in ("archiver", "raw") if name not in columns), "archiver")


def relative(filename: bytes, day: bytes) -> bytes:
    """Return the end of a Filename from its day on, `2022/09/29/name`, if it contains the day.

    Args:
        filename: relative, or absolute as the Go agent writes it.
        day: `2022/09/29/`.
    """
    if filename.startswith(day):
        return filename
    place = filename.find(b"/" + day)
    return filename[place + 1 :] if place >= 0 else filename


def salt(table: int, day: Day, node: str) -> bytes:
    """Return what the names of a table, day and node are hashed after."""
    # None of these has a NUL, so other values never give the same text.
    return f"{table}\0{day.iso}\0{node}\0".encode()


def identities(table: int, day: Day, node: str) -> Any:  # noqa: ANN401 - hashlib's type is private
    """Return the hash state of a table, day and node, from which each identity is computed."""
    return hashlib.blake2b(salt(table, day, node), digest_size=8)


def identity(begun: Any, filename: bytes, raw: bytes | memoryview) -> bytes:  # noqa: ANN401 - as above
    """Return 24 bytes: 8 for node and Filename, 16 for the content."""
    digest = begun.copy()
    digest.update(filename)
    name: bytes = digest.digest()
    return name + xxh3_128_digest(raw)


def wrapped(line: bytes, day: Day, url: str, filename: str) -> bytes:
    """Put the standard columns around a bare line; the day is the one in the bundle's name."""
    columns = {
        "date": day.iso,
        "archiver": {"Version": "", "GitCommit": "", "ArchiveURL": url, "Filename": filename},
    }
    return orjson.dumps(columns)[:-1] + b',"raw":' + line + b"}"


def capitalised(fields: Fields) -> Fields:
    """Spell the standard columns as the Go agent does, so that the fast judge accepts its rows."""
    return tuple(
        replace(field, name=field.name.capitalize()) if field.key in STANDARD else field
        for field in fields
    )


def raw_fields(fields: Fields) -> Fields:
    """Return the columns inside of `raw`; those of the table itself if it has no `raw`."""
    found = [field for field in fields if field.key == "raw" and isinstance(field, Field)]
    return found[0].fields if found else fields
