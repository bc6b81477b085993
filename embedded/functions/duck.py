"""Build expressions of DuckDB's SQL for rewritten trees.

**Invariant:** expressions are used as given; no rule of GoogleSQL is applied here.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp


def call(name: str, *args: exp.Expr) -> exp.Anonymous:
    """Return a call of a DuckDB function or macro."""
    return exp.Anonymous(this=name, expressions=list(args))


def duck(sql: str, **parts: exp.Expr) -> exp.Expr:
    """Parse a DuckDB expression and replace each `:name` in it by the part of that name."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    for node in list(tree.find_all(exp.Placeholder)):
        node.replace(parts[str(node.this)].copy())
    return tree
