"""Names of a query's columns, as BigQuery gives them.

**Invariant:** every output of the outermost SELECT has the name it would have in BigQuery.

It refuses nothing.
"""

from __future__ import annotations

from sqlglot import exp


def name_outputs(tree: exp.Expr) -> None:
    """Name columns without an alias: a path by its last part, anything else `f0_`, `f1_`, …."""
    for select in _outermost(tree):
        anonymous = 0
        named = []
        for item in select.expressions:
            if isinstance(item, exp.Alias | exp.Star) or item.is_star:
                named.append(item)
                continue
            name = _path_name(item)
            if not name:
                name = f"f{anonymous}_"
                anonymous += 1
            named.append(exp.alias_(item, name, quoted=True))
        if not select.args.get("kind"):
            select.set("expressions", named)


def _outermost(tree: exp.Expr) -> list[exp.Select]:
    if isinstance(tree, exp.Select):
        return [tree]
    if isinstance(tree, exp.SetOperation):
        return _outermost(tree.left) + _outermost(tree.right)
    if isinstance(tree, exp.Subquery):
        return _outermost(tree.this)
    return []


def _path_name(item: exp.Expr) -> str:
    if isinstance(item, exp.Column):
        return str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    return ""
