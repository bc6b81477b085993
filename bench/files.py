"""The files that the bench has archived: rows of five kinds, and the spool that they lie in.

104 B    one flat result, as a ping writes it
1 KiB    a header and a few samples of growing counters
20 KiB   NDT7's shape: a header, then snapshots of a TCP connection, most of whose numbers stay as
         they are or grow; about 9:1 in gzip
200 KiB  the same, ten times as long
burst    files of 1 KiB that another process renames into new day directories while the agent runs
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Documents of a kind: more bytes than deflate looks back on (32 KiB), though each is written many
# times with a UUID of its own.
DIFFERENT, DIFFERENT_BYTES = 100, 256 * 1024
NO_UUID = b"0" * 24
FIRST_DAY = date(2026, 1, 1)
STARTED = "2026-01-02T03:04:05.123456Z"
COUNTERS = ("ElapsedTime", "RTT", "RTTVar", "MinRTT", "SndCwnd", "BytesAcked", "BytesReceived")
# Fields of a TCP snapshot: those that stay, those that grow, those that go up and down.
STAY = (
    *("State", "CAState", "Retransmits", "Probes", "Backoff", "Options", "WScale", "AppLimited"),
    *("RTO", "ATO", "SndMSS", "RcvMSS", "Unacked", "Sacked", "Lost", "Retrans", "Fackets", "PMTU"),
    *("LastAckSent", "RcvSsThresh", "SndSsThresh", "AdvMSS", "Reordering", "RcvRTT", "RcvSpace"),
    *("TotalRetrans", "DeliveredCE", "BytesRetrans", "DSackDups", "ReordSeen", "SndWnd"),
)
GROW = (
    *("BytesAcked", "BytesReceived", "SegsOut", "SegsIn", "DataSegsIn", "DataSegsOut", "BusyTime"),
    *("RWndLimited", "SndBufLimited", "Delivered", "BytesSent", "ElapsedTime"),
)
WAVER = ("LastDataSent", "LastDataRecv", "LastAckRecv", "RTT", "RTTVar", "SndCwnd", "MinRTT")
RATES = ("PacingRate", "MaxPacingRate", "NotsentBytes", "DeliveryRate")


@dataclass(frozen=True)
class Kind:
    """One row of the table.

    Attributes:
        name: as the table shows it.
        size: of a file, in bytes, about.
        count: of files, unless the run is quick.
        burst: they are written while the agent runs.
    """

    name: str
    size: int
    count: int
    burst: bool = False


KINDS = (
    Kind("1 KiB", 1024, 100_000),
    Kind("104 B", 104, 250_000),
    Kind("20 KiB", 20 * 1024, 10_000),
    Kind("200 KiB", 200 * 1024, 1_500),
    Kind("burst", 1024, 100_000, burst=True),
)


def _columns(names: tuple[str, ...], kind: str) -> list[dict[str, object]]:
    return [{"name": name, "type": kind} for name in names]


def _record(name: str, *fields: dict[str, object], many: bool = False) -> dict[str, object]:
    mode = "REPEATED" if many else "NULLABLE"
    return {"name": name, "type": "RECORD", "mode": mode, "fields": list(fields)}


SCHEMA = [
    {"name": "UUID", "type": "STRING"},
    {"name": "StartTime", "type": "TIMESTAMP"},
    {"name": "Server", "type": "STRING"},
    {"name": "Port", "type": "INTEGER"},
    {"name": "Rate", "type": "FLOAT"},
    _record("Samples", *_columns(COUNTERS, "INTEGER"), many=True),
    _record(
        "ServerMeasurements",
        _record("AppInfo", *_columns(("ElapsedTime", "NumBytes"), "INTEGER")),
        _record(
            "BBRInfo",
            *_columns(("BW", "MinRTT", "PacingGain", "CwndGain", "ElapsedTime"), "INTEGER"),
        ),
        _record("TCPInfo", *_columns((*STAY, *GROW, *WAVER, *RATES), "INTEGER")),
        many=True,
    ),
]


def documents(kind: Kind, different: int = 0) -> list[bytes]:
    """Make different documents; whoever writes one replaces the UUID."""
    rng = random.Random(1)
    different = different or max(DIFFERENT, DIFFERENT_BYTES // kind.size)
    return [_document(rng, kind.size) for _ in range(different)]


def _document(rng: random.Random, size: int) -> bytes:
    value: dict[str, object] = {"UUID": NO_UUID.decode(), "StartTime": STARTED}
    value["Server"] = f"10.0.{rng.randrange(256)}.{rng.randrange(256)}"
    if size < 200:
        return _json(value)
    value |= {"Port": rng.randrange(65536), "Rate": rng.random() * 1000}
    if size < 10_000:
        return _json(_filled(value, "Samples", _samples(rng), size))
    return _json(_filled(value, "ServerMeasurements", _snapshots(rng), size))


def _filled(value: dict[str, object], key: str, made, size: int) -> dict[str, object]:  # noqa: ANN001
    items: list[object] = []
    length = len(_json(value))
    while length < size - 60:
        items.append(next(made))
        length += len(_json(items[-1])) + 1
    return {**value, key: items}


def _samples(rng: random.Random):  # noqa: ANN202 - yields samples for ever
    counts = [rng.randrange(10**5) for _ in COUNTERS]
    while True:
        counts = [count + rng.randrange(3000) for count in counts]
        yield dict(zip(COUNTERS, counts, strict=True))


def _snapshots(rng: random.Random):  # noqa: ANN202 - as above
    stay = {name: rng.choice((0, 0, 1, 7, 1428, rng.randrange(10**6))) for name in STAY}
    grow = dict.fromkeys(GROW, 0)
    while True:
        grow = {name: count + rng.randrange(1, 3) * 14280 for name, count in grow.items()}
        waver = {name: rng.randrange(20_000, 21_000) for name in WAVER}
        rates = dict.fromkeys(RATES, rng.randrange(10**8))
        yield {
            "AppInfo": {"ElapsedTime": grow["ElapsedTime"], "NumBytes": grow["BytesSent"]},
            "BBRInfo": {
                "BW": rates["PacingRate"],
                "MinRTT": waver["MinRTT"],
                "PacingGain": 320,
                "CwndGain": 512,
                "ElapsedTime": grow["ElapsedTime"],
            },
            "TCPInfo": {**stay, **grow, **waver, **rates},
        }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def spool(root: Path, datatypes: int = 1) -> Path:
    """Make an empty spool with the datatypes foo1, foo2, …; return the first one's directory."""
    shutil.rmtree(root, ignore_errors=True)
    directory = root / "spool" / "exp" / "foo1"
    for number in range(1, datatypes + 1):
        directory.with_name(f"foo{number}").mkdir(parents=True)
    (root / "spool" / "datatypes").mkdir()
    (root / "spool" / "datatypes" / "foo1.json").write_text(json.dumps(SCHEMA))
    return directory


def write(directory: Path, made: list[bytes], count: int, *, rename: bool, days: int = 1) -> int:
    """Write `count` files into so many day directories, which are made; return their bytes."""
    total = 0
    for day in range(days):
        where = directory / f"{FIRST_DAY + timedelta(days=day):%Y/%m/%d}"
        where.mkdir(parents=True)
        for number in range(day, count, days):
            content = document(made, number)
            path = f"{where}/m{number:07d}.json"
            target = f"{where}/.m{number:07d}" if rename else path
            with open(target, "wb") as file:  # noqa: PTH123 - a Path for each file takes longer
                file.write(content)
            if rename:
                os.rename(target, path)  # noqa: PTH104 - as above
            total += len(content)
    return total


def document(made: list[bytes], number: int) -> bytes:
    """Return the file of a number."""
    uuid = hashlib.blake2b(b"%d" % number, digest_size=len(NO_UUID) // 2).hexdigest()
    return made[number % len(made)].replace(NO_UUID, uuid.encode(), 1)


def paths(directory: Path) -> list[str]:
    """Return the paths of all measurement files."""
    return [str(path) for path in directory.rglob("*.json")]
