"""docs/query.md: each recipe has the same answer on Spark and on BigQuery; its Python code runs."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from loader.cli.answers import rows_of
from loader.query.archive import Archive
from tests.asking.sample import ROOT, load_into_bigquery, make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from loader.query.answer import Answer

pytestmark = pytest.mark.long  # Spark compiles many queries

PAGE = (ROOT / "docs/query.md").read_text()
RECIPES = re.findall(
    r"^```(?:sql|text)\n(.*?)```", PAGE.partition("\n## Recipes")[2], re.MULTILINE | re.DOTALL
)
NOW = datetime(2026, 1, 8, tzinfo=UTC)


@pytest.fixture(scope="module")
def sample(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Archive, str]]:
    """The sample archive, in a directory and in BigQuery."""
    bucket = make(tmp_path_factory.mktemp("sample"))
    project = f"q{uuid.uuid4().hex[:12]}"
    load_into_bigquery(bucket, project)
    with Archive(bucket, project=project) as archive:
        yield archive, bucket


def rounded(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    """Leave out the digits of a FLOAT64 that depend on the order of a sum."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def rows(answer: Answer) -> list[tuple[Any, ...]]:
    return [tuple(map(rounded, row)) for batch in answer for row in rows_of(batch)]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: " ".join(text.split())[:60])
def test_both_engines_answer_alike(recipe: str, sample: tuple[Archive, str]) -> None:
    """The same columns and rows, in the same order where the recipe sorts them."""
    archive, _ = sample
    on_spark = archive.query(recipe, now=NOW)
    on_bigquery = archive.query(recipe, engine="bigquery", now=NOW)

    assert on_spark.schema.names == on_bigquery.schema.names
    found, expected = rows(on_spark), rows(on_bigquery)
    if "sort -count" in recipe:  # of equal counts any may come first
        assert [row[-1] for row in found] == [row[-1] for row in expected]
        found, expected = sorted(found, key=str), sorted(expected, key=str)
    assert found == expected
    assert found
    assert on_spark.notes.well


def test_there_are_at_least_ten_recipes() -> None:
    assert len(RECIPES) >= 10


def test_the_code_from_python_runs(
    sample: tuple[Archive, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"bucket": sample[1]}

    exec(code, names)

    assert names["files"] == 47
    assert names["mean"]["_node"].tolist() == ["mlab1-lga01", "mlab2-ams03"]
    assert names["slow"]
    assert names["problems"].well
    assert names["errors"] >= 0
