"""Translate DuckDB's error messages to BigQuery's.

**Invariant:** a message has no class name of DuckDB's errors, no name of a macro, and no line of
the translated SQL.

A message without a known counterpart stays, without DuckDB's prefix.
"""

from __future__ import annotations

import re

from embedded.functions.scripted import RAISED

_MACRO = r"(?:bq_)?(?:safe_)?(\w+?)(?:_of)?"
# pattern → BigQuery's message; the first pattern that occurs in DuckDB's first line counts.
_SENTENCES: list[tuple[str, str]] = [
    (r'Referenced column "([^"]+)" (?:was )?not found', r"Unrecognized name: \1"),
    (r'Referenced table "([^"]+)" not found', r"Unrecognized name: \1"),
    (r'column "?([^" ]+)"? must appear in the GROUP BY clause',
     r"SELECT list expression references column \1 which is neither grouped nor aggregated"),
    (r'Could not find key "([^"]+)" in struct', r"Field name \1 does not exist in STRUCT"),
    (r'Ambiguous reference to column name "([^"]+)"', r"Column name \1 is ambiguous"),
    (r"(?:Scalar|Aggregate|Table) Function with name (?:bq_)?(\w+) does not exist",
     r"Function not found: \1"),
    (r"Macro " + _MACRO + r"\(\) does not support the supplied arguments",
     r"No matching signature for function \1"),
    (r"No function matches the given name and argument types '(?:bq_)?(\w+)\((.*)\)'",
     r"No matching signature for function \1 for argument types: \2"),
    (r"Could not choose a best candidate function for the function call \"(\w+)\(",
     r"No matching signature for function \1"),
    (r"Cannot (?:compare|mix) values of type (\S+) and (?:type )?(\S+)",
     r"No matching signature for operator = for argument types: \1, \2"),
    (r"Overflow in (addition|subtraction|multiplication|negation|left shift)[^(]*\((.*)\)",
     r"int64 overflow: \2"),
    (r"More than one row returned by a subquery",
     "Scalar subquery produced more than one element"),
    (r"TRY can not be used in combination with a volatile function",
     "SAFE. of this function is not supported by the embedded BigQuery"),
    (r"aggregate function calls cannot be nested",
     "Aggregations of aggregations are not allowed"),
    (r"WHERE clause cannot contain aggregates",
     "Aggregate function not allowed in WHERE clause"),
    (r"WHERE clause cannot contain window functions",
     "Analytic function not allowed in WHERE clause"),
    (r"Set operations can only apply to expressions with the same number of result columns",
     "Queries in a set operation have mismatched column count"),
    (r"Duplicate alias \"([^\"]+)\"", r"Duplicate table alias \1 in the same FROM clause"),
    (r"Malformed JSON[^:]*: (.*?)\.?  Input", r"Invalid JSON: \1"),
    (r"Type .* with value (\S+) can't be cast .* out of range",
     r"Value \1 is out of range of its type"),
    (r"^(?:missing|invalid|no argument).*regular expression|^(missing \S+: .*)$",
     r"Cannot parse regular expression: \1"),
]  # fmt: skip
_TYPES = {
    "VARCHAR": "STRING", "STRING_LITERAL": "STRING", "BIGINT": "INT64", "INTEGER": "INT64",
    "INTEGER_LITERAL": "INT64", "HUGEINT": "INT64", "DOUBLE": "FLOAT64", "BOOLEAN": "BOOL",
    "BLOB": "BYTES", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
}  # fmt: skip
_PREFIX = re.compile(r"^(?:\w+ ){1,3}Error: ")


def bigquery_message(error: str) -> str:
    """Return BigQuery's message for an error of DuckDB.

    Args:
        error: DuckDB's message.
    """
    raised = RAISED.search(error)
    if raised is not None:
        return raised[1].strip()
    first = _PREFIX.sub("", error.strip().splitlines()[0]).strip()
    if "Out of Memory" in error:
        return "Resources exceeded during query execution: not enough memory"
    for pattern, sentence in _SENTENCES:
        found = re.search(pattern, first)
        if found is not None:
            return _named(found.expand(sentence))
    return _named(first)


def _named(text: str) -> str:
    """Replace DuckDB's names of types by GoogleSQL's, and remove names of macros."""
    for theirs, ours in _TYPES.items():
        text = re.sub(rf"\b{theirs}\b(?!\()", ours, text)
    text = re.sub(r"DECIMAL\(38, ?9\)", "NUMERIC", text)
    return re.sub(r"\bbq_(\w+?)(?:_of)?\b", r"\1", text)
