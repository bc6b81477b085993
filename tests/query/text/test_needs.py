"""Which words a question's rows must have: only what a condition demands leaves anything out."""

from __future__ import annotations

import pytest

from loader.query.googlesql.reading import read
from loader.query.googlesql.translating import to_spark
from loader.query.logs import compile as compile_logs
from loader.query.text.needed import texts
from tests.query.googlesql.test_reading import NOW, Archive

WORDS = "analyzer => 'PATTERN_ANALYZER'"


def needs(question: str) -> list[str]:
    """Return what a question needs of each table, for people; "" for nothing."""
    logs = question.startswith(("table", "fulltext"))
    found = compile_logs(question, Archive(), NOW) if logs else read(question, Archive())
    made = to_spark(found, Archive(), NOW)
    return [texts(one.range.need) if one.range.need else "" for one in made.reads]


@pytest.mark.parametrize(
    ("where", "need"),
    [
        ("SEARCH(raw, 'Red')", '"red"'),
        ("SEARCH(raw.Client, 'red green')", '"green" and "red"'),
        (f"SEARCH(raw, 'a_red', {WORDS})", '"a_red"'),
        ("SEARCH(raw, 'a_red')", '"a" and "red"'),
        ("SEARCH(raw, 'a red', analyzer => 'NO_OP_ANALYZER')", '"a" and "red"'),
        (
            "SEARCH(raw, 'a') AND (SEARCH(raw, 'b') OR SEARCH(raw, 'c'))",
            '("a") and (("b") or ("c"))',
        ),
        ("SEARCH(raw, 'a') OR raw.Mbps > 1", ""),
        ("SEARCH(raw, 'a') AND raw.Mbps > 1", '"a"'),
        ("NOT SEARCH(raw, 'a')", ""),
        ("SEARCH(raw, 'a') AND NOT SEARCH(raw, 'b')", '"a"'),
        ("SEARCH(raw, 'a') IS NULL", ""),
        ("SEARCH(archiver, 'a')", ""),
        ("SEARCH(UPPER(raw.UUID), 'a')", ""),
        ("SEARCH([CAST(raw.Mbps AS STRING), raw.UUID], '17')", '"17"'),
        ("SEARCH([CAST(raw.Mbps AS STRING)], 'inf')", ""),
        ("SEARCH([CAST(date AS STRING)], '17')", ""),
        ("SEARCH(['a'], 'a')", ""),
        (
            f"""SEARCH(raw, 'ab', {WORDS}, analyzer_options => '{{"patterns": ["[a-c]+"]}}')""",
            "",
        ),
    ],
)
def test_a_condition_needs_what_all_its_rows_have(where: str, need: str) -> None:
    """NOT, OR with anything else, and other texts than those of `raw` need nothing."""
    assert needs(f"SELECT COUNT(*) FROM ndt7 WHERE {where}") == [need]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("FROM ndt7 |> WHERE SEARCH(raw, 'a') |> AGGREGATE COUNT(*)", ['"a"']),
        ("FROM ndt7 |> LIMIT 5 |> WHERE SEARCH(raw, 'a')", [""]),
        ("SELECT raw.UUID FROM (SELECT raw FROM ndt7) WHERE SEARCH(raw, 'a')", ['"a"']),
        ("SELECT raw.UUID FROM (SELECT raw FROM ndt7 LIMIT 3) WHERE SEARCH(raw, 'a')", [""]),
        ('fulltext "Red" from ndt7 | stats count', ['"red"']),
        ('fulltext "a" and ("b" or not "c") from ndt7', ['"a"']),
        ('fulltext "a" and ("b" or "c d") from ndt7', ['("a") and (("b") or (("c") and ("d")))']),
        ('fulltext "17" from ndt7', ['"17"']),
        ('fulltext not "a" from ndt7', [""]),
        ('table ndt7 | search raw.UUID == "a"', [""]),
    ],
)
def test_each_use_of_a_table_has_its_own_need(sql: str, found: list[str]) -> None:
    """A condition that comes after a limit leaves out no row before it."""
    assert needs(sql) == found
