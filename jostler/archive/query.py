"""A question to a catalogue, and whether a file answers it.

**Invariant:** both catalogues keep to these rules; where BigQuery evaluates one, it is given the
same bounds and the same regular expression.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from jostler.archive.files import File, Position, day_in, utc
from jostler.format.names import REJECTED, BundleName, Kind

Matcher = Callable[[File], bool]

DAY = timedelta(days=1)
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2099, 12, 31)
_GLOB_RE = re.compile(r"[*?\[]")
_CLASS_RE = re.compile(r"\[(!?)([^\]\\]+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """Identities, of which a file has at least one.  None of them is a pattern.

    Attributes:
        hashes: in hexadecimal, lower case.
        filenames: Filenames as they are stored.
        paths: paths below the datatype's directory.
        names: files' own names.
    """

    hashes: frozenset[str] = frozenset()
    filenames: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def matcher(self) -> Matcher:
        """Return a function that says whether a file has one of them."""
        hashes, filenames, paths, names = self.hashes, self.filenames, self.paths, self.names
        if not (filenames or paths or names):
            return lambda file: file.hash in hashes
        return lambda file: (
            file.hash in hashes
            or file.filename in filenames
            or file.path in paths
            or file.name in names
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which files to find.  Conditions that are not given hold for every file.

    Attributes:
        datatypes: their datatypes; none for all but rejected1.
        nodes: the nodes that stored them; none for all.
        with_rejected: whether all datatypes are meant with rejected1, if none is named.
        start: files that end before this instant are left out.
        end: files that begin after this instant are left out.
        first_day: the first day whose folders are searched.
        last_day: the last day whose folders are searched.
        work_id: the job that they belong to; upper and lower case are the same.
        filename: a Filename, a file's own name, or a pattern of either with `*`, `?` and `[…]`;
            `*` matches slashes too.  With a slash in it, it is compared with the whole path below
            the datatype's directory, else with the file's own name.
        hash: in hexadecimal.
        any_of: identities of many files, one of which each result has.
        bundle: the name of the data object that holds them.
        after: results up to and including this position are left out.
        limit: the most results; 0 for all.
        newest_first: whether the days come from the latest to the earliest.  Inside of a day the
            order is the same.

    Raises:
        ValueError: an instant has no time zone, the range ends before it starts, the limit is
            negative, the pattern has a range such as `[z-a]`, or there is no such name of a bundle.
    """

    datatypes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    with_rejected: bool = False
    start: datetime | None = None
    end: datetime | None = None
    first_day: date | None = None
    last_day: date | None = None
    work_id: str = ""
    filename: str = ""
    hash: str = ""
    any_of: AnyOf | None = None
    bundle: str = ""
    after: Position | None = None
    limit: int = 0
    newest_first: bool = False

    def __post_init__(self) -> None:
        start, end = (utc(when) if when else None for when in (self.start, self.end))
        if start and end and end < start:
            raise ValueError(f"the range ends at {end}, before its start {start}")
        if self.limit < 0:
            raise ValueError(f"the limit {self.limit} is negative")
        if self.bundle and BundleName.parse(self.bundle).kind is not Kind.DATA:
            raise ValueError(f"{self.bundle!r} is not the name of a data object")
        try:
            re.compile(self.filename_re())
        except re.error as exc:
            raise ValueError(f"the pattern {self.filename!r} is wrong: {exc}") from exc

    def days(self) -> tuple[date, date]:
        """Return the first and the last day whose folders may hold such files.

        Folders are days, and a measurement may begin a day beside its folder: a search by time
        therefore looks one day to both sides.  A Filename names the day of its folder; m-lab's Go
        agent stores it in the folder of the day of upload, so the next day is searched too.
        """
        first, last = self.first_day or FIRST_DAY, self.last_day or LAST_DAY
        if self.bundle:
            day = BundleName.parse(self.bundle).day.date
            first, last = max(first, day), min(last, day)
        if self.start:
            first = max(first, utc(self.start).date() - DAY)
        if self.end:
            last = min(last, utc(self.end).date() + DAY)
        if known := day_in(self.filename):
            first, last = max(first, known), min(last, known + DAY)
        if self.after and self.newest_first:
            last = min(last, self.after.day)
        elif self.after:
            first = max(first, self.after.day)
        return first, last

    def folders(self) -> tuple[date, date]:
        """Return the first and the last day for sums by day: without a day to either side."""
        first, last = self.first_day or FIRST_DAY, self.last_day or LAST_DAY
        if self.start:
            first = max(first, utc(self.start).date())
        if self.end:
            last = min(last, utc(self.end).date())
        return first, last

    @property
    def takes_rejected(self) -> bool:
        """Whether rejected1 is searched although it is not named."""
        return self.with_rejected or bool(self.bundle)

    @property
    def asks_files(self) -> bool:
        """Whether a condition other than time can select some files of one bundle."""
        return bool(self.work_id or self.filename or self.hash or self.any_of)

    @property
    def index_name(self) -> str:
        """The name of the index object of `bundle`; empty if none is named."""
        if not self.bundle:
            return ""
        return str(replace(BundleName.parse(self.bundle), kind=Kind.INDEX))

    def wants(self, datatype: str, node: str) -> bool:
        """Return whether files of this datatype and node may be wanted."""
        is_wanted = datatype in self.datatypes
        if not self.datatypes:
            is_wanted = datatype != REJECTED or self.takes_rejected
        return is_wanted and (not self.nodes or node in self.nodes)

    def comes_later(self, position: Position) -> bool:
        """Return whether a position comes after the one that the results begin behind."""
        after = self.after
        if after is None:
            return True
        if self.newest_first and position.day != after.day:
            return position.day < after.day
        return position > after

    def identity_matcher(self) -> Matcher | None:
        """Return a function that says whether Filename and Hash match; None if all do.

        It is asked before repeats are left out, because all rows of one file answer alike.
        """
        checks: list[Matcher] = []
        if self.hash:
            digest = self.hash.lower()
            checks.append(lambda file: file.hash == digest)
        if self.any_of:
            checks.append(self.any_of.matcher())
        if self.filename:
            checks.append(self._names())
        return _all(checks)

    def matcher(self) -> Matcher | None:
        """Return a function that says whether times and job match; None if all do.

        It is asked after repeats are left out: the earliest row of a file decides.
        """
        checks: list[Matcher] = []
        if self.start:
            start = self.start
            checks.append(lambda file: file.finish >= start)
        if self.end:
            end = self.end
            checks.append(lambda file: file.begin <= end)
        if self.work_id:
            work_id = self.work_id.lower()
            checks.append(lambda file: file.work_id == work_id)
        return _all(checks)

    @property
    def is_pattern(self) -> bool:
        """Whether `filename` is a pattern."""
        return bool(_GLOB_RE.search(self.filename))

    def _names(self) -> Matcher:
        wanted, whole = self.filename, "/" in self.filename
        if self.is_pattern:
            found = re.compile(self.filename_re()).fullmatch
            if wanted.startswith("/"):
                return lambda file: found(file.filename) is not None
            if whole:
                return lambda file: found(file.path) is not None
            return lambda file: found(file.name) is not None
        if wanted.startswith("/"):
            return lambda file: file.filename == wanted
        if whole:
            return lambda file: file.path == wanted
        return lambda file: file.name == wanted

    def filename_re(self) -> str:
        """Return `filename` as a regular expression, the same for Python and for RE2."""
        parts, at = [], 0
        while at < len(self.filename):
            char = self.filename[at]
            found = _CLASS_RE.match(self.filename, at)
            if char in "*?":
                parts.append(".*" if char == "*" else ".")
            elif found:
                members = "".join(c if c == "-" else re.escape(c) for c in found[2])
                parts.append(f"[{'^' if found[1] else ''}{members}]")
            else:
                parts.append(re.escape(char))
            at = found.end() if found else at + 1
        return f"(?s:{''.join(parts)})"


def _all(checks: list[Matcher]) -> Matcher | None:
    if len(checks) > 1:
        return lambda file: all(check(file) for check in checks)
    return checks[0] if checks else None


def around(day: date) -> tuple[datetime, datetime]:
    """Return the instants between which files of a day's folder begin: a day to both sides."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return midnight - DAY, midnight + 2 * DAY
