"""What is refused, by what code, and which words are at fault."""

# ruff: noqa: Q000, Q003
# Questions have quotes, and stand on one line.

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loader.query import logs
from loader.query.errors import Code, QueryError
from tests.query.logs.archive import COLUMNS, NOW

if TYPE_CHECKING:
    from jostler.schema.fields import Fields


class Shapes:
    """The tables' shapes alone: most questions are refused before anything is asked."""

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(COLUMNS))

    def columns(self, table: str) -> Fields | None:
        return COLUMNS.get(table)


SYNTAX, ARGUMENT, TYPE = Code.SYNTAX, Code.ARGUMENT, Code.TYPE
FIELD, TABLE, FUNCTION = Code.UNKNOWN_FIELD, Code.UNKNOWN_TABLE, Code.UNKNOWN_FUNCTION
COMMAND, UNSUPPORTED = Code.UNKNOWN_COMMAND, Code.NOT_SUPPORTED
# The words at fault stand between « and »; nothing between them is a place where words are missing.
REFUSED = [
    # Text.
    (SYNTAX, "«»"),
    (SYNTAX, "«SELECT» 1"),
    (SYNTAX, "table iis | «»"),
    (SYNTAX, "table iis «]»"),
    (SYNTAX, "table iis | search city == «'x'»".replace("«'x'»", "«'»x'")),
    (SYNTAX, 'table iis | search city == «"x»'),
    (SYNTAX, "table iis | search «`city»"),
    (SYNTAX, "table iis | search city == «;»"),
    (SYNTAX, 'table iis | search city == "a«\x00»"'),
    (COMMAND, "table iis | «find» x"),
    (SYNTAX, "table iis | «table» iis"),
    # table.
    (SYNTAX, "table «»"),
    (TABLE, "table «nothing»"),
    (TABLE, "table iis, «nothing»"),
    (TABLE, "table iis | lookup «nothing» a output b"),
    (ARGUMENT, "table limit=«-1» iis"),
    (ARGUMENT, "table offset=«-1» iis"),
    (ARGUMENT, "table limit=«1.5» iis"),
    (ARGUMENT, "table limit:«x» iis"),
    (ARGUMENT, "table limit=«99999999999» iis"),
    (ARGUMENT, "table limit=1 «limit»=2 iis"),
    (ARGUMENT, "table «lines»=1 iis"),
    (ARGUMENT, "table from=«2026» iis"),
    (ARGUMENT, "table from=«20261301» iis"),
    (ARGUMENT, "table from=20260102 to=«20260102» iis"),
    (ARGUMENT, "table duration=«1x» iis"),
    (ARGUMENT, "table duration=«0d» iis"),
    (ARGUMENT, "table duration=«9999y» iis"),
    (ARGUMENT, "table from=20260101 to=20260102 duration=«1d» iis"),
    (FIELD, "table duration=1d «lookups.iso_code»"),
    (SYNTAX, "table duration=«|» iis"),
    # search and expressions.
    (SYNTAX, "table iis | search «»"),
    (SYNTAX, "table iis | search city «=» 1"),
    (SYNTAX, "table iis | search (bytes > 1«»"),
    (SYNTAX, "table iis | search 1 < bytes «<» 3"),
    (SYNTAX, "table iis | search bytes > 1 and«»"),
    (SYNTAX, "table iis | search min(1 «2»)"),
    (SYNTAX, "table iis | search «and»"),
    (SYNTAX, "table iis | search raw.«»"),
    (ARGUMENT, "table iis | search limit=«-2» bytes > 1"),
    (TYPE, "table iis | search «bytes»"),
    (TYPE, "table iis | search «bytes + 1»"),
    (TYPE, "table iis | search bytes == «\"1\"»"),
    (TYPE, "table iis | search city == «1»"),
    (TYPE, "table iis | search «city» + 1 > 1"),
    (TYPE, "table iis | search bytes and «1»".replace("bytes and «1»", "«bytes» and true")),
    (TYPE, "table one | search list == «\"x\"»"),
    (TYPE, "table one | search yes > «false»"),
    (TYPE, 'table one | search at > «"soon"»'.replace('«"soon"»', '«"soon"»')),
    (FIELD, "table iis | search «nothing» > 1"),
    (FIELD, "table iis | search «raw.nothing» > 1"),
    (FIELD, "table iis | search «city.name» == \"x\""),
    (FUNCTION, "table iis | search «nothing»(bytes)"),
    (ARGUMENT, "table iis | search «abs(1, 2)» > 1"),
    (ARGUMENT, "table iis | search bytes > «9223372036854775808»"),
    (ARGUMENT, "table iis | search bytes > «1e999»"),
    (UNSUPPORTED, "table iis | search " + "(" * 30 + "«1»"),
    (UNSUPPORTED, "table iis | search " + "-" * 30 + "«1»"),
    (UNSUPPORTED, "table iis | search «" + "1+" * 30 + "1» > 0"),
    # eval and functions.
    (SYNTAX, "table iis | eval x = «»"),
    (SYNTAX, "table iis | eval raw.x «=» 1"),
    (ARGUMENT, "table iis | eval «`a.b`» = 1"),
    (TYPE, "table iis | eval x = abs(«city»)"),
    (TYPE, "table iis | eval x = lower(«bytes»)"),
    (TYPE, "table iis | eval x = if(bytes > 1, 1, «\"a\"»)"),
    (TYPE, "table iis | eval x = contain(«bytes», 1)"),
    (TYPE, "table one | eval x = contain(numbers, «\"a\"»)"),
    (TYPE, "table one | eval x = strjoin(\",\", «text»)"),
    (TYPE, "table one | eval x = int(«at»)"),
    (ARGUMENT, 'table iis | eval x = match(city, «"("»)'),
    (ARGUMENT, 'table iis | eval x = match(city, «"(?=a)"»)'),
    (ARGUMENT, r'table iis | eval x = match(city, «"(a)\1"»)'),
    (ARGUMENT, 'table iis | eval x = match(city, «"a*+"»)'),
    (ARGUMENT, 'table iis | eval x = match(city, «"[[a]]"»)'),
    (ARGUMENT, 'table iis | eval x = match(city, «"a{1001}"»)'),
    (ARGUMENT, "table iis | eval x = match(city, «city»)"),
    (ARGUMENT, 'table one | eval x = string(at, «"QQ"»)'),
    (ARGUMENT, 'table one | eval x = date(text, «"MM/dd"»)'),
    (ARGUMENT, 'table one | eval x = dateadd(at, «"fortnight"», 1)'),
    (ARGUMENT, 'table one | eval x = daterange(at, at, «"1mon"»)'),
    (ARGUMENT, 'table one | eval x = network("1.2.3.4", «33»)'),
    (ARGUMENT, 'table one | eval x = hash("a", «"crc"»)'),
    # stats.
    (SYNTAX, "table iis | stats «»"),
    (SYNTAX, "table iis | stats count by «»"),
    (SYNTAX, "table iis | stats count as «»"),
    (FUNCTION, "table iis | stats «median»(bytes)"),
    (ARGUMENT, "table iis | stats «sum»"),
    (ARGUMENT, "table iis | stats «covar(bytes)»"),
    (ARGUMENT, "table iis | stats «per_day(bytes)»"),
    (ARGUMENT, "table iis | fields city | stats «first(city)»"),
    (ARGUMENT, "table iis | stats count as a, «max(bytes) as A»"),
    (TYPE, "table iis | stats sum(«city»)"),
    (TYPE, "table iis | stats count by «raw»"),
    (TYPE, "table one | stats values(«list»)"),
    (FIELD, "table iis | stats count | search «city» == \"x\""),
    # timechart.
    (ARGUMENT, "table iis | timechart span=«5mon» count"),
    (ARGUMENT, "table iis | timechart span=«2y» count"),
    (ARGUMENT, "table iis | timechart span=«1» count"),
    (ARGUMENT, "table iis | timechart span=«400d» count"),
    (SYNTAX, "table iis | timechart span=«»"),
    (FIELD, "table iis | fields city | «timechart count»"),
    (UNSUPPORTED, "table iis | timechart count by city | «limit 1»"),
    (UNSUPPORTED, "table iis | union [ «table iis | timechart count by city» ]"),
    # sort, fields, rename, limit, drop.
    (SYNTAX, "table iis | sort «»"),
    (FIELD, "table iis | sort -«nothing»"),
    (TYPE, "table iis | sort «raw»"),
    (ARGUMENT, "table iis | sort limit=«-1» city"),
    (SYNTAX, "table iis | fields -«»"),
    (FIELD, "table iis | fields «nothing»"),
    (UNSUPPORTED, "table iis | fields - «raw.city»"),
    (ARGUMENT, "table iis | «fields - _time, date, archiver, raw»"),
    (SYNTAX, "table iis | rename city «to» town"),
    (SYNTAX, "table iis | rename city as town«.»name"),
    (FIELD, "table iis | rename «nothing» as x"),
    (ARGUMENT, "table iis | limit «-1»"),
    (ARGUMENT, "table iis | limit 1 «-1»"),
    (SYNTAX, "table iis | limit «»"),
    (SYNTAX, "table iis | drop «all»"),
    # rex, lookup, join, union, parsejson.
    (SYNTAX, 'table iis | rex «"(?<a>.)"»'),
    (SYNTAX, "table iis | rex field=line «»"),
    (ARGUMENT, 'table iis | rex field=line «"(a)"»'),
    (ARGUMENT, 'table iis | rex field=line «"(?<a>.)(?<A>.)"»'),
    (TYPE, 'table iis | rex field=«bytes» "(?<a>.)"'),
    (SYNTAX, "table iis | lookup iso_code country_code «»"),
    (FIELD, "table iis | lookup iso_code «city» output country"),
    (FIELD, "table iis | lookup iso_code country_code output «capital»"),
    (FIELD, "table iis | lookup iso_code country_code as «land» output country"),
    (SYNTAX, "table iis | join city «»"),
    (SYNTAX, "table iis | join city [ table iis «»"),
    (ARGUMENT, "table iis | join type=«outer» city [ table iis ]"),
    (ARGUMENT, "table iis | join city [ «table iis» ]"),
    (FIELD, "table iis | join «nothing» [ table iis | stats count by city ]"),
    (FIELD, "table iis | join «city» [ table iis | stats count by country_code ]"),
    (SYNTAX, "table iis | union «table» iis"),
    (TYPE, "table iis | eval x = 1 | «union [ table iis | eval x = \"a\" ]»"),
    (TYPE, "table iis | parsejson «bytes»"),
    (UNSUPPORTED, "table iis" + " | union [ table iis" * 4 + " | union [ «table» iis ]"),
    # fulltext.
    (SYNTAX, "fulltext from«»"),
    (SYNTAX, 'fulltext "a" «»'),
    (SYNTAX, 'fulltext «a» from iis'),
    (SYNTAX, 'fulltext "a" and «1 < 2» from iis'),
    (ARGUMENT, 'fulltext «"..."» from iis'),
    (TABLE, 'fulltext "a" from «nothing»'),
]  # fmt: skip


@pytest.mark.parametrize(("code", "marked"), REFUSED)
def test_a_question_is_refused_with_its_place(code: Code, marked: str) -> None:
    """The error has the code, and its offsets are those of the words at fault."""
    text = marked.replace("«", "").replace("»", "")
    start = marked.index("«")
    with pytest.raises(QueryError) as caught:
        logs.compile(text, Shapes(), NOW)
    error = caught.value
    found = f"{text[: error.start]}«{text[error.start : error.end]}»{text[error.end :]}"
    assert (error.code, found) == (code, marked), error.message
    assert start == error.start
    assert error.message
    assert "\n" not in error.message


def test_an_error_says_what_there_is() -> None:
    """A wrong name is answered with those that are like it."""
    with pytest.raises(QueryError, match="did you mean city"):
        logs.compile("table iis | sort cty", Shapes(), NOW)
    with pytest.raises(QueryError, match="there are: five, iis"):
        logs.compile("table isi", Shapes(), NOW)
    with pytest.raises(QueryError, match="no function 'absolute'; there are: abs, base64"):
        logs.compile("table iis | eval x = absolute(1)", Shapes(), NOW)
