"""An archive of an organization, asked in BigQuery: a table of v1, of v2, of both, of neither."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from jostler.cli.main import main
from jostler.format.names import Place
from tests.support.archive import DAY, PLACE, Entry, MadeArchive, project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.loader.world import BigQueryServer

V2 = Place(data_dir="autoload/v2", organization="org", experiment="exp")
TABLES = {PLACE: "raw_exp.index1", V2: "autoload_v2_org_exp.index1_raw"}


@pytest.fixture
def asked(warehouse: BigQueryServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what asks a new project for all files of both layouts."""
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", warehouse.url)
    return [
        *("list", "-catalogue", "bigquery", "-project", project(), "-format", "jsonl"),
        *("-experiment", "exp", "-organization", "org"),
        *("-first-day", str(DAY), "-last-day", str(DAY)),
    ]


@pytest.fixture
def load(warehouse: BigQueryServer, asked: list[str]) -> Callable[[MadeArchive], None]:
    """Return what loads an archive into that project."""
    options = {"api_endpoint": warehouse.url}
    name = asked[asked.index("-project") + 1]

    def loading(archive: MadeArchive) -> None:
        with closing(
            bigquery.Client(name, AnonymousCredentials(), client_options=options)
        ) as client:
            archive.load(client)

    return loading


@pytest.mark.parametrize("there", [PLACE, V2], ids=["v1", "v2"])
def test_the_table_of_one_layout_is_enough(
    tmp_path: Path,
    load: Callable[[MadeArchive], None],
    asked: list[str],
    capfd: pytest.CaptureFixture[str],
    there: Place,
) -> None:
    """That the other one does not exist is said, for a name may be wrong, and is no failure."""
    (absent,) = TABLES.keys() - {there}
    archive = MadeArchive(tmp_path, places={there})
    archive.put([Entry(name="a.json")], place=there)
    load(archive)

    status = main(asked)

    out, told = capfd.readouterr()
    (file,) = map(json.loads, out.splitlines())
    assert file["Filename"].endswith("a.json")
    (line,) = [line for line in told.splitlines() if "no such table" in line]
    assert f".{TABLES[absent]}: there is no such table" in line
    assert status == 0


def test_a_table_of_neither_layout_is_a_failure(
    asked: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing was searched, so it is not known that nothing is there."""
    assert main(asked) == 1
    told = capfd.readouterr().err
    assert all(f".{name}: there is no such table" in told for name in TABLES.values())


def test_the_tables_of_both_layouts_are_one_archive(
    tmp_path: Path,
    load: Callable[[MadeArchive], None],
    asked: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nothing is said of tables."""
    archive = MadeArchive(tmp_path)
    for name, place in (("a.json", PLACE), ("b.json", V2)):
        archive.put([Entry(name=name)], place=place)
    load(archive)

    assert main(asked) == 0

    out, told = capfd.readouterr()
    assert [json.loads(line)["Filename"][-6:] for line in out.splitlines()] == ["a.json", "b.json"]
    assert "table" not in told
