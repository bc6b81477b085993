"""The findings of `jostler why` in BigQuery: the loader's tables, rejects and ledger.

**Invariant:** the BigQuery client is imported only when BigQuery is queried, because the agent's
image does not contain it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from jostler.errors import QueryError
from jostler.format.bigquery_names import Naming
from jostler.why.finding import Finding, Looked, State, Value, after_rejection

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from jostler.archive.bigquery_tables import FileRows
    from jostler.format.names import Place
    from jostler.why.asked import Asked

WHERE = "BigQuery"
PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Which tables to query; the attributes are named after the loader's options."""

    project: str
    location: str
    naming: str
    meta_dataset: str


def findings(
    asked: Asked,
    tables: Tables,
    places: Iterable[Place],
    datatypes: Iterable[str],
    days: tuple[date, ...],
) -> tuple[list[Finding], list[Looked]]:
    """Return the findings in BigQuery for each place and each datatype that the file may have."""
    try:
        from jostler.archive.bigquery_tables import Sought, TableReader  # noqa: PLC0415 - an extra
    except ImportError:
        why = "google-cloud-bigquery is not installed: pip install 'jostler[loader]'"
        return [], [Looked(WHERE, False, why)]
    found: list[Finding] = []
    looked: list[Looked] = []
    try:
        reader = TableReader(
            project=tables.project,
            location=tables.location,
            naming=Naming(tables.naming),
            meta_dataset=tables.meta_dataset,
            patience_s=PATIENCE_S,
        )
        with closing(reader):
            for place, datatype in product(places, datatypes):
                rows = reader.find(
                    Sought(
                        place=place,
                        datatype=datatype,
                        filename=asked.filename or asked.name,
                        start=min(days),
                        end=max(days),
                    )
                )
                found += _findings(rows, datatype)
                looked.append(Looked(WHERE, True, _summary(rows)))
    except QueryError as exc:
        hint = f" ({exc.hint})" if exc.hint else ""
        looked.append(Looked(WHERE, False, f"{exc}{hint}"))
    return found, looked


def _findings(rows: FileRows, datatype: str) -> list[Finding]:
    loads = {line["day"]: line for line in rows.ledger}
    found = [_loaded(row, rows.table, datatype, loads.get(row["day"])) for row in rows.rows]
    found += [
        Finding(
            state=State.REJECTED,
            file=f"{datatype}/{row['filename']}",
            since=_aware(row["read"]),
            why=f"the agent refused the file: {row['reason']}: {row['detail']}",
            next=after_rejection(row["reason"]),
            evidence=_facts(row, "object", "day", "reason", "field", "detail"),
        )
        for row in rows.rejected
    ]
    found += [
        Finding(
            state=State.REJECTED,
            file=f"{datatype}/{row['filename']}",
            since=_aware(loads.get(row["day"], {}).get("finished")),
            why=f"the loader refused its row: {row['reason']}: {row['detail']}",
            next="mend the table's schema or the service; then load the day again with --force",
            evidence=_facts(row, "object", "line", "day", "reason", "field", "detail", "job"),
        )
        for row in rows.refused
    ]
    return found


def _loaded(row: dict[str, Any], table: str, datatype: str, load: dict[str, Any] | None) -> Finding:
    return Finding(
        state=State.LOADED,
        file=f"{datatype}/{row['filename']}",
        since=_aware(load["finished"]) if load else None,
        why=f"its row is in {table}",
        next="nothing: it has arrived",
        evidence={"table": table, **_facts(row, "day", "object"), **_facts(load or {}, "job")},
    )


def _summary(rows: FileRows) -> str:
    """Describe which table was searched and what the ledger has for these days."""
    if not rows.there:
        return f"{rows.table}: there is no such table"
    days = [
        f"{line['day']} {line['status']} at {line['finished']:%Y-%m-%dT%H:%M:%SZ}"
        + (f" ({line['error']})" if line["error"] else "")
        for line in rows.ledger
    ]
    return f"{rows.table}: {'; '.join(days) or 'no load of these days is in the ledger'}"


def _facts(row: dict[str, Any], *names: str) -> dict[str, Value]:
    return {name: row[name] for name in names if row.get(name) not in {None, ""}}


def _aware(when: object) -> datetime | None:
    if isinstance(when, datetime):
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    return None
