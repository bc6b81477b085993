"""The commands that read an archive, over what a real agent stored."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.hashes import digest
from jostler.archive.retrieve import alone
from jostler.cli.main import main
from jostler.format.row import one_line
from jostler.storage import open_storage
from tests.support.agent import environment, once
from tests.support.bucket import url_of
from tests.support.golden import go_bundle
from tests.support.spool import Spool, document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.archive.catalogue import File, Query, Tally

PRETTY = b'{\n  "UUID": "p",\n  "Rate": 1E2\n}\n'
CRLF = b'{"UUID":"c",\r\n"Rate":93.20}\r\n'
BOM = b'\xef\xbb\xbf{"UUID":"b"}'
YEARS = "-lookback=1000000h"
Run = Callable[..., "Ran"]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    status: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with two datatypes, two days, a rejected file, and a repeat by another agent."""
    root = tmp_path_factory.mktemp("stored")
    spool = Spool(root / "spool", "foo1", "bar1")
    spool.write_many(20)
    spool.write("pretty.json", PRETTY)
    spool.write("crlf.json", CRLF)
    spool.write("bom.json", BOM, datatype="bar1")
    spool.write("other.json", document(7), day="2026/01/03")
    spool.write("bad.json", b'{"UUID":{}}', keep=False)
    for number, path in enumerate(sorted(spool.experiment.rglob("*.json"))):
        noon = datetime(2026, 1, int(path.parent.name), 12, tzinfo=UTC).timestamp()
        os.utime(path, (noon + number, noon + number))
    done = once(spool, url_of(root / "bucket"))
    assert done.returncode == 0, done.stderr
    again = Spool(root / "again", "foo1")
    for name, number in (("m0.json", 0), ("m1.json", 99)):
        path = again.write(name, document(number))
        os.utime(path, (noon - 86400, noon - 86400))
    done = once(again, url_of(root / "bucket"))
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def bucket(stored: Path, tmp_path: Path) -> Path:
    """A copy of that bucket, to be changed."""
    return shutil.copytree(stored / "bucket", tmp_path / "bucket")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: Path) -> Path:
    """A home of the test's own, and the archive in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GCS_BUCKET", "DATATYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BUCKET", url_of(stored / "bucket"))
    monkeypatch.setenv("EXPERIMENT", "exp")
    return tmp_path / "home"


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Return a function that runs a command in this process."""

    def ran(*argv: str, stdin: str = "") -> Ran:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO(stdin))
            status = main(list(argv))
        captured = capsysbinary.readouterr()
        return Ran(status, captured.out, captured.err.decode())

    return ran


def addresses(run: Run, *argv: str) -> dict[str, str]:
    """Return the address of each file by its own name."""
    found = run("list", *argv, "-format", "jsonl").rows
    return {row["Filename"].rpartition("/")[2]: row["Address"] for row in found}


def test_files_are_listed_for_people_and_for_programs(run: Run) -> None:
    """The same files, each once, in the same order."""
    table = run("list")
    assert table.status == 0
    assert table.lines[0].split() == ["BEGIN", "AGE", "SIZE", "DATATYPE", "NODE", "FILENAME"]
    names = [line.split()[-1] for line in table.lines[1:]]
    assert len(names) == 25
    assert len([name for name in names if name.endswith("/m0.json")]) == 1

    rows = run("list", "-format", "jsonl").rows
    assert [row["Filename"] for row in rows] == names
    assert json.loads(run("list", "-format", "json").out) == rows
    read = list(csv.DictReader(io.StringIO(run("list", "-format", "csv").out.decode())))
    assert [row["Hash"] for row in read] == [row["Hash"] for row in rows]
    assert run("list", "-format", "url").lines == [row["Address"] for row in rows]
    assert json.loads(run("list", "-name", "none", "-format", "json").out) == []


def test_a_listing_can_be_narrowed(run: Run) -> None:
    """By datatype, day, name and number."""

    def names(*argv: str) -> list[str]:
        return [row["Filename"] for row in run("list", *argv, "-format", "jsonl").rows]

    assert names("bar1") == ["2026/01/02/bom.json"]
    assert names("rejected1") == ["2026/01/02/bad.json"]
    assert len(names("bar1,rejected1")) == 2
    assert names("-datatype", "bar1,rejected1", "bar1") == ["2026/01/02/bom.json"]
    assert names("-first-day", "2026-01-03") == ["2026/01/03/other.json"]
    assert names("-newest-first", "-limit", "1") == ["2026/01/03/other.json"]
    assert sorted(names("-name", "*r*.json", "foo1")) == [
        "2026/01/02/crlf.json",
        "2026/01/02/pretty.json",
        "2026/01/03/other.json",
    ]
    assert len(names("-start", "2026-01-03T00:00:00Z")) == 1
    assert len(names("-start", "2026-01-02", "-end", "2026-01-02")) == 24


def test_days_and_bundles_are_listed(run: Run) -> None:
    """A day has its rejected files, by the datatype that they should have been."""
    days = run("list", "-days", "-format", "jsonl").rows
    assert [(day["Day"], day["Datatype"], day["Files"], day["Rejected"]) for day in days] == [
        ("2026-01-02", "bar1", 1, 0),
        ("2026-01-02", "foo1", 24, 1),
        ("2026-01-03", "foo1", 1, 0),
    ]
    assert run("list", "-days").lines[0].split()[:2] == ["DAY", "DATATYPE"]
    bundles = run("list", "-bundles", "-format", "jsonl").rows
    assert sum(bundle["Files"] for bundle in bundles) == 26
    stored = {url.partition("#")[0] for url in run("list", "-format", "url").lines}
    assert {bundle["ArchiveURL"] for bundle in bundles} >= stored
    for bundle in bundles:
        assert bundle["Packed"] == len(_object(bundle["ArchiveURL"]))


def _object(url: str) -> bytes:
    bucket, _, name = url.partition("/autoload/")
    return open_storage(bucket).read(f"autoload/{name}").data


def test_the_latest_file_of_a_node_is_shown(run: Run) -> None:
    """That with the greatest Start; with no file there is no success."""
    found = run("latest", "foo1", YEARS, "-format", "jsonl")
    listed = run("list", "foo1", "-format", "jsonl").rows
    assert found.status == 0
    assert [row["Start"] for row in found.rows] == [max(row["Start"] for row in listed)]
    assert run("latest", "foo1", "node1", YEARS).status == 0
    assert run("latest", "foo1", "node2", YEARS).status == 1
    assert "required" in run("latest").err


@pytest.mark.parametrize(
    ("name", "content"), [("pretty.json", PRETTY), ("crlf.json", CRLF), ("bom.json", BOM)]
)
def test_cat_writes_what_is_stored(run: Run, name: str, content: bytes) -> None:
    """Byte for byte, and found by address, Filename, own name or Hash."""
    address = addresses(run)[name]
    raw = one_line(content)
    for text in (address, f"2026/01/02/{name}", name, digest(raw)):
        found = run("cat", text, YEARS)
        assert (found.status, found.out, found.err) == (0, raw, "")
    for bounds in (("-start", "2026-01-01"), ("-first-day", "2026-01-02")):
        assert run("cat", name, *bounds).out == raw, "-lookback is for searches without a range"
    assert run("cat", "-", stdin=f"{address}\n\n{address}\n").out == raw + b"\n" + raw + b"\n"


def test_many_addresses_are_searched_together(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is that of one command each, in the order of the addresses; so are the errors."""
    rows = run("list", "-format", "jsonl").rows
    texts = [row["Hash"] for row in rows[::2]] + [row["Address"] for row in rows[1::4]]
    texts += [row["Filename"].rpartition("/")[2] for row in rows[::3]]
    texts += ["none.json", "m1.json", "2026/01/02/none.json", "0" * 32]
    texts = sorted(texts, key=digest_of_text)
    alone = [run("cat", text, YEARS) for text in texts]

    searches: list[Query] = []
    files = BucketCatalogue.files

    def seen(self: BucketCatalogue, query: Query, tally: Tally | None = None) -> Iterator[File]:
        searches.append(query)
        return files(self, query, tally)

    monkeypatch.setattr(BucketCatalogue, "files", seen)
    together = run("cat", "-", YEARS, stdin="\n".join(texts))
    assert together.out == b"".join(one.out + b"\n" for one in alone if one.status == 0)
    assert together.err == "".join(one.err for one in alone)
    assert together.status == 1
    assert len([query for query in searches if not query.bundle]) == 1
    searches.clear()
    done = run("fetch", "-", "-dir", str(tmp_path), YEARS, stdin="\n".join(texts))
    assert len([query for query in searches if not query.bundle]) == 1
    assert {path.read_bytes() for path in tmp_path.glob("*.json")} == {
        one.out for one in alone if one.status == 0
    }
    assert done.status == 1


def digest_of_text(text: str) -> str:
    """Return a key that shuffles texts, always alike."""
    return digest(text.encode())


def test_a_rejected_file_can_be_read(run: Run) -> None:
    """Its row has reason and bytes; the Hash is that of the bytes."""
    found = run("cat", "bad.json", "-datatype", "rejected1", YEARS)
    assert json.loads(found.out)["Reason"] == "wrong-type"
    assert found.err == ""


def test_what_an_address_does_not_name_is_reported(run: Run) -> None:
    """The others are written all the same."""
    raw = one_line(PRETTY)
    found = run("cat", "none.json", "pretty.json", YEARS)
    assert (found.status, found.out) == (1, raw + b"\n")
    assert "'none.json': no such file in the folders from 19" in found.err
    assert "(-lookback" in found.err
    for argv, where in (
        (["-first-day", "2026-01-02"], "from 2026-01-02 on"),
        (["-last-day", "2026-01-02"], "up to 2026-01-02"),
        (["-start", "2026-01-02", "-end", "2026-01-02"], "from 2026-01-01 to 2026-01-03"),
    ):
        told = run("cat", "none.json", *argv).err
        assert told == f"jostler cat: 'none.json': no such file in the folders {where}\n"
    address = addresses(run)["m5.json"].replace("m5.", "m55.")
    assert "no such file in this bundle, nor in one that" in run("cat", address).err
    other = run("cat", "2026/01/02/m5.json", "-start", "2026-02-02")
    assert "in the days that were asked for: it names another one" in other.err
    twice = run("cat", "m1.json", YEARS)
    assert twice.status == 1
    assert twice.err.count("-data.jsonl.gz#2026/01/02/m1.json") == 2
    assert run("cat").status == 2
    assert run("cat", "gs://b/autoload/v1/e/d/x-data.jsonl.gz").status == 2


@pytest.mark.parametrize("old", [False, True], ids=["hash-of-raw", "hash-of-file"])
def test_a_flipped_bit_is_reported_and_not_delivered(run: Run, bucket: Path, *, old: bool) -> None:
    """Wherever it is: in text, in numbers, in the compressed stream."""
    address = addresses(run, "-bucket", url_of(bucket))["m5.json"]
    url, _, filename = address.partition("#")
    data = bucket.parent / url.partition(f"{bucket.parent.as_uri()}/")[2]
    plain = gzip.decompress(data.read_bytes())
    at = plain.index(b"u-5-")
    changed = plain[:at] + b"v" + plain[at + 1 :]
    (index,) = (p for p in bucket.rglob("*-index1.jsonl.gz") if data.name[:38] in p.name)
    rows = [json.loads(line) for line in gzip.decompress(index.read_bytes()).splitlines()]
    packed = gzip.compress(changed, mtime=0)
    for row in rows:
        row["raw"] |= {"Offset": 10, "Length": len(packed) - 18}
        if old:
            for name in ("Start", "End", "WorkID"):
                del row["raw"][name]
    data.write_bytes(packed)
    index.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))

    found = run("cat", address)
    assert (found.status, found.out) == (1, b"")
    told = next(row["raw"] for row in rows if row["raw"]["Filename"] == filename)
    raw = plain[plain.index(b'"raw":', at - 40) + 6 :].split(b"\n")[0][:-1]
    changed_hash = digest(raw.replace(b"u-5-", b"v-5-", 1))
    for part in (url, f"line {told['Line']} ", told["Hash"], changed_hash):
        assert part in found.err
    assert run("cat", address.replace("m5.json", "m6.json")).out.startswith(b'{"UUID":"u-6-')

    data.write_bytes(packed[:40] + bytes([packed[40] ^ 1]) + packed[41:])
    found = run("cat", address)
    assert (found.status, found.out) == (1, b"")


def test_rows_of_older_agents_are_verified_where_that_can_be(run: Run, bucket: Path) -> None:
    """Their Hash is that of the file with its line breaks; what cannot be compared is told."""
    for index in bucket.rglob("*-index1.jsonl.gz"):
        rows = [json.loads(line) for line in gzip.decompress(index.read_bytes()).splitlines()]
        for row in rows:
            raw = row["raw"]
            for name in ("Start", "End", "WorkID"):
                del raw[name]
            for name, content in (("pretty", PRETTY), ("crlf", CRLF), ("bom", BOM)):
                if raw["Filename"].endswith(f"{name}.json"):
                    raw["Hash"] = digest(content)
        index.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    found = addresses(run, "-bucket", url_of(bucket))
    for name, content in (("bom.json", BOM), ("pretty.json", PRETTY), ("crlf.json", CRLF)):
        got = run("cat", found[name])
        assert (got.status, got.out) == (0, one_line(content))
        assert ("not verified" in got.err) == (name != "bom.json")


def test_files_are_fetched_by_their_names_or_by_a_template(
    run: Run, tmp_path: Path, stored: Path
) -> None:
    """Their modification time is Start; a second time nothing is written."""
    urls = "\n".join(run("list", "foo1", "-name", "m?.json", "-format", "url").lines)
    done = run("fetch", "-", "-dir", str(tmp_path / "a"), stdin=urls)
    assert done.status == 1, "two files are called m1.json"
    assert "m1.json is there already and has other content" in done.err
    saved = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert saved == [f"m{number}.json" for number in range(10)]
    for number in range(2, 10):
        path = tmp_path / "a" / f"m{number}.json"
        assert path.read_bytes() == document(number)
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        (row,) = run("list", "-name", path.name, "-format", "jsonl").rows
        told = datetime.fromisoformat(row["Start"])
        assert path.stat().st_mtime_ns == round(told.timestamp() * 1e6) * 1000, when

    template = "{Datatype}/{Node}/{Hash}-{Name}"
    args = ("-", "-dir", str(tmp_path / "b"), "-template", template)
    assert run("fetch", *args, stdin=urls).status == 0
    assert len(list((tmp_path / "b/foo1/node1").iterdir())) == 11
    assert "0 files saved, 11 already there" in run("fetch", *args, stdin=urls).err
    assert run("fetch", "x.json", "-template", "{Nme}").status == 2


def test_fetch_overwrites_nothing_that_appears_meanwhile(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs may write into the directory, another fetch among them."""
    urls = [addresses(run, "foo1")[name] for name in ("m2.json", "m3.json")]
    theirs = tmp_path / "m3.json"
    real: Callable[..., None] = os.utime

    def utime(*args: object, **times: object) -> None:
        theirs.write_bytes(b"theirs")
        real(*args, **times)

    monkeypatch.setattr("os.utime", utime)
    done = run("fetch", *urls, "-dir", str(tmp_path))
    assert (done.status, "1 file saved" in done.err) == (1, True)
    assert f"{theirs} is there already and has other content" in done.err
    assert theirs.read_bytes() == b"theirs"
    assert (tmp_path / "m2.json").read_bytes() == document(2)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_ends_fetch_and_retrieve(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """They do not read on what has no room; run again, retrieve goes on."""
    urls = "\n".join(run("list", "foo1", "-format", "url").lines)
    span = ("-first-day", "2026-01-01", "-last-day", "2026-12-31")
    for more, unit in (([], "2 files"), (["-keep-packed"], "2 bundles")):
        to = tmp_path / unit
        with monkeypatch.context() as patch:
            patch.setattr("os.utime", _refused_after(2, number))
            done = run("retrieve", *span, *more, str(to))
        assert done.status == 1
        assert f"{unit} written" in done.err
        assert done.err.count(os.strerror(number)) == 1
        assert "stopped, not all is there" in done.err
        assert len([path for path in to.rglob("*") if path.is_file()]) == 2
        again = run("retrieve", *span, *more, str(to))
        assert (again.status, "2 already there" in again.err) == (0, True)

    with monkeypatch.context() as patch:
        patch.setattr("os.utime", _refused_after(2, number))
        done = run("fetch", "-", "-dir", str(tmp_path / "fetched"), stdin=urls)
    assert (done.status, done.err.count(os.strerror(number))) == (1, 1)
    assert "2 files saved" in done.err
    assert "stopped: the files that follow were not tried" in done.err


def _refused_after(count: int, number: int) -> Callable[..., None]:
    real: Callable[..., None] = os.utime
    calls = iter(range(count))

    def utime(*args: object, **times: object) -> None:
        if next(calls, None) is None:
            raise OSError(number, os.strerror(number))
        real(*args, **times)

    return utime


def test_a_file_is_no_directory_to_save_to(run: Run, tmp_path: Path) -> None:
    """The message says which one."""
    path = tmp_path / "a"
    path.write_bytes(b"")
    span = ("-first-day", "2026-01-01", "-last-day", "2026-12-31")
    address = addresses(run)["m5.json"]
    for argv in (("retrieve", *span, str(path)), ("fetch", address, "-dir", str(path))):
        done = run(*argv)
        assert (done.status, f"{path} is no directory" in done.err) == (1, True), done.err


def test_what_finds_nothing_says_so(run: Run, tmp_path: Path) -> None:
    """On standard error; programs get no row, and CSV has its header all the same."""
    found = run("list", "-name", "none", "-format", "csv")
    assert (found.status, found.err) == (0, "jostler list: nothing matches of 26 files\n")
    assert found.lines == [run("list", "-format", "csv").lines[0]]
    for what in ("-bundles", "-days"):
        found = run("list", what, "-node", "none", "-format", "csv")
        assert (found.status, len(found.lines)) == (0, 1)
        assert found.lines == [run("list", what, "-format", "csv").lines[0]]
        assert "nothing matches" in found.err
    span = ("-start", "2026-01-01T00:00:00Z", "-end", "2026-01-01T01:00:00Z")
    found = run("retrieve", *span, str(tmp_path / "to"))
    assert found.status == 0
    assert "nothing matches of 25 files in the folders of these days; -first-day" in found.err


@pytest.mark.parametrize("argv", [["list"], ["list", "-format", "json"], ["cat"], ["latest"]])
def test_results_that_cannot_be_written_are_an_error(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    argv: list[str],
) -> None:
    """With the reason; only a reader that has seen enough needs none."""
    words = {"cat": [addresses(run)["m5.json"]], "latest": ["foo1", YEARS]}.get(argv[0], [])
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:  # noqa: PTH123
        patch.setattr("sys.stdout", full)
        assert main([*argv, *words]) == 1
    err = capsysbinary.readouterr().err.decode()
    assert err == f"jostler {argv[0]}: standard output: No space left on device\n"

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", pipe)
        assert main([*argv, *words]) == 1
    assert capsysbinary.readouterr().err == b""


def test_retrieve_copies_all_and_goes_on_where_it_stopped(
    run: Run, tmp_path: Path, stored: Path, bucket: Path
) -> None:
    """Two files of one name both arrive; what is there is not read again."""
    to = tmp_path / "to"
    span = ("-first-day", "2026-01-01", "-last-day", "2026-12-31", "-bucket", url_of(bucket))
    done = run("retrieve", *span, str(to))
    assert done.status == 0, done.err
    assert "25 files written" in done.err
    assert "1 under another name" in done.err
    assert "1 repeat left out" in done.err
    originals = stored / "spool.originals"
    for path in originals.rglob("*.json"):
        copy = to / path.relative_to(originals)
        assert copy.read_bytes() == one_line(path.read_bytes())
    starts = {
        row["Filename"]: datetime.fromisoformat(row["Start"])
        for row in run("list", "bar1", "-format", "jsonl").rows
    }
    for filename, start in starts.items():
        mtime_ns = (to / "bar1" / filename).stat().st_mtime_ns
        assert mtime_ns == round(start.timestamp() * 1e6) * 1000
    (other,) = (to / "foo1/2026/01/02").glob("m1~*.json")
    assert other.read_bytes() == document(99)
    assert other.name == f"m1~{digest(document(99))[:8]}.json"

    (to / "foo1/2026/01/02/m3.json").unlink()
    (to / "foo1/2026/01/02/.jostler-0.part").write_bytes(b"half" * 999)
    for data in bucket.rglob("*-data.jsonl.gz"):  # what is there must not be asked for again
        if "/foo1/2026/01/02/" not in str(data):
            data.unlink()
    done = run("retrieve", *span, str(to))
    assert (done.status, "1 file written" in done.err, "24 already there" in done.err) == (
        *(0, True, True),
    ), done.err

    mine = to / "foo1/2026/01/02/m4.json"
    mine.write_bytes(b"changed")  # is not overwritten, and not taken for what is stored
    done = run("retrieve", *span, str(to))
    assert "1 under another name" in done.err
    assert mine.read_bytes() == b"changed"
    stored_beside = mine.with_name(f"m4~{digest(document(4))[:8]}.json")
    assert stored_beside.read_bytes() == document(4)

    flat = tmp_path / "flat"
    done = run("retrieve", *span, "-flatten-days", "-flatten-datatypes", "foo1", str(flat))
    assert done.status == 2, "one directory alone"
    done = run(
        *("retrieve", *span, "-flatten-days", "-flatten-datatypes"),
        *("-datatype", "foo1", "-name", "m*.json", str(flat)),
    )
    assert {path.name for path in flat.iterdir()} >= {f"m{n}.json" for n in range(20)}

    for data in bucket.rglob("*-data.jsonl.gz"):
        data.unlink()
    done = run("retrieve", *span, str(to))
    assert (done.status, "25 already there" in done.err) == (0, True), "under either name"


def test_retrieve_keeps_bundles_packed(run: Run, tmp_path: Path, stored: Path) -> None:
    """As they are; a damaged one is reported."""
    span = ("-start", "2026-01-01", "-end", "2099-12-31", "-keep-packed")
    done = run("retrieve", *span, str(tmp_path / "to"))
    assert done.status == 0
    copies = {path.name: path.read_bytes() for path in (tmp_path / "to").rglob("*.gz")}
    names = [p for p in (stored / "bucket").rglob("*-data.jsonl.gz") if "rejected1" not in p.name]
    assert copies == {path.name: path.read_bytes() for path in names}
    for row in run("list", "-bundles", "-format", "jsonl").rows:
        (path,) = (tmp_path / "to").rglob(row["ArchiveURL"].rpartition("/")[2])
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        assert abs(when - datetime.fromisoformat(row["Last"])) < timedelta(microseconds=2)
    assert f"{len(names)} already there" in run("retrieve", *span, str(tmp_path / "to")).err


def test_a_damaged_bundle_is_not_kept_packed(run: Run, tmp_path: Path, bucket: Path) -> None:
    """It is named; the others are copied."""
    (damaged,) = bucket.rglob("*-bar1-*-data.jsonl.gz")
    packed = damaged.read_bytes()
    damaged.write_bytes(packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:])  # of the checksum
    span = ("-start", "2026-01-01", "-end", "2099-12-31", "-bucket", url_of(bucket))
    done = run("retrieve", *span, "-keep-packed", str(tmp_path / "to"))
    assert done.status == 1
    assert f"{damaged.name} does not decompress" in done.err
    copies = {path.name for path in (tmp_path / "to").rglob("*.gz")}
    assert copies
    assert damaged.name not in copies


def test_two_runs_do_not_write_into_one_directory(run: Run, tmp_path: Path) -> None:
    """The second one says so, and ends."""
    span = ("-start", "2026-01-01", "-end", "2099-12-31")
    with alone(tmp_path / "to"):
        done = run("retrieve", *span, str(tmp_path / "to"))
    assert (done.status, "another retrieve writes there" in done.err) == (1, True)
    assert run("retrieve", *span, str(tmp_path / "to")).status == 0


def test_retrieve_reports_what_is_missing_and_copies_the_rest(
    run: Run, tmp_path: Path, bucket: Path
) -> None:
    """With the object's name, and status 1."""
    (gone,) = bucket.rglob("*-bar1-*-data.jsonl.gz")
    gone.unlink()
    span = ("-start", "2026-01-01", "-end", "2099-12-31", "-bucket", url_of(bucket))
    done = run("retrieve", *span, str(tmp_path / "to"))
    assert done.status == 1
    assert f"{gone.name} is not in the bucket, but its index is" in done.err
    assert "24 files written" in done.err
    assert "1 not to be had" in done.err
    packed = run("retrieve", *span, "-keep-packed", str(tmp_path / "packed"))
    assert packed.status == 1


def test_bundles_of_the_go_agent_can_be_read(run: Run, tmp_path: Path) -> None:
    """Without hash, block and Start; the whole object is read."""
    where = ("-bucket", go_archive(tmp_path / "go", "2026/01/02"))
    rows = run("list", *where, "-format", "jsonl").rows
    assert rows[0]["TimeAdded"] == "2026-01-02T03:04:05.000000Z"
    for text in (rows[0]["Address"], "2026/01/02/m1.json"):
        found = run("cat", *where, text)
        lines = gzip.decompress(go_bundle("data.jsonl")).splitlines()
        assert json.loads(found.out) == json.loads(lines[0])["Raw"]
        assert "not verified" in found.err
    fetched = run("fetch", *where, rows[0]["Address"], "-dir", str(tmp_path / "fetched"))
    assert "1 file saved" in fetched.err
    assert "1 without a hash to verify" in fetched.err
    span = ("-start", "2026-01-01", "-end", "2026-01-31")
    done = run("retrieve", *where, *span, str(tmp_path / "to"))
    assert "3 files written" in done.err
    assert "3 without a hash to verify" in done.err
    assert (tmp_path / "to/foo1/2026/01/02/m1.json").exists()
    assert "3 already there" in run("retrieve", *where, *span, str(tmp_path / "to")).err


def go_archive(root: Path, *folders: str) -> str:
    """Store the Go agent's bundle of 2 January 2026 in the folders of days; return the bucket."""
    storage = open_storage(url_of(root))
    for folder in folders:
        stem = f"{folder}/{folder.replace('/', '')}T030405.000001Z-foo1-mlab1-lga01-exp"
        for datatype, kind in (("foo1", "data"), ("index1", "index1")):
            name = f"autoload/v1/exp/{datatype}/{stem}-{kind}.jsonl.gz"
            storage.put_new(name, go_bundle(f"{kind}.jsonl"), {})
    return storage.url


@pytest.mark.parametrize("folders", [["2026/01/03"], ["2026/01/02", "2026/01/03"]])
def test_a_file_is_retrieved_to_the_day_of_its_own_directory(
    run: Run, tmp_path: Path, folders: list[str]
) -> None:
    """The Go agent stores it in the folder of the day of its upload, and a resent one in two."""
    bucket = go_archive(tmp_path / "go", *folders)
    argv = ["retrieve", "-bucket", bucket, "-first-day", "2026-01-01", "-last-day", "2026-01-31"]

    done = run(*argv, str(tmp_path / "to"))

    assert (done.status, "3 files written" in done.err) == (0, True), done.err
    found = {str(p.relative_to(tmp_path / "to")) for p in (tmp_path / "to").rglob("*.json")}
    assert found == {f"foo1/2026/01/02/m{number}.json" for number in (1, 2, 3)}

    packed = run(*argv, "-keep-packed", str(tmp_path / "packed"))
    assert packed.status == 0, packed.err
    bundles = (tmp_path / "packed").rglob("*.jsonl.gz")
    days = sorted(str(p.parent.relative_to(tmp_path / "packed")) for p in bundles)
    assert days == [f"foo1/{folder}" for folder in folders], "a bundle keeps its folder"


def test_a_configuration_file_sets_flags(
    run: Run, home: Path, tmp_path: Path, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment wins over it, the command line over both; unknown keys are errors."""
    monkeypatch.delenv("BUCKET")
    monkeypatch.delenv("EXPERIMENT")
    path = home / ".config/jostler/archive.toml"
    assert "-bucket: required" in run("list").err
    path.parent.mkdir(parents=True)
    url = url_of(stored / "bucket")
    path.write_text(f'gcs-bucket = "{url}"\nexperiment = "exp"\ndatatype = ["bar1", "rejected1"]\n')
    assert len(run("list", "-format", "url").lines) == 2
    monkeypatch.setenv("DATATYPE", "rejected1")
    assert len(run("list", "-format", "url").lines) == 1
    assert len(run("list", "-datatype", "foo1", "-format", "url").lines) == 24
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run("list").status == 2
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))

    for text, problem in (
        ('bucke = "x"', "bucke: there is no such key; did you mean bucket?"),
        ("bucket = 1.5", "bucket: expected a text"),
        ('cache-max = "much"', "cache-max: 'much' is not a size"),
        ("bucket = ", "Invalid value"),
    ):
        path.write_text(text)
        found = run("list")
        assert found.status == 2
        assert str(path) in found.err
        assert problem in found.err
    missing = run("list", "-config", str(tmp_path / "none.toml"))
    assert (missing.status, "there is no file" in missing.err) == (2, True)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["list", "-start", "soon"], "-start: 'soon' is neither a day"),
        (["list", "-start", "2026-01-03", "-end", "2026-01-02"], "ends at"),
        (["list", "-first-day", "today"], "-first-day: 'today' is no day"),
        (["list", "-first-day", "2026-01-03", "-last-day", "2026-01-02"], "is before -first-day"),
        (["list", "-hash", "xyz"], "-hash: 'xyz' is no Hash"),
        (["list", "-bundles", "-days"], "give one of them"),
        (["list", "-days", "-name", "x"], "cannot be told apart"),
        (["list", "-catalogue", "bigquery"], "-project: required"),
        (["list", "-catalogue", "files"], "none of bucket, bigquery"),
        (["list", "-experiment", "a/b"], "not an experiment name"),
        (["retrieve", "to"], "-start and -end"),
        (["retrieve", "-start", "2026-01-01", "-end", "2026-01-02"], "DIR: required"),
    ],
)
def test_wrong_use_is_reported(run: Run, argv: list[str], problem: str) -> None:
    """With status 2."""
    found = run(*argv)
    assert (found.status, problem in found.err) == (2, True), found.err


def test_a_listing_without_all_indexes_is_no_success(run: Run, bucket: Path) -> None:
    """What could not be read is named, the rest is listed."""
    index = next(iter(bucket.rglob("*-bar1-*-index1.jsonl.gz")))
    index.write_bytes(b"no gzip")
    found = run("list", "-bucket", url_of(bucket))
    assert found.status == 1
    assert f"{index.name} is not gzip" in found.err
    assert len(found.lines) == 25


def test_ctrl_c_ends_at_once_and_leaves_no_half_file(tmp_path: Path, stored: Path) -> None:
    """The process dies of the signal; under final names are whole files."""
    program = """
import os, signal, sys
from jostler.archive import saving
from jostler.cli.main import main
real = os.utime
def utime(*args, **times):
    real(*args, **times)
    if len(os.listdir(os.path.dirname(os.readlink(f"/proc/self/fd/{args[0]}")))) > 5:
        signal.raise_signal(signal.SIGINT)
os.utime = utime
main(sys.argv[1:])
"""
    argv = ["retrieve", "-start", "2026-01-01", "-end", "2099-12-31", str(tmp_path / "to")]
    done = subprocess.run(
        [sys.executable, "-c", program, *argv],
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGINT, done.stderr
    left = [path for path in (tmp_path / "to").rglob("*") if path.is_file()]
    assert len(left) == 5
    for path in left:
        original = stored / "spool.originals" / path.relative_to(tmp_path / "to")
        assert path.read_bytes() == one_line(original.read_bytes())


def test_ctrl_c_while_a_command_is_loaded_shows_no_trace() -> None:
    """On a busy machine that takes longer than the command itself."""
    program = """
import signal, sys
from jostler.cli.main import main
class Finder:
    def find_spec(self, name, *_):
        if name == "jostler.archive.reading":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
main(["cat", "a"])
"""
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
