"""How fast an archive is audited and compacted, beside what neither can do without.

usage: python -m bench.keeping [--megabytes 200] [--runs 3]

Bundles and indexes are made in memory as an agent makes them; nothing is read from a bucket.  MB
are of rows, a second of user CPU time of this process, so other work on the machine matters little.

inflate   the data alone
audit     bundles of 20 MB, each against its index
floor     what compaction must do by the libraries: inflate data and indexes, hash each row, deflate
          both, and of what was made inflate both and hash each row again
compact   small bundles of 100 nodes become one, which is read back; with `jostler-load compact`
          come two GETs and two DELETEs for each of them (see bench.compact)
hurry     the same with `--compression fast`; both floor and compact are as dense as what was there
"""

from __future__ import annotations

import argparse
import resource
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from bench.files import KINDS, document, documents
from jostler.archive.audit.bundle import check
from jostler.archive.compact_density import as_dense_as
from jostler.archive.compact_input import read_input
from jostler.archive.compact_merge import planned
from jostler.archive.compact_plan import Group, member_in_memory
from jostler.archive.compact_proof import proven_merge
from jostler.archive.hashes import many
from jostler.bundle import Archiver, Entry, FileState, Header, OpenBundle, content_hash
from jostler.bundle.index import index_object
from jostler.format.blocks import BLOCK_BYTES
from jostler.format.compression import FAST, SMALL
from jostler.format.names import BundleName, Day, Kind, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.files import Kind as FileKind
    from jostler.format.compression import Compression

PLACE = Place(data_dir="autoload/v1", organization="", experiment="bench")
BUCKET = "gs://bench"
BUNDLE_BYTES = 20_000_000
SMALL_BUNDLE_BYTES = 200_000
NODES = 100
CREATED = datetime(2026, 1, 2, tzinfo=UTC)


class Made(NamedTuple):
    name: BundleName
    index_name: BundleName
    data: bytes
    index: bytes
    plain_bytes: int


def bundles(
    kind: FileKind, megabytes: int, compression: Compression, bundle_bytes: int = BUNDLE_BYTES
) -> Iterator[Made]:
    """Yield bundles of files of one kind."""
    made, number, total = documents(kind, different=50), 0, 0
    while total < megabytes * 1_000_000:
        name = BundleName(
            place=PLACE,
            datatype="bench1",
            day=Day(date(2026, 1, 2)),
            created=CREATED + timedelta(microseconds=number),
            node=f"node{number % NODES}",
            kind=Kind.DATA,
        )
        header = Header(
            name=name,
            bucket=BUCKET,
            archiver=Archiver(version="jostler@bench", commit="bench"),
            compression=compression,
        )
        opened = OpenBundle(header, 0.0)
        while opened.size_bytes < bundle_bytes:
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


def compact(all_of: list[Made]) -> None:
    compacted(all_of, as_dense_as([one.data for one in all_of]))


def hurry(all_of: list[Made]) -> None:
    compacted(all_of, FAST)


def compacted(all_of: list[Made], compression: Compression) -> None:
    members = [member_in_memory(one.name, one.data, one.index) for one in all_of]
    first = all_of[0].name
    group = Group(
        place=PLACE, datatype=first.datatype, day=first.day, schema="", members=tuple(members)
    )
    inputs = [
        read_input(member, one.data, one.index) for member, one in zip(members, all_of, strict=True)
    ]
    plan = planned(group, inputs)
    made = proven_merge(
        group, inputs, plan, bucket=BUCKET, version="bench", compression=compression
    )
    assert made.plain_bytes


def floor(all_of: list[Made]) -> None:
    """Do what a compaction lets libraries do, and nothing else."""
    dense = as_dense_as([one.data for one in all_of])
    for packed in [one.data for one in all_of], [one.index for one in all_of]:
        plain = b"".join(isal_zlib.decompress(one, wbits=31) for one in packed)
        blocks = [plain[at : at + BLOCK_BYTES] for at in range(0, len(plain), BLOCK_BYTES)]
        for block in blocks:
            isal_zlib.decompressobj(-15).decompress(dense.deflate(block, BLOCK_BYTES))
        if packed[0] is all_of[0].data:
            hash_all = many()
            hash_all(blocks)
            hash_all(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print("MB of rows a second and core, best of runs")
    works = (inflate, audit, floor, compact, hurry)
    print(f"{'files':12} {'compression':12}" + "".join(f" {one.__name__:>8}" for one in works))
    for kind in KINDS:
        for what, compression in (("fast", FAST), ("small", SMALL)):
            large = list(bundles(kind, given.megabytes, compression))
            small = list(bundles(kind, given.megabytes, compression, SMALL_BUNDLE_BYTES))
            speeds = []
            for work in works:
                all_of = large if work in {inflate, audit} else small
                total = sum(one.plain_bytes for one in all_of) / 1e6
                best = min(user_s(work, all_of) for _ in range(given.runs))
                speeds.append(total / max(1e-9, best))
            print(f"{kind.name:12} {what:12}" + "".join(f" {speed:8.0f}" for speed in speeds))


if __name__ == "__main__":
    main()
