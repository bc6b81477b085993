"""Compile an expression over the fields of a scope.

**Invariant:** the result is within the bounds of `values.bounded`, so engines can parse it.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.arguments import Arguments
from loader.query.logs.networks import NETWORKS
from loader.query.logs.numbers import NUMBERS
from loader.query.logs.operators import OPERATORS, SIGNS
from loader.query.logs.syntax import Literal, Name
from loader.query.logs.texts import TEXTS
from loader.query.logs.times import TIMES
from loader.query.logs.values import (
    BOOL,
    FLOAT64,
    INT64,
    NOTHING,
    STRING,
    Value,
    bounded,
    literal,
    typed_null,
)

if TYPE_CHECKING:
    from datetime import datetime

    from loader.query.logs.scope import Scope
    from loader.query.logs.syntax import Expression

FUNCTIONS = {**OPERATORS, **NUMBERS, **TEXTS, **TIMES, **NETWORKS}
NAMES = tuple(sorted(FUNCTIONS.keys() - SIGNS))
"""The functions that one calls by name."""


def compiled(node: Expression, scope: Scope, now: datetime) -> Value:
    """Compile an expression.

    Raises:
        QueryError: it names what is not there, or a type does not fit.
    """
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, Name):
        return bounded(scope.value(node), node)
    function = FUNCTIONS.get(node.name)
    if function is None:
        what = f"no function {node.name!r}; there are: {', '.join(NAMES)}"
        raise QueryError(Code.UNKNOWN_FUNCTION, what, node.start, node.start + len(node.name))
    args = tuple(compiled(arg, scope, now) for arg in node.args)
    return bounded(function(Arguments(node, args, now)), node)


def condition(node: Expression, scope: Scope, now: datetime) -> str:
    """Compile an expression that holds or not.

    Raises:
        QueryError: as `compiled`, or it is no condition.
    """
    value = compiled(node, scope, now)
    if value.type.is_null:
        return typed_null(BOOL)
    if value.type != BOOL:
        what = f"expected a condition, as x > 1, found a {value.type.shown}"
        raise QueryError(Code.TYPE, what, node.start, node.end)
    return value.sql


def _literal(node: Literal) -> Value:
    found = node.value
    if found is None:
        return NOTHING
    if isinstance(found, bool):
        return Value("TRUE" if found else "FALSE", BOOL)
    if isinstance(found, str):
        return Value(literal(found), STRING)
    if isinstance(found, int):
        return Value(str(found) if found >= 0 else f"({found})", INT64)
    text = repr(found)
    return Value(text if "e" in text or "." in text else f"{text}.0", FLOAT64)
