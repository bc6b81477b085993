"""What the pages of `jostler serve` say, over HTTP; how they look is tested in a browser."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.catalogue import NodeDay, Query, Rejects, Tally
from jostler.archive.load_status import Failing, LoadStatus, TableStatus
from jostler.archive.serve.browsing import FOUND_MAX
from jostler.archive.serve.pages.datatype import NODES_MAX
from jostler.archive.serve.pages.file import SHOWN_MAX
from jostler.archive.serve.summary import Summary
from jostler.archive.serve.tokens import BundleId, FileId
from jostler.errors import DamageError
from jostler.storage import open_storage
from jostler.words import size
from tests.support.archive import DAY, PLACE, Entry, MadeArchive, at
from tests.support.serving import NOW, TODAY, NoContents, Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from jostler.archive.catalogue import File

NEXT_DAY = DAY + timedelta(days=1)
_TAG_RE = re.compile(r"<[^>]*>")


class Content(NoContents):
    """Each file has these bytes; none stands for a damaged row."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def raw(self, file: File) -> bytes:
        if not self._raw:
            raise DamageError(f"{file.name}: the row has another hash")
        return self._raw


class Ledger:
    """The loader has tried one day, and loaded another."""

    def status(self, _today: date) -> LoadStatus:
        return LoadStatus()

    def rows(self, _datatype: str, day: date) -> list[dict[str, Any]]:
        rows = {"rows_read": 31, "rows_loaded": 29, "rows_rejected": 2}
        return [{"status": "loaded", "finished": at(23), **rows}] if day == DAY else []


def text_of(page: str) -> str:
    """Return the words of a page, with a space for each tag."""
    body = page.partition("<main>")[2]
    return " ".join(html.unescape(_TAG_RE.sub(" ", body)).split())


def rows_of(page: str, card: str) -> list[list[str]]:
    """Return the cells of the rows of the table below a heading."""
    part = page.partition(f"<h2>{card}</h2>")[2].partition("</table>")[0]
    rows = [re.findall(r"<td.*?</td>", row) for row in part.split("<tr>")]
    return [[text_of(f"<main>{cell}") for cell in row] for row in rows if row]


def files_of(made: MadeArchive, **asked: Any) -> list[File]:  # noqa: ANN401 - as Query
    catalogue = BucketCatalogue(open_storage(made.url), [PLACE])
    return list(catalogue.files(Query(**asked)))


def test_a_bundle_has_its_names_its_sums_and_all_its_files(
    serving: Serving, made: MadeArchive
) -> None:
    """A hundred to a page; the last page leads no further."""
    index = made.put(Entry(name=f"{n:03}.json", start=at(1), size=1024) for n in range(101))
    serving.show_made(made)
    (file, *_) = files = files_of(made)

    page = serving.get(f"/bundle/{BundleId.of(file)}").text
    text = text_of(page)
    assert f"index {made.url}/{index}" in text
    assert f"data {file.origin.url}" in text
    assert f"stored {size(10 + 101 * 1000 + 10)}" in text
    rows = rows_of(page, "Files")
    assert [row[1] for row in rows] == [str(n) for n in range(1, 101)]
    assert rows[0][0::4] == [file.path, file.hash]
    (address,) = re.findall(r'href="(/bundle/[^"]*cursor=[^"]*)"', page)
    last = serving.get(html.unescape(address)).text
    assert [row[0] for row in rows_of(last, "Files")] == [files[100].path]
    assert "cursor=" not in last


def order(serving: Serving, **asked: object) -> list[str]:
    page = serving.get("/datatype/foo1", **asked).text
    return re.findall(r'<td><a href="/node/([^"?]*)"', page)


def test_a_datatype_s_nodes_are_sorted_by_name_by_silence_and_by_files(
    serving: Serving, made: MadeArchive
) -> None:
    """By last file, the node that was silent for longest comes first."""
    made.put([Entry(name="a", start=at(3)), Entry(name="b", start=at(9))], node="n2")
    made.put([Entry(name="c", start=at(8))], node="n1")
    made.put((Entry(name=f"{n}", start=at(1)) for n in range(3)), node="n3")
    made.put([Entry(name="later", start=at(26))], node="n2", day=NEXT_DAY)
    serving.show_made(made)

    assert order(serving) == order(serving, sort="wrong") == ["n1", "n2", "n3"]
    assert order(serving, sort="last") == ["n3", "n1", "n2"]
    assert order(serving, sort="files") == ["n2", "n3", "n1"]
    page = serving.get("/datatype/foo1").text
    assert "3 nodes" in text_of(page)
    # The darkest square has most files of a node and day; of 3, one file is the second of 5 shades.
    assert re.findall(rf'class="sq (q\d)"[^>]*title="{DAY}: (\d)', page) == [
        *(("q2", "1"), ("q4", "2"), ("q5", "3"))
    ]
    for row, last in zip(page.split("<tr>")[2:], ("08:00", "02:00", "01:00"), strict=True):
        assert last in row.rpartition("<time")[2]


class Fleet:
    """Each node has stored one bundle."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes

    def days(self, query: Query, _tally: Tally) -> Iterator[NodeDay]:
        for number in range(self._nodes if query.first_day == DAY else 0):
            yield NodeDay(
                day=DAY,
                datatype="foo1",
                node=f"n{number:03}",
                bundles=1,
                files=1,
                size_bytes=1,
                first=at(1),
                last=at(1),
            )

    def rejects(self, _query: Query, _tally: Tally) -> Iterator[Rejects]:
        yield from ()


def test_many_nodes_are_shown_a_hundred_at_a_time(serving: Serving, made: MadeArchive) -> None:
    """Forth and back; as many as one page takes have no second one."""
    catalogue = BucketCatalogue(open_storage(made.url), [PLACE])

    def show(nodes: int) -> None:
        serving.show(catalogue, summary=Summary(Fleet(nodes), lambda: TODAY))  # type: ignore[arg-type]

    show(NODES_MAX + 1)
    first = serving.get("/datatype/foo1").text
    assert order(serving) == [f"n{number:03}" for number in range(NODES_MAX)]
    assert ('rel="next"' in first, 'rel="prev"' in first) == (True, False)
    last = serving.get("/datatype/foo1", first=NODES_MAX).text
    assert order(serving, first=NODES_MAX) == [f"n{NODES_MAX:03}"]
    assert ('rel="next"' in last, 'rel="prev"' in last) == (False, True)
    (back,) = re.findall(r'href="([^"]*)" rel="prev"', last)
    assert html.unescape(back).endswith("first=0")
    show(NODES_MAX)
    assert 'rel="next"' not in serving.get("/datatype/foo1").text


def test_a_day_begins_with_its_loads_and_has_each_node(serving: Serving, made: MadeArchive) -> None:
    """A day that was not loaded says so; without a ledger there is nothing about loads."""
    made.put([Entry(name="a.json", size=2048)], node="n1")
    made.put([Entry(name="b.json")], node="n2")
    made.put([Entry(name="c.json")], day=NEXT_DAY)
    made.put_rejected([("foo1", "type"), ("foo1", "type")], node="n2")
    serving.show_made(made, ledger=Ledger())

    page = serving.get(f"/day/foo1/{DAY}").text
    assert [html.unescape(head) for head in re.findall("<h2>(.*?)</h2>", page)] == [
        *("Loads into BigQuery", "Nodes", "Bundles")
    ]
    ((status, _finished, _why, *counts, _error),) = rows_of(page, "Loads into BigQuery")
    assert (status, counts) == ("loaded", ["31", "29", "2"])
    assert rows_of(page, "Nodes") == [["n1", "1", "2.0 KiB", ""], ["n2", "1", "100 B", "2"]]
    assert len(rows_of(page, "Bundles")) == 2
    assert "The first" not in text_of(page)
    assert "has not loaded this day" not in text_of(page)
    other = text_of(serving.get(f"/day/foo1/{NEXT_DAY}").text)
    assert "The loader has not loaded this day." in other
    serving.show_made(made)
    assert "BigQuery" not in text_of(serving.get(f"/day/foo1/{DAY}").text)


def test_a_file_shows_its_facts_its_content_and_its_neighbours(
    serving: Serving, made: MadeArchive
) -> None:
    """Those nearest in time, without itself."""
    hours = [(n, n + 0.5) for n in range(14)]
    made.put(Entry(name=f"{n:02}.json", start=at(n), end=at(end)) for n, end in hours)
    serving.show_made(made, contents=Content(b'{"a":1}'))
    file = next(file for file in files_of(made) if file.name == "06.json")
    path = f"/file/{FileId.of(file)}"

    page = serving.get(path).text
    text = text_of(page)
    assert f"begins {DAY} 06:00:00" in text
    assert f"ends {DAY} 06:30:00" in text
    assert "<pre>{\n  &quot;a&quot;: 1\n}</pre>" in page, "with line breaks"
    assert "Download" in text
    names = [row[0].rpartition("/")[2] for row in rows_of(page, "Before and after it")]
    assert names == [f"{n:02}.json" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)]

    serving.show_made(made, contents=Content(b'"' + b"x" * SHOWN_MAX + b'"'))
    large = text_of(serving.get(path).text)
    assert "It has 256 KiB, too much for this page." in large
    assert "xxxx" not in large
    serving.show_made(made, contents=Content(b""))
    damaged = text_of(serving.get(path).text)
    assert "06.json: the row has another hash" in damaged
    assert "It cannot be shown." in damaged
    assert "Download" not in damaged


def test_a_node_shows_its_datatypes_its_last_files_and_those_of_a_day(
    serving: Serving, made: MadeArchive
) -> None:
    """The newest first, and nothing of other nodes."""
    made.put([Entry(name="a.json", start=at(1)), Entry(name="b.json", start=at(2))])
    made.put([Entry(name="c.json", start=at(25))], day=NEXT_DAY)
    made.put([Entry(name="d.json", start=at(3))], datatype="bar1", node="n2")
    made.put_rejected([("foo1", "type")])
    serving.show_made(made)

    page = serving.get("/node/n1").text
    names = [row[0].rpartition("/")[2] for row in rows_of(page, "Last files")]
    assert names == ["c.json", "b.json", "a.json"]
    (datatype,) = rows_of(page, "Datatypes")
    assert datatype[0] == "foo1"
    assert f"{NEXT_DAY} 01:00:00" in datatype[-1]
    assert [row[1:] for row in rows_of(page, "Rejected files")] == [["foo1", "type", "1"]]
    day = serving.get("/node/n1", day=DAY).text
    names = [row[0].rpartition("/")[2] for row in rows_of(day, f"Files of {DAY}")]
    assert names == ["b.json", "a.json"]
    assert "None in the last 35 days." in text_of(serving.get("/node/n2").text)


def test_the_overview_adds_up_and_marks_what_bigquery_does_not_have(
    serving: Serving, made: MadeArchive
) -> None:
    """Tables of our own are no datatypes of the archive."""
    made.put([Entry(name="a.json"), Entry(name="b.json")])
    made.put([Entry(name="c.json")], day=NEXT_DAY)
    made.put_rejected([("foo1", "type")])
    catalogue = BucketCatalogue(open_storage(made.url), [PLACE])
    loaded = {("foo1", NEXT_DAY)}
    serving.show(
        catalogue, ledger=Ledger(), summary=Summary(catalogue, lambda: TODAY, lambda *_: loaded)
    )

    page = serving.get("/").text
    assert re.findall(r'<td><a href="/datatype/([^"]*)"', page) == ["foo1"]
    assert "3 files" in page.rpartition('class="sum"')[2]
    assert f'title="{DAY}: 2 files, 200 B, 1 rejected, not in BigQuery yet"' in page
    assert f'title="{NEXT_DAY}: 1 file, 100 B"' in page


def test_an_empty_overview_says_whether_all_was_read(serving: Serving, made: MadeArchive) -> None:
    """Nothing yet and nothing at all are not the same."""
    serving.show_made(made)
    assert "No file was stored in the last 35 days." in text_of(serving.get("/").text)
    catalogue = BucketCatalogue(open_storage(made.url), [PLACE])
    archive = serving.show(catalogue)
    archive.summary._sums.clear()
    assert "The archive is being read: 35 of 35 days are left." in text_of(serving.get("/").text)


def test_a_search_shows_fifty_files_and_says_if_there_are_more(
    serving: Serving, made: MadeArchive
) -> None:
    """Fifty are not called the first of more."""
    made.put(Entry(name=f"{n:02}.json") for n in range(FOUND_MAX + 1))
    serving.show_made(made)

    more = text_of(serving.get("/search", q="*.json").text)
    assert "There are more" in more
    assert more.count(f"{DAY:%Y/%m/%d}/") == FOUND_MAX
    all_ = text_of(serving.get("/search", q="[0-4]?.json").text)
    assert "There are more" not in all_
    assert all_.count(f"{DAY:%Y/%m/%d}/") == FOUND_MAX


def test_the_page_of_loads_has_a_bucket_that_cannot_be_listed(
    serving: Serving, made: MadeArchive
) -> None:
    """By its URL, which leads to no page: a bucket is no datatype."""
    bucket = TableStatus(
        table="gs://gone",
        experiment="",
        datatype="",
        failing=(
            Failing(
                row={
                    "date": None,
                    "Status": "failed",
                    "FailureClass": "permission",
                    "ErrorText": "gs://gone: there is no such bucket",
                },
                since=NOW,
                times=2,
            ),
        ),
    )
    table = TableStatus(table="p.raw_exp.foo1", experiment="exp", datatype="foo1")

    class Failed(Ledger):
        def status(self, _today: date) -> LoadStatus:
            return LoadStatus((bucket, table))

    serving.show(BucketCatalogue(open_storage(made.url), [PLACE]), ledger=Failed())

    page = serving.get("/loads").text

    assert re.findall(r'<td data-label="Table">(?:<a href="([^"]*)">)?', page) == [
        "",
        "/datatype/foo1",
    ]
    assert "gs://gone as a whole" in page
    assert "permission: gs://gone: there is no such bucket" in page
