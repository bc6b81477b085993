"""Where an expression stands in the text.

SQLGlot keeps the places of names, literals and calls; the place of all else spans those of its
parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError

if TYPE_CHECKING:
    from sqlglot import exp


def span(node: exp.Expr) -> tuple[int, int]:
    """Return the offsets of an expression; those of what it stands in if it has none."""
    around: exp.Expr | None = node
    while around is not None:
        metas = [part.meta for part in around.walk()]
        starts = [meta["start"] for meta in metas if "start" in meta]
        if starts:
            return min(starts), max(meta["end"] for meta in metas if "start" in meta) + 1
        around = around.parent
    return 0, 0


def refusal(code: Code, message: str, node: exp.Expr) -> QueryError:
    """Return an error at an expression."""
    return QueryError(code, message, *span(node))


def unsupported(what: str, node: exp.Expr) -> QueryError:
    """Return the error for what has no translation with the same answer."""
    return refusal(Code.NOT_SUPPORTED, f"{what} is not supported", node)
