"""BigQuery: what tables, rejects and ledger of the loader say of a file.

**Invariant:** the loader's code and the BigQuery client are imported only when somebody asks, for
the agent's image has neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jostler.why.finding import Finding, Looked, State, Value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from jostler.format.names import Place
    from jostler.why.asked import Asked
    from loader.bigquery.where import Told

WHERE = "BigQuery"
PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Whose tables to ask, as the loader's options of these names."""

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
    """Return what BigQuery says of a file, for each place and each datatype it may have."""
    try:
        from jostler.format.bigquery_names import Naming  # noqa: PLC0415 - as above
        from loader.bigquery.where import Account, Sought, find  # noqa: PLC0415 - as above
        from loader.errors import LoaderError  # noqa: PLC0415 - see the module's invariant
    except ImportError as exc:
        why = f"{exc}: install the loader's packages, pip install 'jostler[loader]'"
        return [], [Looked(WHERE, False, why)]
    account = Account(
        project=tables.project,
        location=tables.location,
        naming=Naming(tables.naming),
        meta_dataset=tables.meta_dataset,
        patience_s=PATIENCE_S,
    )
    found: list[Finding] = []
    looked: list[Looked] = []
    sought = [(place, datatype) for place in places for datatype in datatypes]
    try:
        for place, datatype in sought:
            told = find(
                Sought(
                    place=place,
                    datatype=datatype,
                    filename=asked.filename or asked.name,
                    start=min(days),
                    end=max(days),
                ),
                account,
            )
            found += _findings(told, datatype)
            looked.append(Looked(WHERE, True, _summary(told)))
    except LoaderError as exc:
        looked.append(Looked(WHERE, False, str(exc)))
    return found, looked


def _findings(told: Told, datatype: str) -> list[Finding]:
    loads = {line["day"]: line for line in told.ledger}
    found = [_loaded(row, told.table, datatype, loads.get(row["day"])) for row in told.rows]
    found += [
        Finding(
            state=State.REJECTED,
            file=f"{datatype}/{row['filename']}",
            since=_aware(row["read"]),
            why=f"the agent refused the file: {row['reason']}: {row['detail']}",
            next="mend the service or the schema; the row's Content has the file's bytes",
            evidence=_facts(row, "object", "day", "reason", "field", "detail"),
        )
        for row in told.rejected
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
        for row in told.refused
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


def _summary(told: Told) -> str:
    """Say what was looked at, and what the ledger tells of the days."""
    if not told.there:
        return f"{told.table}: there is no such table"
    days = [
        f"{line['day']} {line['status']} at {line['finished']:%Y-%m-%dT%H:%M:%SZ}"
        + (f" ({line['error']})" if line["error"] else "")
        for line in told.ledger
    ]
    return f"{told.table}: {'; '.join(days) or 'no load of these days is in the ledger'}"


def _facts(row: dict[str, Any], *names: str) -> dict[str, Value]:
    return {name: row[name] for name in names if row.get(name) not in {None, ""}}


def _aware(when: object) -> datetime | None:
    if isinstance(when, datetime):
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    return None
