"""Arithmetic of INT64 and FLOAT64: `+ - * /`, signs, and operators of bits.

**Invariant:** a FLOAT64 that overflows is an error, as an INT64 is.  Spark gives infinity, so the
result is looked at, unless the operands are too small to overflow.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.conversions import NUMBERS, unified, wanted
from loader.query.googlesql.functions import intervals
from loader.query.googlesql.literals import LOWEST
from loader.query.googlesql.places import null_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import DATE, FLOAT64, INT64, NULL, NUMERIC
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from loader.query.googlesql.places import Place, Rule

INFINITY = "double('Infinity')"
GREATEST = 1.7e308  # a FLOAT64 that is not greater is finite, rounded or not
ABSORBED = 1e291  # less than half of the last digit of the greatest FLOAT64: a sum does not grow
MOST = 12  # operands, and operations, that are looked at together


@dataclass(frozen=True, slots=True)
class Steps:
    """How a FLOAT64 is computed, so that all of its operations are looked at together.

    Attributes:
        bound: no result has a greater magnitude, unless an operand is infinite or NaN.
        template: the computation, without a look at overflows.
        operands: what `{0}` and so on are.
        overflows: the conditions, one for each operation, that it has overflowed.
    """

    bound: float = math.inf
    template: str = "{0}"
    operands: tuple[str, ...] = ()
    overflows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Computed(Value):
    """A FLOAT64 that an operator gives."""

    steps: Steps = Steps()


def fails(condition: str, value: str, message: str) -> str:
    """Return a template that is an error under a condition."""
    return f"CASE WHEN {condition} THEN raise_error('{message}') ELSE {value} END"


def overflowed(value: str, *operands: str) -> str:
    """Return the condition that a FLOAT64 is infinite, and that none of its operands is."""
    bounds = "".join(f" AND abs({operand}) < {INFINITY}" for operand in operands)
    return f"abs({value}) = {INFINITY}{bounds}"


def finite(value: str, *operands: str) -> str:
    """Return a template of a FLOAT64 that is an error if it overflowed."""
    return fails(overflowed(value, *operands), value, "double overflow")


def _negative(place: Place, node: exp.Expr) -> Value:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string and str(inner.this).isdigit():
        whole = -int(str(inner.this))
        if whole < LOWEST:
            raise refusal(Code.ARGUMENT, f"{whole} is no INT64", node)
        return literal(whole)
    value = place.value(inner)
    constant = value.constant
    if constant is not None and isinstance(constant.value, float):
        return literal(-constant.value)
    if value.type not in {*NUMBERS, NULL}:
        raise refusal(Code.TYPE, f"-x needs a number, not {value.type}", node)
    return Value(f"(- {value.sql})", value.type if value.type != NULL else INT64)


SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def _arithmetic(place: Place, node: exp.Expr) -> Value:
    sign = SIGNS[type(node)]
    if isinstance(node.expression, exp.Interval):
        return intervals.shifted(place, node, sign)
    left, right = place.value(node.this), place.value(node.expression)
    if DATE in {left.type, right.type} and sign != "*":
        return intervals.days_added(left, right, sign, node)
    return computed(sign, left, right, node)


def computed(sign: str, left: Value, right: Value, node: exp.Expr) -> Value:
    """Add, subtract or multiply two numbers; one that overflows is an error in both engines.

    Raises:
        QueryError: they are no numbers.
    """
    for value in (left, right):
        if value.type not in {*NUMBERS, NULL}:
            raise refusal(Code.TYPE, f"{sign} needs numbers, not {value.type}", node)
    one, other = unified([left, right], node, f"the operands of {sign}")
    if one.type == NULL:
        return null_of(INT64)
    if one.type == NUMERIC:
        raise unsupported("arithmetic of NUMERIC (CAST it to FLOAT64)", node)
    if one.type == FLOAT64:
        return _float(sign, _steps(left, one), _steps(right, other))
    return Value(f"({one.sql} {sign} {other.sql})", one.type)


def _division(place: Place, node: exp.Expr) -> Value:
    given = [place.value(node.this), place.value(node.expression)]
    if NUMERIC in {value.type for value in given}:
        raise unsupported("division of NUMERIC (CAST it to FLOAT64)", node)
    left, right = (
        _steps(value, wanted(value, FLOAT64, node, "an operand of /")) for value in given
    )
    constant = given[1].constant.value if given[1].constant is not None else None
    # 0 is an error, and what is not below 1 makes nothing greater.
    great = isinstance(constant, float) and abs(constant) >= 1
    return _float("/", left, right, shrinks=given[1].type == INT64 or great)


def _steps(given: Value, value: Value) -> Steps:
    """Return how an operand is computed, by what it was before it became a FLOAT64."""
    constant = value.constant.value if value.constant is not None else None
    if isinstance(constant, float):
        return Steps(abs(constant), "{0}", (value.sql,))
    if isinstance(given, Computed):
        return given.steps
    return Steps(2.0**63 if given.type == INT64 else math.inf, "{0}", (value.sql,))


def _float(sign: str, left: Steps, right: Steps, *, shrinks: bool = False) -> Value:
    """Combine two FLOAT64; what overflows at one step is found at the end.

    An infinity does not become finite again by `+ - *` and as a dividend, but it does as a divisor,
    which is therefore looked at by itself.
    """
    if sign == "/" and right.overflows:
        right = _settled(right)
    counts = len(left.operands + right.operands), len(left.overflows + right.overflows)
    if max(counts) >= MOST:
        left, right = _settled(left), _settled(right)
    first, second, values = _together(left, right)
    template = f"({first.template} {sign} {second.template})"
    bound = left.bound if shrinks else _bound(sign, left.bound, right.bound)
    overflows = (*first.overflows, *second.overflows)
    if not (shrinks or bound <= GREATEST or _harmless(sign, left.bound, right.bound)):
        # What has a bound is finite.
        unsure = [one.template for one in (first, second) if one.bound == math.inf]
        overflows += (overflowed(template, *dict.fromkeys(unsure)),)
    return _checked(Steps(bound, template, values, overflows))


def _settled(steps: Steps) -> Steps:
    """Return a computation as one operand."""
    return steps if steps.template == "{0}" else Steps(steps.bound, "{0}", (_checked(steps).sql,))


def _bound(sign: str, left: float, right: float) -> float:
    if sign == "/":
        return math.inf
    if sign == "*":
        return math.inf if math.inf in {left, right} else left * right
    return left + right


def _harmless(sign: str, left: float, right: float) -> bool:
    """Say whether an operation leaves any finite number finite."""
    if sign == "*":
        return min(left, right) <= 1
    return sign != "/" and min(left, right) < ABSORBED


_PLACE = re.compile(r"\{(\d+)\}")


def _together(left: Steps, right: Steps) -> tuple[Steps, Steps, tuple[str, ...]]:
    """Number the operands of two computations as those of one; equal texts are one operand."""
    operands = list(left.operands)
    numbers = []
    for text in right.operands:
        if text not in operands:
            operands.append(text)
        numbers.append(operands.index(text))

    def moved(template: str) -> str:
        return _PLACE.sub(lambda found: f"{{{numbers[int(found[1])]}}}", template)

    overflows = tuple(moved(one) for one in right.overflows)
    return left, Steps(right.bound, moved(right.template), (), overflows), tuple(operands)


def _checked(steps: Steps) -> Computed:
    template = steps.template
    if len(steps.overflows) == 1:
        template = fails(steps.overflows[0], template, "double overflow")
    elif steps.overflows:
        # A finite result says in one look that no step has overflowed.
        any_step = " OR ".join(f"({one})" for one in steps.overflows)
        wrong = f"NOT (abs({template}) < {INFINITY}) AND ({any_step})"
        template = fails(wrong, template, "double overflow")
    return Computed(filled(template, steps.operands), FLOAT64, steps=steps)


BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}


def _bits(place: Place, node: exp.Expr) -> Value:
    sign = BITS[type(node)]
    left, right = (
        wanted(place.value(part), INT64, node, f"an operand of {sign}")
        for part in (node.this, node.expression)
    )
    return Value(f"({left.sql} {sign} {right.sql})", INT64)


def _complement(place: Place, node: exp.Expr) -> Value:
    value = wanted(place.value(node.this), INT64, node, "the operand of ~")
    return Value(f"(~ {value.sql})", INT64)


ARITHMETIC: dict[type[exp.Expr], Rule] = {
    exp.Neg: _negative,
    **dict.fromkeys(SIGNS, _arithmetic),
    exp.Div: _division,
    **dict.fromkeys(BITS, _bits),
    exp.BitwiseNot: _complement,
}
