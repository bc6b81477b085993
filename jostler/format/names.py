"""Every name of the written format: measurement files, schemas and objects in the bucket.

**Invariant:** `parse(format(x)) == x`, and `parse` raises ValueError for whatever `format` cannot
produce.  Both agent and loader take names from here alone; docs/format.md shows each one.

Pure: no I/O, no clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import NamedTuple

INDEX = "index1"
REJECTED = "rejected1"
OWN_DATATYPES = (INDEX, REJECTED)

SCHEMA_SUFFIX = ".table.json"
BUNDLE_SUFFIX = ".jsonl.gz"

_TIMESTAMP = "%Y%m%dT%H%M%S.%fZ"
_TIMESTAMP_RE = re.compile(r"\d{8}T\d{6}\.\d{6}Z", re.ASCII)
_WORD_RE = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_ARCHIVED_RE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)
_EXPERIMENT_RE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)
_ORGANIZATION_RE = re.compile(r"[a-z0-9]+", re.ASCII)
_NODE_RE = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_DATA_DIR_RE = re.compile(r"(?:[A-Za-z0-9._-]+/)*autoload/v([12])", re.ASCII)
_DAY_RE = re.compile(r"20\d\d/\d\d/\d\d", re.ASCII)
_FILE_RE = re.compile(r"[A-Za-z0-9:_-][A-Za-z0-9:._-]*", re.ASCII)

_BUNDLE_RE = re.compile(
    r"(?P<data_dir>.+?/v[12])(?:/(?P<org>[a-z0-9]+))?/(?P<exp>[^/]+)/(?P<folder>[^/]+)"
    r"/(?P<day>\d{4}/\d\d/\d\d)/(?P<base>[^/]+)\.jsonl\.gz",
    re.ASCII,
)

_HOST_V1_RE = re.compile(
    r"(?:[a-z.-]+[.-])?(mlab[1-4]d?)[.-]([a-z]{3}[0-9tc]{2})\.measurement-lab\.org", re.ASCII
)
_HOST_V2_RE = re.compile(
    r"(?:[a-z0-9-]+-)?(mlab[1-4]d?)-([a-z]{3}[0-9][0-9t])\.[a-z0-9-]+"
    r"\.measurement-lab\.org(?:-[a-z0-9]+)?",
    re.ASCII,
)
_HOST_V3_RE = re.compile(
    r"(?:[A-Za-z0-9]+-)?([A-Za-z]{3}[0-9]{1,10})-([0-9A-Za-z]{8})\.[A-Za-z0-9-]+\.[A-Za-z0-9-]+"
    r"\.measurement-lab\.org",
    re.ASCII,
)


class Kind(StrEnum):
    """What a bundle holds: rows of files, or rows about the files of a data bundle."""

    DATA = "data"
    INDEX = "index1"


def check_datatype(text: str) -> str:
    """Return `text` if it can name a new datatype: letters, digits and underscores.

    A dash would make an index bundle's name ambiguous.

    Raises:
        ValueError: it cannot.
    """
    if not _WORD_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a datatype name ([A-Za-z0-9_]+)")
    return text


def check_archived_datatype(text: str) -> str:
    """Return `text` if a datatype of an archive may be called so: as a new one, or with dashes.

    The Go agent takes names with dashes, so archives hold them.

    Raises:
        ValueError: it may not.
    """
    if not _ARCHIVED_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a datatype name ([A-Za-z0-9_-]+)")
    return text


def check_experiment(text: str) -> str:
    """Return `text` if it can name an experiment; `tables` is where table schemas lie.

    Raises:
        ValueError: it cannot.
    """
    if not _EXPERIMENT_RE.fullmatch(text) or text == "tables":
        raise ValueError(f"{text!r} is not an experiment name ([A-Za-z0-9_-]+, not 'tables')")
    return text


def check_organization(text: str) -> str:
    """Return `text` if it can name an organization: lower-case letters and digits.

    Raises:
        ValueError: it cannot.
    """
    if not _ORGANIZATION_RE.fullmatch(text) or text == "tables":
        raise ValueError(f"{text!r} is not an organization name ([a-z0-9]+, not 'tables')")
    return text


class Day(NamedTuple):
    """A day of the years 2000 to 2099, written `yyyy/mm/dd` in paths and `yyyy-mm-dd` in rows.

    A tuple, because its hash is asked for with every file.
    """

    date: date

    @classmethod
    def parse(cls, path: str) -> Day:
        """Read `yyyy/mm/dd`.

        Raises:
            ValueError: `path` is not such a day.
        """
        if not _DAY_RE.fullmatch(path):
            raise ValueError(f"{path!r} is not yyyy/mm/dd of a day 2000 to 2099")
        try:
            return cls(date(int(path[:4]), int(path[5:7]), int(path[8:])))
        except ValueError:
            raise ValueError(f"{path!r} is not a day of the calendar") from None

    @property
    def path(self) -> str:
        """The day as directories, `2022/09/29`."""
        return self.date.strftime("%Y/%m/%d")

    @property
    def iso(self) -> str:
        """The day as BigQuery's DATE takes it, `2022-09-29`."""
        return self.date.isoformat()


def check_file_name(name: str) -> str:
    """Return `name` if a measurement file may be called so.

    Raises:
        ValueError: a character outside `[A-Za-z0-9:._-]`, a leading dot, or `..`.
    """
    if not _FILE_RE.fullmatch(name):
        raise ValueError(f"name {name!r} has a character outside [A-Za-z0-9:._-]")
    if ".." in name:
        raise ValueError(f"name {name!r} contains '..'")
    return name


def parse_file(filename: str) -> tuple[Day, str]:
    """Split a path below the datatype's directory, `yyyy/mm/dd/<name>`, into day and name.

    Raises:
        ValueError: the path has another depth, its day is none, or the name is not allowed.
    """
    parts = filename.rsplit("/", 1)
    if len(parts) == 1:
        raise ValueError(f"{filename!r} lies in no yyyy/mm/dd directory")
    return Day.parse(parts[0]), check_file_name(parts[1])


def format_timestamp(when: datetime) -> str:
    """Write an instant as object names have it, `20220929T010203.000004Z`."""
    return when.astimezone(UTC).strftime(_TIMESTAMP)


def parse_timestamp(text: str) -> datetime:
    """Read what `format_timestamp` writes.

    Raises:
        ValueError: it is something else.
    """
    if not _TIMESTAMP_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a timestamp yyyymmddThhmmss.ffffffZ")
    return datetime.strptime(text, _TIMESTAMP).replace(tzinfo=UTC)


def mlab_node(host: str) -> str:
    """Shorten an M-Lab host name of any of its three generations to `<machine>-<site>`.

    Examples: `mlab1.lga01.measurement-lab.org`, `ndt-mlab1-lga01.mlab-oti.measurement-lab.org`,
    `ndt-lga3356-c0a80001.rnp.autojoin.measurement-lab.org`, and the literal `third-party`.
    Source: the M-Lab host naming rules as github.com/m-lab/go/host implements them.

    Raises:
        ValueError: `host` is none of these.
    """
    if host == "third-party":
        return host
    if found := _HOST_V3_RE.fullmatch(host):
        return f"{found[2]}-{found[1]}"
    if found := _HOST_V2_RE.fullmatch(host) or _HOST_V1_RE.fullmatch(host):
        return f"{found[1]}-{found[2]}"
    raise ValueError(f"{host!r} is not an M-Lab host name")


def safe_node(name: str) -> str:
    """Make any node name fit for an object name: other characters than `[A-Za-z0-9._-]` become `-`.

    Raises:
        ValueError: nothing but dashes and dots would be left.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name.strip()).strip(".-")
    if not safe:
        raise ValueError(f"{name!r} has no character that can stand in an object name")
    return safe


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a bucket one experiment's objects lie.

    Attributes:
        data_dir: `autoload/v1` or `autoload/v2`, possibly below other directories.
        organization: of v2; empty in v1.
        experiment: its name.
    """

    data_dir: str
    organization: str
    experiment: str

    def __post_init__(self) -> None:
        found = _DATA_DIR_RE.fullmatch(self.data_dir)
        if not found:
            raise ValueError(f"{self.data_dir!r} is neither autoload/v1 nor autoload/v2")
        if found[1] == "1" and self.organization:
            raise ValueError(f"{self.data_dir} takes no organization, got {self.organization!r}")
        if found[1] == "2":
            check_organization(self.organization)
        check_experiment(self.experiment)

    @property
    def root(self) -> str:
        """The prefix, without a slash at its end, under which all bundles of the place lie."""
        parts = (self.data_dir, self.organization, self.experiment)
        return "/".join(part for part in parts if part)

    def table_schema(self, datatype: str) -> str:
        """Name the object that holds the table schema of a datatype, for all organizations."""
        name = check_archived_datatype(datatype)
        return f"{self.data_dir}/tables/{self.experiment}/{name}{SCHEMA_SUFFIX}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleName:
    """The name of one bundle's object, taken apart.

    Attributes:
        place: the experiment's place in the bucket.
        datatype: of the files that the bundle holds or, for an index, tells of.  In an index's
            name nothing ends a datatype but a dash: of one with dashes, this is the first word,
            and `node` begins with the rest.
        day: the directory the files were found in, never the clock.
        created: when the bundle was opened; aware, microseconds.
        node: `<machine>-<site>` of M-Lab or another node's safe name.
        kind: data or index.
    """

    place: Place
    datatype: str
    day: Day
    created: datetime
    node: str
    kind: Kind

    def __str__(self) -> str:
        folder = INDEX if self.kind is Kind.INDEX else self.datatype
        return (
            f"{self.place.root}/{folder}/{self.day.path}/{format_timestamp(self.created)}"
            f"-{self.datatype}-{self.node}-{self.place.experiment}-{self.kind}{BUNDLE_SUFFIX}"
        )

    @property
    def pair(self) -> str:
        """What a data bundle and its index have in common, and no other bundle has."""
        created = format_timestamp(self.created)
        return f"{self.place.root} {self.day.path} {created}-{self.datatype}-{self.node}"

    @classmethod
    def parse(cls, name: str) -> BundleName:
        """Take an object's name apart.

        Raises:
            ValueError: it is not a bundle's name.
        """
        found = _BUNDLE_RE.fullmatch(name)
        if not found:
            raise ValueError(f"{name!r} is not the name of a bundle")
        place = Place(
            data_dir=found["data_dir"], organization=found["org"] or "", experiment=found["exp"]
        )
        timestamp, _, rest = found["base"].partition("-")
        kind = Kind.INDEX if found["folder"] == INDEX else Kind.DATA
        datatype = rest.partition("-")[0] if kind is Kind.INDEX else found["folder"]
        rest = rest.removeprefix(f"{datatype}-")
        node = rest.removesuffix(f"-{place.experiment}-{kind}")
        parsed = cls(
            place=place,
            datatype=check_archived_datatype(datatype),
            day=Day.parse(found["day"]),
            created=parse_timestamp(timestamp),
            node=node,
            kind=kind,
        )
        if str(parsed) != name or not _NODE_RE.fullmatch(node):
            raise ValueError(f"{name!r} is not the name of a bundle")
        return parsed


def display(filename: str) -> str:
    """Make a file name that is no UTF-8 fit for JSON, with such bytes as hexadecimal escapes."""
    return filename.encode(errors="surrogateescape").decode(errors="backslashreplace")
