"""Rewrite SUM and AVG of FLOAT64, which DuckDB lets go to infinity.

**Invariant:** as in GoogleSQL's reference implementation (`reference_impl/function.cc`) a SUM is an
error only if its exact value is out of range, and an AVG of finite numbers is finite.

What decides is the aggregate of the numbers times 2^-64, which cannot overflow: it is infinite or
NaN exactly if a number is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions import comparisons
from embedded.functions.duck import call, duck
from embedded.functions.kinds import may_be

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = "1.7976931348623157e308"
_OWN = ":whole IS NULL OR isfinite(:whole) THEN :whole WHEN NOT isfinite(:small) THEN :small"
_SUM = (
    f"CASE WHEN {_OWN} WHEN abs(:small) < 9.7453140114e288 "
    "THEN :small * 1.8446744073709552e19 ELSE error('double overflow: SUM') END"
)
_AVERAGE = (
    f"CASE WHEN {_OWN} ELSE greatest(least(:small * 1.8446744073709552e19, {_MOST}), -{_MOST}) END"
)
# Where only DuckDB knows whether it is FLOAT64, the result must keep its type.
_PERHAPS = (
    "CASE WHEN CAST(:whole AS VARCHAR) IN ('inf', '-inf', 'nan') AND isfinite(:small) "
    "THEN error('double overflow: SUM') ELSE :whole END"
)


def aggregate(node: exp.Expr) -> exp.Expr:
    """Rewrite SUM(x) and AVG(x); those over a window are rewritten with it."""
    plain = node
    if isinstance(node, exp.Avg):
        plain = node.copy()
        argument = _argument(plain)
        argument.replace(call("bq_no_numeric", argument.copy()))
        plain.args["this"].meta.update(node.this.meta)
    return plain if isinstance(node.parent, exp.Window) else _checked(plain, node.copy(), node)


def window(node: exp.Expr) -> exp.Expr:
    """Rewrite SUM(x) OVER (…) and AVG(x) OVER (…) as a whole."""
    if not isinstance(node.this, exp.Sum | exp.Avg):
        return comparisons.window(node)
    return _checked(node, node.copy(), node.this)


def _argument(node: exp.Expr) -> exp.Expr:
    """Return what is summed, without DISTINCT."""
    found: exp.Expr = node.this
    return found.expressions[0] if isinstance(found, exp.Distinct) else found


def _checked(whole: exp.Expr, small: exp.Expr, node: exp.Expr) -> exp.Expr:
    """Return the aggregate with a look at its result.

    Args:
        whole: the aggregate, perhaps over a window.
        small: a copy, whose argument is made small here.
        node: the aggregate as it stands in the statement.
    """
    kinds = may_be(_argument(node))
    if kinds is not None and "FLOAT64" not in kinds:
        return whole
    inner = _argument(small.this if isinstance(small, exp.Window) else small)
    inner.replace(duck("TRY_CAST(:x AS DOUBLE) * 5.421010862427522e-20", x=inner.copy()))
    if isinstance(node, exp.Avg):
        template = _AVERAGE
    else:
        template = _SUM if kinds == frozenset({"FLOAT64"}) else _PERHAPS
    return duck(template, whole=whole.copy(), small=small)


RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Sum: aggregate,
    exp.Avg: aggregate,
    exp.Window: window,
}
