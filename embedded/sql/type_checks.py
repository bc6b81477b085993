"""The checks of types that operators, functions and clauses share.

**Invariant:** an expression is refused only if none of its possible types (`kinds`) is allowed; the
message is BigQuery's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.kinds import NUMBERS, Kinds, may_be
from embedded.model.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMERIC = frozenset(NUMBERS)
BOOL = frozenset({"BOOL"})
UNORDERED = ("ARRAY", "STRUCT", "JSON")
FROM_TEXT = frozenset({"DATE", "TIME", "DATETIME", "TIMESTAMP"})  # what a literal STRING becomes


def compare(left: exp.Expr, right: exp.Expr, sign: str) -> None:
    """Check that the operator `sign` can compare two operands.

    Raises:
        ApiError: none of their possible types can be compared.
    """
    both = [may_be(left), may_be(right)]
    for kinds in both:
        if kinds and all(kind.startswith("ARRAY") for kind in kinds):
            raise no_signature(f"operator {sign}", [left, right])
        if kinds == frozenset({"JSON"}):
            raise no_signature(f"operator {sign}", [left, right])
    if any(kinds == frozenset({"STRUCT"}) for kinds in both):
        if sign not in {"=", "!="}:
            raise no_signature(f"operator {sign}", [left, right])
        return
    if not _have_common_type(left, right):
        raise no_signature(f"operator {sign}", [left, right])


def _have_common_type(left: exp.Expr, right: exp.Expr) -> bool:
    """Say whether two operands may have a type in common."""
    first, second = _with_coercions(left), _with_coercions(right)
    return first is None or second is None or not first or not second or bool(first & second)


def _with_coercions(node: exp.Expr) -> Kinds:
    kinds = may_be(node)
    if kinds is None:
        return None
    more = set(kinds)
    if kinds & NUMERIC:
        more |= NUMERIC
    if _is_text(node):
        more |= FROM_TEXT
    if kinds & {"DATE", "DATETIME"}:
        more |= {"DATETIME"}
    return frozenset(more)


def _is_text(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string)


def check_type(
    value: exp.Expr, taken: frozenset[str], where: str, args: Iterable[exp.Expr | None]
) -> None:
    """Check that an argument may have one of the types that a function or operator takes.

    Args:
        value: the argument.
        taken: GoogleSQL types that are allowed.
        where: the function or operator, for the message.
        args: all of its arguments, whose types the message lists.

    Raises:
        ApiError: the argument has another type for certain.
    """
    kinds = may_be(value)
    if kinds and not kinds & taken:
        raise no_signature(where, args)


def check_common_type(nodes: Iterable[exp.Expr | None], where: str, beginning: str = "") -> None:
    """Check that the first of some expressions may share a type with each other one.

    Args:
        nodes: the expressions; None stands for an absent one.
        where: the function or operator, for the message.
        beginning: the message's beginning, if it is not "No matching signature".

    Raises:
        ApiError: two of them have no type in common for certain.
    """
    present = [node for node in nodes if node is not None]
    for left in present[:1]:
        for right in present[1:]:
            kinds = (may_be(left), may_be(right))
            arrays = [k for k in kinds if k and any(x.startswith("ARRAY") for x in k)]
            if None not in kinds and not arrays and not _have_common_type(left, right):
                if beginning:
                    types = "{" + ", ".join(map(types_text, present)) + "}"
                    raise ApiError(
                        "invalidQuery", f"{beginning} {types} do not have a common supertype"
                    )
                raise no_signature(where, present)


def check_ordered(node: exp.Expr, beginning: str) -> None:
    """Check that an expression may have a type with an order ("Data types: orderable").

    Raises:
        ApiError: it is an ARRAY, a STRUCT or JSON for certain.
    """
    kinds = may_be(node)
    if kinds and all(kind.startswith(UNORDERED) for kind in kinds):
        raise ApiError("invalidQuery", f"{beginning} {types_text(node)} is not supported")


def no_signature(where: str, args: Iterable[exp.Expr | None]) -> ApiError:
    """Return BigQuery's error for arguments of types that a function or operator does not take."""
    types = ", ".join(types_text(arg) for arg in args if arg is not None)
    return ApiError(
        "invalidQuery", f"No matching signature for {where} for argument types: {types}"
    )


def types_text(node: exp.Expr) -> str:
    """Return the possible types of an expression for a message, "?" if nothing is known."""
    kinds = may_be(node)
    if kinds is None:
        return "?"
    return " or ".join(sorted(kinds)) or "NULL"
