"""Parse a question of the log-query language.

**Invariant:** each call reads forward alone, and nesting is bounded, so any text of bounded length
ends in bounded time as a pipeline or as an error with its place.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs import syntax
from loader.query.logs.expressions import arguments, expression
from loader.query.logs.options import chart_span, is_option, options, row_count, time_range
from loader.query.logs.reader import Reader
from loader.query.logs.spans import DAY
from loader.query.logs.tokens import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

MAX_COMMANDS = 50
MAX_SUBQUERIES = 4
"""How deep subqueries nest."""
SOURCES = ("table", "fulltext")


def parse(text: str, now: datetime) -> syntax.Pipeline:
    """Parse a question.

    Args:
        text: the question.
        now: UTC; where a `duration` ends.

    Raises:
        QueryError: the text is no question of this language.
    """
    parser = _Parser(Reader(text), now)
    pipeline = parser.pipeline(0)
    if parser.reader.token.kind is not Kind.END:
        raise parser.reader.expected("`|` or the end")
    return pipeline


class _Parser:
    """The commands; each method is named for its command and begins behind the command's name."""

    def __init__(self, reader: Reader, now: datetime) -> None:
        self.reader = reader
        self._now = now
        self._depth = 0
        self._commands: dict[str, Callable[[int], syntax.Command]] = {
            "search": self._search, "eval": self._eval, "stats": self._stats,
            "timechart": self._timechart, "sort": self._sort, "fields": self._fields,
            "rename": self._rename, "limit": self._limit, "drop": self._drop, "rex": self._rex,
            "lookup": self._lookup, "join": self._join, "union": self._union,
            "parsejson": self._parsejson,
        }  # fmt: skip

    def pipeline(self, depth: int) -> syntax.Pipeline:
        self._depth = depth
        source = self._source()
        commands: list[syntax.Command] = []
        while self.reader.take_sign("|"):
            if len(commands) == MAX_COMMANDS:
                raise self.reader.wrong(
                    Code.NOT_SUPPORTED, f"a pipeline has at most {MAX_COMMANDS} commands"
                )
            commands.append(self._command())
            self._depth = depth
        return syntax.Pipeline(source.start, self.reader.end, source, tuple(commands))

    def _source(self) -> syntax.Source:
        token = self.reader.token
        if self.reader.take_word("table"):
            rows = time_range(self.reader, self._now)
            names = self.reader.several(self._table_name)
            return syntax.Table(token.start, self.reader.end, rows, names)
        if self.reader.take_word("fulltext"):
            rows = time_range(self.reader, self._now)
            query = expression(self.reader)
            self.reader.word("from", "and a table after the texts")
            names = self.reader.several(self._table_name)
            return syntax.Fulltext(token.start, self.reader.end, rows, query, names)
        raise self.reader.expected("`table` or `fulltext`, with which a query begins")

    def _table_name(self) -> syntax.TableName:
        name = self.reader.name("the name of a table")
        may_be_missing = self.reader.take_sign("?")
        return syntax.TableName(name.start, self.reader.end, name.text, may_be_missing)

    def _command(self) -> syntax.Command:
        token = self.reader.kind(Kind.WORD, "a command after `|`")
        word = token.text.lower()
        if word in SOURCES:
            message = f"{word} begins a query; expected one of {', '.join(self._commands)}"
            raise QueryError(Code.SYNTAX, message, token.start, token.end)
        if token.quoted or word not in self._commands:
            message = f"no command {token.text!r}; there are: {', '.join(self._commands)}"
            raise QueryError(Code.UNKNOWN_COMMAND, message, token.start, token.end)
        return self._commands[word](token.start)

    def _search(self, start: int) -> syntax.Search:
        limit = None
        if is_option(self.reader) and self.reader.is_word("limit"):
            limit = options(self.reader, "limit")["limit"].count()
        condition = expression(self.reader)
        return syntax.Search(start, self.reader.end, condition, limit)

    def _eval(self, start: int) -> syntax.Command:
        after = self.reader.following()
        if self.reader.token.kind is Kind.WORD and (after.kind, after.text) == (Kind.SIGN, "="):
            name = self.reader.plain_name("the name of a field")
            self.reader.advance()
            return syntax.Eval(start, self.reader.end, name, expression(self.reader))
        return syntax.Search(start, self.reader.end, expression(self.reader))

    def _aggregate(self) -> syntax.Aggregate:
        token = self.reader.kind(Kind.WORD, "an aggregate, as `count` or `avg(x)`")
        args = arguments(self.reader) if self.reader.is_sign("(") else ()
        alias = ""
        if self.reader.take_word("as"):
            alias = self.reader.plain_name("the name of a field").text
        return syntax.Aggregate(
            token.start, self.reader.end, token.text.lower(), tuple(args), alias
        )

    def _field(self) -> syntax.Name:
        return self.reader.name("a field")

    def _stats(self, start: int) -> syntax.Stats:
        aggregates = self.reader.several(self._aggregate)
        by: tuple[syntax.Name, ...] = ()
        if self.reader.take_word("by"):
            by = self.reader.several(self._field)
        return syntax.Stats(start, self.reader.end, aggregates, by)

    def _timechart(self, start: int) -> syntax.Timechart:
        span = chart_span(options(self.reader, "span"), DAY)
        aggregates = self.reader.several(self._aggregate)
        by = self._field() if self.reader.take_word("by") else None
        return syntax.Timechart(start, self.reader.end, span, aggregates, by)

    def _sort(self, start: int) -> syntax.Sort:
        given = options(self.reader, "limit")
        keys = self.reader.several(self._key)
        limit = given["limit"].count() if given else None
        return syntax.Sort(start, self.reader.end, keys, limit)

    def _key(self) -> syntax.Key:
        start = self.reader.token.start
        descending = self.reader.take_sign("-")
        if not descending:
            self.reader.take_sign("+")
        name = self.reader.name("a field to sort by")
        return syntax.Key(start, name.end, name, descending)

    def _fields(self, start: int) -> syntax.Fields:
        removed = self.reader.take_sign("-")
        names = self.reader.several(self._field)
        return syntax.Fields(start, self.reader.end, names, removed)

    def _rename(self, start: int) -> syntax.Rename:
        pairs = self.reader.several(self._renamed)
        return syntax.Rename(start, self.reader.end, pairs)

    def _renamed(self) -> tuple[syntax.Name, syntax.Name]:
        before = self._field()
        self.reader.word("as", "between the old and the new name")
        return before, self.reader.plain_name("the new name of the field")

    def _count(self) -> int:
        minus = self.reader.take_sign("-")
        if self.reader.token.kind is not Kind.NUMBER:
            raise self.reader.expected("a number of rows")
        return row_count(self.reader.advance(), minus=minus, what="limit")

    def _limit(self, start: int) -> syntax.Limit:
        first = self._count()
        if self.reader.is_sign("-") or self.reader.token.kind is Kind.NUMBER:
            return syntax.Limit(start, self.reader.end, first, self._count())
        return syntax.Limit(start, self.reader.end, 0, first)

    def _drop(self, start: int) -> syntax.Drop:
        return syntax.Drop(start, self.reader.end)

    def _rex(self, start: int) -> syntax.Rex:
        self._option_name("field", 'as in `rex field=line "(?<user>[a-z]+)@"`')
        field = self._field()
        token = self.reader.kind(Kind.STRING, "a regular expression in double quotes")
        pattern = syntax.Literal(token.start, token.end, token.text)
        return syntax.Rex(start, self.reader.end, field, pattern)

    def _option_name(self, word: str, where: str) -> None:
        self.reader.word(word, where)
        if not self.reader.is_sign("=", ":"):
            raise self.reader.expected(f"`=` after {word}")
        self.reader.advance()

    def _lookup(self, start: int) -> syntax.Lookup:
        table = self.reader.plain_name("the name of a lookup table")
        key = self.reader.plain_name("a column of the lookup table")
        field = self._field() if self.reader.take_word("as") else key
        self.reader.word("output", "and columns of the lookup table")
        outputs = self.reader.several(self._output)
        return syntax.Lookup(start, self.reader.end, table, key, field, outputs)

    def _output(self) -> tuple[syntax.Name, syntax.Name]:
        column = self.reader.plain_name("a column of the lookup table")
        if not self.reader.take_word("as"):
            return column, column
        return column, self.reader.plain_name("the name of a field")

    def _join(self, start: int) -> syntax.Join:
        given = options(self.reader, "type")
        kind = given["type"].value.text.lower() if given else "inner"
        if kind not in {"inner", "left"}:
            raise given["type"].wrong("expected inner or left")
        keys = self.reader.several(self._field)
        query = self._subquery()
        return syntax.Join(start, self.reader.end, keys, kind == "left", query)

    def _union(self, start: int) -> syntax.Union:
        query = self._subquery()
        return syntax.Union(start, self.reader.end, query)

    def _subquery(self) -> syntax.Pipeline:
        self.reader.sign("[", "and a query in brackets")
        if self._depth == MAX_SUBQUERIES:
            raise self.reader.wrong(
                Code.NOT_SUPPORTED, f"subqueries nested deeper than {MAX_SUBQUERIES} levels"
            )
        query = self.pipeline(self._depth + 1)
        self.reader.sign("]", "or `|` after the subquery")
        return query

    def _parsejson(self, start: int) -> syntax.ParseJson:
        if is_option(self.reader):
            self._option_name("field", "or nothing after parsejson")
        if self.reader.token.kind is Kind.WORD:
            field = self._field()
        else:
            field = syntax.Name(start, self.reader.end, ("line",))
        return syntax.ParseJson(start, self.reader.end, field)
