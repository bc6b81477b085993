"""The parts of GoogleSQL that the compiler writes, for those who run its SQL on another engine.

**Invariant:** a compiled question calls no function that is not named here; a test compares.

Besides these it writes: `WITH`, `SELECT` of named columns (never `*`), `FROM` of one table or CTE
with an alias, `JOIN … ON` and `LEFT JOIN … ON` of subqueries, `WHERE`, `GROUP BY` with places
(`1, 2`), `ORDER BY … [DESC]`, `LIMIT … OFFSET …`, `UNION ALL`; `AND OR NOT = != < <= > >= LIKE`,
`NOT LIKE`, `IN UNNEST(…)`, `IS NULL`, `IS NOT NULL`, `+ - * /`, `CASE WHEN`,
`STRUCT(x AS name, …)`, `CAST(NULL AS ARRAY<STRUCT<…>>)`, an array of texts in brackets,
`TIMESTAMP '…+00'` and `DATE '…'`, `INTERVAL <expression> <part>`, and

    ARRAY(SELECT <expression of e> FROM UNNEST(<array>) AS e WITH OFFSET AS o [WHERE …] ORDER BY o)

as the only subquery in an expression.  Identifiers stand in backquotes, and strings in single ones,
with backslash escapes.
"""

from __future__ import annotations

_SCALAR = """
ABS LEAST GREATEST FLOOR CEIL ROUND TRUNC SQRT POW LN LOG EXP MOD DIV SAFE_DIVIDE
IF IFNULL NULLIF CAST SAFE_CAST
LENGTH LOWER UPPER TRIM SUBSTR CONCAT REPLACE SPLIT STRPOS LEFT RIGHT
REGEXP_CONTAINS REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_REPLACE
ARRAY ARRAY_LENGTH ARRAY_TO_STRING UNNEST STRUCT
JSON_VALUE TO_JSON_STRING
TIMESTAMP DATETIME DATE TIMESTAMP_ADD DATETIME_ADD TIMESTAMP_DIFF DATETIME_DIFF TIMESTAMP_TRUNC
TIMESTAMP_SECONDS UNIX_SECONDS FORMAT_TIMESTAMP EXTRACT GENERATE_TIMESTAMP_ARRAY WEEK
TO_BASE64 FROM_HEX TO_HEX MD5 SHA1 SHA256 SHA512 SAFE_CONVERT_BYTES_TO_STRING
"""
_AGGREGATES = """
COUNT SUM AVG MIN MAX MIN_BY MAX_BY ARRAY_AGG VAR_POP STDDEV_POP COVAR_POP CORR
"""
# ARRAY_AGG only as `ARRAY_AGG(DISTINCT x IGNORE NULLS ORDER BY x)`; SEARCH of `raw`, or of an array
# of texts, for one token, with `analyzer => 'PATTERN_ANALYZER'` and the options in `sources`.
FUNCTIONS = frozenset([*_SCALAR.split(), *_AGGREGATES.split(), "SEARCH"])
