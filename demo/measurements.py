"""The files that the demo's services write: two datatypes, good ones and bad ones.

**Invariant:** equal arguments give equal files, and each file's fate is known when it is made.

Pure: writes no file.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

SPEED, PING = "speed1", "ping1"
DATATYPES = (SPEED, PING)
_COUNTRIES = {"BR": 28573, "DE": 3320, "IN": 45609, "KE": 33771, "US": 7018}
_TARGETS = ("ams.example.net", "lga.example.net", "nbo.example.net", "tyo.example.net")
_BAD_EVERY = 40  # of so many files one of each datatype is bad
_PRETTY_EVERY = 7
_YESTERDAY_EVERY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A file that is to be written.

    Attributes:
        datatype: its name.
        day: of the directory it is written to.
        name: of the file.
        content: its bytes.
        pretty: whether it is spread over many lines.
        flaw: why it must be refused; empty for a good one.
    """

    datatype: str
    day: date
    name: str
    content: bytes
    pretty: bool
    flaw: str


def measurements(today: date, count: int) -> Iterator[Measurement]:
    """Make files, three of speed1 for each two of ping1, every third of the day before."""
    for number in range(count):
        datatype = SPEED if number % 5 < 3 else PING  # noqa: PLR2004 - three of five
        rng = random.Random(number)  # noqa: S311 - the same files each time
        day = today - timedelta(days=number % _YESTERDAY_EVERY == 0)
        began = datetime(day.year, day.month, day.day, tzinfo=UTC)
        began += timedelta(microseconds=rng.randrange(86_400_000_000))
        uuid = f"{rng.getrandbits(64):016x}-{number:05d}"
        document = (_speed if datatype == SPEED else _ping)(rng, uuid, began)
        flaw, spoil = _GOOD
        if number % _BAD_EVERY in {1, 3}:  # a speed1 and a ping1
            flaw, spoil = _FLAWS[datatype][number // _BAD_EVERY % len(_FLAWS[datatype])]
        pretty = not flaw and number % _PRETTY_EVERY == 0
        written = json.dumps(document, indent=2 if pretty else None).encode()
        yield Measurement(
            datatype=datatype,
            day=day,
            name=f"{began:%Y%m%dT%H%M%SZ}-{uuid}.json",
            content=spoil(written),
            pretty=pretty,
            flaw=flaw,
        )


def _speed(rng: random.Random, uuid: str, began: datetime) -> dict[str, Any]:
    """Make a transfer of some ten seconds, sampled each 250 ms."""
    country = rng.choice(sorted(_COUNTRIES))
    rate = rng.lognormvariate(4, 0.8) + 1
    samples, done, resent, rtt = [], 0, 0, rng.uniform(8_000, 90_000)
    for step in range(1, rng.randrange(36, 44)):
        speed = rate * min(1.0, step / 6) * rng.uniform(0.9, 1.1)
        done += int(speed * 1e6 / 8 * 0.25)
        resent += rng.random() < 0.1  # noqa: PLR2004 - one time in ten
        rtt *= rng.uniform(0.97, 1.04)
        samples.append(
            {
                "ElapsedTime": step * 250_000 + rng.randrange(2_000),
                "Bytes": done,
                "RTT": int(rtt),
                "Retransmits": resent,
            }
        )
    return {
        "UUID": uuid,
        "StartTime": f"{began:%Y-%m-%dT%H:%M:%S.%f}{rng.randrange(1000):03d}Z",
        "Direction": rng.choice(["download", "upload"]),
        "Client": {"Country": country, "ASN": _COUNTRIES[country], "Name": "speed-js"},
        "Rate": rate,
        "Congested": resent > 5,  # noqa: PLR2004 - a few are normal
        "Samples": samples,
    }


def _ping(rng: random.Random, uuid: str, began: datetime) -> dict[str, Any]:
    """Make a run of ten probes, of which few are lost."""
    base = rng.uniform(5, 200)
    rtts = [round(base * rng.uniform(1, 1.2), 3) for _ in range(10) if rng.random() < 0.98]  # noqa: PLR2004 - two in a hundred are lost
    return {
        "UUID": uuid,
        "StartTime": f"{began:%Y-%m-%d %H:%M:%S.%f} UTC",
        "Target": rng.choice(_TARGETS),
        "Sent": 10,
        "Received": len(rtts),
        "RTTs": rtts,
        "Note": None,
    }


def _untouched(written: bytes) -> bytes:
    return written


def _cut(written: bytes) -> bytes:
    return written[: len(written) // 2]


def _emptied(_written: bytes) -> bytes:
    return b""


def _with(**members: object) -> Callable[[bytes], bytes]:
    """Return what sets members of a document."""

    def spoil(written: bytes) -> bytes:
        return json.dumps({**json.loads(written), **members}).encode()

    return spoil


def _without_uuid(written: bytes) -> bytes:
    return written.replace(b'"UUID"', b'"uuid_"', 1)


def _not_utf8(written: bytes) -> bytes:
    return written.replace(b'"UUID": "', b'"UUID": "\xff', 1)


_GOOD: tuple[str, Callable[[bytes], bytes]] = ("", _untouched)
_FLAWS: dict[str, list[tuple[str, Callable[[bytes], bytes]]]] = {
    SPEED: [
        ("wrong-type", _with(Rate="fast")),
        ("not-json", _cut),
        ("unknown-field", _without_uuid),
        ("null-element", _with(Samples=[{"RTT": 12_000}, None])),
        ("bad-timestamp", _with(StartTime="yesterday, at noon")),
    ],
    PING: [
        ("out-of-range", _with(Sent=2**63)),
        ("empty", _emptied),
        ("not-utf8", _not_utf8),
        ("wrong-type", _with(RTTs=17.5)),
    ],
}
