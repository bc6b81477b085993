"""Damage an archive in ways that a keeper may meet; judge what is left with zlib and json alone.

**Invariant:** nothing that judges here is taken from jostler: it reads docs/format.md's objects.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zlib
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from random import Random

_NAME_RE = re.compile(
    r"(?P<root>autoload/v1/exp)/(?P<datatype>(?!index1)[^/]+)/(?P<day>20\d\d/\d\d/\d\d)/"
    r"(?P<base>\d{8}T\d{6}\.\d{6}Z-(?P=datatype)-(?P<node>[^/]+)-exp)-data\.jsonl\.gz"
)
_TIME_RE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_URL_RE = re.compile(rb'"ArchiveURL":"[^"]*"')
RAW = b'},"raw":'
UNLIKE = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What it is to read something else than expected."""


class Row(NamedTuple):
    """A row, wherever it is stored: its line is without ArchiveURL and line feed."""

    day: str
    datatype: str
    node: str
    line: bytes


def index_of(name: str) -> str:
    """Return the name of a data object's index."""
    found = _NAME_RE.fullmatch(name)
    assert found
    return f"{found['root']}/index1/{found['day']}/{found['base']}-index1.jsonl.gz"


def data_names(objects: Iterable[str]) -> list[str]:
    """Return the names of data objects, sorted."""
    return sorted(name for name in objects if _NAME_RE.fullmatch(name))


def plain_of(data: bytes) -> bytes | None:
    """Inflate what must be exactly one gzip stream; None if it is not."""
    inflate = zlib.decompressobj(31)
    try:
        plain = inflate.decompress(data)
    except zlib.error:
        return None
    return plain if inflate.eof and not inflate.unused_data else None


def rows_of(name: str, data: bytes) -> list[Row]:
    """Return the rows of a data object; none if it is damaged."""
    found = _NAME_RE.fullmatch(name)
    plain = plain_of(data)
    if not found or not plain:
        return []
    lines = plain.removesuffix(b"\n").split(b"\n")
    nodes = _nodes(data, found["node"], len(lines))
    part = found["day"], found["datatype"]
    return [Row(*part, node, _bare(line)) for node, line in zip(nodes, lines, strict=False)]


def _bare(line: bytes) -> bytes:
    return _URL_RE.sub(b"", line, count=1)


def _nodes(data: bytes, node: str, lines: int) -> list[str]:
    if not node.startswith("compacted-"):
        return [node] * lines
    size = int.from_bytes(data[10:12], "little")
    table = data[16 : 12 + size].decode("ascii", "replace").splitlines()
    with suppress(*UNLIKE):
        return [one for line in table for one in [line.split()[0]] * int(line.split()[1])]
    return []


def wrong(objects: Mapping[str, bytes], url: str, name: str) -> str:
    """Return what is wrong with a bundle and its index; empty if nothing is."""
    data, index_name = objects[name], index_of(name)
    plain, index = plain_of(data), plain_of(objects.get(index_name, b""))
    if not plain or not index:
        return "data or index are not whole"
    if b'"Archiver":' in plain[:40]:
        with suppress(*UNLIKE):
            return _wrong_go(plain, index, f"{url}/{name}")
        return "no rows of the Go agent"
    if not plain.endswith(b"\n") or plain.count(b"\n") != index.count(b"\n"):
        return "numbers of rows differ"
    found = _NAME_RE.fullmatch(name)
    assert found
    nodes = _nodes(data, found["node"], plain.count(b"\n"))
    both = zip(plain.splitlines(), index.splitlines(), nodes, strict=False)
    for number, (line, told, node) in enumerate(both, 1):
        same = {
            "date": found["day"].replace("/", "-"),
            "Datatype": found["datatype"],
            "Node": node,
            "ArchiveURL": f"{url}/{name}",
            "index": f"{url}/{index_name}",
            "Line": number,
        }
        try:
            problem = _wrong_row(data, line, json.loads(told), same)
        except (*UNLIKE, zlib.error) as exc:
            problem = repr(exc)
        if problem:
            return f"line {number}: {problem}"
    return ""


def _wrong_row(data: bytes, line: bytes, told: Any, same: Mapping[str, object]) -> str:  # noqa: ANN401 - JSON
    row = json.loads(line)
    raw = told["raw"]
    mine = {key: raw[key] for key in ("Datatype", "Node", "ArchiveURL", "Line")}
    filenames = {one["archiver"]["Filename"] for one in (row, told)} | {raw["Filename"]}
    dates = {row["date"], told["date"]}
    urls = {row["archiver"]["ArchiveURL"], raw["ArchiveURL"]}
    if mine != {key: same[key] for key in mine} or dates != {same["date"]} or len(filenames) > 1:
        return "index and data disagree"
    if urls != {same["ArchiveURL"]} or told["archiver"]["ArchiveURL"] != same["index"]:
        return "another object is named"
    for key in ("TimeAdded", "Start", "End"):
        if raw[key] is not None or key == "TimeAdded":
            datetime.fromisoformat(_TIME_RE.fullmatch(raw[key])[0])  # type: ignore[index]
    block = zlib.decompressobj(-15).decompress(data[raw["Offset"] :][: raw["Length"]])
    good = line + b"\n" in block and raw["Hash"] == _hash(line, str(same["Datatype"]))
    return "" if good and len(_raw(line)) <= max(raw["Size"], 10**4) else "not where it is said"


def _wrong_go(plain: bytes, index: bytes, url: str) -> str:
    rows, told = plain.split(b"\n"), [json.loads(line) for line in index.split(b"\n")]
    good = [(json.loads(row)["Archiver"]["Filename"], len(row)) for row in rows]
    urls = {json.loads(row)["Archiver"]["ArchiveURL"] for row in rows}
    same = good == [(one.get("Filename"), one.get("Size")) for one in told]
    return "" if same and urls == {url} else "index and data disagree"


def _raw(line: bytes) -> bytes:
    return line[line.index(RAW) + len(RAW) : -1]


def _hash(line: bytes, datatype: str) -> str:
    raw = _raw(line)
    content = base64.b64decode(json.loads(raw)["Content"]) if datatype == "rejected1" else raw
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def provable(objects: Mapping[str, bytes]) -> set[Row]:
    """Return the rows that can be read: of whole streams, and by their Hash of a damaged one."""
    found: set[Row] = set()
    for name in data_names(objects):
        found.update(whole := rows_of(name, objects[name]))
        if not whole and "/rejected1/" not in name:  # a Hash of Content proves no row
            index = plain_of(objects.get(index_of(name), b"")) or b""
            found.update(_by_hash(name, objects[name], index.splitlines()))
    return found


def _by_hash(name: str, data: bytes, index: Iterable[bytes]) -> Iterable[Row]:
    part = _NAME_RE.fullmatch(name)
    assert part
    blocks: dict[tuple[int, int], dict[tuple[str, str], bytes]] = {}
    for told in index:
        with suppress(*UNLIKE):
            raw = json.loads(told)["raw"]
            where = raw["Offset"], raw["Length"]
            if where not in blocks:
                blocks[where] = _lines(data[where[0] :][: where[1]], part["datatype"])
            if line := blocks[where].get((raw["Filename"], raw["Hash"])):
                yield Row(part["day"], part["datatype"], raw["Node"], _bare(line))


def _lines(packed: bytes, datatype: str) -> dict[tuple[str, str], bytes]:
    """Return the lines of a block up to the first byte that does not inflate."""
    inflate, block = zlib.decompressobj(-15), bytearray()
    with suppress(zlib.error):
        for at in range(len(packed)):
            block += inflate.decompress(packed[at : at + 1])
    found = {}
    for line in block.split(b"\n")[:-1]:
        with suppress(*UNLIKE):
            filename = json.loads(line)["archiver"]["Filename"]
            found[filename, _hash(bytes(line), datatype)] = bytes(line)
    return found


# Damage


def flipped(rng: Random, data: bytes) -> bytes:
    """Flip a bit."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def end_flipped(rng: Random, data: bytes) -> bytes:
    """Flip a bit of flush, last block, check sum or length."""
    return data[:-16] + flipped(rng, data[-16:])


def zeroed(rng: Random, data: bytes) -> bytes:
    """Write zeros over a part, as a lost sector."""
    at = rng.randrange(len(data))
    return (data[:at] + bytes(rng.choice((1, 16, 512))) + data[at + 512 :])[: len(data)]


def edited(rng: Random, data: bytes) -> bytes:
    """Change, move, repeat or leave out a line of an index, in a good gzip stream."""
    plain = plain_of(data)
    if not plain:
        return data
    lines = plain.split(b"\n")
    at = rng.randrange(max(1, len(lines) - 1))
    change = rng.choice(("remove", "repeat", "empty", "swap", "junk", "member", "member"))
    if change == "remove":
        del lines[at]
    elif change == "repeat":
        lines.insert(at, lines[at])
    elif change == "empty":
        lines.insert(at, b"")
    elif change == "swap":
        lines[0], lines[at] = lines[at], lines[0]
    elif change == "junk":
        lines[at] = rng.choice((b"{", b"null", b"{}", b"\xff", b"[" * 3000, bytes(len(lines[at]))))
    else:
        lines[at] = _changed_member(rng, lines[at])
    return gzip.compress(b"\n".join(lines), mtime=0)


ODD = (0, -1, 2**70, 1.5, None, True, "", "yesterday", "2026-02-30T00:00:00.000000Z", "\x1b[31m",
       "\u202e", [], {}, "0" * 32, "2026-01-02T00:00:00")  # fmt: skip


def _changed_member(rng: Random, line: bytes) -> bytes:
    try:
        row = json.loads(line)
    except UNLIKE:  # damaged before
        return b""
    raw = row.get("raw", row)
    raw[rng.choice(sorted(raw))] = rng.choice(ODD)
    return json.dumps(row, separators=(",", ":")).encode()


BYTES: dict[str, Callable[[Random, bytes], bytes]] = {
    "flipped": flipped,
    "end-flipped": end_flipped,
    "cut": lambda rng, data: data[: rng.randrange(len(data))],
    "zero-tail": lambda rng, data: data[: (at := rng.randrange(len(data)))] + bytes(len(data) - at),
    "zeroed": zeroed,
    "followed": lambda rng, data: data + rng.randbytes(rng.choice((1, 30))),
    "two-members": lambda rng, data: data + rng.choice((data, gzip.compress(b""))),
    "empty": lambda _rng, _data: b"",
    "no-rows": lambda _rng, _data: gzip.compress(b""),
}
