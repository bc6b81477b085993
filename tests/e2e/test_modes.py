"""The commands beside the daemon: schema mode, pre-flight check, verify, version, help."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from jostler.cli.commands import COMMANDS
from jostler.cli.main import main
from jostler.storage import open_storage
from tests.support.agent import arguments, environment, once, run
from tests.support.bucket import assert_all_archived, reasons, rows, url_of
from tests.support.gcs import GcsServer
from tests.support.misbehaving import Misbehaving
from tests.support.proxy import Fault
from tests.support.spool import SCHEMA, Spool, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.proxy import FaultyServer


def schema(tmp_path: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return run("-schema", "-experiment", "exp", *argv, cwd=str(tmp_path))


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    path = tmp_path / "bar1.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def test_schema_mode_writes_and_shows_the_table(tmp_path: Path, schema_file: Path) -> None:
    """It needs no bucket, no node and no spool."""
    done = schema(tmp_path, "-datatype", "bar1", "-datatype-file", f"bar1:{schema_file}")

    assert done.returncode == 0, done.stderr
    columns = json.loads((tmp_path / "bar1-table.json").read_text())
    assert [column["name"] for column in columns] == ["date", "archiver", "raw"]
    assert "├─ Samples" in done.stdout or "└─ Samples" in done.stdout
    assert "Microseconds." in done.stdout


def test_schema_mode_reports_every_problem_of_every_file(tmp_path: Path) -> None:
    """With file, path and reason, and writes nothing."""
    bad = [{"name": "a-b", "type": "STRING"}, {"name": "x", "type": "INTERVAL"}]
    (tmp_path / "one.json").write_text(json.dumps(bad))
    (tmp_path / "two.json").write_text("{")
    argv = ["-datatype", "one", "-datatype", "two", "-datatype", "three"]
    for name in ("one", "two", "three"):
        argv += ["-datatype-file", f"{name}:{tmp_path / name}.json"]

    done = schema(tmp_path, *argv)

    assert done.returncode != 0
    for words in ("a-b", "INTERVAL", "two.json", "three.json"):
        assert words in done.stderr
    assert not list(tmp_path.glob("*-table.json"))


def test_schema_mode_says_what_differs_from_the_stored_schema(
    tmp_path: Path, schema_file: Path
) -> None:
    """And whether the agent would start."""
    spool = Spool(tmp_path / "spool", "bar1")
    bucket = url_of(tmp_path / "bucket")
    once(spool, bucket)
    argv = ["-datatype", "bar1", "-datatype-file", f"bar1:{schema_file}", "-gcs-bucket", bucket]

    assert "the same" in schema(tmp_path, *argv).stdout
    schema_file.write_text(json.dumps([*SCHEMA, {"name": "New", "type": "STRING"}]))
    assert "+ raw.New" in schema(tmp_path, *argv).stdout
    schema_file.write_text(json.dumps(SCHEMA[:2]))
    assert "- raw.Rate" in schema(tmp_path, *argv).stdout
    schema_file.write_text(json.dumps([{**SCHEMA[0], "type": "INTEGER"}, *SCHEMA[1:]]))
    done = schema(tmp_path, *argv)
    assert done.returncode == 1
    assert "NOT compatible" in done.stdout
    assert "raw.UUID" in done.stdout


def test_a_schema_can_be_inferred_from_samples(tmp_path: Path) -> None:
    """What comes out is a datatype schema by which the samples are good."""
    samples = tmp_path / "samples"
    samples.mkdir()
    for number in range(5):
        (samples / f"{number}.json").write_bytes(document(number))
    done = run("-schema", "-from-samples", str(samples), cwd=str(tmp_path))

    assert done.returncode == 0, done.stderr
    types = {field["name"]: field["type"] for field in json.loads(done.stdout)}
    assert types == {
        "UUID": "STRING",
        "StartTime": "TIMESTAMP",
        "Rate": "FLOAT",
        "Samples": "RECORD",
    }


def test_samples_that_disagree_are_named(tmp_path: Path) -> None:
    """With the file that caused the conflict."""
    (tmp_path / "a.json").write_text('{"x":1}')
    (tmp_path / "b.json").write_text('{"x":{"y":1}}')
    done = run("-schema", "-from-samples", str(tmp_path), cwd=str(tmp_path))
    assert done.returncode == 1
    assert "b.json" in done.stderr


def test_check_says_that_all_is_well(
    tmp_path: Path, gcs: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line for each thing looked at, and nothing is left in the bucket."""
    gcs.create_bucket("checked")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    spool = Spool(tmp_path / "spool")
    done = run(*arguments(spool, "checked", "-check"))

    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    for what in ("spool", "inotify", "free disk", "credentials", "bucket", "clock", "schema foo1"):
        assert any(f" {what}: " in line for line in lines), what
    assert list(open_storage("checked").list("")) == []


def test_check_fails_where_the_start_would_for_lack_of_a_right(
    tmp_path: Path, faulty_gcs: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored schema that must be extended, and may not be overwritten."""
    bucket = "unwritable"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", faulty_gcs.url)
    GcsServer.create_bucket(faulty_gcs, bucket)  # type: ignore[arg-type]
    spool = Spool(tmp_path / "spool")
    assert run(*arguments(spool, bucket, "-once")).returncode == 0
    spool.schema_file("foo1").write_text(json.dumps([*SCHEMA, {"name": "New", "type": "STRING"}]))
    argv = arguments(spool, bucket, "-check")
    good = run(*argv)
    assert good.returncode == 0, good.stdout
    assert "schema foo1: adds raw.New" in good.stdout

    faulty_gcs.faults[:] = [Fault(status=403, times=9, path="ifGenerationMatch=1")]
    done = run(*argv)
    faulty_gcs.faults.clear()

    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if "schema foo1" in line]
    assert line.startswith("FAIL")
    assert "storage.objects.delete" in line


def test_check_says_everything_that_is_wrong(tmp_path: Path) -> None:
    """A bucket that does not answer and a schema that is wrong, in one run."""
    spool = Spool(tmp_path / "spool")
    field = {"name": "RTT", "type": "INTERVAL"}
    schema = [{"name": "Samples", "type": "RECORD", "mode": "REPEATED", "fields": [field]}]
    spool.schema_file("foo1").write_text(json.dumps(schema))
    done = subprocess.run(
        [sys.executable, "-m", "jostler", *arguments(spool, "nobody", "-check")],
        capture_output=True,
        text=True,
        check=False,
        env=environment("http://127.0.0.1:9"),
        timeout=60,
    )
    assert done.returncode == 1
    assert "FAIL datatype schemas" in done.stdout
    problem = f"{spool.schema_file('foo1')}: Samples[].RTT: unknown type 'INTERVAL': one of "
    assert problem in done.stdout
    assert "FAIL bucket" in done.stdout

    done = subprocess.run(
        [sys.executable, "-m", "jostler", *arguments(spool, url_of(tmp_path / "bucket"), "-once")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert problem in done.stdout + done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another user")
def test_check_sees_that_files_could_not_be_deleted(tmp_path: Path) -> None:
    """Read permission is not enough."""
    spool = Spool(tmp_path / "spool")
    day = spool.write("m.json", document(1)).parent
    os.chown(day, 12345, 12345)
    argv = arguments(spool, url_of(tmp_path / "bucket"), "-check")
    caps = "-dac_override,-dac_read_search,-fowner"
    done = subprocess.run(
        ["setpriv", "--bounding-set", caps, sys.executable, "-m", "jostler", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "FAIL spool" in done.stdout


@pytest.mark.parametrize("page", ["cut", "html"])
def test_a_start_waits_while_the_bucket_gives_no_sensible_answer(tmp_path: Path, page: str) -> None:
    """A schema that breaks off, a login page with status 200: no trace, and no file is touched."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(2)
    body = b"<html>log in</html>"
    length = len(body) + 500 * (page == "cut")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (length, body)
    with Misbehaving(answer) as server:
        done = once(spool, "somewhere", "-flush-timeout", "0s", gcs_url=server.url)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert server.host in done.stderr
    assert len(spool.left()) == 2


def test_wrong_use_touches_nothing(tmp_path: Path) -> None:
    """Exit status 2, every problem on standard error, no directory made."""
    done = run("-gcs-bucket", url_of(tmp_path / "b"), "-nonsense", "-local-data-dir", str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    for flag in ("-nonsense", "-experiment", "-datatype", "-mlab-node-name"):
        assert f"jostler: {flag}: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_schema_that_cannot_fit_stops_the_start(tmp_path: Path) -> None:
    """Before any file is taken, naming the field."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    once(spool, bucket)
    spool.schema_file("foo1").write_text(json.dumps([{**SCHEMA[0], "type": "INTEGER"}]))
    spool.write_many(1)
    done = once(spool, bucket)
    assert done.returncode == 1
    assert "raw.UUID" in done.stderr
    assert len(spool.left()) == 1


def test_validate_json_takes_any_object(tmp_path: Path) -> None:
    """And nothing that is none."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write("unknown.json", b'{"Nope":[1,null]}')
    spool.write("array.json", b"[1]", keep=False)
    done = once(spool, bucket, "-validate", "json")
    assert '"archived":2' in done.stdout
    assert '"reason":"not-object"' in done.stdout


def test_verify_finds_what_is_wrong(tmp_path: Path) -> None:
    """A bundle without index, one that is cut, a file stored twice, one that is missing."""
    spool = Spool(tmp_path / "spool")
    bucket = tmp_path / "bucket"
    url = url_of(bucket)
    for turn in range(3):
        spool.write_many(2)
        assert once(spool, url).returncode == 0, turn
    assert run("verify", url).returncode == 1  # three times the same two files
    data = sorted((bucket / "autoload/v1/exp/foo1").rglob("*.gz"))
    index = sorted((bucket / "autoload/v1/exp/index1").rglob("*.gz"))
    index[0].unlink()
    data[1].write_bytes(data[1].read_bytes()[:-9])
    spool.originals.joinpath("foo1/2026/01/02/lost.json").write_bytes(b"{}")

    done = run("verify", url, "autoload/v1/", "-originals", str(spool.originals))

    assert done.returncode == 1
    for words in ("has no index", "not one gzip stream", "lost.json: is not in the bucket"):
        assert words in done.stdout
    assert run("verify").returncode == 2
    assert run("verify", "s3://x").returncode == 2


def test_version_and_help_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither needs any other flag; as flags and as commands."""
    assert run("-version").stdout.startswith("jostler ")
    assert "-bundle-size-max" in run("-help").stdout
    for argv, words in (
        (["version"], "jostler "),
        (["help"], "-bundle-size-max"),
        (["help", "verify"], "-originals"),
        (["why", "-h"], "PATH-OR-NAME"),
    ):
        assert main(argv) == 0
        assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "meant"), [("stat", "did you mean status?"), ("verfiy", "verify?"), ("xyz", "why")]
)
def test_a_word_that_is_no_command_is_told_with_those_there_are(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing else: no flag is missing where a command was meant."""
    assert main([word, "-json"]) == 2
    told = capsys.readouterr().err
    assert meant in told
    assert f"{', '.join(command.name for command in COMMANDS)}, help, version" in told
    assert "required" not in told


def test_a_spool_is_found_by_a_path_with_two_dots(tmp_path: Path) -> None:
    """Good files are data, not rejections."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(2)
    (tmp_path / "x").mkdir()
    bucket = url_of(tmp_path / "bucket")
    done = once(spool, bucket, "-local-data-dir", f"{tmp_path}/x/../spool")
    assert done.returncode == 0
    assert reasons(bucket) == {}
    assert len(rows(bucket, "foo1")) == 2


def test_check_makes_no_spool_that_would_look_well(tmp_path: Path) -> None:
    """A mistyped directory is told; a new one needs a word."""
    spool = Spool(tmp_path / "spool")
    (spool.experiment / "foo1").rmdir()
    spool.experiment.rmdir()
    argv = arguments(spool, url_of(tmp_path / "bucket"), "-check")
    done = run(*argv)
    assert done.returncode == 1
    assert "FAIL spool: " in done.stdout
    assert "no such directory" in done.stdout
    assert not spool.experiment.exists()

    done = run(*argv, "-allow-empty")
    assert done.returncode == 0, done.stdout
    assert "not there yet" in done.stdout


@pytest.mark.parametrize("closed", ["pipe", "descriptor"])
def test_an_agent_whose_output_nobody_takes_does_its_work(tmp_path: Path, closed: str) -> None:
    """One line on standard error at most, no trace; the journal is no file of somebody's print."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(20)
    bucket = url_of(tmp_path / "bucket")
    argv = [sys.executable, "-m", "jostler", *arguments(spool, bucket, "-once", "-missed-age=0s")]
    if closed == "descriptor":
        argv = ["sh", "-c", 'exec "$@" >&-', "sh", *argv]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*argv, "-verbose"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    finally:
        os.close(writer)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert len(done.stderr.splitlines()) == (closed == "pipe")
    assert_all_archived(spool, bucket)


def test_what_the_command_line_changes_by_itself_is_logged(tmp_path: Path) -> None:
    """A variable that is not obeyed, and memory that is raised."""
    spool = Spool(tmp_path / "spool")
    argv = arguments(spool, url_of(tmp_path / "b"), "-once", "-bundle-size-max=0x6400000")
    done = subprocess.run(
        [sys.executable, "-m", "jostler", *argv],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), "MLAB_NODE_NAME": "third-party"},
    )
    assert done.returncode == 0, done.stderr
    lines = {line["event"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert lines["variable.overruled"]["variable"] == "MLAB_NODE_NAME"
    assert lines["memory.raised"]["to_bytes"] == 100 << 20


def test_logs_are_one_json_object_a_line_whatever_a_file_is_called(tmp_path: Path) -> None:
    """A name with a line feed forges no log line."""
    spool = Spool(tmp_path / "spool")
    name = 'x\n{"event":"forged"}\udcff.json'
    spool.write(name, b"{}", keep=False)
    done = once(spool, url_of(tmp_path / "bucket"))
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert "file.rejected" in events
    assert "forged" not in events
