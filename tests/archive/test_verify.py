"""`jostler verify`: what it finds, what it looks at, and what it does not mistake for success."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.verify import verify
from jostler.cli.main import main
from jostler.format.names import BundleName, Kind
from jostler.storage import Storage, open_storage
from tests.support.agent import once
from tests.support.bucket import rows, url_of
from tests.support.golden import go, go_bundle
from tests.support.spool import Spool, document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GO_DATA = (
    "autoload/v1/exp/foo1/2026/01/02/20260102T030405.000001Z-foo1-mlab1-lga01-exp-data.jsonl.gz"
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with a good and a rejected file of two datatypes and two days."""
    root = tmp_path_factory.mktemp("archive")
    spool = Spool(root / "spool", "foo1", "bar1")
    spool.write_many(3)
    spool.write("other.json", document(7), day="2026/01/03")
    spool.write("bar.json", document(8), datatype="bar1")
    spool.write("bad.json", b'{"UUID":{}}', keep=False)
    done = once(spool, url_of(root / "bucket"))
    assert done.returncode == 0, done.stderr
    return root / "bucket"


@pytest.fixture
def bucket(archive: Path) -> Storage:
    return open_storage(url_of(archive))


@pytest.mark.parametrize(
    ("prefix", "rows"),
    [
        ("", {"foo1": 4, "bar1": 1, "rejected1": 1}),
        ("autoload/v1/exp/", {"foo1": 4, "bar1": 1, "rejected1": 1}),
        ("autoload/v1/exp/foo1/2026/01/02", {"foo1": 3}),
        ("autoload/v1/exp/foo1/2026/01/02/", {"foo1": 3}),
        ("autoload/v1/exp/foo1", {"foo1": 4}),
        ("autoload/v1/exp/fo", {"foo1": 4}),
        ("autoload/v1/exp/index1/2026/01/03/", {"foo1": 1}),
        ("autoload/v1/exp/index1", {"foo1": 4, "bar1": 1, "rejected1": 1}),
    ],
)
def test_both_halves_of_a_bundle_are_found_whichever_folder_is_named(
    bucket: Storage, prefix: str, rows: dict[str, int]
) -> None:
    """As the runbook names it: the folder of a datatype's day."""
    report = verify(bucket, prefix)
    assert report.problems == []
    assert report.rows == rows


def test_one_object_can_be_named(bucket: Storage) -> None:
    """By its own name, data or index."""
    for info in bucket.list("autoload/v1/exp/"):
        report = verify(bucket, info.name)
        assert (report.problems, report.bundles) == ([], 1)


def test_a_half_that_is_missing_is_told_whichever_folder_is_named(bucket: Storage) -> None:
    """Data without index, index without data."""
    (data,) = (info.name for info in bucket.list("autoload/v1/exp/foo1/2026/01/03/"))
    index = str(replace(BundleName.parse(data), kind=Kind.INDEX))
    with without(bucket, index):
        for prefix in ("autoload/v1/exp/foo1/2026/01/03", "autoload/v1/exp", ""):
            assert verify(bucket, prefix).problems == [f"{data}: has no index bundle"]
    with without(bucket, data):
        for prefix in ("autoload/v1/exp/foo1/2026/01/03", "autoload/v1/exp/index1/2026/01/03", ""):
            assert verify(bucket, prefix).problems == [
                f"{index}: there is no data bundle for this index"
            ]


@contextmanager
def without(bucket: Storage, name: str) -> Iterator[None]:
    """Take an object away for a while."""
    data, metadata = bucket.read(name).data, bucket.metadata(name)
    bucket.remove(name)
    yield
    bucket.put_new(name, data, metadata)


def test_bundles_of_the_go_agent_are_checked_by_what_they_have(tmp_path: Path) -> None:
    """No problem in those it writes; a row too few, or another size, is one."""
    bucket = open_storage(url_of(tmp_path))
    name = BundleName.parse(GO_DATA)
    index = str(replace(name, kind=Kind.INDEX))
    data = go("data.jsonl").replace(b"gs://archive", bucket.url.encode())
    sizes = (len(line) for line in data.split(b"\n"))
    lines = [
        json.loads(line) | {"Size": size} for line, size in zip(go_index(), sizes, strict=True)
    ]
    bucket.put_new(GO_DATA, gzip.compress(data), {})
    bucket.put_new(index, packed(lines), {})

    report = verify(bucket, "")
    assert report.problems == []
    assert (report.bundles, report.of_go, report.rows["foo1"]) == (1, 1, 3)
    assert ("foo1", "2026/01/02/m1.json") in report.files

    bucket.remove(index)
    bucket.put_new(index, packed([lines[0] | {"Size": 1}, *lines[1:]]), {})
    assert verify(bucket, "").problems == [
        f"{GO_DATA}: line 1: index has Size 1, expected {lines[0]['Size']}"
    ]
    bucket.remove(index)
    bucket.put_new(index, packed(lines[1:]), {})
    assert verify(bucket, "").problems == [f"{GO_DATA}: 3 rows, but 2 in its index"]


def go_index() -> list[bytes]:
    return go("index1.jsonl").split(b"\n")


def packed(lines: list[dict[str, object]]) -> bytes:
    plain = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    return gzip.compress(plain.encode())


def test_a_bundle_of_a_datatype_with_dashes_is_paired_with_its_index(tmp_path: Path) -> None:
    """The Go agent takes such names."""
    bucket = open_storage(url_of(tmp_path))
    data = GO_DATA.replace("foo1", "foo-bar-1")
    index = data.replace("/foo-bar-1/", "/index1/").replace("-data.", "-index1.")
    bucket.put_new(data, go_bundle("data.jsonl"), {})
    bucket.put_new(index, go_bundle("index1.jsonl"), {})
    for prefix in ("", "autoload/v1/exp/foo-bar-1/2026/01/02", "autoload/v1/exp/index1/2026"):
        report = verify(bucket, prefix)
        assert report.bundles == 1
        told = [problem.split(": ", 2)[2] for problem in report.problems]
        assert all(problem.startswith("ArchiveURL") for problem in told)


def test_numbers_and_nesting_of_any_size_are_no_problem(tmp_path: Path) -> None:
    """`raw` is compared as bytes."""
    spool = Spool(tmp_path / "spool")
    spool.write("long.json", b'{"n":%b}' % (b"7" * 5000))
    spool.write("deep.json", b'{"n":%b1%b}' % (b"[" * 450, b"]" * 450))
    url = url_of(tmp_path / "bucket")
    assert once(spool, url, "-validate", "json").returncode == 0
    report = verify(open_storage(url), "", spool.originals)
    assert report.problems == []
    assert (report.rows["foo1"], report.originals) == (2, 2)


@pytest.fixture(scope="module")
def lines_archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A bucket with files of several lines, whose index has more than the defaults; originals."""
    root = tmp_path_factory.mktemp("lines")
    spool = Spool(root / "spool")
    pretty = json.dumps(json.loads(document(1)), indent=1).encode()
    spool.write("lf.json", pretty + b"\n")
    spool.write("crlf.json", b"\xef\xbb\xbf" + pretty.replace(b"\n", b"\r\n"))
    spool.write("line.json", document(2))
    spool.write("bad.json", b'{"UUID":{\n}}', keep=False)
    url = url_of(root / "bucket")
    done = once(spool, url, "-index-field", "foo1:End=StartTime", "-index-field", "foo1:WorkID=U")
    assert done.returncode == 0, done.stderr
    assert spool.left() == []
    assert '"index_nulls":3' in done.stdout
    return url, spool.originals


def test_the_hash_is_that_of_raw_whatever_the_lines_of_the_file(
    lines_archive: tuple[str, Path],
) -> None:
    """Of a rejected file that of Content."""
    url, originals = lines_archive
    bucket = open_storage(url)
    report = verify(bucket, "", originals)
    assert (report.problems, report.originals) == ([], 3)
    raws = {row["raw"]["Filename"][11:]: row["raw"] for row in rows(bucket, "index1")}
    assert raws["lf.json"]["Hash"] == raws["crlf.json"]["Hash"]
    assert raws["bad.json"]["Hash"] == blake2b(b'{"UUID":{\n}}', digest_size=16).hexdigest()
    assert raws["line.json"]["End"].startswith("2026-01-02T03:04:05.")
    assert all(raw["Start"] and raw["WorkID"] is None for raw in raws.values())


def test_a_hash_that_is_not_its_rows_is_reported(lines_archive: tuple[str, Path]) -> None:
    """An index of an earlier version has the hash of the files, as far as that can be known."""
    bucket = open_storage(lines_archive[0])
    change_index(bucket, lambda raw: raw | {"Hash": "0" * 32})
    told = [problem.split(": ", 2)[2] for problem in verify(bucket, "").problems]
    assert (
        sorted(told)
        == ["Hash " + "0" * 32 + " is not Content's"]
        + ["Hash " + "0" * 32 + " is not that of its bytes"] * 3
    )

    hashes = {
        path.name: blake2b(path.read_bytes(), digest_size=16).hexdigest()
        for path in lines_archive[1].rglob("*.json")
    }

    def old(raw: dict[str, Any]) -> dict[str, Any]:
        kept = {key: raw[key] for key in raw if key not in {"Start", "End", "WorkID"}}
        known = hashes.get(raw["Filename"][11:])
        return kept | ({"Hash": known} if known else {"Hash": ""})

    change_index(bucket, old)
    assert verify(bucket, "", lines_archive[1]).problems == []


def change_index(bucket: Storage, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Write each index anew, its `raw` changed."""
    for info in list(bucket.list("autoload/v1/exp/index1/")):
        lines = gzip.decompress(bucket.read(info.name).data).splitlines()
        made = [json.loads(line) for line in lines]
        bucket.remove(info.name)
        plain = "".join(json.dumps(row | {"raw": change(row["raw"])}) + "\n" for row in made)
        bucket.put_new(info.name, gzip.compress(plain.encode()), {})


@pytest.mark.parametrize("prefix", ["autoload/v1/exq", "autoload/v1/exp/foo2/", "tables"])
def test_nothing_found_is_no_success(
    archive: Path, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told with what was looked for, unless an empty archive is expected."""
    assert main(["verify", url_of(archive), prefix]) == 1
    told = capsys.readouterr()
    assert "has no bundle" in told.err
    assert prefix in told.err
    assert main(["verify", url_of(archive), prefix, "-allow-empty"]) == 0


def test_a_bucket_that_is_not_there_and_originals_that_are_none(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a directory that does not exist nor an empty one proves anything."""
    assert main(["verify", url_of(tmp_path / "none")]) == 1
    assert main(["verify", url_of(archive), "-originals", str(tmp_path / "none")]) == 2
    assert "is not a directory" in capsys.readouterr().err
    assert main(["verify", url_of(archive), f"--originals={tmp_path}"]) == 1
    assert "has no file to compare with" in capsys.readouterr().err


def test_its_flags_are_those_of_every_command(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help is no wrong use; each mistake is told."""
    assert main(["verify", "--help"]) == 0
    assert "-originals" in capsys.readouterr().out
    assert main(["verify", url_of(archive), "a", "b", "-nonsense"]) == 2
    told = capsys.readouterr().err
    assert "b: unexpected argument" in told
    assert "-nonsense: no such flag" in told
    assert main(["verify"]) == 2
    assert "name a bucket" in capsys.readouterr().err


def test_a_bundle_names_the_schema_it_was_judged_by_and_the_bucket_keeps_it(
    tmp_path: Path, archive: Path
) -> None:
    """Not with -validate json, which judges by none."""
    bucket = open_storage(url_of(archive))
    listed = bucket.list("autoload/v1/exp/", metadata=True)
    data = [info for info in listed if "-data." in info.name]
    for datatype in ("foo1", "bar1", "rejected1"):
        digests = {one.metadata["schema"] for one in data if f"/{datatype}/" in one.name}
        folder = f"autoload/v1/schemas/exp/{datatype}/"
        (kept,) = bucket.list(folder)
        assert {kept.name} == {f"{folder}{digest}.json" for digest in digests}
        content = bucket.read(kept.name).data
        assert content == bucket.read(f"autoload/v1/tables/exp/{datatype}.table.json").data
        assert digests == {blake2b(content, digest_size=16).hexdigest()}

    spool = Spool(tmp_path / "spool")
    spool.write_many(1)
    assert once(spool, url_of(tmp_path / "bucket"), "-validate", "json").returncode == 0
    other = open_storage(url_of(tmp_path / "bucket"))
    assert list(other.list("autoload/v1/schemas/")) == []
    (one,) = other.list("autoload/v1/exp/foo1/", metadata=True)
    assert "schema" not in one.metadata
    assert one.metadata["rows"] == "1"
