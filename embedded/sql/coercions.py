"""Convert STRING literals to dates where a function takes a date.

**Invariant:** only literals are converted ("Conversion rules: literal coercion"), never columns.
"""

from __future__ import annotations

from sqlglot import exp

_TAKES = {
    "DATE": (exp.DateTrunc, exp.DateDiff, exp.LastDay, exp.DateAdd, exp.DateSub, exp.UnixDate),
    "TIMESTAMPTZ": (
        exp.TimestampTrunc, exp.TimestampDiff, exp.TimestampAdd, exp.TimestampSub,
        exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros, exp.GenerateTimestampArray,
    ),
    "TIMESTAMP": (exp.DatetimeTrunc, exp.DatetimeDiff, exp.DatetimeAdd, exp.DatetimeSub),
    "TIME": (exp.TimeTrunc, exp.TimeDiff, exp.TimeAdd, exp.TimeSub),
}  # fmt: skip
_BOTH = (exp.DateDiff, exp.TimestampDiff, exp.DatetimeDiff, exp.TimeDiff)


def coerce_texts(tree: exp.Expr) -> None:
    """Cast the STRING literals among the arguments of date and time functions."""
    for node in list(tree.walk()):
        for kind, classes in _TAKES.items():
            if isinstance(node, classes):
                keys = ["this", "start", "end"]
                for key in [*keys, "expression"] if isinstance(node, _BOTH) else keys:
                    value = node.args.get(key)
                    if isinstance(value, exp.Literal) and value.is_string:
                        node.set(key, exp.cast(value.copy(), kind, dialect="duckdb"))
