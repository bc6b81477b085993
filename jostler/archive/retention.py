"""Rules by which a bucket and BigQuery themselves remove data after its retention.

**Invariant:** a rule never removes more than the retention says: where one rule would do for
several datatypes, the longest time counts.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostler.format.names import INDEX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from jostler.format.bigquery_names import TableName
    from jostler.format.names import Place


def parse(texts: Iterable[str]) -> dict[str, int]:
    """Read `DATATYPE=DAYS`.

    Raises:
        ValueError: a text is something else, or a datatype is named twice.
    """
    found: dict[str, int] = {}
    for text in texts:
        datatype, equals, days = text.partition("=")
        if not (datatype and equals and days.isdecimal() and 0 < int(days) <= 36_500):  # noqa: PLR2004 - a century
            raise ValueError(f"{text!r} is not DATATYPE=DAYS with 1 to 36500 days")
        if datatype in found:
            raise ValueError(f"{datatype} is named twice")
        found[datatype] = int(days)
    return found


def lifecycle(places: Mapping[Place, Collection[str]], retain: Mapping[str, int]) -> dict[str, Any]:
    """Return the lifecycle configuration of a bucket, for `gcloud storage buckets update`.

    The age of an object counts from when it was stored.  All datatypes share the folder of the
    indexes, so these go only if each is older than the longest retention of all, and only if each
    datatype of the places has one.

    Args:
        places: of the experiments, each with the datatypes that it has.
        retain: how many days each datatype is kept.
    """
    rules = []
    for place, datatypes in places.items():
        kept = {datatype: days for datatype, days in retain.items() if datatype in datatypes}
        rules += [
            _rule(kept[name], f"{place.root}/{name}/", place.token_filters(name))
            for name in sorted(kept)
        ]
        if kept and set(datatypes) <= {*kept, INDEX}:
            rules.append(_rule(max(kept.values()), f"{place.root}/{INDEX}/"))
    return {"rule": rules}


def _rule(days: int, *prefixes: str) -> dict[str, Any]:
    # With a slash at its end: `ndt/` is no prefix of what is in `ndt7/`.
    assert all(prefix.endswith("/") for prefix in prefixes)
    return {
        "action": {"type": "Delete"},
        "condition": {"age": days, "matchesPrefix": list(prefixes)},
    }


def expiration(tables: Iterable[tuple[TableName, int]]) -> list[str]:
    """Return the SQL statements that make partitions expire.

    Args:
        tables: each with the days that its partitions are kept.
    """
    return [
        f"ALTER TABLE `{table}` SET OPTIONS (partition_expiration_days = {days});"
        for table, days in tables
    ]
