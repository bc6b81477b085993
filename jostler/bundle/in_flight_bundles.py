"""All bundles in flight: which of them a path belongs to, and the memory that they take.

**Invariant:** a path belongs to at most one bundle, the one that took it last, and only this module
says to which.  The counts of memory are those of the bundles after each transition.

One thread owns it; other threads may call `owns`.  No disk, no clock.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostler.bundle.entry import ENTRY_BYTES, FACTS_BYTES
from jostler.bundle.in_flight import InFlight, State
from jostler.bundle.vanished import REMEMBERED_MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from jostler.bundle.batch import Batch
    from jostler.bundle.bundle import Bundle, SealReason
    from jostler.bundle.cleanup import Cleaned
    from jostler.bundle.entry import Entry, FileState
    from jostler.bundle.job import UploadJob
    from jostler.bundle.record import Record
    from jostler.format.row import Rejection


class Released(Struct, frozen=True, kw_only=True):
    """Paths that have just stopped belonging to a bundle.

    Attributes:
        closed: that were closed while they belonged to one: as good as an event now.
        changed: whose file is still there and not stored as it now is.
        kept: whose file could not be stored whole and stays on the disk, with the state that it
            was rejected in.
    """

    closed: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: dict[str, FileState] = field(default_factory=dict)


class InFlightBundles:
    """All bundles in flight, and which of them has a path.

    Attributes:
        open_bytes: memory of open bundles.
        sealed_bytes: memory of bundles that are sealed and not yet stored.
        sending_bytes: memory of those of them whose data object is not known to be stored.
        vanished: hashes of stored files that were gone when they were to be unlinked.
    """

    def __init__(self) -> None:
        self._owners: dict[str, InFlight] = {}
        self._bundles: dict[str, InFlight] = {}
        self._aside: dict[str, InFlight] = {}
        self.vanished: dict[int, bytes] = {}
        self.open_bytes = 0
        self._closed_bytes = 0
        self._counted: dict[str, tuple[int, int, int]] = {}
        self.sealed_bytes = self.sending_bytes = 0

    def __iter__(self) -> Iterator[InFlight]:
        return iter(self._bundles.values())

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that all bundles take."""
        return self.open_bytes + self._closed_bytes

    @property
    def files(self) -> int:
        """How many files belong to a bundle."""
        return len(self._owners) + sum(one.set_aside for one in self._aside.values())

    @property
    def undeletable(self) -> int:
        """How many bundles have files that cannot be unlinked."""
        return sum(one.state is State.STORED for one in self._aside.values())

    def owner(self, path: str) -> InFlight | None:
        """Return the bundle that a path belongs to."""
        one = self._owners.get(path)
        if one is None and self._aside:
            number = hash(path)
            return next((o for o in self._aside.values() if o.owns_aside(number)), None)
        return one

    def owned_by(self, one: InFlight) -> Callable[[str], bool]:
        """Return a function that checks if a path is a certain bundle's; fast for many paths."""
        owners = self._owners

        def is_owned(path: str) -> bool:
            owner = owners.get(path)
            return owner is one or (owner is None and one.owns_aside(hash(path)))

        return is_owned

    def owns(self, path: str) -> bool:
        """Say whether a path belongs to a bundle; any thread may ask."""
        if path in self._owners:
            return True
        if not self._aside:
            return False
        number = hash(path)
        # A copy, for the agent's thread may change the dict meanwhile.
        return any(one.owns_aside(number) for one in list(self._aside.values()))

    def find(self, name: str) -> InFlight | None:
        """Return the bundle of a name."""
        return self._bundles.get(name)

    def paths(self) -> tuple[str, ...]:
        """Copy the paths of all bundles but those set aside: a millisecond for 100,000."""
        return tuple(self._owners)

    def has_vanished(self, path: str, digest: bytes | None = None) -> bool:
        """Say whether a file is stored, with this content, that was gone when it was to go."""
        if not self.vanished:
            return False
        stored = self.vanished.get(hash(path))
        return stored is not None and digest in {None, stored}

    def knows_any(self, paths: Sequence[str]) -> bool:
        """Return whether one of some paths belongs to a bundle, or was stored and had vanished."""
        if not self._owners.keys().isdisjoint(paths):
            return True
        if not (self._aside or self.vanished):
            return False
        numbers = list(map(hash, paths))
        return not self.vanished.keys().isdisjoint(numbers) or any(
            one.owns_aside(number) for one in self._aside.values() for number in numbers
        )

    # What happens to bundles

    def open(self, one: InFlight) -> None:
        """Begin with a bundle that takes rows from now on."""
        self._bundles[one.name] = one
        self.open_bytes += one.held_bytes

    def add(self, one: InFlight, entry: Entry, row: bytes, rejection: Rejection | None) -> None:
        """Put a file's row into an open bundle; the path is the bundle's from now on."""
        opened = one.opened
        assert opened
        before = opened.held_bytes
        opened.add(entry, row, rejection)
        self._owners[entry.path] = one
        self.open_bytes += opened.held_bytes - before + ENTRY_BYTES
        if entry.facts:
            self.open_bytes += FACTS_BYTES

    def add_batch(self, one: InFlight, paths: Sequence[str], batch: Batch) -> None:
        """Put the rows of a batch into an open bundle; `paths` are those of its files."""
        opened = one.opened
        assert opened
        before = opened.held_bytes
        opened.add_batch(paths, batch)
        self._owners.update(zip(paths, repeat(one)))
        self.open_bytes += opened.held_bytes - before + len(paths) * ENTRY_BYTES
        self.open_bytes += len(batch.facts) * FACTS_BYTES

    def compress(self, one: InFlight) -> None:
        """Compress the rows of an open bundle that are not yet."""
        assert one.opened
        before = one.opened.held_bytes
        one.opened.end_block()
        self.open_bytes += one.opened.held_bytes - before

    def seal(self, one: InFlight, reason: SealReason, now_s: float) -> Bundle:
        """Close an open bundle."""
        self.open_bytes -= one.held_bytes
        bundle = one.seal(reason, now_s)
        self._recount(one)
        return bundle

    def replay(self, record: Record, now_s: float) -> InFlight:
        """Go on with a bundle of an earlier process; given the oldest first.

        A path that two of them have belongs to the later one: the earlier one's file was given
        back then, before its record was forgotten.  A file that was given up may be gone, and a
        new one of its path belong to any other bundle, earlier or later.
        """
        one = InFlight.replayed(record, now_s)
        self._bundles[one.name] = one
        for path in record.given_up:
            self._owners.setdefault(path, one)
        for path in record.paths - record.given_up:
            self._owners[path] = one
        self._recount(one)
        return one

    def take_over(self, record: Record) -> bool:
        """Let a bundle that is in flight have those of its files that no bundle has any more.

        Returns:
            Whether the bundle of this record is in flight.
        """
        one = self._bundles.get(str(record.header.name))
        if one is None:
            return False
        if one.job:  # else its files were looked at, and it is not to have new ones of their paths
            for path in record.given_up:
                self._owners.setdefault(path, one)
        return True

    def take_in(self, one: InFlight) -> None:
        """Begin with a bundle that was sealed apart from the open ones."""
        self._bundles[one.name] = one
        for path in one.entries.paths:
            # It lists files that are not its alone: one of these paths may be another bundle's by
            # now.
            self._owners.setdefault(path, one)
        self._recount(one)

    def leave(self, record: Record, now_s: float) -> None:
        """Leave a bundle of an earlier process as it is: its files are not taken either."""
        one = InFlight.foreign(record, now_s)
        self._bundles[one.name] = self._aside[one.name] = one
        self._recount(one)

    def halted(self, one: InFlight, job: UploadJob, what: str, error: str) -> None:
        """Record that a step of a bundle's upload failed."""
        one.halted(job, what, error)
        self._recount(one)

    def stored(self, one: InFlight, job: UploadJob) -> Released:
        """Record that a bundle is durable; return the files that it does not hold."""
        one.stored(job)
        self._recount(one)
        return self._release(one, changed=list(filter(self.owned_by(one), job.left)))

    def given_back(self, one: InFlight) -> Released:
        """Record that a bundle cannot become durable; return all its files."""
        paths = one.job.record.paths if one.job else set()
        one.given_back()
        released = self._release(one, changed=list(filter(self.owned_by(one), paths)))
        self._forget(one)
        return released

    def cleaned(self, one: InFlight, cleaned: Cleaned) -> Released:
        """Record the result of a clean-up; return the paths that the bundle no longer has."""
        for path, digest in cleaned.vanished.items():
            self.remember_vanished(path, digest)
        released = self._release(
            one,
            gone=[*cleaned.unlinked, *cleaned.vanished] if cleaned.vanished else cleaned.unlinked,
            changed=cleaned.changed,
            kept=cleaned.kept,
        )
        one.cleaned(cleaned.failed)
        for path in cleaned.failed:
            self._owners.pop(path, None)
        if one.state is State.GONE:
            self._forget(one)
        else:
            self._aside[one.name] = one
            self._recount(one)
        return released

    def _release(
        self,
        one: InFlight,
        *,
        gone: Collection[str] = (),
        changed: Collection[str] = (),
        kept: dict[str, FileState] | None = None,
    ) -> Released:
        """Take paths away from their bundle, so that the files there can be taken."""
        kept = kept or {}
        owners = self._owners
        for path in chain(gone, changed, kept):
            owners.pop(path, None)
        closed = []
        if one.closed:
            closed = [path for path in chain(gone, changed, kept) if path in one.closed]
            one.closed.difference_update(closed)
        return Released(closed=closed, changed=list(changed), kept=kept)

    def _forget(self, one: InFlight) -> None:
        self._bundles.pop(one.name, None)
        self._aside.pop(one.name, None)
        self._recount(one)
        del self._counted[one.name]

    def _recount(self, one: InFlight) -> None:
        """Count anew what a bundle that is not open holds."""
        before, sealed_before, sending_before = self._counted.pop(one.name, (0, 0, 0))
        held = one.held_bytes if one.name in self._bundles else 0
        sealed = held if one.on_its_way else 0
        # A bundle that only waits for its index or the journal may do so for ever; its data is
        # gone, and it must not keep others from being read.
        sending = sealed if one.job and one.job.data is not None else 0
        self._closed_bytes += held - before
        self.sealed_bytes += sealed - sealed_before
        self.sending_bytes += sending - sending_before
        self._counted[one.name] = held, sealed, sending

    def remember_vanished(self, path: str, digest: bytes) -> None:
        """Remember a stored file whose path was gone: its directory may be moved back."""
        while len(self.vanished) >= REMEMBERED_MOST:
            # A dict keeps the order of insertion: the first key is the oldest.
            del self.vanished[next(iter(self.vanished))]
        self.vanished[hash(path)] = digest
