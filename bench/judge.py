"""Measure the judge: `python -m bench.judge [schema.json file.json...]`.

Without arguments documents like NDT7's (20 KB, more and shorter numbers) and flat ones (0.9 KB) are
made up.  Measured on one core of a shared 2-core virtual machine, CPython 3.11, msgspec 0.22, MB/s:

                                       80 real NDT7 rows   made-up NDT7   flat
    compact, as Go writes it           500-520             345            275 (3.3 us each)
    white space, so colons are counted 375-390             250            225 (4.0 us each)
    slow judge alone                   38                  42             40
    orjson, any JSON object            460-475             335            570
    typed decoder without any limits   890

Of the time of a compact row decoding is two thirds (limits of integers an eighth of that, patterns
of timestamps a twentieth), and writing it again to see whether a duplicate key was dropped a third;
comparing the bytes costs nothing.  Counting quotation marks instead would cost twice the colons.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostler.schema import Field, Fields, Judge, Mode, json_object_flaw, parse_datatype_schema
from jostler.schema.native import Use, find
from jostler.schema.slow import SlowJudge

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15


def field(name: str, kind: str, *fields: Field, mode: Mode = Mode.NULLABLE) -> Field:
    return Field(name=name, type=kind, mode=mode, fields=fields)


def ndt7() -> tuple[Fields, list[bytes]]:
    """Make 80 documents of the shape of an NDT7 row."""
    rest = random.Random(7)
    numbers = [field(f"Counter{index}", "INTEGER") for index in range(53)]
    samples = field("Samples", "RECORD", field("TCPInfo", "RECORD", *numbers), mode=Mode.REPEATED)
    moments = [field("StartTime", "TIMESTAMP"), field("EndTime", "TIMESTAMP")]
    fields = (field("UUID", "STRING"), *moments, field("Download", "RECORD", *moments, samples))
    times = {
        "StartTime": "2020-03-18T00:06:56.613263144Z",
        "EndTime": "2020-03-18T00:07:09.312878374Z",
    }

    def one() -> dict[str, Any]:
        rows = [
            {
                "TCPInfo": {
                    number.name: rest.randrange(10 ** rest.randrange(1, 8)) for number in numbers
                }
            }
            for _ in range(22)
        ]
        return {"UUID": "ndt_16_0000005907", **times, "Download": {**times, "Samples": rows}}

    return fields, [json.dumps(one(), separators=(",", ":")).encode() for _ in range(80)]


def flat() -> tuple[Fields, list[bytes]]:
    """Make 2,000 documents of 1 KiB with 30 fields of four types."""
    rest = random.Random(7)
    names = [f"SomeFieldName{index}" for index in range(30)]
    kinds = ["STRING", "INTEGER", "FLOAT", "TIMESTAMP"]
    makes: dict[str, Callable[[], object]] = {
        "STRING": lambda: "x" * rest.randrange(30),
        "INTEGER": lambda: rest.randrange(10**6),
        "FLOAT": lambda: round(rest.random() * 1000, 3),
        "TIMESTAMP": lambda: "2020-03-18T00:06:56.613263144Z",
    }
    columns = [
        (name, kinds[index % 3] if index > 1 else kinds[3]) for index, name in enumerate(names)
    ]
    rows = [{name: makes[kind]() for name, kind in columns} for _ in range(2000)]
    fields = tuple(field(name, kind) for name, kind in columns)
    return fields, [json.dumps(row, separators=(",", ":")).encode() for row in rows]


def measure(title: str, judge: Callable[[bytes], object], documents: list[bytes]) -> None:
    """Print the best of some rounds over all documents."""
    size = sum(map(len, documents))
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for document in documents:
            judge(document)
        best = min(best, time.perf_counter() - began)
    each = best / len(documents)
    speed = f"{size / best / 1e6:7.0f} MB/s {each * 1e6:9.2f} us each"
    print(f"{title:34} {speed} of {size // len(documents)} B")


def compare(title: str, fields: Fields, documents: list[bytes]) -> None:
    began = time.perf_counter()
    judge = Judge(fields)
    print(f"{title}: judge built in {(time.perf_counter() - began) * 1e3:.1f} ms")
    good = sum(judge.flaw(document) is None for document in documents)
    print(f"{title}: {good} of {len(documents)} are good")
    measure("  as it is", judge.flaw, documents)
    measure("  with a space", judge.flaw, [document + b" " for document in documents])
    measure("  slow judge alone", SlowJudge(fields).flaw, documents)
    if native := find(Use.AUTO).judge(fields):
        accepted = sum(map(native.accepts, documents))
        measure(f"  native, {accepted} accepted", native.accepts, documents)
    measure("  as any JSON object", json_object_flaw, documents)


def resident_mib() -> float:
    """Say how much memory the process holds, by /proc."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main(arguments: list[str]) -> None:
    before = resident_mib()
    parse_datatype_schema(b'[{"name":"a","type":"STRING"}]', source="memory")
    print(f"jsonschema: {resident_mib() - before:.1f} MiB resident for the first schema")
    if arguments:
        fields = parse_datatype_schema(Path(arguments[0]).read_bytes(), source=arguments[0])
        compare("given", fields, [Path(name).read_bytes() for name in arguments[1:]])
    else:
        compare("ndt7", *ndt7())
        compare("flat", *flat())


if __name__ == "__main__":
    main(sys.argv[1:])
