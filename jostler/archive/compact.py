"""Compact a group of bundles in a bucket: read, merge, store, read back, remove.

**Invariant** (the hashed-object rule): an input is removed only after an object that is named by
the hash of its rows, and holds all rows of the input, was stored with its index and read back; and
an input that *is* that object is never removed.  Any number of compactors may do this at once, die
at any step and be run again, beside agents that store and send again: each row is always in a whole
bundle.  Why: rows move only from an object to one that holds as much or more, and two objects that
hold the same rows have the same name, so nothing can be removed in a circle.

What a compactor that was killed leaves:

- a merged object without index: the next compactor of the same rows stores the index;
- an input whose index alone is removed (indexes go first): the next one finds that a merged bundle
  holds each row of it, and removes it.

It never trusts an object without index to hold a row, and removes one only for that reason.

With `repeats`, rows are left out that `compact_repeats` has found to be repeats of a feed; each
relies on an earlier row of the day, in a whole bundle.  If anything of the group cannot be read,
nothing is left out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostler.archive.compact_count import count_repeats
from jostler.archive.compact_density import as_dense_as
from jostler.archive.compact_input import read_input
from jostler.archive.compact_merge import (
    DamagedInputError,
    compare_rows,
    index_again,
    is_as_good,
    is_reduced,
    planned,
)
from jostler.archive.compact_plan import parts_of
from jostler.archive.compact_proof import proven_merge
from jostler.archive.compact_rows import InputError
from jostler.archive.keeping import store_then_remove
from jostler.errors import ConflictError, DamageError, MissingError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jostler.archive.compact_input import Input
    from jostler.archive.compact_merge import Merged, Planned
    from jostler.archive.compact_plan import Group, Member
    from jostler.archive.repeats import Identity
    from jostler.format.compression import Compression
    from jostler.storage import Storage

    Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

THREADS = 8
FOREIGN = "foreign"
DAMAGED = "damaged"
TORN = "no-index"
FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A bundle that was left alone.

    Attributes:
        url: of the data object.
        reason: `foreign`: of a form that is not merged; `damaged`: it cannot be read whole, or
            differs from its index; `no-index`: it has none; `failed`: a request failed.
        why: a sentence for people.
    """

    url: str
    reason: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A merge that was carried out.

    Attributes:
        url: of the merged data object.
        inputs: the number of bundles that it replaces, and that are gone; without itself.
        rows: of the merged bundle.
        repeats: rows of the inputs that were exact repeats.
        collapsed: rows of the inputs that were repeats of a feed.
        plain_bytes: bytes of its rows.
        bytes_before: bytes of the objects that were removed.
        bytes_after: bytes of the objects that were stored.
        objects_before: the number of objects that were removed.
        objects_after: the number of objects that were stored.
    """

    url: str
    inputs: int
    rows: int
    repeats: int
    collapsed: int
    plain_bytes: int
    bytes_before: int
    bytes_after: int
    objects_before: int
    objects_after: int


@dataclass(slots=True)
class Compacted:
    """The result of compacting a group.

    Attributes:
        done: the merges.
        left: the bundles that were left alone.
        kept: why the repeats of a feed were kept that were to be left out; empty if they were not.
    """

    done: list[Done] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    kept: str = ""


def compact(
    storage: Storage,
    group: Group,
    *,
    target_bytes: int,
    version: str,
    threads: int = THREADS,
    repeats: frozenset[Identity] = frozenset(),
    compression: Compression | None = None,
) -> Compacted:
    """Compact a group; the result lists what could not be done, and no row is lost by it.

    Args:
        storage: the bucket.
        group: the bundles.
        target_bytes: the most bytes of rows of a merged bundle, unless one input has more.
        version: of this program, for the metadata of what is stored.
        threads: how many requests are on their way at once.
        repeats: rows to leave out, each a repeat of a row of the day that is in a whole bundle.
        compression: of merged bundles; None for that of their inputs.
    """
    compaction = _Compaction(
        storage,
        group,
        target_bytes=target_bytes,
        version=version,
        repeats=repeats,
        compression=compression,
    )
    if threads == 1:
        return compaction.run(map)
    with ThreadPoolExecutor(threads, thread_name_prefix="compact") as pool:
        return compaction.run(pool.map)


class _Compaction:
    def __init__(
        self,
        storage: Storage,
        group: Group,
        *,
        target_bytes: int,
        version: str,
        repeats: frozenset[Identity],
        compression: Compression | None,
    ) -> None:
        self._storage = storage
        self._group = group
        self._target_bytes = target_bytes
        self._version = version
        self._repeats = repeats
        self._compression = compression
        self._result = Compacted()

    def run(self, each: Map) -> Compacted:
        """Do all of it; `each` calls a function for each of several values, as `map` does."""
        found = [one for one in each(self._read, self._group.members) if one]
        torn = [one for one in found if not one.has_index]
        if len(found) < len(self._group.members):
            self._keep_repeats("one of its bundles is gone, or cannot be read")
        whole = [one for one in found if one.has_index]
        for part in parts_of(whole, self._target_bytes, self._repeats):
            self._compact(part, torn, each)
        for one in torn:
            self._leave(one.member, TORN, "it has no index: `jostler audit -fix` makes one")
        return self._result

    def _keep_repeats(self, why: str) -> None:
        """Leave out no repeats from now on: what they rely on may be missing."""
        if self._repeats:
            self._repeats, self._result.kept = frozenset(), why

    def _read(self, member: Member) -> Input | None:
        """Read a bundle; return None if it is to be left alone."""
        try:
            # At the versions that were listed: what another keeper stored since then is not mixed
            # in.
            data = self._storage.read(str(member.name), member.version).data
            index = b""
            if member.index_version:
                index = self._storage.read(member.index_name, member.index_version).data
            return read_input(member, data, index)
        except MissingError:  # another keeper has removed it since it was listed
            return None
        except StorageError as exc:
            self._leave(member, FAILED, str(exc))
        except InputError as exc:
            self._leave(member, FOREIGN if exc.foreign else DAMAGED, str(exc))
        return None

    def _leave(self, member: Member, reason: str, why: str) -> None:
        url = f"{self._storage.url}/{member.name}"
        self._result.left.append(Left(url=url, reason=reason, why=why))

    def _compact(self, part: list[Input], torn: list[Input], each: Map) -> None:
        """Merge bundles, and remove those of the torn ones whose rows are in the result."""
        while part:
            plan = planned(self._group, part, self._repeats)
            if not plan.order:  # repeats of rows in other bundles: a merged bundle needs a row
                plan = planned(self._group, part)
            covered = self._covered(plan, part, torn)
            if len(part) + len(covered) == 1 and not plan.order.collapsed:
                return
            try:
                done = self._kept_as(plan, part)
                break
            except DamagedInputError as exc:
                one = part.pop(exc.number)
                self._leave(one.member, FOREIGN if exc.foreign else DAMAGED, str(exc))
                self._keep_repeats(f"{one.member.name} is damaged")
            except MissingError:
                # Another keeper has merged the result on, maybe without what these inputs know of
                # its rows: the next run looks at them.
                return
            except (StorageError, DamageError) as exc:
                for one in part:
                    self._leave(one.member, FAILED, str(exc))
                return
        else:
            return
        for one in covered:
            torn.remove(one)
        self._remove(plan, [*part, *covered], done, each)

    def _covered(self, plan: Planned, part: list[Input], torn: list[Input]) -> list[Input]:
        """Return the bundles without index that the merged bundle makes superfluous."""
        if not torn:
            return []
        rows = frozenset(plan.order.identities())
        if any(one.member.name == plan.name for one in part):
            # The result is there already.  Another compactor may be making a torn bundle out of it,
            # with fewer rows, or with repeats, and then remove it: so that one is left alone.
            return [one for one in torn if not is_reduced(one) and rows.issuperset(one.keys())]
        return [one for one in torn if (rows | self._repeats).issuperset(one.keys())]

    def _kept_as(self, plan: Planned, part: list[Input]) -> Merged | None:
        """Make the merged bundle durable; return it if it was stored now.

        Raises:
            DamagedInputError: an input is not what its index says.
            StorageError: the merged bundle could not be stored, or is not as it must be.
        """
        for one in part:
            if one.member.name == plan.name:  # nothing is made that would show their rows
                compare_rows(part)
                if repeats := plan.order.repeats:
                    index = index_again(self._group, one, plan)
                    dense = as_dense_as([one.data])
                    count_repeats(self._storage, one.member, repeats, index, dense)
                return None
        merged = proven_merge(
            self._group,
            part,
            plan,
            bucket=self._storage.url,
            version=self._version,
            compression=self._compression or as_dense_as([one.data for one in part]),
        )
        try:
            store_then_remove(self._storage, [merged.data, merged.index], [])
        except ConflictError as exc:
            self._check_there(plan, merged, exc)
        return merged

    def _check_there(self, plan: Planned, merged: Merged, conflict: ConflictError) -> None:
        """Check that the stored object has the same rows: another library may compress otherwise.

        Raises:
            MissingError: it is gone: another keeper has merged it on.
            StorageError: it has not, or was made of fewer inputs and knows less.
        """
        name = plan.name
        data = self._storage.read(str(name)).data
        try:
            index = self._storage.read(merged.index.name).data
            if is_as_good(self._group, merged, plan, data, index):
                return
        except MissingError:
            raise conflict from None
        except InputError as exc:
            raise DamageError(f"{self._storage.url}/{name}: {exc}") from conflict
        raise conflict

    def _remove(self, plan: Planned, old: list[Input], merged: Merged | None, each: Map) -> None:
        """Remove the inputs, but not the one that is the result; of each, its index first."""
        name = plan.name
        superfluous = [one.member for one in old if one.member.name != name]
        gone = []
        for member, why in zip(superfluous, each(self._removed, superfluous), strict=True):
            if why is None:
                gone.append(member)
            elif why:
                text = f"its rows are in {name}, but it could not be removed: {why}"
                self._leave(member, FAILED, text)
        self._remove_filters(gone)
        self._result.done.append(
            Done(
                url=f"{self._storage.url}/{name}",
                inputs=len(gone),
                rows=len(plan.order),
                repeats=plan.order.repeats,
                collapsed=plan.order.collapsed,
                plain_bytes=merged.plain_bytes if merged else 0,
                bytes_before=sum(member.total_bytes for member in gone),
                bytes_after=len(merged.data.data) + len(merged.index.data) if merged else 0,
                objects_before=sum(member.objects for member in gone),
                objects_after=2 if merged else 0,
            )
        )

    def _remove_filters(self, gone: list[Member]) -> None:
        """Remove the token filters of what is gone; those that stay are removed when it is indexed.

        Most archives have none, so they are listed first.
        """
        names = {member.name.token_filters for member in gone}
        prefix = f"{self._group.place.token_filters(self._group.datatype)}{self._group.day.path}/"
        with suppress(StorageError):
            for info in list(self._storage.list(prefix)) if gone else ():
                if info.name in names:
                    self._storage.remove(info.name, info.version)

    def _removed(self, member: Member) -> str | None:
        """Remove a bundle; return why it stays: empty if the next run looks at it again."""
        try:
            if member.index_version:
                # The index first: a reader never finds an index whose data is gone.  If this
                # process dies in between, the next compactor finds data without index, whose rows
                # the merged bundle has.
                self._storage.remove(member.index_name, member.index_version)
            self._storage.remove(str(member.name), member.version)
            if not member.index_version:
                # Its agent, another compactor or an audit may have stored the index meanwhile.
                for info in self._storage.list(member.index_name):
                    if info.name == member.index_name:
                        self._storage.remove(info.name, info.version)
        except ConflictError:  # stored again since it was listed
            return ""
        except StorageError as exc:
            return str(exc)
        return None
