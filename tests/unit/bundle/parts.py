"""Bundles for the tests of what is done with them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from jostler.bundle import (
    Archiver,
    Bundle,
    Entry,
    FileState,
    Header,
    OpenBundle,
    Record,
    content_hash,
)
from jostler.format.compression import FAST
from jostler.format.names import BundleName, Day, Kind, Place

PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")
DAY = Day(date(2026, 1, 2))


def header(bucket: str = "gs://bkt", datatype: str = "foo1", microsecond: int = 0) -> Header:
    name = BundleName(
        place=PLACE,
        datatype=datatype,
        day=DAY,
        created=datetime(2026, 1, 2, 3, 4, 5, microsecond, tzinfo=UTC),
        node="node1",
        kind=Kind.DATA,
    )
    archiver = Archiver(version="jostler@1.2.3", commit="abc")
    return Header(name=name, bucket=bucket, archiver=archiver, compression=FAST)


def bundle_of(files: int, head: Header | None = None, *, block_ends: int = 0) -> Bundle:
    """Make a sealed bundle of some files that need not exist; a block may end early after one."""
    opened = OpenBundle(head or header(), opened_s=0.0)
    for number in range(files):
        raw = b'{"UUID":"%d"}' % number
        state = FileState(number, len(raw), 1, 1)
        path = f"foo1/2026/01/02/m{number}.json"
        entry = Entry(path, state, 10**15, content_hash(raw))
        opened.add(entry, opened.row(entry.filename, raw))
        if number + 1 == block_ends:
            opened.end_block()
    return opened.seal()


def record_of(files: int, head: Header | None = None) -> Record:
    return Record.of(bundle_of(files, head))


def open_below(directory: Path) -> int:
    """Count the files below a directory that this process has open."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # another thread closed it meanwhile
            found.append(fd.readlink())
    return sum(directory in path.parents for path in found)
