"""The answers of the HTTP API `/v0/archive/…`, as values; `app` carries them over HTTP.

**Invariant:** a page of results has at most `PAGE_MAX` records and, but for the last, at least one;
following `next` gives each matching record once.  A wrong request is an `ApiError`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jostler.archive.catalogue import Query, Tally, latest
from jostler.archive.serve import times
from jostler.archive.serve.tokens import FileId, cursor, parse_cursor
from jostler.words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.archive.catalogue import Catalogue, File

ROOT = "/v0/archive"
PAGE_MAX = 100
LOOKBACK = timedelta(days=14)
LOOKBACK_MAX = timedelta(days=36_600)
PARAMETERS = ("what", "where", "work_id", "start", "end", "cursor")

Json = dict[str, Any]


class ApiError(Exception):
    """A request that cannot be answered.

    Attributes:
        code: a stable word for programs.
        message: a sentence for people.
        status: the HTTP status.
    """

    def __init__(
        self, code: str, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True, slots=True)
class Results:
    """One page of files.

    Attributes:
        files: at most `PAGE_MAX`.
        more: whether others follow.
        problems: parts of the archive that could not be searched, one sentence each.
    """

    files: list[File]
    more: bool
    problems: list[str]


def list_files(catalogue: Catalogue, given: Mapping[str, str]) -> Json:
    """Answer `GET /v0/archive/files/`.

    Raises:
        ApiError: the parameters are wrong.
    """
    query = _query(given)
    found = page_of(catalogue, query)
    last = cursor(found.files[-1].position) if found.more else None
    rest = {key: given[key] for key in PARAMETERS if given.get(key) and key != "cursor"}
    return {
        "files": [record(file) for file in found.files],
        "next": f"{ROOT}/files/?{urlencode({**rest, 'cursor': last})}" if last else None,
        "problems": [shown(problem) for problem in found.problems],
    }


def page_of(catalogue: Catalogue, query: Query, most: int = PAGE_MAX) -> Results:
    """Return the first files of a query, and whether more follow."""
    tally = Tally()
    with closing(catalogue.files(replace(query, limit=most + 1), tally)) as found:  # type: ignore[type-var]
        files = list(islice(found, most + 1))
    return Results(files[:most], len(files) > most, tally.problems)


def metadata(catalogue: Catalogue, token: str) -> Json:
    """Answer `GET /v0/archive/files/<id>/metadata`.

    Raises:
        ApiError: there is no such file.
    """
    return record(find(catalogue, token))


def newest(
    catalogue: Catalogue, what: str, where: str, given: Mapping[str, str], now: datetime
) -> Json:
    """Answer `GET /v0/archive/latest/<what>/<where>`.

    Raises:
        ApiError: `lookback` is wrong, or there is no file.
    """
    lookback = _lookback(given.get("lookback", ""))
    first = max((now - lookback).date(), datetime(2000, 1, 1, tzinfo=UTC).date())
    query = Query(
        datatypes=(what,), nodes=(where,), first_day=first, last_day=(now + timedelta(1)).date()
    )
    tally = Tally()
    found = latest(catalogue, query, now, tally)
    if not found:
        problem = f"; {tally.problems[0]}" if tally.problems else ""
        raise ApiError(
            "NoSuchFile",
            f"{shown(where)} has stored no file of {shown(what)} since {first}{shown(problem)}",
            HTTPStatus.NOT_FOUND,
        )
    return record(found[0])


def find(catalogue: Catalogue, token: str) -> File:
    """Return the file of an id.

    Raises:
        ApiError: there is no such file.
    """
    missing = ApiError("NoSuchFile", "there is no file with this id", HTTPStatus.NOT_FOUND)
    try:
        wanted = FileId.parse(token)
        query = Query(
            datatypes=(wanted.datatype,),
            nodes=(wanted.node,),
            first_day=wanted.day,
            last_day=wanted.day,
            hash=wanted.hash,
        )
    except ValueError:
        raise missing from None
    with closing(catalogue.files(query)) as files:  # type: ignore[type-var]
        found = next((file for file in files if wanted.is_of(file)), None)
    if found is None:
        raise missing
    return found


def record(file: File) -> Json:
    """Return what the API shows of a file.

    Times are milliseconds since 1970, and once more as text in UTC.
    """
    token = str(FileId.of(file))
    return {
        "id": token,
        "what": file.datatype,
        "where": file.node,
        "filename": shown(file.filename),
        "start": times.to_ms(file.begin),
        "end": times.to_ms(file.finish),
        "start_iso": times.to_iso(file.begin),
        "end_iso": times.to_iso(file.finish),
        "added": times.to_ms(file.added),
        "added_iso": times.to_iso(file.added),
        "work_id": file.work_id,
        "size": file.size,
        "hash": file.hash,
        "bundle": file.origin.url,
        "line": file.line,
        "address": file.address,
        "metadata": f"{ROOT}/files/{quote(token)}/metadata",
        "data": f"{ROOT}/files/{quote(token)}/data",
    }


def _query(given: Mapping[str, str]) -> Query:
    """Check the parameters of a list of files, in the order in which they are documented."""
    if not any(given.get(key) for key in PARAMETERS):
        known = ", ".join(PARAMETERS)
        raise ApiError("NoArgs", f"say what to look for; the parameters are {known}")
    if not given.get("what"):
        raise ApiError("NoWhat", "what=DATATYPE is missing")
    work_id = given.get("work_id", "")
    start, end = given.get("start", ""), given.get("end", "")
    if not work_id and not start and not end:
        raise ApiError("NoWorkInterval", "give work_id, or both start and end")
    if work_id and (start or end):
        raise ApiError("InvalidWorkInterval", "work_id goes without start and end")
    if bool(start) != bool(end):
        missing = "start" if end else "end"
        raise ApiError("InvalidWorkInterval", f"the range has no {missing}")
    query = Query(
        datatypes=tuple(_several(given["what"])),
        nodes=tuple(_several(given.get("where", ""))),
        work_id=work_id,
    )
    if start:
        query = _between(query, start, end)
    if given.get("cursor"):
        try:
            query = replace(query, after=parse_cursor(given["cursor"]))
        except ValueError as exc:
            raise ApiError("InvalidCursor", str(exc)) from exc
    return query


def _between(query: Query, start: str, end: str) -> Query:
    try:
        first, last = times.from_ms(start), times.end_of(end)
    except ValueError as exc:
        raise ApiError("InvalidTime", str(exc)) from exc
    if last < first:
        raise ApiError("InvalidWorkInterval", f"the range ends ({end}) before its start ({start})")
    return replace(query, start=first, end=last)


def _lookback(text: str) -> timedelta:
    if not text:
        return LOOKBACK
    if text.isascii() and text.isdigit() and len(text) <= len(str(LOOKBACK_MAX // times.MS)):
        lookback = int(text) * times.MS
        if timedelta() < lookback <= LOOKBACK_MAX:
            return lookback
    known = f"1 to {LOOKBACK_MAX // times.MS}"
    raise ApiError("InvalidLookback", f"lookback is a number of milliseconds, {known}")


def _several(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
