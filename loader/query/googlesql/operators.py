"""The translation of each class of SQLGlot's expressions that is no call of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.googlesql.arithmetic import ARITHMETIC
from loader.query.googlesql.composites import COMPOSITES
from loader.query.googlesql.conditions import CONDITIONS
from loader.query.googlesql.literals import LITERALS
from loader.query.googlesql.names import column
from loader.query.googlesql.positions import unsupported

if TYPE_CHECKING:
    from loader.query.googlesql.places import Place, Rule
    from loader.query.googlesql.values import Value


def _paren(place: Place, node: exp.Expr) -> Value:
    return place.raw(node.this)


def _subquery(place: Place, node: exp.Expr) -> Value:
    return place.work.subquery(place, node)


def _at_time_zone(place: Place, node: exp.Expr) -> Value:
    del place
    raise unsupported("AT TIME ZONE outside of EXTRACT", node)


RULES: dict[type[exp.Expr], Rule] = {
    **LITERALS,
    **ARITHMETIC,
    **CONDITIONS,
    **COMPOSITES,
    exp.Column: column,
    exp.Paren: _paren,
    exp.Subquery: _subquery,
    exp.Exists: _subquery,
    exp.AtTimeZone: _at_time_zone,
}
