"""SEARCH: does a value have all words of a query ("Search functions", "Text analysis")?

**Invariant:** words are found as the text analyzer that the call names does.  LOG_ANALYZER takes
queries of plain words here, and PATTERN_ANALYZER one pattern; other options are refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.characters import RegexError
from loader.query.googlesql.places import field_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.regexps import translated
from loader.query.googlesql.types import BOOL, JSON, STRING, array
from loader.query.googlesql.values import Value, filled, text
from loader.query.text.words import ASCII_PATTERN, ENCODED

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function

_PLAIN = re.compile(r"[\w\s]*")
_WORD = r"""[^\[\]<>(){}|!;,'"*&?+/:=@.\-$%\\_\s]+"""  # between the delimiters of LOG_ANALYZER
_LETTERS = r"[\p{L}\p{N}_]"
_LOWER, _AS_IT_IS = [{"normalizer": {"mode": "LOWER"}}], [{"normalizer": {"mode": "NONE"}}]


@dataclass(frozen=True, slots=True)
class Analyzer:
    """How a text is divided into words.

    Attributes:
        pattern: the regular expression of a word for Java; "" for the whole text.
        words: the words of the query.
        lower: whether words are made lower-case.
        decoded: whether what is encoded for a URL is decoded first.
        given: the pattern as the question has it; "" for another analyzer.
    """

    pattern: str
    words: tuple[str, ...]
    lower: bool = True
    decoded: bool = False
    given: str = ""


def _search(call: Call) -> Value:
    data, found = searched(call)
    texts = _listed(call.place.value(data))
    if not texts:
        return Value("false", BOOL)
    tokens = texts
    if found.pattern:
        each = f"regexp_replace(_s, {text(ENCODED)}, ' ')" if found.decoded else "_s"
        each = f"regexp_extract_all({each}, {text(found.pattern)}, 0)"
        each = f"transform({each}, _w -> lower(_w))" if found.lower else each
        tokens = f"flatten(transform({texts}, _s -> {each}))"
    words = [text(word) for word in dict.fromkeys(found.words)]
    if len(words) == 1:
        return Value(f"coalesce(array_contains({tokens}, {words[0]}), false)", BOOL)
    made = f"(size(array_intersect({{0}}, array({', '.join(words)}))) = {len(words)})"
    return Value(filled(made, [tokens]), BOOL)


def searched(call: Call) -> tuple[exp.Expr, Analyzer]:
    """Return what a call of SEARCH looks into, and for what.

    Raises:
        QueryError: BigQuery would refuse the call, or this form is not supported.
    """
    given = [node for node in call.nodes if not isinstance(node, exp.Kwarg)]
    named = {
        node.this.name.lower(): node.expression
        for node in call.nodes
        if isinstance(node, exp.Kwarg)
    }
    if len(given) != 2:  # noqa: PLR2004 - data and query
        raise call.refused("SEARCH has the arguments data and query")
    for name in named.keys() - {"analyzer", "analyzer_options"}:
        raise unsupported(f"SEARCH with {name}", named[name])
    return given[0], _analyzer(call, _literal(call, given[1]), named)


def _literal(call: Call, node: exp.Expr) -> str:
    value = call.place.value(node)
    if value.constant is None or not isinstance(value.constant.value, str):
        raise unsupported("SEARCH by something that is no literal", node)
    return value.constant.value


def _analyzer(call: Call, query: str, named: dict[str, exp.Expr]) -> Analyzer:
    name = _literal(call, named["analyzer"]) if "analyzer" in named else "LOG_ANALYZER"
    options = _options(call, named)
    if name == "NO_OP_ANALYZER" and not options:
        return Analyzer("", (query,), lower=False)
    if name == "LOG_ANALYZER" and not options:
        if not _PLAIN.fullmatch(query):
            raise call.unsupported("SEARCH by LOG_ANALYZER with other than letters and digits", 1)
        return _divided(call, _WORD, query, lower=True, decoded=True)
    if name != "PATTERN_ANALYZER" or options.keys() - {"patterns", "token_filters"}:
        raise call.unsupported(f"SEARCH by {name} with these options")
    patterns, filters = (
        options.get("patterns", [ASCII_PATTERN]),
        options.get("token_filters", _LOWER),
    )
    if not (isinstance(patterns, list) and len(patterns) == 1 and isinstance(patterns[0], str)):
        raise call.unsupported("SEARCH by other than one pattern")
    if filters not in (_LOWER, _AS_IT_IS):
        raise call.unsupported("SEARCH with these token_filters")
    return _divided(call, patterns[0], query, lower=filters == _LOWER, decoded=False)


def _options(call: Call, named: dict[str, exp.Expr]) -> dict[str, object]:
    if "analyzer_options" not in named:
        return {}
    node = named["analyzer_options"]
    try:
        found = json.loads(_literal(call, node))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise refusal(Code.ARGUMENT, "analyzer_options must be a JSON object", node)
    return found


def _divided(call: Call, pattern: str, query: str, *, lower: bool, decoded: bool) -> Analyzer:
    """Divide the query into words, by Python; the pattern must mean the same there."""
    try:
        regex = translated(pattern)
        words = _words(call, pattern, query)
    except (RegexError, re.error) as exc:
        raise call.refused(f"this pattern of SEARCH is not supported: {exc}") from exc
    if regex.groups or regex.empty:
        raise call.unsupported("a pattern of SEARCH with groups, or that matches nothing")
    if not words:
        raise call.refused("SEARCH needs at least one word", 1)
    found = tuple(word.lower() if lower else word for word in words)
    return Analyzer(regex.java, found, lower, decoded, "" if decoded else pattern)


def _words(call: Call, pattern: str, query: str) -> list[str]:
    plain = pattern.replace(_LETTERS, r"\w")  # in Python that is letters, digits and `_`
    if r"\p" in plain or (plain != pattern and re.search(r"\\[dwsb]", pattern)):
        raise call.unsupported("this pattern of SEARCH")
    return re.findall(plain, query, re.ASCII if plain == pattern else re.UNICODE)


def _listed(value: Value) -> str:
    """Return an expression for the array of the texts in a value; "" if it can have none."""
    arrays, texts = _texts(value)
    parts = [f"coalesce({one}, CAST(array() AS ARRAY<STRING>))" for one in arrays]
    parts += [f"array({', '.join(texts)})"] if texts else []
    if not parts:
        return ""
    joined = parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
    return f"array_compact({joined})"


def _texts(value: Value) -> tuple[list[str], list[str]]:
    """Return the arrays of STRING and the STRINGs in a value."""
    kind = value.type
    if kind == STRING:
        return [], [value.sql]
    if kind == array(STRING):
        return [value.sql], []
    if kind == JSON:
        return [], []
    arrays: list[str] = []
    texts: list[str] = []
    for name, _ in kind.fields:
        inner = field_of(value, name)
        assert inner is not None
        more = _texts(inner)
        arrays += more[0]
        texts += more[1]
    if kind.element is not None and kind.element.fields:
        held = f"_a{value.sql.count('_a')}"
        inside = _listed(Value(held, kind.element))
        if inside:
            arrays.append(f"flatten(transform({value.sql}, {held} -> {inside}))")
    return arrays, texts


SEARCHES: dict[str, Function] = {"SEARCH": _search}
