"""docs/loader.md lists what the code has, and no more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from prometheus_client import generate_latest

from loader.bigquery.ledger import (
    COMPACTION_FIELDS,
    LOADS_FIELDS,
    NOTIFICATION_FIELDS,
    REJECT_FIELDS,
)
from loader.bigquery.requests import REQUEST_DAYS_FIELDS, REQUEST_FIELDS
from loader.cli.audit_options import HELP as AUDIT_HELP
from loader.cli.compact_options import HELP as COMPACT_HELP
from loader.cli.metrics import of_compaction
from loader.cli.options import HELP
from loader.cli.status_options import HELP as STATUS_HELP
from loader.compacting import Report
from loader.errors import FailureClass
from loader.notify.events import TYPES
from loader.plan.due import ENDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/loader.md").read_text()


def test_keeping_describes_the_audits_options_with_their_defaults() -> None:
    """And no other."""
    page = (ROOT / "docs/keeping.md").read_text()
    table = page.split("| option of `jostler-load audit` |", 1)[1].split("\n\n", 1)[0]
    cells = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `--")]
    described = {row[0].strip(" `-"): row[1].strip(" `") for row in cells}
    assert described == {name: default for name, _, default, _ in AUDIT_HELP}


def rows(heading: str) -> list[list[str]]:
    """Return the cells below a heading's first table's head."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    return [[c.strip() for c in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def test_each_option_is_described_with_its_default() -> None:
    """And no other."""
    described = {row[0].strip("`-"): row[1].strip("`") for row in rows("Options")}
    assert set(described) == {name for name, *_ in HELP}
    for name, _, default, _ in HELP:
        if default:
            assert described[name] == default


def test_each_column_is_described_as_the_table_has_it() -> None:
    """In the same order: the text is also the column's description in BigQuery."""
    page = (ROOT / "docs/requests.md").read_text()
    for field in (*REQUEST_FIELDS, *REQUEST_DAYS_FIELDS):
        assert f"| `{field.name}` | {field.type} | {field.description} |" in page
    for heading, fields in (("The ledger", LOADS_FIELDS), ("The rejects", REJECT_FIELDS)):
        told = [(row[0].strip("`"), row[1], row[2]) for row in rows(heading)]
        assert told == [(field.name, field.type, field.description) for field in fields]


def test_each_event_is_described() -> None:
    """Those of days are made of the status."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "loader").rglob("*.py")]
    made = {
        str(call.args[0].value)
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "event"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    made |= {f"day.{status}" for status in ENDS}
    assert {row[0].strip("`") for row in rows("Log events")} == made


def test_keeping_describes_compaction_with_its_defaults_columns_and_metrics() -> None:
    """And no more than there is."""
    page = (ROOT / "docs/keeping.md").read_text()
    section = page.split("\n## Compact\n", 1)[1].split("\n## ", 1)[0]
    cells = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    options = {row[0].strip("-"): row[1] for row in cells if row[0].startswith("--")}
    assert options == {name: default for name, _, default, _ in COMPACT_HELP}
    columns = [tuple(row) for row in cells if not row[0].startswith(("--", "jostler_"))]
    assert columns == [(one.name, one.type, one.description) for one in COMPACTION_FIELDS]
    told = set(re.findall(r"`(jostler_compact_\w+)`", section))
    made = generate_latest(of_compaction(Report(), 0.0, 0.0)).decode()
    assert told == set(re.findall(r"# TYPE (\w+)", made))


def test_notify_describes_types_classes_and_columns_of_notifications() -> None:
    """In their order, and no other."""
    page = (ROOT / "docs/notify.md").read_text()
    cells = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    first = [row[0].strip(" `") for row in cells]
    columns = [(row[0].strip(" `"), row[1], row[2].strip()) for row in cells if row[1].isupper()]
    assert columns == [(one.name, one.type, one.description) for one in NOTIFICATION_FIELDS]
    assert first[: len(TYPES)] == list(TYPES)
    assert first[len(TYPES) :][: len(FailureClass)] == list(FailureClass)


def test_the_options_of_status_are_described_with_their_defaults() -> None:
    """And no other."""
    table = PAGE.split("| option of `jostler-load status` |", 1)[1].split("\n\n", 1)[0]
    cells = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `--")]
    described = {row[0].strip(" `-"): row[1].strip(" `") for row in cells}
    told = {name: default for name, _, default, _ in STATUS_HELP}
    assert described == {**told, "project": "required", "bucket": "none"}
