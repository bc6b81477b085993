"""Mend what an audit found, where it can be mended without losing anything.

**Invariant:** store first, remove after, at the versions that were looked at (`keeping`); what is
removed was copied to `quarantine/` before.  Each mend looks at the objects anew, so that to repeat
it, after a crash or beside another keeper, ends with the same objects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from jostler.archive.audit.audit import checked
from jostler.archive.audit.known import BROKEN, known_of_day, rests_of
from jostler.archive.audit.problem import Kind, Problem
from jostler.archive.audit.remake import CannotError, by_filename, index_of, known_files
from jostler.archive.audit.salvage import (
    DoubtfulError,
    Salvaged,
    later,
    rewritten,
    salvage,
)
from jostler.archive.audit.scope import Bundle
from jostler.archive.keeping import Looked, Made, store_then_remove
from jostler.archive.lines import RowError, lines_of
from jostler.archive.pairs import other_half
from jostler.errors import ConflictError, JostlerError, MissingError
from jostler.storage import upload_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from jostler.archive.audit.audit import DayFound
    from jostler.bundle.index_fields import IndexFields
    from jostler.format.names import BundleName
    from jostler.storage import ObjectInfo, Storage

    Fields = Mapping[str, IndexFields]

QUARANTINE = "quarantine/"
_DATA_DIR_RE = re.compile(r"(?:^|/)autoload/v[0-9]+/")
NAMES_TRIED = 100
GONE = "it is gone: another process has merged, mended or deleted it meanwhile"
SETTLED = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Mended:
    """The end of one problem.

    Attributes:
        problem: the problem.
        done: what was done; empty if it is left.
        why: why it is left, if mending was tried; else empty.
    """

    problem: Problem
    done: str = ""
    why: str = ""


class CannotMendError(Exception):
    """A problem is left; the message says why."""


@dataclass(slots=True, kw_only=True)
class Mender:
    """Mends the days of one bucket.

    Attributes:
        storage: the bucket.
        staging: the bucket of staging.
        prefix: the prefix of staging, empty or with a slash at its end.
        now: the current time.
        orphans: whether an index without data is removed.
        settled: an object younger than this is left to the agent that may still be storing the
            other half.
        fields: by datatype, what fills Start, End and WorkID of an index that is made again.
        mark: marks a day as due for the loader; None if there is no project.
    """

    storage: Storage
    staging: Storage
    prefix: str
    now: datetime
    orphans: bool
    settled: timedelta
    fields: Fields
    mark: Callable[[DayFound, Problem], str] | None = None

    def __post_init__(self) -> None:
        """Refuse a quarantine among the data.

        Raises:
            ValueError: what is there would be listed, and loaded, as data of an experiment.
        """
        staging, url = f"{self.staging.url}/{self.prefix}", f"{self.storage.url}/"
        if staging.startswith(url) and _DATA_DIR_RE.search(staging.removeprefix(url)):
            raise ValueError(f"staging {staging} lies among the archive's data")

    def mend(self, day: DayFound) -> Iterator[Mended]:
        """Mend the problems of a day; yield the end of each."""
        by_object: dict[str, list[Problem]] = {}
        for problem in day.problems:
            by_object.setdefault(problem.object, []).append(problem)
        rests = set() if self.orphans else rests_of(self.storage, day)
        for bundle in day.listed.bundles:
            names = {str(bundle.name), str(bundle.index_name)}
            mine = [p for name in sorted(names) for p in by_object.pop(name, [])]
            yield from self._bundle(bundle, mine, day.listed.bundles)
        for index_name, info in day.listed.orphans:
            mine = by_object.pop(str(index_name), [])
            is_rest = info.name in rests
            yield from self._ended(
                mine,
                lambda i=info, n=index_name, r=is_rest: self._orphan(n, i, is_rest=r),  # type: ignore[misc]
            )
        for info in day.listed.lost_filters:
            mine = by_object.pop(info.name, [])
            yield from self._ended(mine, lambda i=info: self._filters(i))  # type: ignore[misc]
        for left in by_object.values():
            for problem in left:
                yield self._other(day, problem)

    def _other(self, day: DayFound, problem: Problem) -> Mended:
        if problem.kind is Kind.DAY_DIFFERS and self.mark:
            return next(
                self._ended([problem], lambda: self.mark(day, problem) if self.mark else "")
            )
        return Mended(problem)

    def _bundle(
        self, bundle: Bundle, problems: list[Problem], same_day: Sequence[Bundle]
    ) -> Iterator[Mended]:
        """Mend one bundle; problems of its rows stay as they are."""
        kinds = {problem.kind for problem in problems}
        remake = partial(self._remake, same_day=same_day)
        for kind, mend in ((Kind.DAMAGED, self._salvage), (Kind.NO_INDEX, remake)):
            if kind in kinds or (kind is Kind.NO_INDEX and Kind.DISAGREES in kinds):
                both = {kind} | ({Kind.NO_INDEX, Kind.DISAGREES})
                mine = [problem for problem in problems if problem.kind in both]
                yield from (Mended(p) for p in problems if p.kind not in both)
                yield from self._ended(mine, lambda mend=mend: mend(bundle))  # type: ignore[misc]
                return
        yield from map(Mended, problems)

    def _ended(self, problems: Iterable[Problem], mend: Callable[[], str]) -> Iterator[Mended]:
        """Mend, and say the end of the problems that this is for."""
        mine = list(problems)
        if not mine:
            return
        try:
            done, why = mend(), ""
        except MissingError:  # of what was listed
            done, why = GONE, ""
        except (CannotMendError, CannotError, DoubtfulError, JostlerError) as exc:
            done, why = "", str(exc)
        for nth, problem in enumerate(mine):
            yield Mended(problem, done=done and (done if not nth else "as above"), why=why)

    # The mends

    def _remake(self, bundle: Bundle, same_day: Sequence[Bundle]) -> str:
        """Make an index again, in the place of a wrong one or of none."""
        added = self._time_of(bundle.data.name)
        if bundle.index is None and self.now - added < self.settled:
            raise CannotMendError(
                f"younger than {self.settled}: its agent may be storing the index"
            )
        data = self._read(bundle.data)
        old = self._read(bundle.index) if bundle.index else None
        known = known_files(bundle.index_name, self.storage.url, old)
        if old is None and bundle.name.is_merged:
            known = list(known_of_day(self.storage, data, same_day))
        made = index_of(
            bundle.name,
            bundle.index_name,
            self.storage.url,
            data,
            known=by_filename(known),
            added=added,
            fields=self.fields.get(bundle.name.datatype),
        )
        version = bundle.index.version if bundle.index else ""
        made = replace(made, replaces=version)
        if bundle.index and old is not None:
            self._quarantine(bundle.index, old)
        try:
            store_then_remove(self.storage, [made], [])
        except ConflictError:
            # The agent, or another keeper, was quicker; whether its index is good is looked at.
            if not self._is_whole(bundle):
                raise
            return "another process has stored the index meanwhile"
        if not self._is_whole(bundle):
            # A compaction that had removed the index, but not yet the data.
            if not self._is_there(self.storage, bundle.data.name):
                for info in self._listed(made.name):
                    store_then_remove(self.storage, [], [Looked(info.name, info.version)])
                return GONE
            raise CannotMendError("the index was made again, and does not fit yet")
        return "the index was made again from the rows"

    def _salvage(self, bundle: Bundle) -> str:
        """Write what can be read as a new bundle, then move the damaged one to quarantine."""
        name, url = bundle.name, self.storage.url
        data = self._read(bundle.data)
        index = self._read(bundle.index) if bundle.index else None
        saved = salvage(name, url, data, index)
        made: list[Made] = []
        if saved.rows:
            metadata = self.storage.metadata(bundle.data.name, bundle.data.version)
            made = self._new_bundle(
                bundle,
                saved,
                lambda later_name: rewritten(
                    later_name,
                    url,
                    saved,
                    old=name,
                    index=index,
                    added=self._time_of(bundle.data.name),
                    schema=metadata.get("schema", ""),
                    fields=self.fields.get(name.datatype),
                ),
            )
        # Filters first: nobody misses them, and without their data they would be a problem.
        filters = self._listed(name.token_filters)
        old = [Looked(info.name, info.version) for info in filters]
        # Data first, unlike in compaction: an index that is left alone is recognized by the copy of
        # its data in quarantine (`_orphan`).  Damaged data that is left alone would be salvaged
        # once more, without the hashes that verify its rows.
        old.append(Looked(bundle.data.name, bundle.data.version))
        if bundle.index:
            old.append(Looked(bundle.index.name, bundle.index.version))
        # A merged bundle of which no row is lost keeps its name: it is replaced, not removed.
        old = [one for one in old if one.name not in {new.name for new in made}]
        # The copies are stored before anything is removed; the bytes are those that were salvaged
        # from.
        place = self._quarantine(bundle.data, data)
        if bundle.index and index is not None:
            self._quarantine(bundle.index, index)
        store_then_remove(self.storage, made, old)
        where = f"; they are in {made[0].name}" if made else ""
        return f"{saved.summary}{where}; the damaged object is in {place}"

    def _new_bundle(
        self,
        bundle: Bundle,
        saved: Salvaged,
        saved_as: Callable[[BundleName], tuple[Made, Made]],
    ) -> list[Made]:
        """Choose the name of a new bundle: the first that is free, or that has the same rows."""
        for nth in range(1, NAMES_TRIED):
            name = later(bundle.name, saved, nth)
            data, index = saved_as(name)
            if data.name == bundle.data.name:
                version = bundle.index.version if bundle.index else ""
                both = replace(data, replaces=bundle.data.version), replace(index, replaces=version)
                return list(both)
            there = self._there(data.name)
            if there is None:
                return [data, index]
            if _same_rows(there, data.data):  # an earlier run was interrupted behind this
                if there != data.data:  # compaction, or another version of a library, compressed it
                    info = next(self._listed(data.name), None)
                    if info is None or not self._is_whole(Bundle(name, info, None)):
                        raise CannotMendError(f"{name} has the rows already; audit it first")
                    return []
                return [data] if self._there(index.name) else [data, index]
            if name.is_merged:
                break
        raise CannotMendError("no name is free for a new bundle")

    def _orphan(self, index_name: BundleName, info: ObjectInfo, *, is_rest: bool) -> str:
        """Remove an index without data: the rest of an interrupted mend, or if that is asked."""
        is_rest = is_rest or any(
            self._is_there(self.staging, f"{self.prefix}{QUARANTINE}{name}")
            for name in other_half(index_name)
        )
        if not (is_rest or self.orphans):
            raise CannotMendError("-fix=orphans removes it")
        if any(self._is_there(self.storage, str(name)) for name in other_half(index_name)):
            return "its data has been stored meanwhile"
        place = self._quarantine(info, self._read(info))
        store_then_remove(self.storage, [], [Looked(info.name, info.version)])
        return f"the index was moved to {place}"

    def _filters(self, info: ObjectInfo) -> str:
        """Remove token filters without data: nothing is lost that a bundle does not give again."""
        if not self.orphans:
            raise CannotMendError("-fix=orphans removes it")
        store_then_remove(self.storage, [], [Looked(info.name, info.version)])
        return "they were removed"

    # The parts

    def _listed(self, name: str) -> Iterator[ObjectInfo]:
        """Yield an object, if it is there, as the bucket lists it."""
        return (info for info in self.storage.list(name) if info.name == name)

    def _read(self, info: ObjectInfo) -> bytes:
        return self.storage.read(info.name, info.version).data

    def _there(self, name: str) -> bytes | None:
        try:
            return self.storage.read(name).data
        except MissingError:
            return None

    def _is_there(self, storage: Storage, name: str) -> bool:
        try:
            storage.metadata(name)
        except MissingError:
            return False
        return True

    def _time_of(self, name: str) -> datetime:
        for found, when in self.storage.written(name):
            if found == name:
                return when
        raise MissingError(f"there is no object {name}")

    def _is_whole(self, bundle: Bundle) -> bool:
        """Say whether a bundle and the index that is there now agree."""
        index = next(self._listed(str(bundle.index_name)), None)
        found = checked(self.storage, Bundle(bundle.name, bundle.data, index))
        return found is not None and not any(one.kind in BROKEN for one in found.problems)

    def _quarantine(self, info: ObjectInfo, data: bytes) -> str:
        """Store a copy of an object; return its URL.

        An object that was damaged once more has other bytes: its copy has their digest in its name.
        """
        name = f"{self.prefix}{QUARANTINE}{info.name}"
        metadata = {"quarantined-from": f"{self.storage.url}/{info.name}"}
        try:
            store_then_remove(self.staging, [Made(name=name, data=data, metadata=metadata)], [])
        except ConflictError:
            name = f"{name}.{upload_id(data)}"
            store_then_remove(self.staging, [Made(name=name, data=data, metadata=metadata)], [])
        return f"{self.staging.url}/{name}"


def _same_rows(data: bytes, other: bytes) -> bool:
    try:
        return lines_of(data) == lines_of(other)
    except RowError:
        return False
