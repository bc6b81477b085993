"""`jostler requeue`: what was rejected and is good now goes into the spool, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from jostler.cli.main import main
from jostler.producer.requeue import alone
from tests.loader import plain
from tests.support.agent import environment, once
from tests.support.bucket import reasons, rows, url_of
from tests.support.spool import DATATYPE, DAY, EXPERIMENT, SCHEMA, Spool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loader.world import World

NEW = {"name": "New", "type": "STRING", "description": "Came later."}
ONE_LINE = b'{"Rate":1,"New":"a"}'
MANY_LINES = b'{"Rate":2,\n "New":"b"}\n'


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a spool of which an agent has rejected some files, and its bucket."""
    directory = tmp_path_factory.mktemp("template")
    made = Spool(directory / "spool", DATATYPE, "bar1")
    made.write("good.json", b'{"Rate":1}')
    made.write("one.json", ONE_LINE)
    made.write("many.json", MANY_LINES)
    made.write("odd name.json", b'{"Rate":3}')
    made.write("bad.json", b'{"Rate":"fast"}')
    made.write("other.json", ONE_LINE, datatype="bar1")
    assert once(made, url_of(directory / "bucket")).returncode == 0
    assert len(reasons(url_of(directory / "bucket"))) == 5
    return directory


@pytest.fixture
def spool(template: Path, tmp_path: Path) -> Spool:
    """Return a copy of the template's spool, with a copy of its bucket beside it."""
    made = Spool(tmp_path / "spool", DATATYPE, "bar1")
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return made


@pytest.fixture
def extended(spool: Spool) -> Spool:
    """Return the same with a schema that has grown."""
    spool.schema_file(DATATYPE).write_text(json.dumps([*SCHEMA, NEW]))
    return spool


def flags(spool: Spool) -> list[str]:
    bucket = url_of(spool.root.parent / "bucket")
    return [
        *("-bucket", bucket, "-experiment", EXPERIMENT, "-cache-dir", "-"),
        *("-datatype", DATATYPE, "-local-data-dir", str(spool.root)),
    ]


def requeue(spool: Spool, *argv: str) -> int:
    """Run the command in this process; its output is what capfd has."""
    return main(["requeue", *flags(spool), "-first-day", "2026-01-01", *argv])


def test_files_that_are_good_now_go_into_the_spool_once(
    extended: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """While they wait there, and after they are stored; a dry run only counts them."""
    assert requeue(extended, "-dry-run") == 0
    out, told = capfd.readouterr()
    assert sorted(out.split()) == [f"{DAY}/{n}.json" for n in ("many", "odd-name", "one")]
    assert "4 rejected files of foo1" in told
    assert "1 still bad (1 wrong-type)" in told
    assert "3 files would be put into" in told
    assert extended.left() == []

    assert requeue(extended) == 0
    assert "3 files put into" in capfd.readouterr().err
    top = extended.experiment / DATATYPE / DAY
    assert (top / "one.json").read_bytes() == ONE_LINE
    assert (top / "many.json").read_bytes() == MANY_LINES
    assert requeue(extended) == 0
    out, told = capfd.readouterr()
    assert (out, "3 in the spool already" in told) == ("", True)

    bucket = url_of(tmp_path / "bucket")
    assert once(extended, bucket).returncode == 0
    assert extended.left() == []
    assert requeue(extended) == 0
    out, told = capfd.readouterr()
    assert (out, "3 stored already" in told) == ("", True)
    assert extended.left() == []
    names = sorted(row["archiver"]["Filename"] for row in rows(bucket, DATATYPE))
    assert names == [f"{DAY}/{n}.json" for n in ("good", "many", "odd-name", "one")]

    for name, now in (("one", "one"), ("many", "many"), ("odd name", "odd-name")):
        asked = ["-address", "", "-local-data-dir", str(extended.root)]
        asked += ["-bucket", bucket, "-experiment", EXPERIMENT, "-datatype", DATATYPE]
        assert main(["why", f"{DATATYPE}/{DAY}/{name}.json", *asked]) == 0
        assert (
            f"it was requeued: as {DATATYPE}/{DAY}/{now}.json the same bytes are stored now"
            in capfd.readouterr().out
        )


def test_a_reason_and_the_old_schema_choose(
    spool: Spool, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is as bad as it was stays where it is; of a name, push's own rule makes another."""
    assert requeue(spool, "-reason", "unknown-field") == 0
    assert "2 still bad (2 unknown-field)" in capfd.readouterr().err
    assert spool.left() == []
    assert requeue(spool, "-reason", "name") == 0
    assert spool.left() == [f"{DAY}/odd-name.json"]
    assert requeue(spool, "-end", "2025-01-01") == 0
    assert "0 rejected files" in capfd.readouterr().err


def test_another_content_of_the_name_is_told_and_left(
    extended: Spool, capfd: pytest.CaptureFixture[str]
) -> None:
    """The others are written."""
    extended.write("one.json", b'{"Rate":9}')
    assert requeue(extended) == 1
    assert f"{DAY}/one.json: not written, for the spool has another content" in (
        capfd.readouterr().err
    )
    assert (extended.experiment / DATATYPE / DAY / "one.json").read_bytes() == b'{"Rate":9}'
    assert (extended.experiment / DATATYPE / DAY / "many.json").read_bytes() == MANY_LINES


@pytest.mark.long
def test_rejected_files_are_found_in_bigquery_too(
    world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Loaded there, they are chosen by its tables; their contents come from the bucket."""
    made = Spool(tmp_path / "spool", DATATYPE)
    for name, content in (("one", ONE_LINE), ("many", MANY_LINES), ("bad", b'{"Rate":"fast"}')):
        made.write(f"{name}.json", content)
    assert once(made, world.url).returncode == 0
    made.schema_file(DATATYPE).write_text(json.dumps([*SCHEMA, NEW]))
    argv = [
        *("requeue", "-bucket", world.url, "-experiment", EXPERIMENT, "-datatype", DATATYPE),
        *("-local-data-dir", str(made.root), "-first-day", "2026-01-01"),
        *("-catalogue", "bigquery", "-project", world.project),
    ]

    assert main([*argv, "-dry-run"]) != 0
    assert "index1" in capfd.readouterr().err  # nothing is loaded yet
    assert plain.load(world).code == 0
    assert main(argv) == 0

    out, told = capfd.readouterr()
    assert sorted(out.split()) == [f"{DAY}/{n}.json" for n in ("many", "one")]
    assert "3 rejected files of foo1" in told
    top = made.experiment / DATATYPE / DAY
    assert (top / "one.json").read_bytes() == ONE_LINE
    assert (top / "many.json").read_bytes() == MANY_LINES
    (top / "one.json").unlink()
    for name in world.names(f"autoload/v1/{EXPERIMENT}/index1/"):
        world.remove(name)
    assert main(argv) == 0
    assert "3 rejected files of foo1" in capfd.readouterr().err  # it is BigQuery that was asked
    assert (top / "one.json").read_bytes() == ONE_LINE


def test_a_second_process_waits_for_the_first(extended: Spool) -> None:
    """Two that look at the same moment would both find a file missing."""
    argv = [sys.executable, "-m", "jostler", "requeue", *flags(extended)]
    with alone(extended.experiment / DATATYPE):
        process = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        assert extended.left() == []
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, len(out.split())) == (0, 3)


def test_wrong_use_is_reported(
    spool: Spool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket is needed, and one datatype."""
    for name in ("BUCKET", "GCS_BUCKET", "DATATYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(spool.root))
    assert main(["requeue", "-experiment", EXPERIMENT, "-datatype", DATATYPE]) == 2
    assert "-bucket: required" in capfd.readouterr().err
    assert requeue(spool, "-datatype", "bar1") == 2
    assert "which of foo1, bar1?" in capfd.readouterr().err
