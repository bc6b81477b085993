"""`jostler audit` on archives that are damaged at random, and what random damage has shown."""

from __future__ import annotations

import gzip
import json
import random
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from jostler.archive.audit import proof
from jostler.archive.audit.audit import audit
from jostler.archive.audit.days import Limits
from jostler.archive.audit.mend import Mender
from jostler.archive.audit.printer import Printer
from jostler.archive.audit.problem import Kind
from jostler.archive.audit.remake import index_of as remade
from jostler.archive.audit.scope import Scope, places_of, strays
from jostler.cli.main import main
from jostler.format.compression import Compression, Method
from jostler.format.names import BundleName
from jostler.storage import StoredObject, open_storage
from tests.archive.test_compact import compact_all
from tests.support import damage
from tests.support.bucket import url_of
from tests.support.bundles import bundle
from tests.support.kept import DAY, PLACE, KeptArchive, contents, index_of
from tests.support.memory_bucket import MemoryBucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = Limits(many=0, today=date(2026, 2, 1))
DATA_DIRS = ["autoload/v1", "autoload/v2"]
QUARANTINE = "loader-staging/quarantine/"
SEEDS = 45


class Bucket(MemoryBucket):
    """A bucket that knows when its objects were written."""

    def written(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        return ((name, NOW - timedelta(1)) for name in sorted(self.objects) if name >= prefix)

    @property
    def bytes_of(self) -> dict[str, bytes]:
        return {name: one[0] for name, one in self.objects.items()}

    def swap(self, name: str, data: bytes) -> None:
        self.generation += 1
        told = self.objects[name][2] if name in self.objects else {}
        self.objects[name] = data, str(self.generation), told


@pytest.fixture
def archive() -> KeptArchive:
    return KeptArchive(Bucket())  # type: ignore[arg-type]


def audited(bucket: Any, *, fix: bool = False) -> list[dict[str, Any]]:  # noqa: ANN401 - a fake
    """Audit a bucket, and mend it; return what the lines say, in text and in JSON."""
    told: dict[bool, list[str]] = {True: [], False: []}
    places = places_of(bucket, DATA_DIRS)
    mender = Mender(
        storage=bucket,
        staging=bucket,
        prefix="loader-staging/",
        now=NOW,
        orphans=True,
        settled=timedelta(0),
        fields={},
    )
    for as_json, lines in sorted(told.items()):
        by = mender if fix and as_json else None
        printer = Printer(
            bucket.url, Scope(), lines.append, as_json=as_json, mender=by, tables=None
        )
        printer.strays(strays(bucket, DATA_DIRS, places))
        for day in audit(bucket, places, Scope(), LIMITS):
            printer.day(day)
        printer.end(NOW)
    assert all(line.isprintable() for lines in told.values() for line in lines)
    return [json.loads(line) for line in told[True]][:-1]


def made_at_random(rng: random.Random) -> Bucket:
    """Return an archive of bundles of all kinds."""
    bucket = Bucket()
    archive = KeptArchive(bucket)  # type: ignore[arg-type]
    first = 0
    for _ in range(rng.randrange(1, 5)):
        many = rng.choice((1, 3, 30))
        size = rng.choice((120, 900, 9000 if many == 30 else 400_000))
        files = contents(range(first, first + many), size)
        first += many
        day = DAY if rng.random() < 0.7 else DAY.replace(day=3)
        archive.put(files, node=rng.choice(("n1", "mlab1-lga01", "a.b_c")), day=day)
    if rng.random() < 0.3:
        compact_all(bucket)
    if rng.random() < 0.3:
        archive.put_go()
    if rng.random() < 0.3:
        put_rejected(bucket)
    for name in damage.data_names(bucket.objects):
        if rng.random() < 0.3:
            bucket.put_new(BundleName.parse(name).token_filters, b"bloom", {})
    return bucket


def put_rejected(
    bucket: Any,  # noqa: ANN401 - a fake
    *,
    node: str = "n1",
    number: int = 77,
    hour: int = 0,
) -> BundleName:
    """Store a bundle of rejected files with odd names."""
    names = ("bad.json", "odd \u202e\x1b.json", 'q"\\x.json', "日本.json")
    made = [
        (name, orjson.dumps({"Filename": name, "Size": 3, "Reason": "no-json", "Detail": "d",
                             "TimeAdded": f"2026-01-03T{hour:02}:00:00Z", "Datatype": "foo1",
                             "Content": b64encode(b"{%d:" % nth).decode()}))
        for nth, name in enumerate(names)
    ]  # fmt: skip
    return put_files(bucket, made, node=node, number=number)


def put_files(
    bucket: Any,  # noqa: ANN401 - a fake
    files: list[tuple[str, bytes]],
    *,
    node: str,
    number: int,
) -> BundleName:
    """Store rows of rejected1."""
    data, _ = bundle(files, datatype="rejected1", node=node, number=number)
    name = BundleName.parse(data.name)
    index = remade(name, index_of(name), bucket.url, data.data, known={}, added=NOW)
    for one in (data, index):
        bucket.put_new(one.name, one.data, one.metadata)
    bucket.put_new(PLACE.table_schema("rejected1"), b'[{"name":"date","type":"DATE"}]', {})
    return name


FOREIGN = ["autoload/x", "autoload/v1/x", "autoload/v1/bad name/", "autoload/v2/Org/",
           "autoload/v2/org/x", "autoload/v1/exp/x\x1b", "autoload/v1/exp/foo1/x\u202e",
           "autoload/v1/exp/foo1/2026/01/02/x\n", "autoload/v1/exp/index1/x",
           "autoload/v1/tokens/exp/foo1/x"]  # fmt: skip


def harm(rng: random.Random, bucket: Bucket) -> str:
    """Damage one thing; return what."""
    names = damage.data_names(bucket.objects)
    name, other = rng.choice(names), rng.choice(names)
    pair = [one for one in (name, damage.index_of(name)) if bucket.bytes_of.get(one)]
    match rng.choice(("bytes", "bytes", "bytes", "index", "index", "swap", "gone", "foreign")):
        case "bytes" if pair:
            how = rng.choice(sorted(damage.BYTES))
            half = rng.choice(pair)
            bucket.swap(half, damage.BYTES[how](rng, bucket.bytes_of[half]))
            return f"{how} {half}"
        case "index" if len(pair) > 1:
            bucket.swap(pair[1], damage.edited(rng, bucket.bytes_of[pair[1]]))
            return f"edited {pair[1]}"
        case "swap":
            of = rng.choice((str, damage.index_of))
            pairs = [of(name), of(other)]
            if all(one in bucket.objects for one in pairs):
                first, second = (bucket.bytes_of[one] for one in pairs)
                bucket.swap(pairs[0], second)
                bucket.swap(pairs[1], first)
            return f"swapped {pairs}"
        case "gone" if pair and len(names) > 1:
            bucket.remove(half := rng.choice(pair))
            return f"removed {half}"
        case _:
            one = rng.choice(FOREIGN)
            bucket.swap(f"{one}y" if one.endswith("/") else one, b"x")
            return f"foreign {one!r}"


@pytest.mark.parametrize("part", range(3))
def test_what_is_damaged_at_random_is_told_and_mended_without_a_loss(part: int) -> None:
    """By a judge that shares no code with the audit; a seed that fails is named."""
    for seed in range(part, SEEDS, 3):
        rng = random.Random(seed)
        bucket = made_at_random(rng)
        truth = damage.provable(bucket.bytes_of)
        assert truth
        assert audited(bucket) == [], seed
        done = [seed, *(harm(rng, bucket) for _ in range(rng.choice((1, 1, 2))))]
        before = bucket.bytes_of
        assert_told(bucket, audited(bucket), done)

        audited(bucket, fix=True)

        after = bucket.bytes_of
        assert_mended(before, after, truth, bucket.url, done)
        audited(bucket, fix=True)
        assert bucket.bytes_of == after, done


def assert_told(bucket: Bucket, told: list[dict[str, Any]], done: list[Any]) -> None:
    objects = {one["object"] for one in told if one["kind"] != "repeated"}
    for name in damage.data_names(bucket.objects):
        is_told = bool(objects & {name, damage.index_of(name)})
        problem = damage.wrong(bucket.bytes_of, bucket.url, name)
        if problem:
            assert is_told, (done, name, problem)
        elif not any(name in str(one) or damage.index_of(name) in str(one) for one in done):
            assert not is_told, (done, name, told)
    for words in done[1:]:
        if words.startswith("foreign"):
            assert {repr(one) for one in objects} & {words.removeprefix("foreign ")}, done


def assert_mended(
    before: dict[str, bytes],
    after: dict[str, bytes],
    truth: set[damage.Row],
    url: str,
    done: list[Any],
) -> None:
    archive = {name: data for name, data in after.items() if not name.startswith(QUARANTINE)}
    lost = (damage.provable(before) & truth) - damage.provable(archive)
    assert not lost, (done, lost)
    for name in damage.data_names(archive):
        if not damage.wrong(archive, url, name):
            assert set(damage.rows_of(name, archive[name])) <= truth, (done, name)
    kept = {data for name, data in after.items() if name.startswith(QUARANTINE)}
    for name, data in before.items():
        if after.get(name) != data and "/tokens/" not in name:
            assert data in kept, (done, name)


# What random damage has shown


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("change", ["followed", "two-members", "reserved", "empty-line"])
def test_an_index_that_other_readers_cannot_read_is_told(
    archive: KeptArchive, monkeypatch: pytest.MonkeyPatch, change: str, native: bool
) -> None:
    """All rows can be found in it; gzip and BigQuery refuse it, or read more."""
    if not native:
        monkeypatch.setattr(proof, "native_index", lambda *_, **__: None)
    name = str(index_of(archive.put(contents(range(3)))))
    changes: dict[str, Callable[[bytes], bytes]] = {
        "followed": lambda data: data + b"\0",
        "two-members": lambda data: data + data,
        "reserved": lambda data: data[:3] + b"\x80" + data[4:],
        "empty-line": lambda data: gzip.compress(gzip.decompress(data) + b"\n"),
    }
    archive.swap(name, changes[change])
    bad = archive.get(name)

    told = audited(archive.storage)
    assert {one["kind"] for one in told} == {"disagrees"}
    assert name in {one["object"] for one in told}
    assert {one["status"] for one in audited(archive.storage, fix=True)} == {"mended"}
    assert audited(archive.storage) == []
    assert archive.get(f"{QUARANTINE}{name}") == bad


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("TimeAdded", "yesterday"),
        ("TimeAdded", "2026-01-02T03:04:05"),
        ("Start", "2026-02-30T00:00:00.000000Z"),
        ("End", ""),
        ("Size", 2**70),
    ],
)
def test_an_index_row_that_no_table_takes_is_told(
    archive: KeptArchive, monkeypatch: pytest.MonkeyPatch, member: str, value: object, native: bool
) -> None:
    """Hash and place may be right; what the index is made again with is a value."""
    if not native:
        monkeypatch.setattr(proof, "native_index", lambda *_, **__: None)
    name = archive.put(contents(range(3)))

    def change(rows: list[Any]) -> list[Any]:
        rows[1]["raw"][member] = value
        return rows

    archive.swap_rows(index_of(name), change)
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["line"]) == ("disagrees", 2)
    assert problem["detail"] == f"the index row has no good {member}"
    audited(archive.storage, fix=True)
    assert audited(archive.storage) == []


def test_an_index_row_that_contradicts_itself_is_told(archive: KeptArchive) -> None:
    """Readers take the Filename from either place."""
    name = archive.put(contents(range(3)))

    def change(rows: list[Any]) -> list[Any]:
        rows[2]["archiver"]["Filename"] = "2026/01/02/x.json"
        return rows

    archive.swap_rows(index_of(name), change)
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["line"]) == ("disagrees", 3)
    assert "archiver has Filename '2026/01/02/x.json'" in problem["detail"]


def test_each_index_that_is_replaced_is_kept(archive: KeptArchive) -> None:
    """Also the second one of that name: it knew times that the new one may not have."""
    name = str(index_of(archive.put(contents(range(3)))))
    bad = []
    for size in (2, 1):
        archive.swap_rows(name, lambda rows, size=size: rows[:size])  # type: ignore[misc]
        bad.append(archive.get(name))
        (end, *_) = audited(archive.storage, fix=True)
        assert end["status"] == "mended", end
    kept = {info.name: archive.get(info.name) for info in archive.storage.list(QUARANTINE)}
    assert sorted(kept.values()) == sorted(bad)
    assert f"{QUARANTINE}{name}" in kept


STORED = Compression(Method.ZLIB_NG, 0)


def uncompressed(archive: KeptArchive, name: BundleName) -> None:
    """Store a bundle anew, in one block whose bytes are those of its rows."""

    def change(data: bytes) -> bytes:
        return gzip.compress(gzip.decompress(data), 0, mtime=0)

    archive.swap(name, change)
    audited(archive.storage, fix=True)
    for info in list(archive.storage.list(QUARANTINE)):
        archive.storage.remove(info.name)
    assert audited(archive.storage) == []


@pytest.mark.parametrize(
    ("old", "new", "saved"),
    [
        (b'"jostler@1"', b'"jostler@7"', 4),
        (b'"GitCommit":"c"', b'"GitCommit":"d"', 4),
        (b'"date":"2026-01-02"', b'"date":"2026-01-03"', 4),
        (b'"ArchiveURL":"gs://', b'"ArchiveURL":"gz://', 5),  # it becomes the new object's
    ],
)
def test_a_row_is_saved_only_if_its_other_columns_are_those_of_the_index(
    archive: KeptArchive, old: bytes, new: bytes, saved: int
) -> None:
    """A Hash is of `raw` alone, and nothing else shows that a column has a wrong byte."""
    name = archive.put(contents(range(5)))
    uncompressed(archive, name)
    archive.swap(name, lambda data: data.replace(old, new, 1))
    (end,) = audited(archive.storage, fix=True)
    assert f"{saved} rows saved" in end["done"], end
    assert ("lost: line 1 " in end["done"]) == (saved == 4)
    assert audited(archive.storage) == []
    assert len(archive.files()) == saved


def test_a_rejected_row_with_a_wrong_byte_is_not_saved(archive: KeptArchive) -> None:
    """Its Hash is that of Content: a bundle in which it cannot be found is left as it is."""
    name = put_rejected(archive.storage)
    uncompressed(archive, name)
    archive.swap(name, lambda data: data.replace(b"no-json", b"no-bson", 1))
    before = archive.objects()
    (end,) = audited(archive.storage, fix=True)
    assert (end["status"], end["done"]) == (
        "found",
        "a Hash is that of Content alone, and any row may be damaged",
    )
    assert archive.objects() == before

    archive.swap(name, lambda data: data.replace(b"no-bson", b"no-json", 1)[:-5])
    (end,) = audited(archive.storage, fix=True)
    assert "4 rows saved, none is lost" in end["done"]


def test_rows_that_follow_one_that_the_index_lacks_are_saved(archive: KeptArchive) -> None:
    """They are found by name, not by their place among the lines that the index has."""
    name = archive.put(contents(range(5)))
    archive.swap_rows(index_of(name), lambda rows: [*rows[:1], *rows[2:]])
    archive.swap(name, lambda data: data[:-3])
    (end, *_) = audited(archive.storage, fix=True)
    assert (
        "4 rows saved, lines that its index does not name are left out, none is lost"
        in (end["done"])
    )
    assert [file[1][11:] for file in archive.files()] == [f"m{n}.json" for n in (0, 2, 3, 4)]


@pytest.mark.parametrize("damaged", [True, False])
@pytest.mark.parametrize("indexed", [True, False])
def test_rows_of_another_bundle_are_left_to_the_keeper(
    archive: KeptArchive, damaged: bool, indexed: bool
) -> None:
    """An index of them would say that this node stored them, and hide what it had stored."""
    other = archive.put(contents(range(3)), node="n2")
    name = archive.put(contents(range(3, 6)))
    data = archive.get(other)
    archive.swap(name, lambda _: data + b"\0" * damaged)
    if not indexed:
        archive.storage.remove(str(index_of(name)))
    before = archive.objects()
    ends = audited(archive.storage, fix=True)
    assert {one["status"] for one in ends} == {"found"}
    assert "other-day" not in {one["kind"] for one in ends}
    assert any(f"its rows are those of gs://memory/{other}" in one["done"] for one in ends)
    assert archive.objects() == before


def test_a_damaged_bundle_with_the_index_of_another_is_left_to_the_keeper(
    archive: KeptArchive,
) -> None:
    """None of its rows has a Hash there, and all can be read."""
    other = archive.put(contents(range(3)), node="n2")
    name = archive.put(contents(range(3, 6)))
    index = archive.get(index_of(other))
    archive.swap(index_of(name), lambda _: index)
    archive.swap(name, lambda data: data[:-3])
    before = archive.objects()
    (end,) = audited(archive.storage, fix=True)
    assert (end["kind"], end["status"]) == ("damaged", "found")
    assert end["done"] == f"its index is that of gs://memory/{other}"
    assert archive.objects() == before


def test_a_row_that_an_index_has_twice_is_saved_once(archive: KeptArchive) -> None:
    """Whatever line it names."""
    name = archive.put(contents(range(3)))

    def change(rows: list[Any]) -> list[Any]:
        again = json.loads(json.dumps(rows[2]))
        again["raw"]["Line"] = 4
        return [*rows, again]

    archive.swap_rows(index_of(name), change)
    archive.swap(name, lambda data: data[:-3])
    (end, *_) = audited(archive.storage, fix=True)
    assert "3 rows saved; lost: line 4 " in end["done"], end
    assert len(archive.files()) == 3


def test_a_bundle_that_is_moved_away_takes_its_token_filters_along(archive: KeptArchive) -> None:
    """A second fix has nothing to do."""
    name = archive.put(contents(range(3)))
    archive.storage.put_new(name.token_filters, b"bloom", {})
    archive.swap(name, lambda data: data[:-3])
    audited(archive.storage, fix=True)
    assert name.token_filters not in archive.objects()
    assert audited(archive.storage) == []


# What was not missed when it was broken


def test_one_wrong_index_row_of_a_merged_bundle_is_told_alone(archive: KeptArchive) -> None:
    """The others have nodes that the bundle's name has not."""
    for first, node in ((0, "n1"), (3, "n2")):
        archive.put(contents(range(first, first + 3)), node=node)
    compact_all(archive.storage)
    (name,) = (BundleName.parse(one.name) for one in archive.storage.list(f"{PLACE.root}/foo1/"))

    def change(rows: list[Any]) -> list[Any]:
        rows[4]["raw"]["Hash"] = "0" * 32
        return rows

    archive.swap_rows(index_of(name), change)
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["line"]) == ("disagrees", 5)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_table_of_nodes_of_other_rows_is_told(archive: KeptArchive, rows: int) -> None:
    """Too few of them, or too many."""
    for first, node in ((0, "n1"), (2, "n2")):
        archive.put(contents(range(first, first + 2)), node=node)
    compact_all(archive.storage)
    (name,) = (one.name for one in archive.storage.list(f"{PLACE.root}/foo1/"))
    archive.swap(name, lambda data: data.replace(b"n1 2\n", b"n1 %d\n" % rows))
    told = {(one["kind"], one["object"], one["detail"]) for one in audited(archive.storage)}
    detail = f"4 rows, but {2 + rows} in its table of nodes"
    assert ("damaged", name, detail) in told


def test_the_hash_of_rejected_content_is_checked_and_made_again(archive: KeptArchive) -> None:
    """It is not that of `raw`."""
    name = put_rejected(archive.storage)
    good = archive.get(index_of(name))

    def change(rows: list[Any]) -> list[Any]:
        rows[1]["raw"]["Hash"] = rows[0]["raw"]["Hash"]
        return rows

    archive.swap_rows(index_of(name), change)
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["line"]) == ("disagrees", 2)
    audited(archive.storage, fix=True)
    assert gzip.decompress(archive.get(index_of(name))) == gzip.decompress(good)


def test_a_rejected_file_of_which_the_index_has_lost_the_hash_is_told(
    archive: KeptArchive,
) -> None:
    """All its bytes are in the row."""
    name = put_rejected(archive.storage)

    def change(rows: list[Any]) -> list[Any]:
        rows[1]["raw"]["Hash"] = ""
        return rows

    archive.swap_rows(index_of(name), change)
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["line"]) == ("disagrees", 2)
    assert problem["detail"] == "the index row has no Hash of a whole Content"


def test_rejected_files_are_the_same_if_node_name_and_content_are(archive: KeptArchive) -> None:
    """Whenever they were rejected; not those of another node."""
    first = put_rejected(archive.storage)
    put_rejected(archive.storage, node="n2", number=78)
    assert audited(archive.storage) == []
    again = put_rejected(archive.storage, number=79, hour=5)
    told = audited(archive.storage)
    assert [(one["kind"], one["object"], one["line"]) for one in told] == [
        ("repeated", str(again), line) for line in (1, 2, 3, 4)
    ]
    assert f"{first}, line 1" in told[0]["detail"]


def test_rejected_files_whose_content_is_not_known_are_not_the_same(archive: KeptArchive) -> None:
    """They were too large, or could not be read."""
    raw = {"Filename": "a", "Size": 9, "TimeAdded": "2026-01-03T00:00:00Z", "Datatype": "foo1"}
    for number in (1, 2):
        files = [("a.json", orjson.dumps(raw | {"Content": "", "Number": number}))]
        put_files(archive.storage, files, node="n1", number=number)
    assert audited(archive.storage) == []


def test_an_index_that_is_made_again_says_when_its_rows_were_added(archive: KeptArchive) -> None:
    """The first and the last of them, as its metadata said before."""
    name = archive.put(contents(range(4)))
    before = archive.storage.metadata(str(index_of(name)))
    archive.swap_rows(index_of(name), lambda rows: rows[::-1])
    audited(archive.storage, fix=True)
    again = archive.storage.metadata(str(index_of(name)))
    keys = ("first-time-added", "last-time-added", "rows", "version", "data-upload-id")
    assert [again[key] for key in keys] == [before[key] for key in keys]
    assert again["first-time-added"] < again["last-time-added"]


def test_so_many_small_bundles_are_well(archive: KeptArchive) -> None:
    """One more is too many."""
    for number, told in ((1, []), (2, []), (3, ["small"])):
        archive.put(contents([number]))
        limits = replace(LIMITS, many=2)
        days = audit(archive.storage, [PLACE], Scope(), limits)
        assert [str(problem.kind) for day in days for problem in day.problems] == told


def test_the_times_of_an_index_of_the_go_agent_are_kept(archive: KeptArchive) -> None:
    """Of the rows that it had."""
    name = archive.put_go()
    good = gzip.decompress(archive.get(index_of(name)))
    archive.swap(index_of(name), lambda _: gzip.compress(b"\n".join(good.split(b"\n")[:-1])))
    audited(archive.storage, fix=True)
    made = gzip.decompress(archive.get(index_of(name)))
    assert made.split(b"\n")[:-1] == good.split(b"\n")[:-1]
    assert len(made) == len(good)


def test_a_file_of_the_go_agent_that_jostler_has_stored_too_is_a_repeat(
    archive: KeptArchive,
) -> None:
    """The one names it by its path on the node, the other by its place below the datatype."""
    gos = archive.put_go()
    lines = gzip.decompress(archive.get(gos)).split(b"\n")
    raws = {f"m{n}.json": line[line.index(b'},"Raw":') + 8 : -1] for n, line in enumerate(lines, 1)}
    mine = archive.put({"m2.json": raws["m2.json"]}, node=gos.node)
    archive.put({"m3.json": raws["m3.json"]}, node=gos.node, day=DAY.replace(day=3))
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["object"]) == ("repeated", str(mine))
    assert f"{gos}, line 2" in problem["detail"]


def test_a_time_that_the_go_agent_does_not_write_is_told(archive: KeptArchive) -> None:
    """The loader rewrites the form that it writes, and no other."""
    name = archive.put_go()

    def change(index: bytes) -> bytes:
        return gzip.compress(gzip.decompress(index).replace(b"2026/01/02T0", b"2026-01-02T0", 1))

    archive.swap(index_of(name), change)
    (problem,) = audited(archive.storage)
    assert (problem["kind"], problem["line"]) == ("disagrees", 1)
    audited(archive.storage, fix=True)
    assert audited(archive.storage) == []


def told_of(archive: KeptArchive, scope: Scope) -> tuple[int, list[str]]:
    """Return rows and problems of a part of an archive."""
    days = list(audit(archive.storage, [PLACE], scope, LIMITS))
    problems = [problem.object for day in days for problem in day.problems]
    return sum(sum(day.rows.values()) for day in days), problems


def test_only_the_days_and_nodes_that_are_named_are_looked_at(archive: KeptArchive) -> None:
    """The first and the last day wholly, and what lies beside the days with all of them."""
    for nth in range(2, 6):
        archive.put(contents(range(nth)), day=DAY.replace(day=nth), node=f"n{nth}")
    names = ["autoload/v1/exp/foo1/x", "autoload/v1/exp/foo1/2026/01/03/x"]
    names.append(archive.names[1].token_filters.replace("T00000", "T00001"))
    for name in names:
        archive.storage.put_new(name, b"x", {})
    first, last = DAY.replace(day=3), DAY.replace(day=4)
    assert told_of(archive, Scope(first=first, last=last)) == (7, names[1:])
    assert told_of(archive, Scope(first=last)) == (9, [])
    assert told_of(archive, Scope(nodes=frozenset({"n2"}))) == (2, [])
    assert told_of(archive, Scope(nodes=frozenset({"n3"}))) == (3, names[2:])
    assert sorted(told_of(archive, Scope())[1]) == sorted(names)


def test_a_bundle_whose_index_goes_while_it_is_read_is_no_problem() -> None:
    """It was merged or deleted, index first."""

    class Merged(Bucket):
        def read(self, name: str, version: str = "") -> StoredObject:
            found = super().read(name, version)
            if name.endswith("-data.jsonl.gz"):
                self.remove(damage.index_of(name))
            return found

    archive = KeptArchive(Merged())  # type: ignore[arg-type]
    archive.put(contents(range(3)))
    assert told_of(archive, Scope()) == (0, [])


def test_a_row_behind_one_that_is_longer_than_a_block_is_merged(archive: KeptArchive) -> None:
    """Of small rows it begins a block of its own."""
    archive.put(contents([1], 400_000) | contents(range(2, 5)))
    archive.put(contents(range(5, 8)), node="n2")
    files = [file[1:] for file in archive.files()]
    compact_all(archive.storage)
    assert sorted(file[1:] for file in archive.files()) == sorted(files)
    assert audited(archive.storage) == []


# Foreign objects


def test_what_lies_beside_the_experiments_is_told(tmp_path: Path, capsys: Any) -> None:  # noqa: ANN401 - of pytest
    """Not schemas, assets, token filters, staging, or what other programs have elsewhere."""
    bucket = url_of(tmp_path)
    archive = KeptArchive(open_storage(bucket))
    archive.put(contents(range(2)))
    told = ["autoload/x", "autoload/v1/x", "autoload/v1/bad name/", "autoload/v2/Org/",
            "autoload/v2/x", "autoload/v2/org/x", "autoload/v2/org/bad name/",
            "autoload/v1/exp/x", "autoload/v1/Lost_1/x"]  # fmt: skip
    mine = ["x", "other/autoload", "loader-staging/x", "autoload/v1/tables/exp/x",
            "autoload/v1/schemas/x", "autoload/v1/assets/exp.json", "autoload/v2/tables/x",
            "autoload/v1/tokens/x", "autoload/v1/exp/.check/n1-0"]  # fmt: skip
    for name in (*told, *mine):
        path = tmp_path / (f"{name}x" if name.endswith("/") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")

    command = ["audit", "-bucket", bucket, "-format", "jsonl"]
    assert main(command) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()][:-1]
    assert {one["kind"] for one in found} == {str(Kind.FOREIGN)}
    assert sorted(one["object"] for one in found) == sorted(told)
    assert main([*command, "-experiment", "exp"]) == 1
    assert '"problems":{"foreign":1}' in capsys.readouterr().out
    assert main([*command, "-experiment", "exp", "-datatype", "foo1"]) == 0
