"""`jostler why -project`: a file in BigQuery's tables, in rejects, in the ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from jostler.cli.why import main as why
from tests.loader.world import World, row
from tests.support.agent import once
from tests.support.spool import DATATYPE, DAY, EXPERIMENT, Spool, document

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("spark")


def ask(
    capsys: pytest.CaptureFixture[str], world: World, name: str, *more: str
) -> tuple[int, dict[str, Any]]:
    """Ask BigQuery alone; return status and answer."""
    capsys.readouterr()
    argv = [name, "-json", "-address", "", "-experiment", EXPERIMENT, "-project", world.project]
    status = why([*argv, "-local-data-dir", "/nowhere", *more])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, answer


def told(answer: dict[str, Any]) -> str:
    (one,) = [one["told"] for one in answer["looked"] if one["where"] == "BigQuery"]
    return str(one)


def test_a_file_is_followed_from_the_bundle_to_its_row(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the load the bucket has it; after it the table too; what the agent refused as well."""
    spool = Spool(tmp_path / "spool")
    spool.write("m1.json", document(1))
    spool.write("bad.json", b'{"UUID": {}}')
    assert once(spool, world.bucket, gcs_url=world.gcs.url).returncode == 0
    name = f"{DATATYPE}/{DAY}/m1.json"

    before = ask(capsys, world, name, "-bucket", world.url)
    assert world.load().code == 0
    after = ask(capsys, world, name, "-bucket", world.url)
    bad = ask(capsys, world, f"{DATATYPE}/{DAY}/bad.json")

    assert (before[0], [one["state"] for one in before[1]["findings"]]) == (0, ["stored"])
    assert "there is no such table" in told(before[1])
    assert (after[0], [one["state"] for one in after[1]["findings"]]) == (0, ["loaded", "stored"])
    loaded, stored = after[1]["findings"]
    assert loaded["evidence"]["object"] == stored["evidence"]["object"]
    assert loaded["evidence"]["table"] == f"{world.project}.raw_exp.foo1"
    assert "2026-01-02 success at " in told(after[1])
    assert (bad[0], [one["state"] for one in bad[1]["findings"]]) == (1, ["rejected"])
    assert bad[1]["findings"][0]["evidence"]["reason"] == "wrong-type"


def test_a_row_that_the_loader_refused_is_found_in_rejects_with_its_line(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a bundle of the Go agent, with absolute names; a good row beside it is loaded."""
    world.put_schema()
    lines = [row(number, go=True) for number in range(20)]
    lines[4] = row(4, go=True, raw=b'{"Rate":"fast"}')
    name = world.put_bundle(lines)
    assert world.load().code == 0

    bad = ask(capsys, world, f"{DATATYPE}/{DAY}/m4.json")
    good = ask(capsys, world, f"{DATATYPE}/{DAY}/m5.json")
    nobody = ask(capsys, world, f"{DATATYPE}/{DAY}/nobody.json")

    assert (bad[0], [one["state"] for one in bad[1]["findings"]]) == (1, ["rejected"])
    evidence = bad[1]["findings"][0]["evidence"]
    assert (evidence["line"], evidence["field"]) == (5, "Raw.Rate")
    assert evidence["object"] == f"{world.url}/{name}"
    assert (good[0], [one["state"] for one in good[1]["findings"]]) == (0, ["loaded"])
    assert nobody[0] == 3
    assert "2026-01-02 success" in told(nobody[1])


def test_without_the_loaders_packages_the_answer_says_what_to_install(tmp_path: Path) -> None:
    """As in the agent's image: the import fails, everything else is told."""
    spool = Spool(tmp_path / "spool")
    spool.write("m1.json", document(1))
    code = (
        "import sys; sys.modules['google.cloud.bigquery'] = None\n"
        "from jostler.cli.why import main; sys.exit(main(sys.argv[1:]))"
    )
    argv = [f"{DATATYPE}/{DAY}/m1.json", "-address", "", "-experiment", EXPERIMENT]
    argv += ["-local-data-dir", str(spool.root), "-project", "p"]

    done = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert done.stdout.startswith("WAITING")
    assert "pip install 'jostler[loader]'" in done.stdout
