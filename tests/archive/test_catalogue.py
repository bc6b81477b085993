"""What every catalogue promises, asked of the bucket's index objects and of BigQuery."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from jostler.archive import address_batch
from jostler.archive.address import AddressError, find, parse
from jostler.archive.address_batch import Asked, batches, find_all
from jostler.archive.bigquery_catalogue import BigQueryCatalogue, _cut
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.catalogue import (
    Catalogue,
    File,
    NodeDay,
    Position,
    Query,
    Rejects,
    Tally,
    latest,
)
from jostler.format.bigquery_names import Naming
from jostler.format.names import Kind, Place
from jostler.storage import open_storage
from tests.support.archive import DAY, GO, OLD, PLACE, Entry, MadeArchive, at, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tests.loader.world import BigQueryServer

ONE = timedelta(days=1)
SECOND = Place(data_dir="autoload/v2", organization="org", experiment="exp")


@pytest.fixture
def archive(tmp_path: Path) -> MadeArchive:
    return MadeArchive(tmp_path / "bucket")


@pytest.fixture(params=["bucket", "cached", "bigquery"])
def opened(
    request: pytest.FixtureRequest,
    archive: MadeArchive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[], Catalogue]]:
    """Return a function that opens the catalogue of what was put into the archive."""
    with ExitStack() as stack:

        def from_bucket() -> Catalogue:
            directory = tmp_path / "cache" if request.param == "cached" else None
            if directory:  # what is asked later is answered by the cache alone
                first = bucket_catalogue(archive, directory)
                list(first.files(Query(datatypes=("foo1", "bar1", "a-b", "rejected1"))))
                first.close()
            return stack.enter_context(closing(bucket_catalogue(archive, directory)))

        def from_bigquery() -> Catalogue:
            server: BigQueryServer = request.getfixturevalue("warehouse")
            monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
            name = project()
            options = {"api_endpoint": server.url}
            with closing(
                bigquery.Client(name, AnonymousCredentials(), client_options=options)
            ) as client:
                archive.load(client)
            made = BigQueryCatalogue(
                project=name,
                places=[*archive.places],
                location="US",
                naming=Naming.MLAB,
                patience_s=5,
                chunk_rows=2,
            )
            return stack.enter_context(closing(made))

        yield from_bigquery if request.param == "bigquery" else from_bucket


def bucket_catalogue(archive: MadeArchive, cache: Path | None = None) -> BucketCatalogue:
    storage = open_storage(archive.url)
    return BucketCatalogue(storage, [*archive.places], IndexCache(cache, 1 << 30))


def names(catalogue: Catalogue, query: Query) -> list[str]:
    return [file.name for file in catalogue.files(query)]


def test_a_file_has_all_that_its_index_row_tells(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """And the names of its bundle."""
    entry = Entry(name="a.json", start=at(1), end=at(2), work_id="w-1", size=7)
    index = archive.put([entry])
    (file,) = opened().files(Query())

    raw = archive.rows[0]["raw"]
    assert file.filename == file.path == "2026/01/02/a.json"
    assert (file.size, file.line, file.hash) == (7, 1, raw["Hash"])
    assert (file.offset, file.length, file.hash_of_raw) == (10, 1000, True)
    assert (file.added, file.start, file.end) == (entry.added, at(1), at(2))
    assert (file.work_id, file.datatype, file.node) == ("w-1", "foo1", "n1")
    assert file.origin.url == raw["ArchiveURL"]
    assert file.origin.index == str(index)
    assert (file.origin.day, file.origin.bucket) == (DAY, archive.url)
    assert file.address == raw["ArchiveURL"] + "#2026/01/02/a.json"


def test_a_range_of_time_keeps_what_it_touches(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Both ends included; a file without End is an instant."""
    archive.put(
        [
            Entry(name="span", start=at(4), end=at(6.5)),
            *(Entry(name=name, start=at(hour)) for hour, name in enumerate("cdefg", 7)),
        ]
    )
    catalogue = opened()
    for start, end, found in (
        (at(8), at(8), ["d"]),
        (at(8), at(10), ["d", "e", "f"]),
        (at(8.5), at(9.5), ["e"]),
        (at(7), at(11), ["c", "d", "e", "f", "g"]),
        (at(5), at(6.25), ["span"]),
        (at(4), at(4), ["span"]),
        (at(6.5), at(6.5), ["span"]),
        (at(6.75), at(6.75), []),
        (at(11.5), None, []),
        (at(11), None, ["g"]),
        (None, at(3.9), []),
        (None, at(4), ["span"]),
    ):
        assert names(catalogue, Query(start=start, end=end)) == found, (start, end)


def test_a_file_of_two_days_is_found_once_in_each(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Days are folders; a file may begin in the folder before the asked day, or end behind it."""
    archive.put([Entry(name="long", start=at(23), end=at(25))])
    archive.put([Entry(name="early", start=at(23.5))], day=DAY + ONE)
    archive.put([Entry(name="far", start=at(23.5))], day=DAY + 2 * ONE)
    archive.put([Entry(name="before", start=at(22))], day=DAY - 2 * ONE)
    catalogue = opened()
    assert names(catalogue, Query(start=at(22), end=at(23.9))) == ["long", "early"]
    assert names(catalogue, Query(start=at(24), end=at(40))) == ["long"]
    assert names(catalogue, Query(start=at(22), end=at(48))) == ["long", "early", "far"]


def test_without_start_a_file_begins_when_it_was_added(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """So are rows of older agents; with an End alone, it is the End."""
    archive.put([Entry(name="old", added=at(9))], form=OLD)
    archive.put([Entry(name="go", added=at(10))], form=GO)
    archive.put([Entry(name="ended", end=at(11), added=at(20))])
    archive.put([Entry(name="wrong", start=at(12), end=at(3))])
    catalogue = opened()
    for hour, name in ((9, "old"), (10, "go"), (11, "ended"), (12, "wrong")):
        assert names(catalogue, Query(start=at(hour), end=at(hour))) == [name]
    assert names(catalogue, Query(start=at(2), end=at(8))) == []


def test_older_rows_have_nulls(archive: MadeArchive, opened: Callable[[], Catalogue]) -> None:
    """What they do not tell is not guessed; datatype and node come from names."""
    archive.put([Entry(name="o.json")], form=OLD)
    archive.put([Entry(name="g.json", size=9)], form=GO, datatype="a-b", node="n-2")
    old, go = sorted(opened().files(Query()), key=lambda file: file.name, reverse=True)

    assert (old.start, old.end, old.work_id, old.hash_of_raw) == (None, None, None, False)
    assert (old.offset, old.length, len(old.hash)) == (10, 1000, 32)
    assert (go.start, go.end, go.work_id, go.hash_of_raw) == (None, None, None, False)
    assert (go.offset, go.length, go.hash) == (None, None, "")
    assert (go.datatype, go.node, go.size, go.line) == ("a-b", "n-2", 9, 1)
    assert go.filename == "/var/spool/exp/a-b/2026/01/02/g.json"
    assert go.path == "2026/01/02/g.json"
    assert go.origin.data.startswith("autoload/v1/exp/a-b/2026/01/02/")


def test_a_table_of_an_older_schema_has_the_same_files(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """It lacks columns until the loader loads rows that have them."""
    archive.columns = tuple({*archive.columns} - {"Start", "End", "WorkID"})
    archive.put([Entry(name="o.json", added=at(3))], form=OLD)
    catalogue = opened()
    (file,) = catalogue.files(Query(start=at(3), end=at(3)))
    assert (file.name, file.start, file.end, file.work_id) == ("o.json", None, None, None)
    assert names(catalogue, Query(work_id="job")) == []


def test_a_row_whose_path_has_no_folders_is_of_the_datatype_in_the_name(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """The Go agent's rows tell the datatype in their path alone."""
    archive.put([Entry(name="odd", path="odd")], form=GO)
    (file,) = opened().files(Query(datatypes=("foo1",)))
    assert (file.datatype, file.node, file.path) == ("foo1", "n1", "odd")


def test_datatype_and_node_are_matched_exactly(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """A name that only begins or ends alike is another one's; rejected1 must be named."""
    archive.put([Entry(name="1")], datatype="foo1", node="n1")
    archive.put([Entry(name="2")], datatype="foo1", node="x-n1")
    archive.put([Entry(name="3")], datatype="foo", node="n1")
    archive.put([Entry(name="4")], datatype="foo-a", node="n1", form=GO)
    archive.put([Entry(name="5")], datatype="rejected1", node="n1")
    catalogue = opened()
    assert names(catalogue, Query(datatypes=("foo1",), nodes=("n1",))) == ["1"]
    assert names(catalogue, Query(datatypes=("foo",))) == ["3"]
    assert names(catalogue, Query(datatypes=("foo-a",))) == ["4"]
    assert names(catalogue, Query(nodes=("n1",))) == ["1", "3", "4"]
    assert names(catalogue, Query(nodes=("n1", "x-n1"))) == ["1", "2", "3", "4"]
    assert names(catalogue, Query(datatypes=("rejected1", "foo"))) == ["3", "5"]
    assert names(catalogue, Query(with_rejected=True, nodes=("n1",))) == ["1", "3", "4", "5"]
    assert catalogue.nodes(Query(datatypes=("foo1",))) == ("n1", "x-n1")
    assert catalogue.nodes(Query(datatypes=("foo1",), nodes=("n1",))) == ("n1",)


@pytest.mark.parametrize(
    ("query", "read"),
    [
        (Query(nodes=("n1",)), 2),
        (Query(datatypes=("foo",)), 1),
        (Query(datatypes=("foo1",), nodes=("n1",)), 1),
        (Query(nodes=("n",)), 0),
        (Query(first_day=DAY, last_day=DAY), 3),
        (Query(with_rejected=True), 5),
        (Query(after=Position(DAY + ONE, "", 0)), 1),
    ],
)
def test_names_decide_which_index_objects_are_read(
    archive: MadeArchive, query: Query, read: int
) -> None:
    """An archive has a hundred thousand in a month, and most questions are about a few."""
    archive.put([Entry(name="1")], datatype="foo1", node="n1")
    archive.put([Entry(name="2")], datatype="foo", node="n1")
    archive.put([Entry(name="3")], datatype="foo1", node="yn1")
    archive.put([Entry(name="4")], datatype="foo1", node="n2", day=DAY + ONE)
    archive.put([Entry(name="5")], datatype="rejected1", node="n3")
    tally = Tally()
    with closing(bucket_catalogue(archive)) as catalogue:
        list(catalogue.files(query, tally))
    assert tally.read == read


def test_a_job_a_hash_and_a_name_are_found(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Names also by pattern, of the own name or of the whole path."""
    archive.put(
        [
            Entry(name="x1.json", work_id="job-1"),
            Entry(name="x2.json", work_id="job-2", content=b"two"),
            Entry(name="y[1].json"),
        ]
    )
    archive.put([Entry(name="x1.json")], day=DAY + ONE)
    archive.put([Entry(name="x3.json")], form=GO)
    catalogue = opened()
    two = archive.rows[1]["raw"]["Hash"]
    assert names(catalogue, Query(work_id="JOB-1")) == ["x1.json"]
    assert names(catalogue, Query(hash=two.upper())) == ["x2.json"]
    assert [f.path for f in catalogue.files(Query(filename="x1.json"))] == [
        "2026/01/02/x1.json",
        "2026/01/03/x1.json",
    ]
    assert [f.path for f in catalogue.files(Query(filename="2026/01/03/x1.json"))] == [
        "2026/01/03/x1.json"
    ]
    assert names(catalogue, Query(filename="x?.json", last_day=DAY)) == [
        "x1.json",
        "x2.json",
        "x3.json",
    ]
    assert names(catalogue, Query(filename="2026/01/02/*[!13].json")) == ["x2.json", "y[1].json"]
    assert names(catalogue, Query(filename="y[[]1].json")) == ["y[1].json"]
    assert names(catalogue, Query(filename="2026/*1.json", last_day=DAY)) == ["x1.json"]
    go = "/var/spool/exp/foo1/2026/01/02/x3.json"
    assert names(catalogue, Query(filename=go)) == ["x3.json"]
    assert names(catalogue, Query(filename="2026/01/02/x3.json")) == ["x3.json"]
    assert names(catalogue, Query(filename="X1.JSON")) == []
    assert names(catalogue, Query(filename="?1.jso")) == [], "the whole name is compared"
    assert names(catalogue, Query(filename="1.jso?")) == []


def test_an_address_names_one_file(archive: MadeArchive, opened: Callable[[], Catalogue]) -> None:
    """Of equal contents the first; several files of one name are listed, up to ten."""
    archive.put([Entry(name="a", content=b"x"), Entry(name="b", content=b"x")])
    archive.put([Entry(name="a", content=b"y")], node="n2")
    for number in range(11):
        archive.put([Entry(name="c", content=b"%d" % number)])
    catalogue = opened()
    x = archive.rows[0]["raw"]["Hash"]
    assert find(parse(x.upper()), catalogue, Query()).name == "a"
    assert find(parse("a"), catalogue, Query(nodes=("n2",))).node == "n2"
    with pytest.raises(AddressError, match=r"'a' names 2 files:\n") as several:
        find(parse("a"), catalogue, Query())
    found = [file.address for file in catalogue.files(Query(filename="a"))]
    assert all(address in str(several.value) for address in found)
    with pytest.raises(AddressError, match=r"'c' names 10 or more files:\n"):
        find(parse("c"), catalogue, Query())


class Asking:
    """A catalogue that keeps the days of each search."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.days: list[tuple[date, date]] = []

    def files(self, query: Query, tally: Tally | None = None) -> Iterator[File]:
        self.days.append(query.days())
        return self._catalogue.files(query, tally)


def answers(found: Iterable[File | AddressError]) -> list[File | str]:
    return [str(one) if isinstance(one, AddressError) else one for one in found]


def one_by_one(asked: list[Asked], catalogue: Catalogue) -> list[File | str]:
    found: list[File | str] = []
    for address, query in asked:
        try:
            found.append(find(address, catalogue, query))
        except AddressError as exc:
            found.append(str(exc))
    return found


def test_many_addresses_name_what_each_names_alone(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """In the order of the addresses, with the same errors, whichever the catalogue."""

    def entry(name: str, content: bytes = b"", day: date = DAY) -> Entry:
        return Entry(name=name, content=content, start=at(3, day))

    same = [entry("a", b"x"), entry("b*", b"x")]
    archive.put(same)
    archive.put([*same, entry("a", b"y")])
    archive.put([entry("a", b"z"), entry("f")], node="n2", datatype="bar1")
    archive.put([entry(f"c/{number}/d") for number in range(3)])
    for number in range(11):
        day = DAY + (number % 3) * ONE
        archive.put([entry("e", b"%d" % number, day)], day=day)
    archive.put([entry("g", day=DAY + ONE)], day=DAY + ONE)
    go, late = (f"/var/spool/exp/foo1/2026/01/02/{name}" for name in ("go", "late"))
    archive.put([Entry(name="go", path=go)], form=GO)
    for days in range(3):
        archive.put([Entry(name="late", path=late)], form=GO, day=DAY + days * ONE)
    far = archive.put([entry("far", day=DAY + 40 * ONE)], day=DAY + 40 * ONE)
    # Each kind of address has a file that no other address names.
    hashes = [row["raw"]["Hash"] for row in archive.rows[:7]]
    texts = ["2026/01/02/none", *hashes[::-1], "a", "e", "b*", "b?", "0" * 32, "far"]
    texts += ["2026/01/02/a", "2026/01/02/late", go, "2026/01/02/b*", "2026/01/02/c/1/d", "a", "g"]
    texts += [f"{far.day.path}/far", "2026/01/03/a", "2031/01/02/far", "none", "x/a"]
    catalogue = opened()
    with closing(bucket_catalogue(archive)) as reference:
        for query in (
            Query(),
            Query(nodes=("n1",), start=at(1, DAY + ONE), last_day=DAY + ONE),
            Query(datatypes=("bar1",), first_day=DAY, last_day=DAY),
        ):
            asked = [Asked(parse(text), query) for text in texts]
            found = answers(find_all(asked, catalogue))
            assert found == one_by_one(asked, reference)
            assert any(isinstance(one, File) for one in found)


def test_many_addresses_cost_one_search(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Of the days that they name; each index is searched once."""
    days = [DAY, DAY + ONE, DAY + 20 * ONE]
    for number in range(12):
        archive.put([Entry(name=f"{number}", content=b"%d" % number)], day=days[number % 3])
    hashes = [row["raw"]["Hash"] for row in archive.rows]
    catalogue = opened()

    def searched(texts: list[str], query: Query) -> tuple[list[tuple[date, date]], Tally]:
        asking, tally = Asking(catalogue), Tally()
        find_all([Asked(parse(text), query) for text in texts], asking, tally)  # type: ignore[arg-type]
        return asking.days, tally

    query = Query(first_day=DAY, last_day=days[-1])
    searches, tally = searched([*hashes, "0" * 32, "none"], query)
    assert searches == [(DAY, days[-1])]
    assert tally.indexes == searched(["0" * 32], query)[1].indexes
    assert tally.rows == 12
    paths = [f"{day:%Y/%m/%d}/{number}" for number in range(12) for day in days]
    searches, tally = searched(paths, Query())
    assert searches == [(DAY, DAY + 2 * ONE), (days[-1], days[-1] + ONE)]
    assert tally.rows == 12


def test_a_search_for_many_ends_when_all_are_found(archive: MadeArchive) -> None:
    """And holds no more files of a name than it lists."""
    for number in range(40):
        archive.put([Entry(name="a", content=b"%d" % number)], day=DAY + number * ONE)
    hashes = [row["raw"]["Hash"] for row in archive.rows[:2]]
    tally = Tally()
    asked = [Asked(parse(text), Query()) for text in [*hashes, "a"]]
    with closing(bucket_catalogue(archive)) as catalogue:
        found = answers(find_all(asked, catalogue, tally))
    assert [one.hash for one in found[:2] if isinstance(one, File)] == hashes
    assert str(found[2]).startswith("'a' names 10 or more files:\n")
    assert tally.rows == 10


def test_addresses_are_searched_some_thousands_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer, if they are long; all, and in order."""
    monkeypatch.setattr(address_batch, "BATCH_ADDRESSES", 4)
    monkeypatch.setattr(address_batch, "BATCH_CHARS", 10)
    given = [parse(text) for text in ("a", "b", "c", "d", "e", "f" * 8, "g", "h" * 20, "i")]
    found = [[one.text[0] for one in batch] for batch in batches(given)]
    assert found == [["a", "b", "c", "d"], ["e", "f", "g"], ["h"], ["i"]]


def test_the_day_in_a_filename_is_searched_and_the_next(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """The Go agent stores a file in the folder of the day of its upload."""
    path = "2026/01/02/late"
    for days in range(3):
        late = Entry(name="late", path=f"/var/spool/exp/foo1/{path}")
        archive.put([late], form=GO, day=DAY + days * ONE)
    catalogue = opened()

    def days_of(query: Query) -> list[date]:
        return [file.origin.day for file in catalogue.files(query)]

    assert days_of(Query(filename=path)) == [DAY, DAY + ONE]
    assert days_of(Query(filename=path, first_day=DAY + ONE)) == [DAY + ONE]
    assert days_of(Query(filename=path, last_day=DAY)) == [DAY]


def test_one_bundle_can_be_named(archive: MadeArchive, opened: Callable[[], Catalogue]) -> None:
    """By its data object; rejected files too."""
    archive.put([Entry(name="a"), Entry(name="b")])
    index = archive.put([Entry(name="a"), Entry(name="c")])
    bad = archive.put([Entry(name="bad")], datatype="rejected1")
    catalogue = opened()
    bundle = str(replace(index, kind=Kind.DATA))
    assert names(catalogue, Query(bundle=bundle)) == ["a", "c"]
    assert names(catalogue, Query(bundle=bundle, filename="c")) == ["c"]
    assert names(catalogue, Query(bundle=str(replace(bad, kind=Kind.DATA)))) == ["bad"]
    gone = replace(index, kind=Kind.DATA, node="n9")
    assert names(catalogue, Query(bundle=str(gone))) == []


def test_a_file_in_two_bundles_is_one_result(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """The earliest one's; the other is counted; other content and other nodes are other files."""
    archive.put([Entry(name="a", start=at(1)), Entry(name="b")], created=at(20))
    archive.put([Entry(name="c"), Entry(name="a", start=at(2))], created=at(19))
    archive.put([Entry(name="a", content=b"other")], created=at(21))
    archive.put([Entry(name="a")], created=at(18), node="n2")
    archive.put([Entry(name="a")], created=at(22), form=GO)
    archive.put([Entry(name="a")], created=at(23), form=GO)
    catalogue, tally = opened(), Tally()
    found = list(catalogue.files(Query(), tally))
    assert [(file.name, file.node, file.start) for file in found] == [
        ("a", "n2", None),
        ("c", "n1", None),
        ("a", "n1", at(2)),
        ("b", "n1", None),
        ("a", "n1", None),
        ("a", "n1", None),
        ("a", "n1", None),
    ]
    assert (tally.repeats, tally.rows) == (1, 8)
    assert names(catalogue, Query(start=at(1), end=at(1))) == [], "the earliest row decides"


def test_what_differs_in_one_thing_is_another_file(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Of one content: in another datatype, name, place of the bucket, or day's folder."""
    path = "2026/01/02/a"
    archive.put([Entry(name="a"), Entry(name="b", content=path.encode())])
    archive.put([Entry(name="a")], datatype="bar1")
    archive.put([Entry(name="a")], place=SECOND)
    archive.put([Entry(name="a", path=path)], day=DAY + ONE)
    found, tally = opened(), Tally()
    both_days = Query(first_day=DAY, last_day=DAY + ONE)
    assert len({file.hash for file in found.files(both_days, tally)}) == 1
    assert (tally.rows, tally.repeats) == (5, 0)


def test_a_row_without_size_counts_nothing(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Alone and in sums."""
    archive.put([Entry(name="a", size=None), Entry(name="b", size=7)])
    archive.put([Entry(name="c", size=None)], datatype="bar1")
    catalogue = opened()
    assert [file.size for file in catalogue.files(Query())] == [0, 7, 0]
    assert [bundle.size_bytes for bundle in catalogue.bundles(Query())] == [7, 0]
    assert [day.size_bytes for day in catalogue.days(Query())] == [0, 7]


def test_days_without_an_index_are_passed_over(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Years between two bundles too; the bounds are days of folders."""
    days = [date(2024, 2, 29), date(2025, 12, 31), date(2026, 1, 1), date(2026, 3, 1)]
    for day in days:
        archive.put([Entry(name=f"{day}")], day=day)
    catalogue = opened()
    assert names(catalogue, Query()) == [f"{day}" for day in days]
    assert names(catalogue, Query(newest_first=True)) == [f"{day}" for day in reversed(days)]
    wide = Query(first_day=date(2025, 1, 1), last_day=date(2026, 1, 1))
    assert names(catalogue, wide) == ["2025-12-31", "2026-01-01"]
    assert names(catalogue, replace(wide, newest_first=True)) == ["2026-01-01", "2025-12-31"]
    assert names(catalogue, Query(first_day=days[3], last_day=days[2])) == []
    before = Query(last_day=date(2024, 2, 28))
    assert names(catalogue, before) == names(catalogue, replace(before, newest_first=True)) == []
    assert names(catalogue, Query(first_day=date(2026, 1, 2), last_day=date(2026, 2, 1))) == []


def test_an_empty_archive_has_no_files(opened: Callable[[], Catalogue]) -> None:
    """It is no error."""
    catalogue = opened()
    assert list(catalogue.files(Query())) == []
    assert list(catalogue.bundles(Query())) == []
    assert list(catalogue.days(Query())) == []
    assert list(catalogue.rejects(Query())) == []
    assert catalogue.nodes(Query()) == ()
    assert latest(catalogue, Query(first_day=DAY, last_day=DAY), at(1)) == []


@pytest.mark.long
def test_pages_have_every_file_once(archive: MadeArchive, opened: Callable[[], Catalogue]) -> None:
    """Whatever the number: a page ends where the next one begins, within a bundle or not."""
    for step, counts in ((0, (1, 99, 1)), (1, (100,)), (2, (9_797,))):
        for number, count in enumerate(counts):
            day = DAY + step * ONE
            archive.put([Entry(name=f"{number}-{i}") for i in range(count)], day=day)
    archive.put([Entry(name="go1"), Entry(name="go2")], form=GO)
    archive.put([Entry(name="0-0")])  # a repeat
    catalogue = opened()
    files = list(catalogue.files(Query()))
    assert len({file.address for file in files}) == len(files) == 10_000
    turned = sorted(files, key=lambda file: file.origin.day, reverse=True)
    for newest_first, everything, size, most in (
        (False, files, 100, 2),
        (False, files, 5_001, 3),
        (True, turned, 5_001, 2),
    ):
        pages: list[File] = []
        after = None
        for _ in range(most):
            query = Query(newest_first=newest_first, after=after, limit=size)
            page = list(catalogue.files(query))
            pages += page
            after = page[-1].position if page else after
        assert pages == everything[: size * most]
    one_day = Query(first_day=DAY + ONE, last_day=DAY + ONE)
    for count, query in (
        (0, Query(nodes=("nobody",))),
        (1, replace(one_day, filename="0-7")),
        (100, one_day),
        (101, Query(first_day=DAY, last_day=DAY, filename="?-*")),
    ):
        first = list(catalogue.files(replace(query, limit=100)))
        rest = (
            list(catalogue.files(replace(query, limit=100, after=first[-1].position)))
            if first
            else []
        )
        assert (len(first), len(rest)) == (min(count, 100), max(count - 100, 0))
        assert len({file.filename for file in first + rest}) == count


def test_a_late_index_appears_in_its_place(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """In the day of its folder, by its name."""
    archive.put([Entry(name="a")], created=at(10))
    archive.put([Entry(name="b")], created=at(12))
    archive.put([Entry(name="c")], day=DAY + ONE)
    archive.put([Entry(name="late")], created=at(11))
    assert names(opened(), Query()) == ["a", "late", "b", "c"]


def test_bundles_are_summed_up(archive: MadeArchive, opened: Callable[[], Catalogue]) -> None:
    """Those with a file that matches; the sums are the whole bundle's."""
    archive.put([Entry(name="a", start=at(3), size=5), Entry(name="b", start=at(1), end=at(6))])
    archive.put([Entry(name="c", start=at(9))])
    archive.put([Entry(name="d", added=at(9))], form=GO)
    catalogue = opened()
    first, second, third = catalogue.bundles(Query())
    assert (first.files, first.size_bytes, first.packed_bytes) == (2, 105, 10 + 2000 + 10)
    assert (first.first, first.last) == (at(1), at(6))
    assert (second.files, third.packed_bytes) == (1, 0)
    assert list(catalogue.bundles(Query(start=at(2), end=at(4)))) == [first]
    assert list(catalogue.bundles(Query(filename="c"))) == [second]
    of_two = Query(filename="a", start=at(4), end=at(5))
    assert list(catalogue.bundles(of_two)) == [], "the name of one file, the time of another"
    assert list(catalogue.bundles(Query(limit=2))) == [first, second]
    after = next(catalogue.files(Query())).position
    assert list(catalogue.bundles(Query(after=after))) == [second, third]


def test_days_are_summed_up_by_datatype_and_node(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Both rows of a file that came twice are counted; start and end mean their days."""
    archive.put([Entry(name="a", start=at(3)), Entry(name="b", start=at(1))])
    archive.put([Entry(name="a", start=at(4))])
    archive.put([Entry(name="a", start=at(5))], node="n0", datatype="bar1")
    archive.put([Entry(name="z", start=at(30))], day=DAY + ONE)
    archive.put([Entry(name="y", start=at(-3))], day=DAY - ONE)
    catalogue = opened()
    one = NodeDay(
        day=DAY,
        datatype="foo1",
        node="n1",
        bundles=2,
        files=3,
        size_bytes=300,
        first=at(1),
        last=at(4),
    )
    found = list(catalogue.days(Query()))
    assert found[2] == one
    assert [(day.day, day.datatype, day.node, day.files) for day in found] == [
        (DAY - ONE, "foo1", "n1", 1),
        (DAY, "bar1", "n0", 1),
        (DAY, "foo1", "n1", 3),
        (DAY + ONE, "foo1", "n1", 1),
    ]
    assert list(catalogue.days(Query(datatypes=("foo1",), start=at(9), end=at(10)))) == [one]


def test_rejected_files_are_counted_by_their_own_datatype(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """With reason and node."""
    archive.put_rejected([("foo1", "empty"), ("foo1", "empty"), ("bar1", "not-json")])
    archive.put_rejected([("foo1", "empty")], node="n2")
    catalogue = opened()
    facts = [(DAY, "bar1", "n1", "not-json", 1), (DAY, "foo1", "n1", "empty", 2)]
    facts.append((DAY, "foo1", "n2", "empty", 1))
    keys = ("day", "datatype", "node", "reason", "files")
    expected = [Rejects(**dict(zip(keys, fact, strict=True))) for fact in facts]
    assert list(catalogue.rejects(Query())) == expected
    assert list(catalogue.rejects(Query(datatypes=("foo1",), nodes=("n2",)))) == expected[2:]
    assert list(catalogue.rejects(Query(datatypes=("bar1",)))) == expected[:1]
    assert list(catalogue.rejects(Query())) == expected, "from the cache too"


def test_the_latest_file_of_each_node_has_the_greatest_start(
    archive: MadeArchive, opened: Callable[[], Catalogue]
) -> None:
    """Then the greatest TimeAdded; a clock that runs more than a day ahead does not win."""
    archive.put([Entry(name="a", start=at(23.5))])
    archive.put([Entry(name="b", start=at(24.2)), Entry(name="c", start=at(24.1))], day=DAY + ONE)
    archive.put([Entry(name="wrong", start=at(64.01))], day=DAY + ONE)
    archive.put([Entry(name="ahead", start=at(64))], day=DAY + ONE, node="n6")
    archive.put([Entry(name="d", start=at(25))], node="n2")  # of the folder of the day before
    archive.put([Entry(name="e", start=at(24.5))], node="n2", day=DAY + ONE)
    archive.put([Entry(name="f", added=at(2)), Entry(name="g", added=at(3))], node="n3", form=OLD)
    archive.put([Entry(name="same", start=at(1), added=at(3))], node="n4")
    archive.put([Entry(name="later", start=at(1), added=at(4))], node="n4")
    archive.put([Entry(name="other")], datatype="bar1", node="n5")
    query = Query(datatypes=("foo1",), first_day=DAY - 14 * ONE, last_day=DAY + 2 * ONE)
    found: list[File] = latest(opened(), query, now=at(40))
    assert [(file.node, file.name) for file in found] == [
        ("n1", "b"),
        ("n2", "d"),
        ("n3", "g"),
        ("n4", "later"),
        ("n6", "ahead"),
    ]


def test_the_latest_file_is_found_without_reading_older_days(archive: MadeArchive) -> None:
    """Only the day before, whose folder may hold a file of this day."""
    for days in range(9):
        noon = Entry(name="a", start=at(12 + 24 * days))
        archive.put([noon], day=DAY + days * ONE)
    tally = Tally()
    with closing(bucket_catalogue(archive)) as catalogue:
        query = Query(first_day=DAY, last_day=DAY + 8 * ONE)
        (found,) = latest(catalogue, query, at(24 * 9), tally)
    assert (found.begin, tally.read) == (at(12 + 24 * 8), 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": at(2), "end": at(1)},
        {"start": datetime(2026, 1, 2)},  # noqa: DTZ001 - the point
        {"limit": -1},
        {"filename": "[z-a]"},
        {"bundle": "autoload/v1/exp/foo1/x.jsonl.gz"},
    ],
)
def test_a_query_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    """Before anything is searched."""
    with pytest.raises(ValueError, match=r"range|zone|limit|pattern|name"):
        Query(**wrong)  # type: ignore[arg-type]


def test_two_places_are_one_archive(archive: MadeArchive, opened: Callable[[], Catalogue]) -> None:
    """Day by day, and inside of a day one place after the other."""
    archive.put([Entry(name="b2")], day=DAY + ONE, place=SECOND)
    archive.put([Entry(name="a2")], place=SECOND)
    archive.put([Entry(name="a1")])
    archive.put([Entry(name="b1")], day=DAY + ONE)
    catalogue = opened()
    assert names(catalogue, Query()) == ["a1", "a2", "b1", "b2"]
    assert names(catalogue, Query(newest_first=True)) == ["b1", "b2", "a1", "a2"]


def test_ranges_of_days_end_where_enough_rows_are_reached() -> None:
    """A day is never divided."""
    days = [DAY + number * ONE for number in range(5)]
    found = _cut(zip(days, (1, 2, 7, 1, 1), strict=True), 3)
    assert found == [(days[0], days[1]), (days[2], days[2]), (days[3], days[4])]
    assert _cut([], 3) == []


def test_tables_that_are_not_there_are_named(
    warehouse: BigQueryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing may have been loaded yet, or a name is wrong."""
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", warehouse.url)
    made = BigQueryCatalogue(
        project=project(), places=[PLACE], location="US", naming=Naming.MLAB, patience_s=5
    )
    with closing(made) as catalogue:
        for search in (catalogue.files, catalogue.bundles, catalogue.days):
            tally = Tally()
            assert list(search(Query(), tally)) == []
            (problem,) = tally.problems
            assert problem.endswith(".raw_exp.index1: there is no such table")
        assert list(catalogue.rejects(Query())) == []
        assert catalogue.nodes(Query()) == ()
