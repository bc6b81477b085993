"""`jostler push`: judged as the agent judges, told to the user's face, and stored as it was."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jostler.cli.main import main
from jostler.format.row import one_line
from tests.support.agent import RunningAgent, arguments, environment, once
from tests.support.bucket import problems, reasons, rows, url_of
from tests.support.spool import DATATYPE, DAY, EXPERIMENT, SCHEMA, Spool, document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.gcs import GcsServer

FORMAT = Path(__file__).parents[2] / "docs/format.md"
KINDS = {
    **{kind: kind for kind in ("BYTES", "DATE", "TIME", "DATETIME", "GEOGRAPHY", "JSON")},
    "TIMESTAMP": "TIMESTAMP",
}
FIELDS: list[dict[str, Any]] = [
    *({"name": name, "type": kind, "description": "x"} for name, kind in KINDS.items()),
    {"name": "Must", "type": "STRING", "mode": "REQUIRED", "description": "x"},
    {"name": "Short", "type": "STRING", "maxLength": "3", "description": "x"},
    {"name": "Whole", "type": "INTEGER", "description": "x"},
    {"name": "Many", "type": "STRING", "mode": "REPEATED", "description": "x"},
    {
        "name": "Span",
        "type": "RANGE",
        "rangeElementType": {"type": "DATE"},
        "description": "x",
    },
]
BAD = {
    "empty": (b" \n", ""),
    "too-big": (b'{"Must":"' + b"x" * 4096 + b'"}', ""),
    "not-utf8": (b'{"Must":"\xff"}', ""),
    "not-json": (b'{"Must":"a",}', ""),
    "not-object": (b"[]", ""),
    "too-deep": (b'{"Must":"","JSON":' + b"[" * 501 + b"]" * 501 + b"}", "JSON"),
    "too-complex": (
        b'{"Must":"",' + b",".join(b'"u%d":null' % n for n in range(10_000 + len(FIELDS))) + b"}",
        f"u{10_000 + len(FIELDS) - 1}",
    ),
    "lone-surrogate": (b'{"Must":"\\ud800"}', "Must"),
    "nul-character": (b'{"Must":"\\u0000"}', "Must"),
    "unknown-field": (b'{"Must":"","Other":1}', "Other"),
    "duplicate-key": (b'{"Must":"","must":""}', "must"),
    "missing-required": (b"{}", "Must"),
    "null-required": (b'{"Must":null}', "Must"),
    "null-element": (b'{"Must":"","Many":["a",null]}', "Many[1]"),
    "wrong-type": (b'{"Must":"","Whole":"x"}', "Whole"),
    "out-of-range": (b'{"Must":"","Whole":9223372036854775808}', "Whole"),
    "too-long": (b'{"Must":"","Short":"abcd"}', "Short"),
    "bad-base64": (b'{"Must":"","BYTES":"QQ"}', "BYTES"),
    "bad-date": (b'{"Must":"","DATE":"2026-02-30"}', "DATE"),
    "bad-time": (b'{"Must":"","TIME":"25:00:00"}', "TIME"),
    "bad-datetime": (b'{"Must":"","DATETIME":"yesterday"}', "DATETIME"),
    "bad-timestamp": (b'{"Must":"","TIMESTAMP":"yesterday"}', "TIMESTAMP"),
    "bad-geography": (b'{"Must":"","GEOGRAPHY":"POINT(1)"}', "GEOGRAPHY"),
    "bad-range": (b'{"Must":"","Span":"[2026-02-01, 2026-01-01)"}', "Span"),
}
"""By reason a document, and the field at fault; of `too-big`, with bundles of 4096 bytes."""
OF_THE_PATH = {"path", "name", "unreadable", "disk-lack"}
"""What no pushed file can be: push makes path and name, reads the file, gives none up."""
BUNDLE_MAX = {"too-big": "4096", "too-complex": "20971520"}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EXPERIMENT", "DATATYPE", "LOCAL_DATA_DIR", "GCS_BUCKET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def push(spool: Spool, *argv: str, stdin: bytes = b"", datatype: str = DATATYPE) -> int:
    """Run the command in this process; its output is what capfd has."""
    flags = ["-experiment", EXPERIMENT, "-datatype", datatype, "-local-data-dir", str(spool.root)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        return main(["push", *flags, *argv])


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def table_of_reasons() -> set[str]:
    section = FORMAT.read_text().split("\n## rejected1\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([a-z0-9-]+)` \| [^|]*\|$", section, re.MULTILINE))


def test_every_reason_of_the_format_has_a_bad_document_here() -> None:
    """But those of paths, which push makes itself."""
    assert table_of_reasons() - OF_THE_PATH == set(BAD)


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_file_is_told_with_its_reason_and_not_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], reason: str
) -> None:
    """As a document and as a row; and the agent gives the same reason."""
    spool = Spool(tmp_path / "spool")
    spool.schema_file(DATATYPE).write_text(json.dumps(FIELDS))
    content, field = BAD[reason]
    most = ("-bundle-size-max", BUNDLE_MAX.get(reason, "1MiB"))
    assert push(spool, *most, written(tmp_path / "a.json", content)) == 1
    told = capfd.readouterr().err
    assert f"a.json: {reason}: {f'{field}: ' if field else ''}" in told
    if reason != "empty":  # a line of white space is no row
        good = b'{"Must":"good"}\n'
        assert push(spool, *most, written(tmp_path / "r.jsonl", good + content + b"\n")) == 1
        assert f"r.jsonl: line 2: {reason}: " in capfd.readouterr().err
    assert spool.left() == []


def test_the_agent_gives_the_same_reasons(tmp_path: Path) -> None:
    """Of the same documents, which a service wrote by itself."""
    spool = Spool(tmp_path / "spool")
    spool.schema_file(DATATYPE).write_text(json.dumps(FIELDS))
    for reason, (content, _) in BAD.items():
        if reason != "too-big":
            spool.write(f"{reason}.json", content)
    bucket = url_of(tmp_path / "bucket")
    assert once(spool, bucket).returncode == 0
    assert reasons(bucket) == {
        f"{DAY}/{reason}.json": reason for reason in BAD if reason != "too-big"
    }


def test_every_good_file_is_a_row_with_equal_bytes(
    spool: Spool, tmp_path: Path, gcs: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of documents, of rows, of compressed rows; through an agent, into a bucket over HTTP."""
    contents = [
        b'{"Rate": 1E2}',
        b'{"Rate":93.20,\n "UUID": "\\u00e9"}\n',
        b'\xef\xbb\xbf{"Rate":-0}',
        *(document(n) for n in range(20)),
    ]
    directory = tmp_path / "in"
    directory.mkdir()
    for nth, content in enumerate(contents):
        (directory / f"d{nth}.json").write_bytes(content)
    lines = [one_line(content) for content in contents]
    (directory / "plain.jsonl").write_bytes(b"\r\n".join(lines[:5]))
    (directory / "packed.jsonl.gz").write_bytes(gzip.compress(b"\n".join([*lines, b""])))
    (directory / "other.ndjson").write_bytes(b"\n\n".join(lines))
    assert push(spool, "-day", "2026-01-02", str(directory)) == 0
    gcs.create_bucket("pushed")
    bucket = "gs://pushed"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    assert once(spool, bucket, gcs_url=gcs.url).returncode == 0
    found = {row["archiver"]["Filename"]: row for row in rows(bucket, DATATYPE)}
    expected = {f"{DAY}/d{nth}.json": line for nth, line in enumerate(lines)}
    expected |= {f"{DAY}/plain.{nth}.json": line for nth, line in enumerate(lines[:5], 1)}
    expected |= {f"{DAY}/packed.{nth}.json": line for nth, line in enumerate(lines, 1)}
    expected |= {f"{DAY}/other.{2 * nth + 1}.json": line for nth, line in enumerate(lines)}
    assert found.keys() == expected.keys()
    assert {filename: row["raw"] for filename, row in found.items()} == {
        filename: json.loads(line) for filename, line in expected.items()
    }
    assert problems(bucket) == []  # each Hash is that of the row's bytes
    assert raws(bucket) == sorted(expected.values())


def raws(bucket: str) -> list[bytes]:
    """Return `raw` of all rows, byte for byte."""
    from jostler.storage import open_storage  # noqa: PLC0415 - used here alone

    storage = open_storage(bucket)
    found = []
    for info in storage.list("autoload/"):
        if f"/{DATATYPE}/" in info.name and info.name.endswith(".jsonl.gz"):
            plain = gzip.decompress(storage.read(info.name).data)
            found += [line.split(b'},"raw":', 1)[1][:-1] for line in plain.splitlines()]
    return sorted(found)


def test_the_line_of_a_field_is_reported(
    spool: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a document on several lines, that on which the value begins."""
    content = b'{\n "Rate": 1,\n "Samples": [\n  {"T": 1},\n  {"T": "a]}"}\n ]\n}\n'
    assert push(spool, written(tmp_path / "a.json", content)) == 1
    told = capfd.readouterr().err
    assert "a.json: line 5: wrong-type: Samples[1].T: expected INTEGER, found string" in told


def test_one_bad_file_does_not_keep_the_others(
    spool: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And of a file of rows with a bad one, all bad ones are told and none is written."""
    bad = b'{"Rate":1}\n{"Rate":"a"}\n{"Rate":2}\n{"Rate":"b"}\n'
    files = [
        written(tmp_path / "a.json", b'{"Rate":1}'),
        written(tmp_path / "b.jsonl", bad),
        str(tmp_path / "none.json"),
        written(tmp_path / "c.jsonl.gz", gzip.compress(b'{"Rate":1}\n' * 9)[:-9]),
        written(tmp_path / "d.json", b'{"Rate":2}'),
    ]
    assert push(spool, "-day", "2026-01-02", *files) == 1
    told = capfd.readouterr().err
    assert "b.jsonl: line 2: wrong-type: Rate" in told
    assert "b.jsonl: line 4: wrong-type: Rate" in told
    assert "b.jsonl: 2 of 4 rows are bad, and none was written" in told
    assert "none.json: No such file" in told
    assert "c.jsonl.gz: cannot be decompressed" in told
    assert "2 files written" in told
    assert spool.left() == [f"{DAY}/a.json", f"{DAY}/d.json"]


def test_a_taken_name_is_told_and_renamed_on_request(
    spool: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same content is there already, and nothing is done."""
    file = written(tmp_path / "r.jsonl", b'{"Rate":1}\n{"Rate":2}\n')
    day = ("-day", "2026-01-02")
    assert push(spool, *day, file) == 0
    assert push(spool, *day, file) == 0
    assert "2 files already there" in capfd.readouterr().err
    written(tmp_path / "r.jsonl", b'{"Rate":1}\n{"Rate":3}\n{"Rate":4}\n')
    assert push(spool, *day, file) == 1
    assert f"{DAY}/r.2.json is there with other content" in capfd.readouterr().err
    assert spool.left() == [f"{DAY}/r.1.json", f"{DAY}/r.2.json"]
    assert push(spool, *day, "-rename", file) == 0
    told = capfd.readouterr().err
    assert "1 file already there" in told
    assert "1 file renamed" in told
    assert len(spool.left()) == 4


def test_a_name_that_the_agent_refuses_is_made_safe_and_reported(
    spool: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also one without its extension."""
    files = [
        written(tmp_path / "a b.json", b'{"Rate":1}'),
        written(tmp_path / "result", b'{"Rate":1}'),
        written(tmp_path / "r s.jsonl", b'{"Rate":1}'),
    ]
    assert push(spool, "-day", "2026-01-02", *files) == 0
    told = capfd.readouterr().err
    assert "a b.json: the agent takes no file of this name; it is a-b.json now" in told
    assert spool.left() == [f"{DAY}/{name}" for name in ("a-b.json", "r-s.1.json", "result.json")]


def test_the_day_is_that_of_the_start(spool: Spool, tmp_path: Path) -> None:
    """Which `-index-field` gives, for each row by itself; else today."""
    content = b'{"StartTime":"2025-12-31T23:00:00Z"}\n{"StartTime":"2026-01-01T00:00:00Z"}\n{}\n'
    file = written(tmp_path / "r.jsonl", content)
    before = datetime.now(UTC)
    assert push(spool, "-index-field", f"{DATATYPE}:Start=StartTime", file) == 0
    days = {f"{day:%Y/%m/%d}/r.3.json" for day in (before, datetime.now(UTC))}
    first, second, third = spool.left()
    assert (first, second) == ("2025/12/31/r.1.json", "2026/01/01/r.2.json")
    assert third in days


def test_a_files_time_is_kept_in_the_folder_of_its_day(spool: Spool, tmp_path: Path) -> None:
    """Elsewhere it would be a Start that no search by time finds."""
    then = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
    file = written(tmp_path / "a.json", b"{}")
    os.utime(file, (then, then))
    assert push(spool, "-day", "2026-01-02", file) == 0
    assert push(spool, "-day", "2026-01-03", file) == 0
    top = spool.experiment / DATATYPE
    assert (top / "2026/01/02/a.json").stat().st_mtime == then
    assert (top / "2026/01/03/a.json").stat().st_mtime > then


def test_standard_input_is_a_document_or_rows(
    spool: Spool, capfd: pytest.CaptureFixture[str]
) -> None:
    """As its name says; without one, the time is its name."""
    day = ("-day", "2026-01-02")
    assert push(spool, *day, "-name", "x.jsonl", "-", stdin=b'{"Rate":1}\n{"Rate":2}') == 0
    assert spool.left() == [f"{DAY}/x.1.json", f"{DAY}/x.2.json"]
    assert push(spool, *day, "-", stdin=b'{"Rate":3}') == 0
    (timed,) = (name for name in spool.left() if "/x." not in name)
    assert re.fullmatch(rf"{DAY}/\d{{8}}T\d{{6}}\.\d{{3}}Z_[a-z2-7]{{12}}\.json", timed)
    assert push(spool, *day, "-name", "y.json", "-", stdin=b'{"Rate":"x"}') == 1
    assert "standard input: wrong-type: Rate" in capfd.readouterr().err


def test_a_dry_run_judges_and_writes_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not even the datatype's directory."""
    spool = Spool(tmp_path / "spool")
    (spool.experiment / DATATYPE).rmdir()
    file = written(tmp_path / "r.jsonl", b'{"Rate":1}\n{"Rate":2}\n')
    assert push(spool, "-dry-run", file) == 0
    assert "2 files found good, and not written" in capfd.readouterr().err
    assert push(spool, "-dry-run", written(tmp_path / "b.json", b"[]")) == 1
    assert not (spool.experiment / DATATYPE).exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "FILE: required"),
        (["-", "-"], "standard input can be read once"),
        (["-follow", "a.json"], "-follow: reads standard input"),
        (["-now", "-dry-run", "a"], "-dry-run: excludes -now"),
        (["-name", "x", "a.json"], "-name: goes with -"),
        (["-now", "a.json"], "-gcs-bucket: required"),
        (["-day", "2026-13-01", "a.json"], "-day: "),
        (["-datatype", "other", "a.json"], "-datatype: which of foo1, other?"),
    ],
)
def test_wrong_use_is_reported(
    spool: Spool, capfd: pytest.CaptureFixture[str], argv: Sequence[str], told: str
) -> None:
    """With exit status 2, before anything is read."""
    assert push(spool, *argv) == 2
    assert told in capfd.readouterr().err


def test_the_agents_environment_may_have_more_datatypes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its container, the datatype is the one flag that is needed."""
    spool = Spool(tmp_path / "spool", DATATYPE, "bar1")
    schema_file = tmp_path / "bar1.json"
    schema_file.write_text(json.dumps(SCHEMA))
    for name, value in (
        ("EXPERIMENT", EXPERIMENT),
        ("DATATYPE", f"{DATATYPE},bar1"),
        ("DATATYPE_SCHEMA_FILE", f"bar1:{schema_file}"),
        ("INDEX_FIELD", f"bar1:Start=StartTime\n{DATATYPE}:Start=StartTime"),
        ("LOCAL_DATA_DIR", str(spool.root)),
    ):
        monkeypatch.setenv(name, value)
    file = written(tmp_path / "a.json", b'{"StartTime":"2026-01-02T00:00:00Z"}')
    assert main(["push", file]) == 2
    assert main(["push", "-datatype", DATATYPE, file]) == 0
    assert spool.left() == [f"{DAY}/a.json"]


def test_the_stored_schema_judges_where_the_bucket_is_known(
    spool: Spool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may have fields that this machine's schema does not have yet, and suffices alone."""
    bucket = url_of(tmp_path / "bucket")
    spool.schema_file(DATATYPE).write_text(
        json.dumps([*SCHEMA, {"name": "New", "type": "STRING", "description": "x"}])
    )
    assert once(spool, bucket).returncode == 0  # stores the table schema
    spool.schema_file(DATATYPE).write_text(json.dumps(SCHEMA))
    file = written(tmp_path / "a.json", b'{"New":"x"}')
    assert push(spool, file) == 1
    assert "unknown-field: New" in capfd.readouterr().err
    assert push(spool, "-gcs-bucket", bucket, file) == 0
    spool.schema_file(DATATYPE).unlink()
    assert push(spool, file) == 1
    assert f"{DATATYPE}.json: cannot be read" in capfd.readouterr().err
    assert push(spool, "-gcs-bucket", bucket, written(tmp_path / "b.json", b'{"New":"y"}')) == 0


def jostler_push(spool: Spool, *argv: str, **more: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
    flags = ["-experiment", EXPERIMENT, "-datatype", DATATYPE, "-local-data-dir", str(spool.root)]
    return subprocess.Popen(
        [sys.executable, "-m", "jostler", "push", *flags, *argv], env=environment(), **more
    )


def test_rows_are_written_as_they_come(spool: Spool) -> None:
    """A row is in the spool while the stream goes on; a bad one goes to standard output."""
    pipe = subprocess.PIPE
    process = jostler_push(
        spool, "-follow", "-day", "2026-01-02", stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(b'{"Rate":1}\n{"Rate":"bad"}\n{"Rate":')
    process.stdin.flush()
    assert process.stdout.readline() == b'{"Rate":"bad"}\n'
    (first,) = spool.left()[:1]
    assert (spool.experiment / DATATYPE / first).read_bytes() == b'{"Rate":1}'
    out, err = process.communicate(b"2}", timeout=100)
    assert process.returncode == 1
    assert (out, b"line 2: wrong-type: Rate" in err) == (b"", True)
    contents = {(spool.experiment / DATATYPE / name).read_bytes() for name in spool.left()}
    assert contents == {b'{"Rate":1}', b'{"Rate":2}'}


def test_now_archives_and_prints_addresses(spool: Spool, tmp_path: Path) -> None:
    """Of these files alone; what else lies in the spool stays for the agent."""
    bucket = url_of(tmp_path / "bucket")
    other = spool.write("other.json", document(1))
    file = written(tmp_path / "r.jsonl", document(2) + b"\n" + document(3) + b"\n")
    argv = ("-now", "-gcs-bucket", bucket, "-node-name", "n1", "-day", "2026-01-02", file)
    process = jostler_push(spool, *argv, stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    addresses = out.decode().splitlines()
    assert [address.partition("#")[2] for address in addresses] == [
        f"{DAY}/r.1.json",
        f"{DAY}/r.2.json",
    ]
    assert main(["cat", "-experiment", EXPERIMENT, "-cache-dir", "-", *addresses]) == 0
    assert sorted(raws(bucket)) == sorted([document(2), document(3)])
    assert (spool.left(), spool.journal()) == ([f"{DAY}/other.json"], [])
    assert other.exists()


@pytest.mark.parametrize("flag", ["-now", "-wait"])
def test_a_running_agent_is_told_of_and_waited_for(spool: Spool, tmp_path: Path, flag: str) -> None:
    """With `-now`, too: two agents never work on one state directory."""
    bucket = url_of(tmp_path / "bucket")
    argv = arguments(spool, bucket, "-bundle-age-max", "1s")
    with RunningAgent(*argv) as agent:
        agent.wait_for("agent.started")
        file = written(tmp_path / "a.json", document(1))
        push_flags = (flag, "-gcs-bucket", bucket, "-node-name", "node1", "-day", "2026-01-02")
        process = jostler_push(
            spool, *push_flags, file, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"process {agent.pid}".encode() in err
    assert out.decode().endswith(f"-data.jsonl.gz#{DAY}/a.json\n")
    assert raws(bucket) == [document(1)]
