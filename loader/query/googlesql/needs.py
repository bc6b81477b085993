"""Which words the conditions of WHERE need a row of a table to have, by their SEARCHes.

**Invariant:** a row without these words fails the condition; what is not understood needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import QueryError
from loader.query.googlesql.functions.calls import Call
from loader.query.googlesql.functions.searches import searched
from loader.query.googlesql.types import FLOAT64, INT64, STRING
from loader.query.text.needed import Need, both, either, of_words
from loader.query.text.words import ASCII_PATTERN, PATTERN

if TYPE_CHECKING:
    from loader.query.googlesql.functions.searches import Analyzer
    from loader.query.googlesql.places import Place
    from loader.query.googlesql.values import Origin

Needs = dict[int, Need]  # by reading
_RAW = "raw"


def needs_of(place: Place, node: exp.Expr) -> Needs:
    """Return what a condition needs of each reading."""
    if isinstance(node, exp.Paren):
        return needs_of(place, node.this)
    if isinstance(node, exp.And):
        return together(needs_of(place, node.this), needs_of(place, node.expression))
    if isinstance(node, exp.Or):
        one, other = needs_of(place, node.this), needs_of(place, node.expression)
        found = {read: either(one[read], other[read]) for read in one.keys() & other.keys()}
        return {read: need for read, need in found.items() if need is not None}
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "SEARCH":
        try:
            return _of_search(place, node)
        except QueryError:
            return {}
    return {}


def together(one: Needs, other: Needs) -> Needs:
    """Return what two conditions need together."""
    found = {read: both(one.get(read), other.get(read)) for read in one.keys() | other.keys()}
    return {read: need for read, need in found.items() if need is not None}


def _of_search(place: Place, node: exp.Anonymous) -> Needs:
    data, analyzer = searched(Call(place, "SEARCH", node, list(node.expressions)))
    need = _need(analyzer)
    parts = data.expressions if isinstance(data, exp.Array) else [data]
    origins = [_origin(place, part, analyzer) for part in parts]
    reads = {origin.read if origin else None for origin in origins}
    read = reads.pop() if len(reads) == 1 else None
    return {read: need} if need is not None and read is not None else {}


def _need(analyzer: Analyzer) -> Need | None:
    """Return the need of the words, if the text index divides texts as the analyzer does."""
    if analyzer.given and analyzer.given not in {PATTERN, ASCII_PATTERN}:
        return None
    return of_words(analyzer.words)


def _origin(place: Place, node: exp.Expr, analyzer: Analyzer) -> Origin | None:
    """Return the part of `raw` whose text is looked into; None if it is not that of a row.

    A number is looked for by its text, which the index has if it is finite: other numbers begin
    with a letter.
    """
    if isinstance(node, exp.Cast):
        digits = all(word[:1].isdigit() for word in analyzer.words)
        value = place.raw(node.this)
        if not digits or str(node.to.this) not in _TEXTS or value.type not in {INT64, FLOAT64}:
            return None
    else:
        value = place.raw(node)
        if isinstance(node.parent, exp.Array) and value.type != STRING:
            return None
    origin = value.origin
    return origin if origin and origin.whole and origin.path[0] == _RAW else None


_TEXTS = {str(exp.DataType.Type.TEXT), str(exp.DataType.Type.VARCHAR)}
