"""Records a second through our rows and blocks: the classic benchmark of log stores.

usage: python -m bench.records [--records N] [--rounds N] [--compression auto|fast|small|1..9]

One million records are written and read back, in one process on one processor, four ways:

  text write  a line of a web server's log becomes `raw` = {"Line": "…"}, a row and part of a block
  text read   the bundle is decompressed, each row's `raw` decoded, and the lines are had as str
  map write   the same for a dict of 14 keys: texts, integers and floats
  map read    and each is had as a dict again

A record is encoded by orjson, wrapped by `row_head` as the agent's rows are, and added to bundles
of 100,000 rows by the agent's BlockWriter; readers use `blocks` of the loader.  No files, no index
and no disk, as in the published figures, which are those of a log store on one machine of its day:
72,854 and 108,530 texts, 28,987 and 60,620 maps a second.

`saved` is what compression leaves out: of the records' own bytes, as JSON lines without our
columns.  Seconds are those of the process on its processor, the thread that compresses included.
Each figure is the median of the rounds; what is read is compared with what was written.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from jostler.format.blocks import BlockWriter
from jostler.format.compression import compression_choice
from jostler.format.names import Day
from jostler.format.row import Archiver, row_head
from loader.spark.gunzip import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.format.compression import Compression

PUBLISHED = {"text write": 72_854, "text read": 108_530, "map write": 28_987, "map read": 60_620}
BUNDLE_ROWS, BATCH_ROWS = 100_000, 1_000
DIFFERENT = 20_000  # more bytes than deflate looks back on, each in a record of its own number
WORDS = (
    *("connect", "session", "timeout", "cache", "index", "user", "order", "cart"),
    *("search", "page", "image", "upload", "token"),
)
HEAD = row_head(
    Archiver(version="jostler@1.0.0", commit="0123456789abcdef"),
    Day(date(2026, 1, 2)),
    "gs://archive/autoload/v1/bench/records/2026/01/02/"
    "20260102T030405.123456Z-records-node1-bench-data.jsonl.gz",
)


class _Text(msgspec.Struct, gc=False):
    Line: str


class _TextRow(msgspec.Struct, gc=False):
    raw: _Text


class _MapRow(msgspec.Struct, gc=False):
    raw: dict[str, Any]


TEXTS, MAPS = msgspec.json.Decoder(_TextRow), msgspec.json.Decoder(_MapRow)


def texts(rng: random.Random, count: int) -> list[str]:
    """Return lines of a web server's log, of about 110 characters."""
    return [
        f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)} - - "
        f"[02/Jan/2026:{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02} +0000] "
        f'"GET /{rng.choice(WORDS)}/{rng.choice(WORDS)}?id={rng.randrange(10**6)} HTTP/1.1" '
        f"{rng.choice((200, 200, 200, 304, 404, 500))} {rng.randrange(100, 100_000)}"
        for n in range(count)
    ]


def maps(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Return records of 14 keys."""
    return [
        {
            "host": f"web{rng.randrange(40):02}",
            "service": rng.choice(WORDS),
            "level": rng.choice(("INFO", "INFO", "INFO", "WARN", "ERROR")),
            "method": rng.choice(("GET", "POST")),
            "path": f"/{rng.choice(WORDS)}/{rng.choice(WORDS)}",
            "status": rng.choice((200, 200, 304, 404, 500)),
            "bytes": rng.randrange(100, 100_000),
            "seconds": round(rng.expovariate(20), 6),
            "user": rng.randrange(10**5),
            "session": f"{rng.randrange(16**8):08x}",
            "country": rng.choice(("de", "fr", "us", "jp", "br")),
            "agent": rng.choice(("curl/8.5", "Mozilla/5.0", "python/3.12")),
            "retries": rng.randrange(3),
            "cached": rng.random() < 0.4,
        }
        for _ in range(count)
    ]


def written(documents: Iterator[list[bytes]], compression: Compression) -> list[bytes]:
    """Write documents, given in batches, as bundles; return these."""
    bundles, writer, number = [], BlockWriter(compression), 0
    begin, end = HEAD + b'"2026/01/02/r', b'.json"},"raw":'
    for batch in documents:
        writer.add_rows(
            [b"%b%07d%b%b}\n" % (begin, at, end, raw) for at, raw in enumerate(batch, number)]
        )
        number += len(batch)
        if writer.lines >= BUNDLE_ROWS:
            bundles.append(writer.finish())
            writer = BlockWriter(compression)
    if writer.lines:
        bundles.append(writer.finish())
    return bundles


def batches(records: list[Any], count: int) -> Iterator[list[Any]]:
    """Yield `count` records in batches, the given ones again and again."""
    for at in range(0, count, BATCH_ROWS):
        begin = at % len(records)
        yield records[begin : begin + min(BATCH_ROWS, count - at)]


def encoded_texts(records: list[str], count: int) -> Iterator[list[bytes]]:
    dumps = orjson.dumps
    for batch in batches(records, count):
        yield [b'{"Line":%b}' % dumps(line) for line in batch]


def encoded_maps(records: list[dict[str, Any]], count: int) -> Iterator[list[bytes]]:
    dumps = orjson.dumps
    for batch in batches(records, count):
        yield [dumps(one) for one in batch]


def read_texts(bundles: list[bytes]) -> Iterator[list[Any]]:
    for bundle in bundles:
        for block in blocks(bundle):
            yield [row.raw.Line for row in TEXTS.decode_lines(block)]


def read_maps(bundles: list[bytes]) -> Iterator[list[Any]]:
    for bundle in bundles:
        for block in blocks(bundle):
            yield [row.raw for row in MAPS.decode_lines(block)]


WAYS = {
    "text": (texts, encoded_texts, read_texts),
    "map": (maps, encoded_maps, read_maps),
}


def measure(kind: str, count: int, compression: Compression) -> tuple[float, float, float]:
    """Write and read records of a kind once; return both in seconds, and the part that is saved."""
    make, encode, read = WAYS[kind]
    records: list[Any] = make(random.Random(1), min(DIFFERENT, count))
    began_s = time.process_time()
    bundles = written(encode(records, count), compression)
    wrote_s = time.process_time()
    rows = 0
    for found in read(bundles):
        rows += len(found)
    read_s = time.process_time()
    if rows != count:
        raise SystemExit(f"{count} records written, {rows} read")
    check(kind, records, bundles, count)
    plain = sum(len(one) + 1 for batch in encode(records, count) for one in batch)
    return wrote_s - began_s, read_s - wrote_s, 1 - sum(map(len, bundles)) / plain


def check(kind: str, records: list[Any], bundles: list[bytes], count: int) -> None:
    """Compare each record that is read with the one that was written."""
    wanted = (one for batch in batches(records, count) for one in batch)
    for found in WAYS[kind][2](bundles):
        for one in found:
            if one != next(wanted):
                raise SystemExit(f"{kind}: another record than was written: {one!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=1_000_000, help="of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="the median is shown")
    parser.add_argument("--compression", default="fast", help="as the agent's -compression")
    args = parser.parse_args()
    compression = compression_choice(args.compression).backlog
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # also the thread that compresses

    print(f"{args.records:,} records of each kind, one processor, {compression}")
    print(f"{'':12}{'records/s':>12}{'published':>12}{'ratio':>8}{'saved':>8}")
    for kind in WAYS:
        runs = [measure(kind, args.records, compression) for _ in range(args.rounds)]
        wrote_s, read_s, saved = (statistics.median(column) for column in zip(*runs, strict=True))
        for way, seconds in (("write", wrote_s), ("read", read_s)):
            name, speed = f"{kind} {way}", args.records / seconds
            ratio = speed / PUBLISHED[name]
            print(f"{name:12}{speed:12,.0f}{PUBLISHED[name]:12,}{ratio:8.1f}{saved:8.1%}")


if __name__ == "__main__":
    main()
