"""What the journal remembers of one bundle, and how it is written: lines of JSON.

**Invariant:** `read(lines(record))` gives the record back, and `read` refuses whatever names a file
that the intake would never have taken.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from jostler.bundle.bundle import Attempt, Bundle, Header, IndexForm
from jostler.bundle.entry import Entries, Entry, FileState
from jostler.format.blocks import Block
from jostler.format.compression import FAST, LEVELS, Compression, Method
from jostler.format.index_row import Facts
from jostler.format.names import OWN_DATATYPES, REJECTED, BundleName, Day, check_datatype
from jostler.format.row import Archiver, Rejection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.format.names import Place

FORMAT = 1
END = b"\n"
"""What ends a record that was written over a longer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of the journal.

    Attributes:
        header: of the bundle.
        attempts: every sealing that may have been uploaded under the name; the last is current.
        rejections: by path, for a rejected1 bundle.
        stored: data and index are durable; `attempts` is then the one that was stored.
    """

    header: Header
    attempts: tuple[Attempt, ...]
    rejections: dict[str, Rejection]
    stored: bool = False

    @classmethod
    def of(cls, bundle: Bundle) -> Record:
        """Make the record of a bundle that was just sealed."""
        return cls(header=bundle.header, attempts=(bundle.attempt,), rejections=bundle.rejections)

    @property
    def basename(self) -> str:
        """The name of the record's file without its suffix: that of the data object, unique."""
        return str(self.header.name).rpartition("/")[2]

    @property
    def paths(self) -> set[str]:
        """The paths of all files in any attempt."""
        return {path for attempt in self.attempts for path in attempt.entries.paths}

    @property
    def given_up(self) -> frozenset[str]:
        """The paths of files that go although their content is not stored."""
        return frozenset(path for path, why in self.rejections.items() if why.given_up)

    def foreign(self, bucket: str, place: Place) -> str:
        """Return why an agent of this bucket and place must leave the record alone; else empty."""
        if self.header.bucket != bucket:
            return f"it is for the bucket {self.header.bucket}, and the agent works for {bucket}"
        if self.header.name.place != place:
            theirs = self.header.name.place.root
            return f"it is for objects below {theirs}, and the agent works for {place.root}"
        return ""

    def settled(self, winner: Attempt) -> Record:
        """Return the record with `winner` as its only attempt: the one that was stored."""
        return replace(self, attempts=(winner,))

    def with_attempt(self, attempt: Attempt) -> Record:
        """Return the record with one more attempt."""
        return replace(self, attempts=(*self.attempts, attempt))


def lines(record: Record) -> Iterator[bytes]:
    """Write a record as lines: the header, then each attempt and its files."""
    header = record.header
    yield _dumps(
        {
            "format": FORMAT,
            "name": str(header.name),
            "bucket": header.bucket,
            "archiver": [header.archiver.version, header.archiver.commit],
            "compression": header.compression,
            "level": _level_of_old(header.compression),
            "schema": header.schema,
            "index_form": int(header.index_form),
            "rejections": {
                path: [r.datatype, r.reason, r.detail, r.field]
                for path, r in record.rejections.items()
            },
        }
    )
    for attempt in record.attempts:
        blocks = [tuple(block) for block in attempt.blocks]
        facts = [fact and list(fact) for fact in attempt.entries.facts]
        yield _dumps({"upload_id": attempt.upload_id, "blocks": blocks, "facts": facts})
        for *seen, digest in attempt.entries.rows():
            yield _dumps([*seen, digest.hex()])


def _dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value) + b"\n"
    except TypeError:  # a file's name that is no UTF-8: only json writes lone surrogates
        return json.dumps(value).encode() + b"\n"


def read(lines: Iterator[bytes], *, stored: bool) -> Record:
    """Read what `lines` writes.

    Raises:
        ValueError, TypeError, KeyError, StopIteration: it is something else.
    """
    data = json.loads(next(lines))
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r}, expected {FORMAT}")
    version, commit = data["archiver"]
    name = BundleName.parse(data["name"])
    return Record(
        header=Header(
            name=name,
            bucket=data["bucket"],
            archiver=Archiver(version=version, commit=commit),
            compression=_compression(data),
            schema=data.get("schema", ""),
            index_form=IndexForm(data.get("index_form", IndexForm.BARE)),
        ),
        attempts=tuple(_attempts(lines, name)),
        rejections={
            path: Rejection(datatype=datatype, reason=reason, detail=detail, field=field)
            for path, (datatype, reason, detail, field) in data["rejections"].items()
        },
        stored=stored,
    )


def _compression(data: dict[str, Any]) -> Compression:
    """Return how the bundle was compressed.

    Records of versions before `-compression` have only ISA-L's level.  A method or level that this
    version does not have is replaced: the bundle's bytes are then others if it is made again, which
    the commit expects of any new version of a library.
    """
    method, level = data.get("compression") or (Method.ISAL, data["level"])
    if method not in LEVELS or level not in LEVELS[method]:
        return FAST
    return Compression(Method(method), level)


def _level_of_old(compression: Compression) -> int:
    """Return a level of ISA-L for versions before `-compression`: an upgrade may be undone."""
    return compression.level if compression.method is Method.ISAL else FAST.level


def _attempts(lines: Iterator[bytes], name: BundleName) -> Iterator[Attempt]:
    entries = Entries()
    facts: Iterator[list[Any] | None] = iter(())
    for line in lines:
        if line == END:
            break
        value = json.loads(line)
        if isinstance(value, dict):
            entries = Entries()
            blocks = tuple(Block(*block) for block in value["blocks"])
            facts = iter(value.get("facts") or ())
            yield Attempt(upload_id=value["upload_id"], entries=entries, blocks=blocks)
        else:
            path, inode, size, mtime_ns, ctime_ns, added_us, digest = value
            _check_path(path, name)
            state = FileState.fitted(inode, size, mtime_ns, ctime_ns)
            fact = next(facts, None)
            known = Facts(*fact) if fact else None
            entries.append(Entry(path, state, added_us, bytes.fromhex(digest), known))


def _check_path(path: str, name: BundleName) -> None:
    """Check that a bundle of this name can hold a file of this path.

    Raises:
        ValueError: it cannot.  Without this check, whoever can write a record could make the agent
            upload and unlink files of his choice.
    """
    parts = path.split("/")
    # No name may be empty, go up or be hidden: the agent itself never takes such a file.
    if len(parts) < 2 or "\0" in path or any(part[:1] in {"", "."} for part in parts):  # noqa: PLR2004
        raise ValueError(f"{path!r} is no path of a measurement file")
    if check_datatype(parts[0]) in OWN_DATATYPES:
        raise ValueError(f"{path!r} is of jostler's own datatype")
    if name.datatype == REJECTED:
        return
    if parts[0] != name.datatype or Day.parse("/".join(parts[1:-1])) != name.day:
        raise ValueError(f"{path!r} is not a file of the bundle {name}")
