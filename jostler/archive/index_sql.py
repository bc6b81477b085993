# ruff: noqa: S608 - the invariant below says what is written into the text
"""The SQL of the catalogue in BigQuery.

**Invariant:** what a user gave stands in parameters.  Only names of tables, experiments (letters,
digits, dashes, underscores) and dates are written into the text.

The conditions are those of `jostler.archive.query`.  Rows of m-lab's Go agent have neither Datatype
nor Node nor Line: these are taken from the path in Filename, from the index object's name, and from
the order of Filenames.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jostler.format.names import REJECTED, Place

if TYPE_CHECKING:
    from datetime import date, datetime

    from jostler.archive.query import AnyOf, Query
    from jostler.format.bigquery_names import TableName

_TYPES = {
    **dict.fromkeys(("Filename", "Datatype", "Node", "Hash", "WorkID"), "STRING"),
    **dict.fromkeys(("Size", "Line", "Offset", "Length"), "INT64"),
    **dict.fromkeys(("TimeAdded", "Start", "End"), "TIMESTAMP"),
}
_SOURCE = r"""
  SELECT place, day, index_url, index_name, filename, size, added, line, digest, block_offset,
    block_length, started, ended, job, datatype,
    COALESCE(node, SUBSTR(both, LENGTH(datatype) + 2)) AS node,
    IF(digest = '', CONCAT(index_url, '#', CAST(line AS STRING)), digest) AS content
  FROM (
    SELECT {place} AS place, `date` AS day, archiver.ArchiveURL AS index_url,
      REGEXP_EXTRACT(archiver.ArchiveURL, r'({root}/index1/.*)$') AS index_name,
      {Filename} AS filename, COALESCE({Size}, 0) AS size, {TimeAdded} AS added,
      COALESCE({Line}, ROW_NUMBER() OVER (PARTITION BY archiver.ArchiveURL ORDER BY {Filename}))
        AS line,
      COALESCE({Hash}, '') AS digest, {Offset} AS block_offset, {Length} AS block_length,
      {Start} AS started, {End} AS ended, {WorkID} AS job,
      COALESCE({Datatype},
        REGEXP_EXTRACT({Filename}, r'([^/]+)/[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}}/[^/]+$'),
        REGEXP_EXTRACT(archiver.ArchiveURL, r'/[0-9T.]+Z-([^-/]+)-[^/]+$')) AS datatype,
      {Node} AS node,
      REGEXP_EXTRACT(archiver.ArchiveURL,
        r'/[0-9T.]+Z-([^/]+)-{experiment}-index1\.jsonl\.gz$') AS both
    FROM `{table}` WHERE `date` >= '{first}' AND `date` <= '{last}'
  )"""
_BEGIN = "COALESCE(started, ended, added)"
_FINISH = f"GREATEST(COALESCE(ended, {_BEGIN}), {_BEGIN})"
_PATH = (
    "IF(STARTS_WITH(filename, '/'),"
    " REGEXP_EXTRACT(filename, r'([^/]*/[^/]*/[^/]*/[^/]*)$'), filename)"
)
_OWN_NAME = "REGEXP_EXTRACT(filename, r'([^/]*)$')"
_SAME_FILE = "PARTITION BY place, day, datatype, node, filename, content"


class Parameter(NamedTuple):
    """One parameter of a query; the value is a tuple for an array."""

    name: str
    type: str
    value: str | int | date | datetime | tuple[str, ...]


Sql = tuple[str, list[Parameter]]


class Source(NamedTuple):
    """A table index1: its experiment's place, its name, and the fields of `raw` in lower case."""

    place: Place
    table: TableName
    columns: frozenset[str]


@dataclass(slots=True)
class _Conditions:
    """Conditions joined by AND, with their parameters."""

    texts: list[str] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)

    def add(self, text: str, *parameters: Parameter) -> None:
        self.texts.append(text)
        self.parameters += parameters

    def __str__(self) -> str:
        return " AND ".join(self.texts) or "TRUE"


def files(sources: list[Source], query: Query, first: date, last: date, limit: int) -> Sql:
    """Select the files that match; the earliest of equal ones, with the number of copies."""
    identity, times, after = _identity(query), _times(query), _after(query)
    whose = _whose(query)
    sql = f"""\
WITH found AS ({_found(sources, first, last)}
)
SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER ({_SAME_FILE} ORDER BY index_name, line, index_url) AS nth,
    COUNT(*) OVER ({_SAME_FILE}) AS copies
  FROM found WHERE {whose} AND {identity}
) WHERE nth = 1 AND {times} AND {after}
{_order(query, "index_name, line, index_url", limit)}"""
    parts = (whose, identity, times, after)
    return sql, [one for part in parts for one in part.parameters]


def bundles(sources: list[Source], query: Query, first: date, last: date, limit: int) -> Sql:
    """Select the bundles that have a file that matches, with the sums of all their files."""
    identity, times, after, whose = _identity(query), _times(query), _after(query), _whose(query)
    sql = f"""\
WITH found AS ({_found(sources, first, last)}
)
SELECT * FROM (
  SELECT place, day, index_url, index_name, 0 AS line, datatype, node, COUNT(*) AS files,
    SUM(size) AS size_bytes, COALESCE(MAX(block_offset + block_length) + 10, 0) AS packed_bytes,
    MIN({_BEGIN}) AS first, MAX({_FINISH}) AS last
  FROM found WHERE {whose}
  GROUP BY place, day, index_url, index_name, datatype, node
  HAVING COUNTIF({identity} AND {times}) > 0
) WHERE {after}
{_order(query, "index_name, index_url", limit)}"""
    parts = (whose, identity, times, after)
    return sql, [one for part in parts for one in part.parameters]


def nodes(sources: list[Source], query: Query, first: date, last: date) -> Sql:
    """Select the nodes that have files."""
    whose = _whose(query)
    sql = f"""\
WITH found AS ({_found(sources, first, last)}
)
SELECT DISTINCT node FROM found WHERE {whose} ORDER BY node"""
    return sql, whose.parameters


def days(sources: list[Source], query: Query, first: date, last: date) -> Sql:
    """Select the sums of each day, datatype and node."""
    whose = _whose(query)
    sql = f"""\
WITH found AS ({_found(sources, first, last)}
)
SELECT day, datatype, node, COUNT(DISTINCT index_url) AS bundles, COUNT(*) AS files,
  SUM(size) AS size_bytes, MIN({_BEGIN}) AS first, MAX({_FINISH}) AS last
FROM found WHERE {whose} GROUP BY day, datatype, node
{_order(query, "datatype, node", 0)}"""
    return sql, whose.parameters


def rejects(tables: list[TableName], query: Query, first: date, last: date) -> Sql:
    """Select the counts of rejected files."""
    found = _Conditions()
    if query.datatypes:
        one = Parameter("datatypes", "STRING", query.datatypes)
        found.add("datatype IN UNNEST(@datatypes)", one)
    if query.nodes:
        found.add("node IN UNNEST(@nodes)", Parameter("nodes", "STRING", query.nodes))
    sources = " UNION ALL ".join(
        f"""
  SELECT `date` AS day, raw.Datatype AS datatype, raw.Node AS node, raw.Reason AS reason
  FROM `{table}` WHERE `date` >= '{first}' AND `date` <= '{last}'"""
        for table in tables
    )
    sql = f"""\
SELECT day, datatype, node, reason, COUNT(*) AS files FROM ({sources}
) WHERE {found} GROUP BY day, datatype, node, reason
{_order(query, "datatype, node, reason", 0)}"""
    return sql, found.parameters


def sizes(sources: list[Source], first: date, last: date) -> Sql:
    """Select the days that have rows, in order, each with their number."""
    parts = " UNION ALL ".join(
        f"SELECT `date` AS day FROM `{one.table}` WHERE `date` >= '{first}' AND `date` <= '{last}'"
        for one in sources
    )
    return f"SELECT day, COUNT(*) AS files FROM ({parts}) GROUP BY day ORDER BY day", []


def _found(sources: list[Source], first: date, last: date) -> str:
    return "\n  UNION ALL".join(
        _SOURCE.format(
            place=number,
            root=re.escape(one.place.root),
            experiment=re.escape(one.place.experiment),
            table=one.table,
            first=first,
            last=last,
            **{name: _column(one, name) for name in _TYPES},
        )
        for number, one in enumerate(sources)
    )


def _column(source: Source, name: str) -> str:
    """Return a field of `raw`; a table made for older rows lacks some."""
    if name.lower() in source.columns:
        return f"raw.`{name}`"
    return f"CAST(NULL AS {_TYPES[name]})"


def _order(query: Query, columns: str, limit: int) -> str:
    direction = " DESC" if query.newest_first else ""
    return f"ORDER BY day{direction}, {columns}" + (f" LIMIT {limit}" if limit else "")


def _whose(query: Query) -> _Conditions:
    found = _Conditions()
    if query.datatypes:
        one = Parameter("datatypes", "STRING", query.datatypes)
        found.add("datatype IN UNNEST(@datatypes)", one)
    elif not query.takes_rejected:
        found.add(f"datatype != '{REJECTED}'")
    if query.nodes:
        found.add("node IN UNNEST(@nodes)", Parameter("nodes", "STRING", query.nodes))
    if query.bundle:
        found.add("index_name = @bundle", Parameter("bundle", "STRING", query.index_name))
    return found


def _identity(query: Query) -> _Conditions:
    found = _Conditions()
    if query.hash:
        found.add("digest = @digest", Parameter("digest", "STRING", query.hash.lower()))
    if query.any_of:
        one_of = _one_of(query.any_of)
        found.add(f"({' OR '.join(one_of.texts) or 'FALSE'})", *one_of.parameters)
    if not query.filename:
        return found
    column = _PATH if "/" in query.filename else _OWN_NAME
    column = "filename" if query.filename.startswith("/") else column
    if query.is_pattern:
        pattern = Parameter("filename", "STRING", f"^{query.filename_re()}$")
        found.add(f"REGEXP_CONTAINS({column}, @filename)", pattern)
    else:
        found.add(f"{column} = @filename", Parameter("filename", "STRING", query.filename))
    return found


def _one_of(any_of: AnyOf) -> _Conditions:
    found = _Conditions()
    for column, name, values in (
        ("digest", "digests", any_of.hashes),
        ("filename", "filenames", any_of.filenames),
        (_PATH, "paths", any_of.paths),
        (_OWN_NAME, "own_names", any_of.names),
    ):
        if values:
            many = Parameter(name, "STRING", tuple(sorted(values)))
            found.add(f"{column} IN UNNEST(@{name})", many)
    return found


def _times(query: Query) -> _Conditions:
    found = _Conditions()
    if query.start:
        found.add(f"{_FINISH} >= @start", Parameter("start", "TIMESTAMP", query.start))
    if query.end:
        found.add(f"{_BEGIN} <= @until", Parameter("until", "TIMESTAMP", query.end))
    if query.work_id:
        found.add("job = @job", Parameter("job", "STRING", query.work_id.lower()))
    return found


def _after(query: Query) -> _Conditions:
    found = _Conditions()
    if after := query.after:
        later = "<" if query.newest_first else ">"
        found.add(
            "((day = @after_day AND ((index_name = @after_name AND line > @after_line)"
            f" OR index_name > @after_name)) OR day {later} @after_day)",
            Parameter("after_day", "DATE", after.day),
            Parameter("after_name", "STRING", after.index_name),
            Parameter("after_line", "INT64", after.line),
        )
    return found
