"""docs/query-googlesql.md: what it lists is what the translation has, and refuses."""

from __future__ import annotations

import pytest

from loader.query.errors import Code, QueryError
from loader.query.googlesql.functions.dispatch import NAMES, REFUSED, SAFE_BY_THEMSELVES
from loader.query.googlesql.functions.nets import NETS
from loader.query.googlesql.reading import read
from loader.query.googlesql.translating import to_spark
from tests.query.googlesql.test_reading import NOW, Archive
from tests.unit.test_docs import ROOT, code, table

PAGE = ROOT / "docs/query-googlesql.md"


def section(heading: str) -> str:
    return PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def examples(heading: str) -> list[str]:
    """Return the questions in the last column of a table, in which `|` is escaped."""
    rows = [line for line in section(heading).splitlines() if line.startswith("| ")][1:]
    return [code(row.replace("\\|", "\0").split("|")[2])[0].replace("\0", "|") for row in rows]


def test_the_page_lists_each_function_and_no_other() -> None:
    """By its name, once; those of SAFE, and those that are refused."""
    listed = [name for row in table(PAGE, "## Functions") for name in code(row[1])]
    assert sorted(listed) == sorted([*NAMES, *(f"NET.{name}" for name in NETS)])
    safe = section("Functions").split("`SAFE.` stands", 1)[1].split(", and before", 1)[0]
    assert set(code(safe)) == SAFE_BY_THEMSELVES
    assert set(code(section("Functions that are refused"))) == {*REFUSED, "ST_…"}
    assert not REFUSED & NAMES


@pytest.mark.parametrize("sql", examples("Clauses"))
def test_the_pages_clauses_are_translated(sql: str) -> None:
    assert to_spark(read(sql, Archive()), Archive(), NOW).sql


@pytest.mark.parametrize("sql", examples("Clauses that are refused"))
def test_the_pages_other_clauses_are_refused(sql: str) -> None:
    with pytest.raises(QueryError) as found:
        read(sql, Archive())
    assert found.value.code in {Code.NOT_SUPPORTED, Code.SYNTAX}
    assert sql[found.value.start : found.value.end]


def test_the_functions_that_the_page_calls_refused_are() -> None:
    for name in sorted(REFUSED):
        with pytest.raises(QueryError) as found:
            read(f"SELECT {name}(1)", Archive())
        assert found.value.code is Code.NOT_SUPPORTED, name
