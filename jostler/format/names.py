"""All names of the written format: measurement files, schemas and objects in the bucket.

**Invariant:** `parse(format(x)) == x`, and `parse` raises ValueError for every text that `format`
cannot produce.  Agent and loader build and parse names only here; docs/format.md shows each one.

Pure: no I/O, no clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from jostler.format.nodes import MERGED, is_merged_node, is_node

if TYPE_CHECKING:
    from collections.abc import Sequence

INDEX = "index1"
REJECTED = "rejected1"
OWN_DATATYPES = (INDEX, REJECTED)
TABLES, SCHEMAS, ASSETS, TOKENS = "tables", "schemas", "assets", "tokens"
OWN_FOLDERS = (TABLES, SCHEMAS, ASSETS, TOKENS)
"""The folders beside those of experiments and organizations, which therefore have other names."""

SCHEMA_SUFFIX = ".table.json"
ASSET_SUFFIX = ".json"
BUNDLE_SUFFIX = ".jsonl.gz"
FILTER_SUFFIX = ".bloom"

_OWN = " or ".join(repr(folder) for folder in OWN_FOLDERS)
_TIMESTAMP = "%Y%m%dT%H%M%S.%fZ"
_TIMESTAMP_RE = re.compile(r"\d{8}T\d{6}\.\d{6}Z", re.ASCII)
_WORD_RE = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_ARCHIVED_RE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)
_EXPERIMENT_RE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)
_ORGANIZATION_RE = re.compile(r"[a-z0-9]+", re.ASCII)
_DATA_DIR_RE = re.compile(r"(?:[A-Za-z0-9._-]+/)*autoload/v([12])", re.ASCII)
_DAY_RE = re.compile(r"20\d\d/\d\d/\d\d", re.ASCII)
_FILE_RE = re.compile(r"[A-Za-z0-9:_-][A-Za-z0-9:._-]*", re.ASCII)

_BUNDLE_RE = re.compile(
    r"(?P<data_dir>.+?/v[12])(?:/(?P<org>[a-z0-9]+))?/(?P<exp>[^/]+)/(?P<folder>[^/]+)"
    r"/(?P<day>\d{4}/\d\d/\d\d)/(?P<base>[^/]+)\.jsonl\.gz",
    re.ASCII,
)


class Kind(StrEnum):
    """What a bundle contains: the rows of files, or one index row for each of them."""

    DATA = "data"
    INDEX = "index1"


def check_datatype(text: str) -> str:
    """Return `text` if a new datatype may have this name: letters, digits and underscores.

    A dash would make an index bundle's name ambiguous.

    Raises:
        ValueError: the name is not allowed.
    """
    if not _WORD_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a datatype name ([A-Za-z0-9_]+)")
    return text


def check_archived_datatype(text: str) -> str:
    """Return `text` if an archived datatype may have this name: as for a new one, or with dashes.

    The Go agent accepts names with dashes, so some archives contain them.

    Raises:
        ValueError: the name is not allowed.
    """
    if not _ARCHIVED_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a datatype name ([A-Za-z0-9_-]+)")
    return text


def check_experiment(text: str) -> str:
    """Return `text` if an experiment may have this name; `OWN_FOLDERS` have other uses.

    Raises:
        ValueError: the name is not allowed.
    """
    if not _EXPERIMENT_RE.fullmatch(text) or text in OWN_FOLDERS:
        raise ValueError(f"{text!r} is not an experiment name ([A-Za-z0-9_-]+, not {_OWN})")
    return text


def check_organization(text: str) -> str:
    """Return `text` if an organization may have this name: lower-case letters and digits.

    Raises:
        ValueError: the name is not allowed.
    """
    if not _ORGANIZATION_RE.fullmatch(text) or text in OWN_FOLDERS:
        raise ValueError(f"{text!r} is not an organization name ([a-z0-9]+, not {_OWN})")
    return text


class Day(NamedTuple):
    """A day of the years 2000 to 2099, written `yyyy/mm/dd` in paths and `yyyy-mm-dd` in rows.

    A tuple, because it is hashed for every file and a tuple's hash is fast.
    """

    date: date

    @classmethod
    def parse(cls, path: str) -> Day:
        """Read `yyyy/mm/dd`.

        Raises:
            ValueError: `path` is not a day of these years in this form.
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
        return self.date.isoformat().replace("-", "/")

    @property
    def iso(self) -> str:
        """The day as BigQuery writes a DATE, `2022-09-29`."""
        return self.date.isoformat()


def check_file_name(name: str) -> str:
    """Return `name` if a measurement file may have this name.

    Raises:
        ValueError: it has a character outside `[A-Za-z0-9:._-]`, a leading dot, or `..`.
    """
    if not _FILE_RE.fullmatch(name):
        raise ValueError(f"name {name!r} has a character outside [A-Za-z0-9:._-]")
    if ".." in name:
        raise ValueError(f"name {name!r} contains '..'")
    return name


def count_file_names(names: Sequence[str]) -> int:
    """Return how many of some names `check_file_name` allows, from the first one on."""
    for nth, name in enumerate(names):
        if not _FILE_RE.fullmatch(name) or ".." in name:
            return nth
    return len(names)


def parse_file(filename: str) -> tuple[Day, str]:
    """Split a path below the datatype's directory, `yyyy/mm/dd/<name>`, into day and name.

    Raises:
        ValueError: the path has another depth, its directory is not a day, or the name is not
            allowed.
    """
    parts = filename.rsplit("/", 1)
    if len(parts) == 1:
        raise ValueError(f"{filename!r} lies in no yyyy/mm/dd directory")
    return Day.parse(parts[0]), check_file_name(parts[1])


def format_timestamp(when: datetime) -> str:
    """Write an instant as in object names, `20220929T010203.000004Z`."""
    # Names are written often, and strftime takes several times as long.
    digits = when.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    return digits.replace("-", "").replace(":", "") + "Z"


def parse_timestamp(text: str) -> datetime:
    """Read what `format_timestamp` writes.

    Raises:
        ValueError: the text has another form.
    """
    if not _TIMESTAMP_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a timestamp yyyymmddThhmmss.ffffffZ")
    return datetime.strptime(text, _TIMESTAMP).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of one experiment's objects in a bucket.

    Attributes:
        data_dir: `autoload/v1` or `autoload/v2`, possibly below other directories.
        organization: the organization in v2; empty in v1.
        experiment: the experiment's name.
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
        """The prefix of all bundles of this place, without a slash at its end."""
        parts = (self.data_dir, self.organization, self.experiment)
        return "/".join(part for part in parts if part)

    def kept_schema(self, datatype: str, digest: str) -> str:
        """Return the name of the object that keeps a table schema by which files were judged.

        Args:
            datatype: the files' datatype.
            digest: the upload id of the object's bytes.
        """
        parts = (self.data_dir, SCHEMAS, self.organization, self.experiment, datatype)
        return f"{'/'.join(part for part in parts if part)}/{digest}.json"

    def token_filters(self, datatype: str) -> str:
        """Return the prefix of the token filters of a datatype, with a slash at its end."""
        parts = (self.data_dir, TOKENS, self.organization, self.experiment, datatype)
        return f"{'/'.join(part for part in parts if part)}/"

    def table_schema(self, datatype: str) -> str:
        """Return the name of a datatype's table schema object; all organizations share it."""
        name = check_archived_datatype(datatype)
        return f"{self.data_dir}/{TABLES}/{self.experiment}/{name}{SCHEMA_SUFFIX}"

    def asset(self, datatype: str = "") -> str:
        """Return the name of the asset object of a datatype; without one, of the experiment.

        Raises:
            ValueError: `datatype` is not a datatype's name.
        """
        parts = (self.data_dir, ASSETS, self.organization)
        folder = "/".join(part for part in parts if part)
        name = f"{self.experiment}.{check_archived_datatype(datatype)}" if datatype else ""
        return f"{folder}/{name or self.experiment}{ASSET_SUFFIX}"


def parse_asset(name: str) -> tuple[Place, str]:
    """Return the place and the datatype of an asset object's name; no datatype: the experiment's.

    Raises:
        ValueError: it is not the name of an asset.
    """
    data_dir, _, rest = name.partition(f"/{ASSETS}/")
    *organization, file = rest.split("/")
    experiment, _, datatype = file.removesuffix(ASSET_SUFFIX).partition(".")
    place = Place(data_dir=data_dir, organization="/".join(organization), experiment=experiment)
    if place.asset(datatype) != name:
        raise ValueError(f"{name!r} is not the name of an asset")
    return place, datatype


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleName:
    """The parts of a bundle object's name.

    Attributes:
        place: the experiment's place in the bucket.
        datatype: the datatype of the files in the bundle or, for an index, in its data bundle.  In
            an index's name the datatype ends at the first dash.  If it has dashes itself, `parse`
            returns its first word here, and `node` begins with the rest.
        day: the day of the directory in which the files were found, never the current day.
        created: when the bundle was opened; aware, microseconds.
        node: `<machine>-<site>` for M-Lab's nodes, else the node's safe name; of a merged bundle
            `compacted-<32 hex digits>`.
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

    @classmethod
    def merged(cls, place: Place, datatype: str, day: Day, digest: str) -> BundleName:
        """Name the data object of a merged bundle: equal rows have equal names.

        The time is the day's first instant, so that the earliest of two bundles with the same row
        is the merged one, and stays so when the other one is merged, too.

        Args:
            place: the experiment's place.
            datatype: of the rows.
            day: of the rows.
            digest: of the identities of all its rows, 32 hexadecimal digits.
        """
        midnight = datetime(day.date.year, day.date.month, day.date.day, tzinfo=UTC)
        node = f"{MERGED}-{digest}"
        return cls(
            place=place, datatype=datatype, day=day, created=midnight, node=node, kind=Kind.DATA
        )

    @property
    def token_filters(self) -> str:
        """The name of the object with the token filters of this data bundle."""
        base = str(self).rpartition("/")[2].removesuffix(f"-{self.kind}{BUNDLE_SUFFIX}")
        folder = f"{self.place.token_filters(self.datatype)}{self.day.path}"
        return f"{folder}/{base}-{TOKENS}{FILTER_SUFFIX}"

    @property
    def is_merged(self) -> bool:
        """Whether this is a merged bundle, or its index: its rows come from several nodes."""
        return is_merged_node(self.node)

    @property
    def pair(self) -> str:
        """A key that a data bundle and its index share, and no other bundle has."""
        created = format_timestamp(self.created)
        return f"{self.place.root} {self.day.path} {created}-{self.datatype}-{self.node}"

    @classmethod
    def parse(cls, name: str) -> BundleName:
        """Parse an object's name.

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
        if str(parsed) != name or not is_node(node):
            raise ValueError(f"{name!r} is not the name of a bundle")
        return parsed


def parse_token_filters(name: str) -> BundleName:
    """Return the name of the data bundle that an object with token filters belongs to.

    Raises:
        ValueError: it is not the name of such an object.
    """
    data_dir, _, rest = name.partition(f"/{TOKENS}/")
    base = rest.removesuffix(f"-{TOKENS}{FILTER_SUFFIX}")
    parsed = BundleName.parse(f"{data_dir}/{base}-{Kind.DATA}{BUNDLE_SUFFIX}")
    if parsed.token_filters != name:
        raise ValueError(f"{name!r} is not the name of token filters")
    return parsed


def display(filename: str) -> str:
    """Make any file name fit for JSON: bytes that are not UTF-8 become hexadecimal escapes."""
    if filename.isascii():  # nearly all are, and this is asked of each file
        return filename
    return filename.encode(errors="surrogateescape").decode(errors="backslashreplace")
