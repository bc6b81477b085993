"""A small archive of made-up measurements, to look at without an agent and without an account.

**Invariant:** it is written as an agent writes: rows, blocks and index rows by the same code, so
that every command works on it.  Equal arguments give the same files.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

import orjson

from jostler import build
from jostler.bundle import Archiver, Bundle, Entry, Facts, FileState, Header, OpenBundle, Rejection
from jostler.bundle.index import index_object
from jostler.format.compression import FAST
from jostler.format.names import REJECTED, BundleName, Day, Kind, Place
from jostler.format.row import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.storage import Storage

PLACE = Place(data_dir="autoload/v1", organization="", experiment="demo")
DAYS = 35
NODES = ("lab1-ams01", "lab1-lga02", "lab1-nbo01", "lab2-nbo01", "lab1-scl01", "lab1-tyo03")
SPEED, PING = "speed1", "ping1"
SILENT, SILENT_DAYS = "lab1-scl01", 4
"""A node that stores nothing any more, for so many days."""
MISSED_DAYS_AGO = 12
"""On that day nobody stored a ping."""
_REJECTS_EVERY = 9
_FILES = 8
WRITERS = 16
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Made(NamedTuple):
    """How much was written."""

    files: int
    bundles: int


class _File(NamedTuple):
    """One file before it is in a bundle; `rejection` is None for a good one."""

    name: str
    begin: datetime
    end: datetime
    work_id: str
    content: bytes
    rejection: Rejection | None = None


def write(bucket: Storage, now: datetime) -> Made:
    """Write the archive of the weeks before an instant into an empty bucket.

    Some things stand out as they do in a real one: a node that fell silent, a day without pings,
    rejected files, quiet weekends.

    Args:
        bucket: where to.
        now: nothing begins after it; UTC.
    """
    made = [*_bundles(bucket.url, now)]
    # Each object is flushed to the disk before it counts as stored; several at once take as long.
    with ThreadPoolExecutor(WRITERS, thread_name_prefix="sample") as pool:
        list(pool.map(lambda one: _put(bucket, one), made))
    return Made(sum(len(one.attempt.entries) for one in made), len(made))


def _bundles(url: str, now: datetime) -> Iterator[Bundle]:
    """Make the bundles of a bucket of this URL."""
    for back in range(DAYS):
        day = now.date() - timedelta(days=back)
        for node in NODES:
            if node == SILENT and back < SILENT_DAYS:
                continue
            for datatype in (SPEED, PING):
                if datatype == PING and back == MISSED_DAYS_AGO:
                    continue
                files = [one for one in _files(datatype, node, day) if one.end <= now]
                good = [one for one in files if not one.rejection]
                bad = [one for one in files if one.rejection]
                for kind, chosen in ((datatype, good), (REJECTED, bad)):
                    if chosen:
                        yield _bundle(url, kind, node, Day(day), chosen)


def _files(datatype: str, node: str, day: date) -> Iterator[_File]:
    rng = random.Random(f"{datatype} {node} {day}")  # noqa: S311 - the same files each time
    weekday = 1.0 if day.weekday() < 5 else 0.4  # noqa: PLR2004 - Monday to Friday
    midnight = datetime.combine(day, time(tzinfo=UTC))
    for number in range(int(_FILES * weekday * rng.uniform(0.6, 1.6)) + 1):
        begin = midnight + timedelta(seconds=rng.randrange(86_000), microseconds=rng.randrange(999))
        end = begin + timedelta(seconds=rng.uniform(9, 12))
        uuid = f"{node}-{rng.getrandbits(48):012x}"
        document: dict[str, object] = {"UUID": uuid, "StartTime": begin.isoformat(), "Node": node}
        rate = round(rng.lognormvariate(4, 0.8), 2)
        if datatype == SPEED:
            document |= {"Rate": rate, "Direction": rng.choice(("download", "upload"))}
        else:
            rtts = [round(rng.uniform(5, 60), 3) for _ in range(10)]
            document |= {"Target": "ping.example.net", "Sent": 10, "RTTs": rtts}
        # The job that a file belongs to is shared by the nodes: each hour has one.
        file = _File(
            name=f"{begin:%Y%m%dT%H%M%SZ}-{uuid}.json",
            begin=begin,
            end=end,
            work_id=f"hourly-{begin:%Y%m%d-%H}",
            content=orjson.dumps(document),
        )
        if datatype == SPEED and number == 0 and not rng.randrange(_REJECTS_EVERY):
            file = file._replace(content=orjson.dumps({**document, "Rate": "fast"}))
            detail = "expected FLOAT, found string 'fast'"
            reason = Rejection(datatype=SPEED, reason="wrong-type", detail=detail, field="Rate")
            file = file._replace(rejection=reason)
        yield file


def _bundle(url: str, datatype: str, node: str, day: Day, files: list[_File]) -> Bundle:
    """Make a bundle as if an agent had sealed it after the last file."""
    files = sorted(files, key=lambda file: file.begin)
    added = max(file.end for file in files) + timedelta(seconds=1)
    name = BundleName(
        place=PLACE, datatype=datatype, day=day, created=added, node=node, kind=Kind.DATA
    )
    archiver = Archiver(version=f"jostler@{build.version()}", commit=build.commit())
    header = Header(name=name, bucket=url, archiver=archiver, compression=FAST)
    opened = OpenBundle(header, 0.0)
    for file in files:
        entry = _entry(datatype, day, file)
        raw = file.content
        if file.rejection:
            raw = file.rejection.raw(
                filename=entry.filename,
                size=len(raw),
                added_us=entry.added_us,
                node=node,
                content=raw,
            )
        opened.add(entry, opened.row(entry.filename, raw), file.rejection)
    return opened.seal()


def _put(bucket: Storage, bundle: Bundle) -> None:
    """Store a bundle and its index."""
    bucket.put_new(str(bundle.header.name), bundle.data, {})
    index = index_object(bundle.header, bundle.attempt)
    bucket.put_new(str(bundle.header.index_name), index, {})


def _entry(datatype: str, day: Day, file: _File) -> Entry:
    begin_us, end_us = ((when - _EPOCH) // _MICROSECOND for when in (file.begin, file.end))
    return Entry(
        path=f"{datatype}/{day.path}/{file.name}",
        state=FileState(0, len(file.content), end_us * 1000, end_us * 1000),
        added_us=end_us + 200_000,
        hash=content_hash(file.content),
        facts=Facts(begin_us, end_us, file.work_id),
    )
