"""Names of tables and views, discovery, fingerprints, decisions and waves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client.exposition import generate_latest

from jostler.format.bigquery_names import Naming, subproject, table_name, view_name
from jostler.format.names import Place
from jostler.schema import fields_from_api, table_schema, to_json
from loader.bucket import open_bucket
from loader.cli import metrics
from loader.cli.options import parse
from loader.plan.discover import Bundle, Discovered, Table, bundles, discover
from loader.plan.due import (
    Known,
    Refusal,
    Status,
    TableDay,
    decide,
    fingerprint,
    has_expired,
    parts,
    schema_digest,
)
from loader.plan.window import EVERYTHING
from tests.support.spool import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

V1 = Place(data_dir="autoload/v1", organization="", experiment="ndt")
V2 = Place(data_dir="autoload/v2", organization="rnp", experiment="ndt")
FIELDS = table_schema(fields_from_api(SCHEMA))


@pytest.mark.parametrize(
    ("naming", "place", "table", "view"),
    [
        (Naming.MLAB, V1, "raw_ndt.ndt7", "ndt_raw.ndt7"),
        (Naming.THIRD_PARTY, V1, "ndt.ndt7", "sandbox.ndt_ndt7"),
        (Naming.MLAB, V2, "autoload_v2_rnp_ndt.ndt7_raw", "autojoin_v2_ndt.ndt7_raw"),
    ],
)
def test_names_are_those_of_the_go_autoloader(
    naming: Naming, place: Place, table: str, view: str
) -> None:
    assert str(table_name(naming, "mlab-sandbox", place, "ndt7")) == f"mlab-sandbox.{table}"
    seen = view_name(
        naming,
        place,
        "ndt7",
        view_project="views",
        project="mlab-sandbox",
        bucket="gs://archive-mlab-autojoin",
    )
    assert str(seen) == f"views.{view}"


@pytest.mark.parametrize(
    ("bucket", "name"),
    [
        ("gs://archive-mlab-autojoin", "autojoin"),
        ("gs://mlab-thirdparty-sandbox", "thirdparty"),
        ("gs://archive-measurement-lab", "mlab"),
        ("file:///data/bucket", "mlab"),
    ],
)
def test_subprojects(bucket: str, name: str) -> None:
    assert subproject(bucket) == name


def test_a_dataset_name_that_bigquery_refuses_is_mapped() -> None:
    name = table_name(Naming.MLAB, "p", replace(V1, experiment="a-b"), "x1")
    assert (name.dataset, name.is_mapped) == ("raw_a_b", True)


def found_in(root: Path, names: dict[str, str], *more: str) -> Discovered:
    for name, content in names.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    options = parse(["--bucket", root.as_uri(), "--project", "p", *more], {}, date(2026, 1, 2))
    return discover([open_bucket(root.as_uri(), 5)], options)


SCHEMA_TEXT = to_json(FIELDS).decode()


def tables(found: Discovered) -> list[str]:
    return [str(table.name).removeprefix("p.") for table in found.tables]


def test_datatypes_come_from_table_schemas(tmp_path: Path) -> None:
    """V1, and v2 with and without organization; an organization's own schema counts for it."""
    own = to_json(table_schema(fields_from_api([*SCHEMA, {"name": "Own", "type": "STRING"}])))
    names = {
        "autoload/v1/tables/ndt/ndt7.table.json": SCHEMA_TEXT,
        "autoload/v1/tables/ndt/index1.table.json": SCHEMA_TEXT,
        "autoload/v2/tables/ndt/ndt7.table.json": SCHEMA_TEXT,
        "autoload/v2/tables/rnp/ndt/ndt7.table.json": own.decode(),
        "autoload/v2/rnp/ndt/x": "",
        "autoload/v2/mlab/ndt/x": "",
    }

    found = found_in(tmp_path, names)

    assert found.problems == []
    assert [name for name in tables(found) if "index1" not in name] == [
        "autoload_v2_mlab_ndt.ndt7_raw",
        "autoload_v2_rnp_ndt.ndt7_raw",
        "raw_ndt.ndt7",
    ]
    by_name = dict(zip(tables(found), found.tables, strict=True))
    with_own = {n for n, t in by_name.items() if t.fields[-1].fields[-1].name == "Own"}
    assert with_own == {"autoload_v2_rnp_ndt.ndt7_raw"}
    views = {str(by_name[f"autoload_v2_{org}_ndt.ndt7_raw"].view) for org in ("mlab", "rnp")}
    assert views == {"p.mlab_v2_ndt.ndt7_raw"}


def test_options_choose_datatypes(tmp_path: Path) -> None:
    names = {
        f"autoload/v1/tables/{exp}/{datatype}.table.json": SCHEMA_TEXT
        for exp in ("a", "b")
        for datatype in ("x1", "y1", "index1")
    }
    found = found_in(tmp_path, names, "--experiment", "a", "--datatype", "x1", "--datatype", "y1")
    assert tables(found) == ["raw_a.x1", "raw_a.y1"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is not a table schema"),
        ('{"a": 1}', "is not a table schema"),
        ("[" * 100_000, "nested too deep"),
        ('[{"name": 5, "type": "DATE"}]', "is not a table schema"),
        ('[{"nmae": "date", "type": "DATE"}]', "a column has no name"),
        ('[{"name": "a", "type": "STRING"}]', "no column `date`"),
    ],
)
def test_a_broken_schema_is_told_and_stops_no_other(tmp_path: Path, content: str, why: str) -> None:
    names = {
        "autoload/v1/tables/e/good1.table.json": SCHEMA_TEXT,
        "autoload/v1/tables/e/bad1.table.json": content,
        "autoload/v1/tables/e/no.datatype.table.json": SCHEMA_TEXT,
        "autoload/v1/tables/readme.txt": "",
    }
    found = found_in(tmp_path, names, "--datatype", "good1", "--datatype", "bad1")
    assert tables(found) == ["raw_e.good1"]
    assert len(found.problems) == 3
    assert any(why in told for _, told in found.problems)


def test_two_experiments_that_would_share_a_table_are_told_as_rivals(tmp_path: Path) -> None:
    names = {f"autoload/v1/tables/{e}/x1.table.json": SCHEMA_TEXT for e in ("a-b", "a_b")}
    found = found_in(tmp_path, names, "--datatype", "x1")
    rivals = {table.experiment: table.rivals for table in found.tables}
    assert rivals == {"a-b": ("autoload/v1/a_b",), "a_b": ("autoload/v1/a-b",)}


def test_bundles_are_listed_by_day_the_earliest_first_and_others_are_reported(
    tmp_path: Path,
) -> None:
    day = "autoload/v1/e/x1/2026/01/02"
    names = {
        "autoload/v1/tables/e/x1.table.json": SCHEMA_TEXT,
        f"{day}/20260103T000000.000002Z-x1-a-e-data.jsonl.gz": "",
        f"{day}/20260103T000000.000001Z-x1-b-e-data.jsonl.gz": "",
        f"{day}/20260103T000000.000001Z-x1-b-e-index1.jsonl.gz": "",
        f"{day}/notes.txt": "",
        "autoload/v1/e/x1/2026/01/09/20260110T000000.000000Z-x1-a-e-data.jsonl.gz": "",
    }
    (table,) = found_in(tmp_path, names, "--datatype", "x1").tables
    problems: list[tuple[str, str]] = []

    window = replace(EVERYTHING, end=date(2026, 1, 9))
    listed = bundles(table, window, problems)

    assert {d: [b.node for b in found] for d, found in listed.items()} == {
        date(2026, 1, 2): ["b", "a"]
    }
    assert len(problems) == 2


def a_table(tmp_path: Path, experiment: str = "e", datatype: str = "x1") -> Table:
    names = {f"autoload/v1/tables/{experiment}/{datatype}.table.json": SCHEMA_TEXT}
    more = ("--datatype", datatype, "--experiment", experiment)
    return found_in(tmp_path / experiment, names, *more).tables[0]


def bundle(name: str = "a", generation: str = "1", bucket: str = "gs://b") -> Bundle:
    return Bundle(
        bucket=bucket,
        name=name,
        generation=generation,
        size_bytes=10,
        created=datetime(2026, 1, 2, tzinfo=UTC),
        node="n",
        pair=name,
    )


def test_a_fingerprint_is_of_objects_generations_and_columns() -> None:
    schema = schema_digest(FIELDS)
    base = fingerprint([bundle("a"), bundle("b")], schema)
    assert fingerprint([bundle("b"), bundle("a")], schema) == base
    assert fingerprint([bundle("a")], schema) != base
    assert fingerprint([bundle("a", "2"), bundle("b")], schema) != base
    assert fingerprint([bundle("a"), bundle("b")], schema_digest(FIELDS[:2])) != base


def test_descriptions_change_no_fingerprint() -> None:
    told = tuple(replace(field, description="other") for field in FIELDS)
    assert schema_digest(told) == schema_digest(FIELDS)


def test_decisions(tmp_path: Path) -> None:
    day = TableDay(
        table=a_table(tmp_path), date=date(2026, 1, 2), bundles=(bundle(),), fingerprint="f"
    )
    here = frozenset({"gs://b"})

    def decided(known: Known, *, force: bool = False) -> TableDay | Refusal | None:
        return decide(day, known, force=force, accept=False, max_bad=0.1)

    def reason(known: Known, *, force: bool = False) -> str:
        found = decided(known, force=force)
        assert isinstance(found, TableDay)
        return found.reason

    done = Known(attempt=3, status=Status.SUCCESS, fingerprint="f", buckets=here)
    assert decided(done) is None
    assert reason(done, force=True) == "forced"
    assert reason(Known()) == "new"
    assert reason(replace(done, fingerprint="g")) == "changed"
    assert reason(replace(done, status=Status.FAILED)) == "failed before"
    refused = replace(done, status=Status.REJECTED, bad_fraction=0.5)
    assert isinstance(decided(refused), Refusal)
    assert reason(replace(refused, bad_fraction=0.05)) == "rejected before"
    elsewhere = replace(done, buckets=here | {"gs://c"})
    found = decided(elsewhere)
    assert isinstance(found, Refusal)
    assert "gs://c" in found.why
    assert isinstance(decided(elsewhere, force=True), Refusal)
    accepted = decide(day, elsewhere, force=True, accept=True, max_bad=0.1)
    assert isinstance(accepted, TableDay)


@pytest.mark.parametrize(
    ("today", "kept"),
    [(date(2026, 3, 1), date(2026, 2, 26)), (date(2028, 3, 1), date(2028, 2, 27))],
)
def test_a_day_expires_so_many_days_after_its_end(today: date, kept: date) -> None:
    """BigQuery counts 24 hours each, whatever the months are."""
    assert not has_expired(kept, 3.0, today)
    assert has_expired(kept - timedelta(days=1), 3.0, today)
    assert not has_expired(kept - timedelta(days=1), float("inf"), today)


def test_parts_are_bounded_in_days_and_bytes_and_never_empty(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    days = [
        TableDay(table=table, date=date(2026, 1, n), bundles=(bundle(),) * n, fingerprint="f")
        for n in range(1, 5)
    ]
    sizes = [[day.size_bytes for day in part] for part in parts(days, most=9, most_bytes=30)]
    assert sizes == [[10, 20], [30], [40]]
    assert [len(part) for part in parts(days, most=3, most_bytes=1000)] == [3, 1]


def test_each_metric_says_what_it_counts() -> None:
    facts = metrics.Facts(
        outcomes=[], tables=[], period="daily", well=True, ended_s=1.0, spent_s=1.0
    )
    for registry in (metrics.of_load(facts, None), metrics.of_comparison(0)):
        told = [
            line for line in generate_latest(registry).decode().splitlines() if "# HELP" in line
        ]
        assert all(len(line.split()) > 7 and "docs/" not in line for line in told)


def in_two_buckets(tmp_path: Path, *schemas: list[dict[str, object]]) -> Discovered:
    """Discover one datatype in two buckets, with a table schema in each."""
    roots = [tmp_path / name for name in ("one", "two")]
    for root, columns in zip(roots, schemas, strict=True):
        path = root / "autoload/v1/tables/e/x1.table.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(to_json(table_schema(fields_from_api(columns))))
    argv = ["--bucket", "gs://any", "--project", "p", "--datatype", "x1"]
    return discover(
        [open_bucket(root.as_uri(), 5) for root in roots], parse(argv, {}, date(2026, 1, 2))
    )


def test_columns_that_two_buckets_add_are_added_together(tmp_path: Path) -> None:
    one, two = {"name": "One", "type": "STRING"}, {"name": "Two", "type": "STRING"}

    found = in_two_buckets(tmp_path, [*SCHEMA, one], [*SCHEMA, two])

    assert found.problems == []
    (table,) = found.tables
    assert [field.name for field in table.fields[-1].fields][-2:] == ["One", "Two"]


def test_columns_of_two_buckets_that_contradict_each_other_are_reported(tmp_path: Path) -> None:
    text, number = {"name": "One", "type": "STRING"}, {"name": "One", "type": "INTEGER"}

    found = in_two_buckets(tmp_path, [*SCHEMA, text], [*SCHEMA, number])

    assert found.tables == []
    ((_, why),) = found.problems
    assert "the schemas of several buckets differ: raw.One" in why
