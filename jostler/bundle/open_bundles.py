"""The open bundles, one for each datatype and day: which row goes where, and when one is sealed.

**Invariant:** the bytes held, open and sealed together, never exceed `memory_max` but for one
bundle that alone is larger; what finds no room stays on disk.  One thread owns them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from jostler import heap
from jostler.bundle.bundle import BUNDLE_BYTES, Header, Limits, OpenBundle, SealReason
from jostler.bundle.entry import ENTRY_BYTES, FACTS_BYTES
from jostler.bundle.in_flight import InFlight
from jostler.format.names import BundleName, Day, Kind, Place, display
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jostler.bundle.batch import Batch
    from jostler.bundle.bundle import Bundle
    from jostler.bundle.entry import Entry
    from jostler.bundle.in_flight_bundles import InFlightBundles
    from jostler.format.compression import CompressionChoice
    from jostler.format.row import Archiver, Rejection

log = Log("jostler.bundle")

SENDING_SHARE = 2
LOOSE_LEAST_BYTES = 16 << 10  # smaller blocks compress badly
TRIM_EVERY_S = 1.0


def _loose_bytes(one: InFlight) -> int:
    return one.opened.loose_bytes if one.opened else 0


class Stamp(Struct, frozen=True, kw_only=True):
    """What every bundle of this agent carries.

    Attributes:
        bucket: URL of the bucket.
        place: in the bucket.
        node: as names have it.
        archiver: version and commit.
        compression: of bundles, by whether files wait.
        schemas: for each datatype, the digest of the table schema that its files are judged by;
            its owner may add to it before the first file is taken.
    """

    bucket: str
    place: Place
    node: str
    archiver: Archiver
    compression: CompressionChoice
    schemas: Mapping[str, str] = field(default_factory=dict)


class Put(Enum):
    """The result of offering a row."""

    ADDED = 1
    NO_ROOM = 2
    TOO_BIG = 3


class Room(NamedTuple):
    """What an open bundle has room for.

    Attributes:
        head: the part of its rows before the Filename.
        room_bytes: the size that further rows may have, together.
    """

    head: bytes
    room_bytes: int


class OpenBundles:
    """The open bundles.

    Args:
        stamp: what every bundle carries.
        limits: when a bundle is full.
        in_flight: where bundles are from their first row on.
        memory_max: bytes of all bundles that may be held.
        sealed: takes each bundle as it is sealed.
        monotonic_s: clock for ages.
        now: clock for names and rows; aware.
        backlog: returns whether so many files wait that speed is worth more than small objects.
    """

    def __init__(
        self,
        stamp: Stamp,
        limits: Limits,
        in_flight: InFlightBundles,
        *,
        memory_max: int,
        sealed: Callable[[InFlight, Bundle], None],
        monotonic_s: Callable[[], float],
        now: Callable[[], datetime],
        backlog: Callable[[], bool] = lambda: False,
    ) -> None:
        self._stamp = stamp
        self._limits = limits
        self._in_flight = in_flight
        self._memory_max = memory_max
        self._sealed = sealed
        self._monotonic_s = monotonic_s
        self._now = now
        self._backlog = backlog
        self._open: dict[tuple[str, Day], InFlight] = {}
        self._last_created = datetime.min.replace(tzinfo=UTC)
        self._trimmed_s = -math.inf

    @property
    def held_bytes(self) -> int:
        """Bytes of all bundles in flight."""
        return self._in_flight.held_bytes

    @property
    def uploads_lag(self) -> bool:
        """Whether so much waits to be uploaded that reading more files would only fill memory.

        Half of `memory_max` keeps all uploads busy.  The rest belongs to open bundles, of
        which an agent with many datatypes and days has many.
        """
        return self._in_flight.sending_bytes > self._memory_max // SENDING_SHARE

    @property
    def node(self) -> str:
        """This node's name."""
        return self._stamp.node

    @property
    def limits(self) -> Limits:
        """When a bundle is full."""
        return self._limits

    @property
    def open_bundles(self) -> list[OpenBundle]:
        """The open bundles, oldest first."""
        return [one.opened for one in self._open.values() if one.opened]

    def add(
        self,
        datatype: str,
        day: Day,
        entry: Entry,
        raw: bytes,
        rejection: Rejection | None = None,
    ) -> Put:
        """Put a file's row into the bundle of its datatype and day, opening one if need be.

        Only a rejection's row may be larger than a bundle.
        """
        key = (datatype, day)
        found = self._open.get(key)
        one = found or self._new(datatype, day)
        bundle = one.opened
        assert bundle
        row = bundle.row(display(entry.filename), raw)
        if len(row) > self._limits.max_bytes and not rejection:
            return Put.TOO_BIG
        age_s = self._monotonic_s() - bundle.opened_s
        reason = self._limits.reason_to_seal(bundle.size_bytes, len(row), age_s)
        # A bundle that has just been opened is not yet among the open ones, and takes its first
        # row even if the process stood still for longer than the age since it read the clock.
        if reason and found:
            self._seal(key, reason)
            return self.add(datatype, day, entry, raw, rejection)
        is_new = found is None
        if not self._has_room(len(row) + ENTRY_BYTES + is_new * BUNDLE_BYTES):
            return Put.NO_ROOM
        if found and self._open.get(key) is not found:  # it was sealed to make room
            return self.add(datatype, day, entry, raw, rejection)
        if is_new:
            self._open[key] = one
            self._in_flight.open(one)
        self._in_flight.add(one, entry, row, rejection)
        return Put.ADDED

    def apart(self, datatype: str, day: Day) -> InFlight:
        """Make a bundle apart from the open ones, with a name of its own."""
        return self._new(datatype, day)

    def room(self, datatype: str, day: Day, files: int) -> Room | None:
        """Return what the open bundle of a datatype and day has room for; None if there is none.

        Args:
            datatype: of the files.
            day: of the files.
            files: how many are to be put into it.
        """
        one = self._open.get((datatype, day))
        if one is None or one.opened is None:
            return None
        bundle = one.opened
        if self._limits.reason_to_seal(0, 0, self._monotonic_s() - bundle.opened_s):
            return None
        entries_bytes = files * (ENTRY_BYTES + FACTS_BYTES)
        free_bytes = self._memory_max - self._in_flight.held_bytes - entries_bytes
        room_bytes = min(self._limits.max_bytes - bundle.size_bytes, free_bytes)
        return Room(bundle.head, room_bytes) if room_bytes > 0 else None

    def add_batch(self, datatype: str, day: Day, paths: Sequence[str], batch: Batch) -> None:
        """Put the rows of a batch into the bundle that `room` returned the free space of."""
        self._in_flight.add_batch(self._open[datatype, day], paths, batch)

    def seal_aged(self) -> float | None:
        """Seal what is old enough; return seconds until the next one will be, None if none."""
        now_s = self._monotonic_s()
        while self._open:  # the oldest first: as they were opened
            key, one = next(iter(self._open.items()))
            assert one.opened
            age_s = now_s - one.opened.opened_s
            reason = self._limits.reason_to_seal(0, 0, age_s)
            if not reason:
                return self._limits.max_age_s - age_s
            self._seal(key, reason)
        return None

    def seal_all(self, reason: SealReason) -> None:
        """Seal every open bundle."""
        for key in list(self._open):
            self._seal(key, reason)

    def _has_room(self, more_bytes: int) -> bool:
        """Return whether there is room, after open bundles were sealed for it if need be."""
        held = self._in_flight
        if held.held_bytes + more_bytes <= self._memory_max:
            return True
        self._make_room()
        self._trim()
        if held.held_bytes + more_bytes <= self._memory_max:
            return True
        return not held.open_bytes and not held.sealed_bytes

    def _make_room(self) -> None:
        """Compress what is not, then seal the largest bundles, until a quarter of memory is free.

        With many day directories the rows that are not compressed yet take nearly all of the
        memory.  A block that ends early compresses a little less; a bundle that is sealed early
        costs four requests.  While uploads lag behind, no more bundles are sealed: they would only
        become smaller.
        """
        held, enough = self._in_flight, self._memory_max * 3 // 4
        for one in sorted(self._open.values(), key=_loose_bytes, reverse=True):
            if held.held_bytes <= enough:
                return
            if _loose_bytes(one) < LOOSE_LEAST_BYTES:
                break
            held.compress(one)
        for key in sorted(self._open, key=lambda key: -self._open[key].held_bytes):
            if held.held_bytes <= enough or (held.sealed_bytes and self.uploads_lag):
                return
            self._seal(key, SealReason.MEMORY)

    def _trim(self) -> None:
        """Give back what rows took, which were many pieces among others that stay."""
        now_s = self._monotonic_s()
        if now_s - self._trimmed_s >= TRIM_EVERY_S:
            self._trimmed_s = now_s
            heap.trim()

    def _new(self, datatype: str, day: Day) -> InFlight:
        # Names must differ although the clock may stand still or be set back.
        created = max(self._now(), self._last_created + timedelta(microseconds=1))
        self._last_created = created
        stamp = self._stamp
        name = BundleName(
            place=stamp.place,
            datatype=datatype,
            day=day,
            created=created,
            node=stamp.node,
            kind=Kind.DATA,
        )
        choice = stamp.compression
        header = Header(
            name=name,
            bucket=stamp.bucket,
            archiver=stamp.archiver,
            compression=choice.backlog if self._backlog() else choice.idle,
            schema=stamp.schemas.get(datatype, ""),
        )
        return InFlight(header, self._monotonic_s())

    def _seal(self, key: tuple[str, Day], reason: SealReason) -> None:
        one = self._open.pop(key)
        bundle = self._in_flight.seal(one, reason, self._monotonic_s())
        log.info(
            "bundle.sealed",
            object=one.name,
            files=len(bundle.attempt.entries),
            bytes=len(bundle.data),
            row_bytes=bundle.row_bytes,
            reason=str(reason),
        )
        self._sealed(one, bundle)
