"""Rewrite SEARCH: does a value have all words of a query?

**Invariant:** words are found as the text analyzer that the call names does ("Text analysis").

LOG_ANALYZER has only queries of plain words here, and PATTERN_ANALYZER one pattern; other options,
and reserved characters, are errors.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from embedded.functions import values
from embedded.functions.duck import call
from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = re.compile(r"[\w\s]*")
_WORD = r"[^\[\]<>(){}|!;,'\"*&?+/:=@.\-$%\\_\s]+"  # between the delimiters of LOG_ANALYZER
# Of a text that is encoded for a URL these, too, are delimiters.
_ENCODED = r"%(?:2526|2520|2[16BbCc089]|3[BbDdAa]|7[Cc]|5[DdBb]|0[Aa])"
_PATTERN = r"\b\w{2,}\b"
_ARGUMENTS = frozenset({"analyzer", "analyzer_options"})
BODIES: dict[str, tuple[str, str]] = {
    "bq_tokens": (
        "l, p, c",
        (
            "flatten(list_transform(l, lambda e: list_transform(regexp_extract_all(e, p), "
            "lambda w: CASE WHEN c THEN lower(w) ELSE w END)))"
        ),
    ),
    "bq_search": (
        "l, q, p, c",
        (
            "CASE WHEN len(bq_tokens([q], p, c)) = 0 "
            "THEN error('SEARCH: the search query has no tokens') "
            "ELSE coalesce(list_has_all(bq_tokens(l, p, c), bq_tokens([q], p, c)), FALSE) END"
        ),
    ),
}


def searched(node: exp.Expr) -> exp.Expr:
    """Rewrite SEARCH(data, query, analyzer => …, analyzer_options => …).

    Raises:
        ApiError: an argument is wrong, or not supported.
    """
    given = [arg for arg in node.expressions if not isinstance(arg, exp.Kwarg)]
    named = {
        arg.this.name.lower(): arg.expression
        for arg in node.expressions
        if isinstance(arg, exp.Kwarg)
    }
    if len(given) != 2:  # noqa: PLR2004 - data and query
        raise invalid("No matching signature for function SEARCH")
    if other := named.keys() - _ARGUMENTS:
        raise unsupported(f"SEARCH with {', '.join(sorted(other))}")
    texts_ = call(
        "py_texts",
        call("typeof", given[0]),
        exp.cast(call("to_json", given[0].copy()), "VARCHAR", dialect="duckdb"),
    )
    query = _literal(given[1], "search_query")
    analyzer = _literal(named["analyzer"], "analyzer") if "analyzer" in named else "LOG_ANALYZER"
    options = _options(named.get("analyzer_options"))
    if analyzer == "NO_OP_ANALYZER" and not options:
        return call("list_contains", texts_, exp.Literal.string(query))
    pattern, lower = _analyzer(analyzer, options, query)
    if analyzer == "LOG_ANALYZER":
        texts_ = call("py_decoded", texts_)
    return call(
        "bq_search",
        texts_,
        exp.Literal.string(query),
        exp.Literal.string(pattern),
        exp.true() if lower else exp.false(),
    )


def _literal(node: exp.Expr, what: str) -> str:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise unsupported(f"SEARCH with a {what} that is no literal")
    return str(node.this)


def _options(node: exp.Expr | None) -> dict[str, object]:
    if node is None:
        return {}
    try:
        found = json.loads(_literal(node, "analyzer_options"))
    except ValueError as exc:
        raise invalid(f"Invalid analyzer_options: {exc}") from exc
    if not isinstance(found, dict):
        raise invalid("Invalid analyzer_options: expected a JSON object")
    return found


def _analyzer(name: str, options: dict[str, object], query: str) -> tuple[str, bool]:
    """Return the regular expression of a word, and whether words are made lower-case."""
    if name == "LOG_ANALYZER" and not options:
        if not _PLAIN.fullmatch(query):
            raise unsupported("SEARCH by LOG_ANALYZER with reserved characters in the query")
        return _WORD, True
    if name != "PATTERN_ANALYZER" or options.keys() - {"patterns", "token_filters"}:
        raise unsupported(f"SEARCH by {name} with these options")
    patterns = options.get("patterns", [_PATTERN])
    if not (isinstance(patterns, list) and len(patterns) == 1 and isinstance(patterns[0], str)):
        raise unsupported("SEARCH by other than one pattern")
    filters = options.get("token_filters", [{"normalizer": {"mode": "LOWER"}}])
    modes = [{"normalizer": {"mode": mode}} for mode in ("LOWER", "NONE")]
    if not isinstance(filters, list) or len(filters) != 1 or filters[0] not in modes:
        raise unsupported("SEARCH with these token_filters")
    return patterns[0], filters[0] == modes[0]


def texts(kind: str, text: str | None) -> list[str]:
    """Return the STRINGs in a value that DuckDB passes as JSON with its type."""
    if text is None:
        return []
    return list(_texts(values.parsed_type(kind), values.loaded(text)))


def _texts(kind: values.Type, value: object) -> Iterator[str]:
    if kind.kind == "ARRAY":
        for item in cast("list[object]", value or ()):
            yield from _texts(kind.parts[0][1], item)
    elif kind.kind == "STRUCT":
        given = cast("dict[str, object]", value or {})
        for name, inner in kind.parts:
            yield from _texts(inner, given.get(name))
    elif kind.kind == "JSON":
        yield from _json_texts(value)
    elif kind.kind == "STRING" and value is not None:
        yield str(value)


def _json_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _json_texts(item)
    elif isinstance(value, str) and not isinstance(value, values.Number):
        yield value


def decoded(given: list[str] | None) -> list[str]:
    """Return texts with a space for each delimiter that is encoded for a URL."""
    return [re.sub(_ENCODED, " ", text) for text in given or ()]
