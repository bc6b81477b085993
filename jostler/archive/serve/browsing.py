"""The pages' data: what each page asks of the catalogue, and within which bounds."""

from __future__ import annotations

import heapq
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING

from jostler.archive.catalogue import Position, Query, Tally
from jostler.archive.serve import api
from jostler.archive.serve.api import ApiError
from jostler.archive.serve.contents import download
from jostler.archive.serve.pages import bundle as bundle_page
from jostler.archive.serve.pages import datatype as datatype_page
from jostler.archive.serve.pages import day as day_page
from jostler.archive.serve.pages import file as file_page
from jostler.archive.serve.pages import loads as loads_page
from jostler.archive.serve.pages import node as node_page
from jostler.archive.serve.pages import search as search_page
from jostler.archive.serve.pages.overview import overview
from jostler.archive.serve.replies import TEXT_MAX, html
from jostler.archive.serve.tokens import BundleId, cursor, parse_cursor
from jostler.errors import JostlerError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from jostler.archive.catalogue import Bundle, File
    from jostler.archive.serve.served import Archive

NEIGHBOURS = 5
LAST_FILES = 50
FOUND_MAX = 50
FIRST_DIGITS = 7
_DAY = timedelta(days=1)


class Pages:
    """Writes pages.  Each method may raise ApiError and JostlerError."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._catalogue = archive.catalogue
        self._summary = archive.summary

    def overview(self, _request: Request) -> Response:
        """Show datatypes by days."""
        return html(overview(self._archive.site(), self._summary))

    def datatype(self, request: Request) -> Response:
        """Show the nodes of a datatype by days."""
        sort, first = (
            request.query_params.get("sort", "name"),
            request.query_params.get("first", ""),
        )
        return html(
            datatype_page.datatype(
                self._archive.site(),
                self._summary,
                request.path_params["datatype"],
                sort=sort if sort in datatype_page.SORTS else "name",
                first=int(first) if first.isascii() and first.isdigit() else 0,
            )
        )

    def node(self, request: Request) -> Response:
        """Show the datatypes of a node, its last files or those of a day, and its rejects."""
        node = request.path_params["node"]
        given = request.query_params.get("day")
        day = _day(given) if given else None
        first, last = (day, day) if day else self._window()
        files, problems = self._files(
            Query(nodes=(node,), first_day=first, last_day=last, newest_first=True), LAST_FILES
        )
        files.sort(key=lambda file: file.begin, reverse=True)
        query = Query(nodes=(node,), first_day=first, last_day=last)
        with closing(self._catalogue.rejects(query)) as found:  # type: ignore[type-var]
            rejects = list(found)
        return html(
            node_page.node(
                self._archive.site(),
                self._summary,
                node,
                files=files,
                rejects=rejects,
                day=day,
                problems=problems,
            )
        )

    def day(self, request: Request) -> Response:
        """Show a datatype's day: nodes, bundles, and the ledger's rows."""
        datatype, day = request.path_params["datatype"], _day(request.path_params["day"])
        tally = Tally()
        query = Query(
            datatypes=(datatype,), first_day=day, last_day=day, limit=day_page.BUNDLES_MAX + 1
        )
        bundles = self._bundles(query, tally)
        ledger = self._archive.ledger
        return html(
            day_page.day(
                self._archive.site(),
                datatype,
                day,
                nodes=self._summary.of(day).by_node.get(datatype, {}),
                bundles=bundles,
                ledger=ledger.rows(datatype, day) if ledger else None,
                problems=tally.problems,
            )
        )

    def loads(self, _request: Request) -> Response:
        """Show how the loads stand, by the loader's ledger."""
        ledger = self._archive.ledger
        if ledger is None:
            why = "the loader's ledger is not asked: start jostler serve with -project"
            raise ApiError("NoLedger", why, HTTPStatus.NOT_FOUND)
        site = self._archive.site()
        return html(loads_page.loads(site, ledger.status(site.now.date())))

    def bundle(self, request: Request) -> Response:
        """Show the files of a bundle."""
        missing = ApiError("NoSuchBundle", "there is no such bundle", HTTPStatus.NOT_FOUND)
        try:
            wanted = BundleId.parse(request.path_params["token"])
            given = request.query_params.get("cursor")
            after = parse_cursor(given) if given else (wanted.day, wanted.index, 0)
        except ValueError:
            raise missing from None
        query = Query(
            datatypes=(wanted.datatype,),
            nodes=(wanted.node,),
            first_day=wanted.day,
            last_day=wanted.day,
            after=Position(*after),
        )
        files, problems = self._files(query, api.PAGE_MAX + 1)
        mine = [file for file in files if file.origin.index == wanted.index]
        before = Position(wanted.day, wanted.index, -1)  # a bundle comes at line 0 of its index
        sums = self._bundles(replace(query, after=before, limit=1), Tally())
        if not mine or not sums or sums[0].origin.index != wanted.index:
            raise missing
        more = cursor(mine[api.PAGE_MAX - 1].position) if len(mine) > api.PAGE_MAX else None
        shown = mine[: api.PAGE_MAX]
        site = self._archive.site()
        return html(bundle_page.bundle(site, sums[0], shown, following=more, problems=problems))

    def file(self, request: Request) -> Response:
        """Show one file, where it is, and its neighbours in time."""
        file = api.find(self._catalogue, request.path_params["token"])
        raw, problem = b"", ""
        try:
            raw = download(file, self._archive.contents.raw(file)).data
        except JostlerError as exc:
            problem = str(exc)
        return html(
            file_page.file(
                self._archive.site(),
                file,
                raw=raw,
                problem=problem,
                findings=self._archive.contents.findings(file),
                neighbours=self._neighbours(file),
            )
        )

    def search(self, request: Request) -> Response:
        """Show what a name, hash, work id or time finds."""
        text = request.query_params.get("q", "")[:TEXT_MAX]
        first, last = self._window()
        results, problems = [], []
        for reading in search_page.readings(text, first, last):
            files, more_problems = self._files(reading.query, FOUND_MAX + 1)
            shown, more = files[:FOUND_MAX], len(files) > FOUND_MAX
            results.append(search_page.Results(reading, shown, more))
            problems += more_problems
        return html(
            search_page.search(
                self._archive.site(), text, results, first=first, last=last, problems=problems
            )
        )

    def _window(self) -> tuple[date, date]:
        days = self._summary.window
        return days[0], days[-1] + _DAY

    def _files(self, query: Query, most: int) -> tuple[list[File], list[str]]:
        tally = Tally()
        with closing(self._catalogue.files(query, tally)) as found:  # type: ignore[type-var]
            return list(islice(found, most)), tally.problems

    def _bundles(self, query: Query, tally: Tally) -> list[Bundle]:
        with closing(self._catalogue.bundles(query, tally)) as found:  # type: ignore[type-var]
            return list(found)

    def _neighbours(self, file: File) -> list[File]:
        """Return the files nearest in time, of the same node and datatype, in order."""
        query = Query(
            datatypes=(file.datatype,),
            nodes=(file.node,),
            start=file.begin - _DAY,
            end=file.begin + _DAY,
        )
        with closing(self._catalogue.files(query)) as found:  # type: ignore[type-var]
            near = heapq.nsmallest(
                2 * NEIGHBOURS + 1, found, key=lambda other: abs(other.begin - file.begin)
            )
        return sorted((one for one in near if one != file), key=lambda other: other.begin)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        message = f"{text[:40]!r} is not a day yyyy-mm-dd"
        raise ApiError("NoSuchDay", message, HTTPStatus.NOT_FOUND) from None
