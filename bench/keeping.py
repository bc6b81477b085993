"""How fast an archive is audited, beside inflating alone: MB of rows a second and core.

usage: python -m bench.keeping [--megabytes 200] [--runs 3]

Bundles and indexes are made in memory as an agent makes them; nothing is read from a bucket.  The
time is user CPU time of this process's one thread, so other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import resource
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from bench.files import KINDS, document, documents
from jostler.archive.audit.bundle import check
from jostler.bundle import Archiver, Entry, FileState, Header, OpenBundle, content_hash
from jostler.bundle.bundle import index_object
from jostler.format.compression import FAST, SMALL
from jostler.format.names import BundleName, Day, Kind, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.files import Kind as FileKind
    from jostler.format.compression import Compression

PLACE = Place(data_dir="autoload/v1", organization="", experiment="bench")
BUCKET = "gs://bench"
BUNDLE_BYTES = 20_000_000
CREATED = datetime(2026, 1, 2, tzinfo=UTC)


class Made(NamedTuple):
    name: BundleName
    index_name: BundleName
    data: bytes
    index: bytes
    plain_bytes: int


def bundles(kind: FileKind, megabytes: int, compression: Compression) -> Iterator[Made]:
    """Yield bundles of files of one kind."""
    made, number, total = documents(kind, different=50), 0, 0
    while total < megabytes * 1_000_000:
        name = BundleName(
            place=PLACE,
            datatype="bench1",
            day=Day(date(2026, 1, 2)),
            created=CREATED + timedelta(microseconds=number),
            node="node1",
            kind=Kind.DATA,
        )
        header = Header(
            name=name,
            bucket=BUCKET,
            archiver=Archiver(version="jostler@bench", commit="bench"),
            compression=compression,
        )
        opened = OpenBundle(header, 0.0)
        while opened.size_bytes < BUNDLE_BYTES:
            raw = document(made, number)
            path = f"bench1/2026/01/02/m{number}.json"
            entry = Entry(path, FileState(1, len(raw), 1, 1), 10**15, content_hash(raw))
            opened.add(entry, opened.row(entry.filename, raw))
            number += 1
        bundle = opened.seal()
        total += bundle.row_bytes
        index = index_object(header, bundle.attempt)
        yield Made(name, header.index_name, bundle.data, index, bundle.row_bytes)


def user_s(work: Callable[[list[Made]], None], all_of: list[Made]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    work(all_of)
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before


def audit(all_of: list[Made]) -> None:
    for one in all_of:
        found = check(one.name, BUCKET, one.data, one.index_name, one.index)
        assert not found.problems, found.problems[:3]
        assert len(found.keys) == found.lines


def inflate(all_of: list[Made]) -> None:
    for one in all_of:
        isal_zlib.decompress(one.data, wbits=31)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print("MB of rows a second and core, best of runs")
    print(f"{'files':12} {'compression':12} {'inflate':>8} {'audit':>8}")
    for kind in KINDS:
        for what, compression in (("fast", FAST), ("small", SMALL)):
            all_of = list(bundles(kind, given.megabytes, compression))
            total = sum(one.plain_bytes for one in all_of) / 1e6
            speeds = [
                total / max(1e-9, min(user_s(work, all_of) for _ in range(given.runs)))
                for work in (inflate, audit)
            ]
            print(f"{kind.name:12} {what:12}" + "".join(f" {speed:8.0f}" for speed in speeds))


if __name__ == "__main__":
    main()
