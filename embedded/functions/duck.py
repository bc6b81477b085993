"""Pieces of DuckDB's SQL for the trees that are rewritten.

**Invariant:** a piece is written as it stands; no rule of GoogleSQL is in here.

It refuses nothing.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp


def call(name: str, *args: exp.Expr) -> exp.Anonymous:
    """Return a call of a DuckDB function or macro."""
    return exp.Anonymous(this=name, expressions=list(args))


def duck(sql: str, **parts: exp.Expr) -> exp.Expr:
    """Parse a DuckDB expression in which `:name` stands for a part."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    for node in list(tree.find_all(exp.Placeholder)):
        node.replace(parts[str(node.this)].copy())
    return tree
