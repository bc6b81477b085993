"""Parse expressions: `not x > 1 + 2 * y and in(city, "Z*")`.

**Invariant:** by rising precedence: `or`, `and`, `not`, comparisons (which do not follow each
other), `+ -`, `* / %`, unary minus.

Pure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.reader import RESERVED
from loader.query.logs.syntax import MAX_DEPTH, Call, Expression, Literal
from loader.query.logs.tokens import Kind

if TYPE_CHECKING:
    from loader.query.logs.reader import Reader

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_BINARY = (("+", "-"), ("*", "/", "%"))
_CONSTANTS = {"true": True, "false": False, "null": None}
_MAX_INT = 2**63 - 1


def expression(reader: Reader) -> Expression:
    """Read an expression.

    Raises:
        QueryError: there is none, or it nests too deep.
    """
    with reader.nested():
        return _chain(reader, "or")


def call(reader: Reader, name: str, args: tuple[Expression, ...], start: int) -> Call:
    """Return a call that ends where the reader stands.

    Raises:
        QueryError: it nests too deep.
    """
    depth = 1 + max((arg.depth for arg in args), default=0)
    if depth > MAX_DEPTH:
        what = f"an expression of more than {MAX_DEPTH} levels (use eval for its parts)"
        raise QueryError(Code.NOT_SUPPORTED, what, start, reader.end)
    return Call(start, reader.end, name, args, depth)


def _chain(reader: Reader, word: str) -> Expression:
    """Read operands with `or` (or `and`) between them, as one call: a long chain is not deep."""
    operands = [_operand(reader, word)]
    while reader.take_word(word):
        operands.append(_operand(reader, word))
    if len(operands) == 1:
        return operands[0]
    return call(reader, word, tuple(operands), operands[0].start)


def _operand(reader: Reader, word: str) -> Expression:
    return _chain(reader, "and") if word == "or" else _negation(reader)


def _negation(reader: Reader) -> Expression:
    start = reader.token.start
    if not reader.take_word("not"):
        return _comparison(reader)
    with reader.nested():
        return call(reader, "not", (_negation(reader),), start)


def _comparison(reader: Reader) -> Expression:
    left = _arithmetic(reader, 0)
    if reader.is_sign("="):
        raise reader.expected("`==`, which compares,")
    if not (reader.is_sign(*COMPARISONS) or reader.is_word("contain")):
        return left
    sign = reader.advance().text.lower()
    right = _arithmetic(reader, 0)
    if reader.is_sign(*COMPARISONS):
        raise reader.expected("`and` or `or` after a comparison")
    return call(reader, sign, (left, right), left.start)


def _arithmetic(reader: Reader, level: int) -> Expression:
    if level == len(_BINARY):
        return _unary(reader)
    left = _arithmetic(reader, level + 1)
    while reader.is_sign(*_BINARY[level]):
        sign = reader.advance().text
        left = call(reader, sign, (left, _arithmetic(reader, level + 1)), left.start)
    return left


def _unary(reader: Reader) -> Expression:
    start = reader.token.start
    if not reader.take_sign("-"):
        return _primary(reader)
    if reader.token.kind is Kind.NUMBER and reader.token.text == str(_MAX_INT + 1):
        reader.advance()  # the one number that is smaller than the greatest one is great
        return Literal(start, reader.end, -_MAX_INT - 1)
    with reader.nested():
        return call(reader, "neg", (_unary(reader),), start)


def _primary(reader: Reader) -> Expression:
    token = reader.token
    if token.kind is Kind.NUMBER:
        return _number(reader)
    if token.kind is Kind.STRING:
        reader.advance()
        return Literal(token.start, token.end, token.text)
    if reader.take_sign("("):
        inner = expression(reader)
        reader.sign(")", "after the expression")
        return inner
    if token.kind is not Kind.WORD:
        raise reader.expected("a field, a value or a function")
    if not token.quoted and token.text.lower() in _CONSTANTS:
        reader.advance()
        return Literal(token.start, token.end, _CONSTANTS[token.text.lower()])
    following = reader.following()
    if following.kind is Kind.SIGN and following.text == "(" and not token.quoted:
        return _function(reader)
    return reader.name("a field, a value or a function")


def _function(reader: Reader) -> Expression:
    token = reader.token
    if token.text.lower() in RESERVED:
        raise reader.expected("a field, a value or a function")
    reader.advance()
    return call(reader, token.text.lower(), arguments(reader), token.start)


def arguments(reader: Reader) -> tuple[Expression, ...]:
    """Read `(a, b, …)`, which may be empty."""
    reader.sign("(", "after the function")
    args: tuple[Expression, ...] = ()
    if not reader.is_sign(")"):
        args = reader.several(lambda: expression(reader))
    reader.sign(")", "or `,` after the argument")
    return args


def _number(reader: Reader) -> Literal:
    token = reader.advance()
    if token.text.isdecimal():
        digits = token.text.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > _MAX_INT:  # noqa: PLR2004 - of 2^63
            what = f"expected a whole number of at most {_MAX_INT}"
            raise QueryError(Code.ARGUMENT, what, token.start, token.end)
        return Literal(token.start, token.end, int(digits))
    number = float(token.text)
    if math.isinf(number):
        what = "expected a number that a double holds"
        raise QueryError(Code.ARGUMENT, what, token.start, token.end)
    return Literal(token.start, token.end, number)
