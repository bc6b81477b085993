"""Values that are written in a query: numbers, texts, BYTES, NULL and truths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.values import Value, literal

if TYPE_CHECKING:
    from loader.query.googlesql.places import Place, Rule

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def _literal(place: Place, node: exp.Expr) -> Value:
    del place
    if node.is_string:
        return literal(str(node.this))
    return _number(str(node.this), node)


def _number(digits: str, node: exp.Expr) -> Value:
    try:
        if digits.isdigit():
            whole = int(digits)
            if whole > HIGHEST:
                raise refusal(Code.ARGUMENT, f"{digits} is no INT64", node)
            return literal(whole)
        found = float(digits)
    except ValueError:
        raise refusal(Code.SYNTAX, f"{digits!r} is no number", node) from None
    if found in (float("inf"), float("-inf")):
        raise refusal(Code.ARGUMENT, f"{digits} is no FLOAT64", node)
    return literal(found)


def _hex(place: Place, node: exp.Expr) -> Value:
    del place
    whole = int(str(node.this), 16) if node.args.get("is_integer") else int(str(node.this), 0)
    return literal(whole)


def _bytes(place: Place, node: exp.Expr) -> Value:
    """Return a literal of BYTES; SQLGlot keeps its escapes."""
    del place
    given = str(node.this)
    try:
        found = given.encode("latin-1", "strict") if _is_latin(given) else given.encode()
        plain = found.decode("latin-1")
        value = plain.encode("latin-1").decode("unicode_escape").encode("latin-1")
    except (UnicodeError, ValueError):
        raise unsupported("this literal of BYTES", node) from None
    return literal(value)


def _is_latin(given: str) -> bool:
    return all(ord(char) < 256 for char in given)  # noqa: PLR2004 - one byte


def _null(place: Place, node: exp.Expr) -> Value:
    del place, node
    return literal(None)


def _boolean(place: Place, node: exp.Expr) -> Value:
    del place
    return literal(bool(node.this))


LITERALS: dict[type[exp.Expr], Rule] = {
    exp.Literal: _literal,
    exp.RawString: lambda _, node: literal(str(node.this)),
    exp.ByteString: _bytes,
    exp.HexString: _hex,
    exp.Null: _null,
    exp.Boolean: _boolean,
}
