"""What is in a bucket after a campaign, read with gzip and json alone, held to what was written.

**Invariant:** nothing here is taken from jostler: objects are read as docs/format.md has them.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.torture.producer import Fate, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.torture.producer import Key, Written

    Objects = Mapping[str, Callable[[], bytes]]

RAW = b'},"raw":'


@dataclass
class Verdict:
    """Counts of one check, and everything that is wrong."""

    bundles: int = 0
    rows: int = 0
    rejected: int = 0
    contents: int = 0
    must: int = 0
    problems: list[str] = field(default_factory=list)


def check(objects: Objects, written: Mapping[Key, Written]) -> Verdict:
    """Read all objects of one agent and hold them to what its producer wrote."""
    verdict = Verdict(contents=len(written))
    stored: dict[Key, list[str]] = defaultdict(list)
    told = _index(objects)
    for name in sorted(name for name in objects if name.endswith("-data.jsonl.gz")):
        verdict.bundles += 1
        content = objects[name]()
        lines = [line for line in gzip.decompress(content).split(b"\n") if line]
        _check_index(name, content, lines, told.pop(_short(name), []), verdict)
        for line in lines:
            stored[_stored(name, line, verdict)].append(_short(name))
    verdict.problems += [f"{name}: index without data" for name in told]
    for key, content_written in written.items():
        names = stored.pop(key, [])
        verdict.must += content_written.fate is Fate.ONCE
        if len(names) > 1 or (not names and content_written.fate is Fate.ONCE):
            verdict.problems.append(
                f"{key[0]}: {len(names)} times, must be {content_written.fate.value}: "
                + ", ".join(names)
            )
    verdict.problems += [f"{key[0]}: bytes nobody wrote: {n}" for key, n in stored.items()]
    return verdict


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _index(objects: Objects) -> dict[str, list[dict[str, Any]]]:
    """Return the index rows of each data object, in their order."""
    told = defaultdict(list)
    for name in objects:
        if name.endswith("-index1.jsonl.gz"):
            for line in gzip.decompress(objects[name]()).splitlines():
                raw = json.loads(line)["raw"]
                told[_short(raw["ArchiveURL"])].append(raw)
    return told


def _check_index(
    name: str, content: bytes, lines: list[bytes], told: list[dict[str, Any]], verdict: Verdict
) -> None:
    """Each row has one index line, in order, and is where that line says."""
    if len(lines) != len(told):
        verdict.problems.append(f"{name}: {len(lines)} rows, {len(told)} index lines")
        return
    offset, first, block = -1, 0, [b""]
    for number, line in enumerate(told, 1):
        if line["Offset"] != offset:
            offset, first = line["Offset"], number
            packed = content[offset : offset + line["Length"]]
            block = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed).split(b"\n")
        if line["Line"] != number or block[number - first] != lines[number - 1]:
            verdict.problems.append(f"{name} line {number}: not where its index row says")
            return


def _stored(name: str, line: bytes, verdict: Verdict) -> Key:
    """Return which content of which path a row holds."""
    row = json.loads(line)
    if "/rejected1/" in name:
        verdict.rejected += 1
        raw = row["raw"]
        return key_of(raw["Filename"], base64.b64decode(raw["Content"] or ""))
    verdict.rows += 1
    return key_of(row["archiver"]["Filename"], line[line.index(RAW) + len(RAW) : -1])
