"""Expressions over the columns of `ROWS` that both engines must answer alike; and refused ones."""

from __future__ import annotations

from jostler.schema.fields import Field, Mode

FIELDS = (
    Field(name="id", type="INTEGER"),
    Field(name="i", type="INTEGER"),
    Field(name="f", type="FLOAT"),
    Field(name="s", type="STRING"),
    Field(name="b", type="BOOLEAN"),
    Field(name="d", type="DATE"),
    Field(name="t", type="TIMESTAMP"),
    Field(name="z", type="DATETIME"),
    Field(name="y", type="BYTES"),
    Field(name="a", type="INTEGER", mode=Mode.REPEATED),
    Field(
        name="r",
        type="RECORD",
        fields=(Field(name="x", type="INTEGER"), Field(name="n", type="STRING")),
    ),
    Field(
        name="l",
        type="RECORD",
        mode=Mode.REPEATED,
        fields=(Field(name="k", type="STRING"), Field(name="v", type="FLOAT")),
    ),
    Field(name="j", type="STRING"),
)
# As a load job takes them: BYTES in base64, NaN and infinity as texts.
ROWS: list[dict[str, object]] = [
    {
        "id": 1, "i": 7, "f": 2.5, "s": "Foo bar@example.com", "b": True, "d": "2024-02-29",
        "t": "2024-02-29 23:59:58.123456", "z": "2024-02-29 23:59:58.123456", "y": "YWJj",
        "a": [3, 1, 2], "r": {"x": 5, "n": "five"},
        "l": [{"k": "a", "v": 1.5}, {"k": "b", "v": None}], "j": '{"a": {"b": [1, "x", 2.50]}}',
    },
    {
        "id": 2, "i": -8, "f": "NaN", "s": "naïve_CASE 12\n3.5", "b": False, "d": "2023-12-31",
        "t": "2023-12-31 00:00:00", "z": "2023-12-31 12:30:00.5", "y": "AP8=",
        "a": [], "r": {"x": None, "n": ""}, "l": [], "j": "no json",
    },
    {
        "id": 3, "i": 0, "f": "-Infinity", "s": "", "b": True, "d": "1969-07-20",
        "t": "1969-07-20 20:17:40.000001", "z": "1969-07-20 20:17:40", "y": "",
        "a": [10], "r": {"x": -1, "n": "%_\\"}, "l": [{"k": "b", "v": 0.1}, {"k": "a", "v": 7}],
        "j": '{"a": null, "c": "q\\"uote"}',
    },
    {"id": 4, "a": [], "l": []},
    {
        "id": 5, "i": 9007199254740993, "f": 0.30000000000000004, "s": "  a,b;;c  ", "b": False,
        "d": "2021-01-03", "t": "2021-01-03 10:00:00.5", "z": "2021-01-03 10:00:00.000001",
        "y": "w6k=", "a": [5, 5, 9, -2], "r": {"x": 12, "n": "x,y"},
        "l": [{"k": None, "v": "NaN"}], "j": "[1, {}, true]",
    },
]  # fmt: skip
EXPRESSIONS = r"""
i + 1
i - 2 * 3
-i
i / 4
i / 4.0
f + 1
f * 2 - 1
f * 1e307
f * f - f * i / f
(f + 1e300) * 1e7
f / 1e-300
1e300 / (f * 1e300)
SAFE_DIVIDE(f, 1e-308)
DIV(i, 3)
MOD(i, 3)
i & 6
i | 1
i ^ 5
~i
SAFE_DIVIDE(i, 0)
SAFE_DIVIDE(f, 2)
IEEE_DIVIDE(f, 0)
SAFE_ADD(i, 9223372036854775807)
SAFE_MULTIPLY(i, 9223372036854775807)
SAFE_NEGATE(i)
ABS(i)
ABS(f)
SIGN(i)
SIGN(f)
ROUND(f)
ROUND(f * 10.05, 1)
ROUND(i / 3, 2)
TRUNC(f)
TRUNC(i / 7, 3)
CEIL(f)
FLOOR(f)
SQRT(ABS(i))
POW(i, 2)
EXP(IF(i < 9, i, 0))
LN(ABS(i) + 1)
LOG(ABS(i) + 1, 2)
GREATEST(i, 3)
LEAST(i, 3, id)
GREATEST(f, 1)
LEAST(f, 1)
IS_NAN(f)
IS_INF(f)
i = 7
i != 7
i < id
f = f
f != f
f > 1
f >= f
1 < f
f <= 0.5
f BETWEEN 0 AND 3
i BETWEEN -8 AND 7
s = 'a'
s < 'G'
b
NOT b
b AND i > 0
b OR i > 0
i IS NULL
f IS NOT NULL
b IS TRUE
b IS NOT FALSE
i IS DISTINCT FROM 7
i IS NOT DISTINCT FROM NULL
i IN (7, 0)
i IN (7, NULL)
i NOT IN (7, 0)
f IN (2.5, 1)
s IN ('', 'x')
i IN UNNEST(a)
3 IN UNNEST(a)
IF(b, 'yes', 'no')
IF(i > 0, i, f)
CASE WHEN i > 0 THEN 'plus' WHEN i < 0 THEN 'minus' END
CASE i WHEN 7 THEN 1 WHEN 0 THEN 2.5 ELSE 3 END
COALESCE(i, id)
IFNULL(s, 'none')
NULLIF(i, 7)
NULLIF(s, '')
CAST(i AS STRING)
CAST(f AS STRING)
CAST(i / 3 AS STRING)
CAST(b AS STRING)
CAST(d AS STRING)
CAST(t AS STRING)
CAST(z AS STRING)
CAST(i AS FLOAT64)
CAST(b AS INT64)
CAST(i AS BOOL)
SAFE_CAST(s AS INT64)
SAFE_CAST(s AS FLOAT64)
SAFE_CAST(SUBSTR(s, 11) AS INT64)
SAFE_CAST(f AS INT64)
SAFE_CAST(y AS STRING)
SAFE_CAST(CAST(d AS STRING) AS DATE)
SAFE_CAST(CONCAT(CAST(d AS STRING), ' 10:00:00+01') AS TIMESTAMP)
CAST(t AS DATE)
CAST(d AS TIMESTAMP)
CAST(z AS TIMESTAMP)
CAST(s AS BYTES)
s || '!'
CONCAT(s, '-', CAST(i AS STRING))
LENGTH(s)
LENGTH(y)
BYTE_LENGTH(s)
LOWER(s)
UPPER(s)
TRIM(s)
LTRIM(s, ' F')
RTRIM(s, ' m')
SUBSTR(s, 3)
SUBSTR(s, -4)
SUBSTR(s, -4, 2)
SUBSTR(s, 0, 3)
SUBSTR(r.n, -6, 3)
SUBSTR(s, LEAST(i, 9), 2)
SUBSTR(y, 2)
LEFT(s, 4)
RIGHT(s, 4)
STARTS_WITH(s, 'Foo')
ENDS_WITH(s, '5')
STRPOS(s, 'a')
REPLACE(s, 'a', 'AA')
REVERSE(s)
REPEAT(s, 2)
LPAD(s, 5, '*')
RPAD(s, 25)
SPLIT(s, ',')
SPLIT(s, ' ')
ARRAY_LENGTH(SPLIT(s, ''))
SPLIT(s)[SAFE_OFFSET(1)]
SPLIT(s, ' ')[OFFSET(0)]
s LIKE '%a%'
s LIKE 'na_ve\\_%'
s NOT LIKE '%o%'
r.n LIKE '\\%\\_\\\\'
REGEXP_CONTAINS(s, r'^\w+ [a-z]+@')
REGEXP_CONTAINS(s, r'.3\.5$')
REGEXP_CONTAINS(s, r'(?i)case\b')
REGEXP_EXTRACT(s, r'@(\w+)\.')
REGEXP_EXTRACT(s, r'[[:digit:]]+')
REGEXP_EXTRACT_ALL(s, r'[a-z]+')
REGEXP_REPLACE(s, r'[aeiou]', '<\\0>')
REGEXP_REPLACE(s, r'(\w)(\w)', r'\2\1')
TO_BASE64(y)
TO_HEX(y)
FROM_HEX(TO_HEX(y))
FROM_BASE64(TO_BASE64(y))
TO_HEX(MD5(s))
TO_HEX(SHA1(y))
SHA256(s)
SAFE_CONVERT_BYTES_TO_STRING(y)
d = '2024-02-29'
d > DATE '2000-01-01'
d + 1
DATE_ADD(d, INTERVAL 1 MONTH)
DATE_SUB(d, INTERVAL 1 YEAR)
DATE_ADD(d, INTERVAL MOD(i, 1000) DAY)
DATE_ADD(d, INTERVAL 2 WEEK)
DATE_DIFF(d, DATE '2020-02-29', DAY)
DATE_DIFF(d, DATE '2020-02-29', MONTH)
DATE_DIFF(d, DATE '2020-02-29', WEEK)
DATE_DIFF(d, DATE '2020-02-29', ISOWEEK)
DATE_DIFF(d, DATE '2020-02-29', QUARTER)
DATE_TRUNC(d, WEEK)
DATE_TRUNC(d, WEEK(MONDAY))
DATE_TRUNC(d, ISOWEEK)
DATE_TRUNC(d, QUARTER)
LAST_DAY(d)
EXTRACT(DAYOFWEEK FROM d)
EXTRACT(WEEK FROM d)
EXTRACT(ISOWEEK FROM d)
EXTRACT(ISOYEAR FROM d)
EXTRACT(DAYOFYEAR FROM d)
EXTRACT(QUARTER FROM t)
EXTRACT(HOUR FROM t)
EXTRACT(SECOND FROM z)
EXTRACT(MILLISECOND FROM t)
EXTRACT(MICROSECOND FROM t)
EXTRACT(HOUR FROM t AT TIME ZONE 'America/New_York')
EXTRACT(DATE FROM t)
t > TIMESTAMP '2000-01-01'
t < '2021-01-01'
TIMESTAMP_ADD(t, INTERVAL 90 MINUTE)
TIMESTAMP_SUB(t, INTERVAL MOD(i, 1000) SECOND)
t + INTERVAL 1 DAY
TIMESTAMP_DIFF(t, TIMESTAMP '2020-01-01 12:00:00', HOUR)
TIMESTAMP_DIFF(t, TIMESTAMP '2020-01-01 12:00:00', DAY)
TIMESTAMP_TRUNC(t, HOUR)
TIMESTAMP_TRUNC(t, WEEK(MONDAY))
TIMESTAMP_TRUNC(t, MONTH)
TIMESTAMP_TRUNC(t, DAY, 'Asia/Tokyo')
DATETIME_TRUNC(z, MINUTE)
DATETIME_ADD(z, INTERVAL 1 MONTH)
DATETIME_DIFF(z, DATETIME '2020-01-01 12:00:00', HOUR)
DATETIME_DIFF(z, DATETIME '2020-01-01 12:00:00', WEEK)
UNIX_SECONDS(t)
UNIX_MILLIS(t)
UNIX_MICROS(t)
UNIX_DATE(d)
TIMESTAMP_SECONDS(MOD(i, 1000))
TIMESTAMP_MILLIS(UNIX_MILLIS(t))
DATE(t)
DATE(t, 'Asia/Tokyo')
DATETIME(t, 'Europe/Paris')
TIMESTAMP(z)
TIMESTAMP(d, 'America/New_York')
FORMAT_DATE('%Y/%m/%d %a %j', d)
FORMAT_TIMESTAMP('%F %T %E3S %p %I %%', t)
FORMAT_TIMESTAMP('%d %b %Y %H:%M %Ez', t, 'Asia/Kolkata')
FORMAT_DATETIME('%A, %e %B %G-W%V %U', z)
PARSE_DATE('%Y-%m-%d', CAST(d AS STRING))
PARSE_TIMESTAMP('%F %H:%M:%E*S', FORMAT_TIMESTAMP('%F %H:%M:%E6S', t))
PARSE_TIMESTAMP('%d %b %Y %I %p', FORMAT_TIMESTAMP('%d %b %Y %I %p', t), 'Europe/Paris')
ARRAY_LENGTH(a)
a[SAFE_OFFSET(1)]
a[SAFE_ORDINAL(1)]
ARRAY_CONCAT(a, [1, 2])
ARRAY_REVERSE(a)
ARRAY_TO_STRING([s, NULL, 'z'], '|')
ARRAY_TO_STRING([s, NULL, 'z'], '|', '?')
GENERATE_ARRAY(1, id, 2)
ARRAY(SELECT x * 2 FROM UNNEST(a) AS x WHERE x > 1)
ARRAY(SELECT e.k FROM UNNEST(l) AS e WITH OFFSET AS o WHERE e.k IS NOT NULL ORDER BY o)
ARRAY(SELECT x + o FROM UNNEST(a) AS x WITH OFFSET AS o ORDER BY o)
(SELECT SUM(x) FROM UNNEST(a) AS x)
(SELECT COUNT(*) FROM UNNEST(l) AS e WHERE e.k = 'b')
(SELECT e.v FROM UNNEST(l) AS e WHERE e.k = 'a')
EXISTS(SELECT 1 FROM UNNEST(a) AS x WHERE x > 4)
r.x
r.x + i
r.n
l[SAFE_OFFSET(0)].k
l[SAFE_OFFSET(0)].v
STRUCT(i AS p, s AS q)
STRUCT(i AS p, STRUCT(d AS w) AS q).q.w
JSON_VALUE(j, '$.a.b[1]')
JSON_VALUE(j, '$.c')
JSON_VALUE(j, '$[0]')
JSON_QUERY(IF(j LIKE 'no%', NULL, j), '$.a')
JSON_VALUE(j)
TO_JSON_STRING(i)
TO_JSON_STRING(f)
TO_JSON_STRING(s)
TO_JSON_STRING(r)
TO_JSON_STRING(a)
TO_JSON_STRING(t)
SEARCH(s, 'bar')
SEARCH(s, 'foo example')
SEARCH(STRUCT(s AS u, [r.n, 'late'] AS v), 'five late')
NET.IP_TO_STRING(NET.SAFE_IP_FROM_STRING(CONCAT('10.0.0.', CAST(id AS STRING))))
NET.SAFE_IP_FROM_STRING(s)
RANK() OVER (ORDER BY f)
ROW_NUMBER() OVER (ORDER BY f DESC)
SUM(id) OVER (ORDER BY id)
SUM(i) OVER (PARTITION BY b)
LAG(s) OVER (ORDER BY id)
LEAD(i, 2, 0) OVER (ORDER BY id)
FIRST_VALUE(i IGNORE NULLS) OVER (ORDER BY id DESC)
MIN(f) OVER ()
COUNT(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
SUM(id * 1.5) OVER (PARTITION BY b ORDER BY id)
AVG(id * 1.5) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
""".strip().splitlines()
AGGREGATES = r"""
COUNT(*)
COUNT(i)
COUNT(DISTINCT b)
COUNTIF(i > 0)
SUM(id)
SUM(f)
SUM(id * 1.5)
AVG(id)
MIN(i)
MAX(i)
MIN(f)
MAX(f)
MIN(s)
MAX(d)
ANY_VALUE(s HAVING MAX id)
MAX_BY(s, id)
MIN_BY(id, t)
LOGICAL_AND(b)
LOGICAL_OR(b)
BIT_OR(id)
STDDEV(id)
STDDEV_POP(id)
VAR_POP(id)
VAR_SAMP(id)
CORR(id, id * 2)
COVAR_POP(id, i)
APPROX_COUNT_DISTINCT(b)
APPROX_QUANTILES(id, 4)
APPROX_QUANTILES(id, 100)[OFFSET(50)]
STRING_AGG(s, '|' ORDER BY id)
STRING_AGG(s, '|' ORDER BY id DESC LIMIT 2)
STRING_AGG(DISTINCT s ORDER BY s)
ARRAY_AGG(id ORDER BY id DESC)
ARRAY_AGG(i IGNORE NULLS ORDER BY id)
ARRAY_AGG(DISTINCT id ORDER BY id DESC)
ARRAY_AGG(DISTINCT DIV(id, 2) ORDER BY DIV(id, 2))
SUM(DISTINCT DIV(id, 2))
ARRAY_AGG(STRUCT(id AS n, s AS w) ORDER BY f LIMIT 2)
ARRAY_LENGTH(ARRAY_AGG(s))
SUM(id) + COUNT(*) / 2
MIN(id * 1.5 + id * 2.5 + id * 3.5 + id * 4.5 - id * 5.5)
SUM(id * 1.5 + id * 2.5 + id * 3.5 + id * 4.5 - id * 5.5)
SUM(ABS(id) + ABS(id * 2) + ABS(id * 3) + ABS(id * 4) + ABS(id * 5))
""".strip().splitlines()
FAILING = """
f * 1e300 * 1e10 / 1e300
f * 1e308 - f * 1e308
1 / (f * 1e308)
f / 1e-308
f * 5e307 + 1e308
f * -5e307 - 1e308
f / (i - 7)
i * 9223372036854775807
DIV(i, 0)
CAST(s AS INT64)
a[OFFSET(3)]
""".strip().splitlines()
"""What is an error of a row like the first one."""
QUERIES = """
SELECT id FROM v WHERE f > 0 ORDER BY id
SELECT id, f FROM v ORDER BY f, id
SELECT id, f FROM v ORDER BY f DESC, id
SELECT id FROM v ORDER BY i DESC NULLS FIRST LIMIT 3
SELECT b, COUNT(*) AS n, SUM(i) FROM v WHERE id != 5 GROUP BY b ORDER BY n DESC, b
SELECT EXTRACT(YEAR FROM d) AS yr, MAX(id) FROM v GROUP BY yr HAVING COUNT(*) > 0 ORDER BY 1
SELECT f, COUNT(*) FROM v GROUP BY 1 ORDER BY 1
SELECT f * id AS x, f * id * 2 + 1 FROM v WHERE f > 0 GROUP BY f * id ORDER BY x
SELECT SUM(f) * 2.5 + MAX(f) * id FROM v WHERE f > 0 GROUP BY id ORDER BY id
SELECT DISTINCT b FROM v ORDER BY b
SELECT id, x, o FROM v, UNNEST(a) AS x WITH OFFSET AS o ORDER BY id, o
SELECT id, e.k, e.v FROM v AS w LEFT JOIN UNNEST(w.l) AS e ORDER BY id, e.k
SELECT w.id, u.id AS before FROM v AS w JOIN v AS u ON w.id = u.id + 1 ORDER BY 1
SELECT w.id, u.s FROM v AS w LEFT JOIN v AS u ON w.i = u.id ORDER BY 1
SELECT id, w.i, u.d FROM v AS w FULL JOIN v AS u USING (id) ORDER BY id
SELECT id FROM v WHERE f = f UNION ALL SELECT id + 10 FROM v WHERE b ORDER BY id
SELECT b FROM v UNION DISTINCT SELECT i > 0 FROM v ORDER BY b
SELECT i FROM v EXCEPT DISTINCT SELECT id FROM v ORDER BY i
WITH w AS (SELECT id, i FROM v WHERE i > 0) SELECT u.id, w.i FROM w JOIN w AS u ON w.id < u.id
SELECT id FROM v WHERE id IN (SELECT id + 1 FROM v) AND id NOT IN (SELECT i FROM v WHERE i > 6)
SELECT id, i IN (SELECT id - 1 FROM v WHERE id < 3) FROM v ORDER BY id
SELECT id, (SELECT MAX(id) FROM v) - id AS rest FROM v ORDER BY rest
SELECT id FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY b ORDER BY id) = 1 ORDER BY id
SELECT * EXCEPT (a, l, j, f) FROM v ORDER BY id
SELECT * EXCEPT (a, l, j, f) REPLACE (UPPER(s) AS s) FROM v ORDER BY id LIMIT 2 OFFSET 1
SELECT r.* FROM v ORDER BY id
SELECT ARRAY(SELECT id FROM v WHERE b ORDER BY id DESC) AS ids
SELECT AS STRUCT id, s FROM v WHERE id = 1
FROM v |> WHERE id > 1 |> EXTEND id * 2 AS twice |> WHERE twice < 9 |> SELECT id |> ORDER BY id
FROM v |> AGGREGATE COUNT(*) AS n, SUM(id) AS total GROUP BY b |> ORDER BY n, b
FROM v |> ORDER BY id |> LIMIT 3 |> WHERE id > 1 |> AGGREGATE COUNT(*) AS n
FROM v |> SELECT id, s |> SET id = id + 1 |> DROP s |> DISTINCT |> ORDER BY id DESC
FROM v |> SELECT id |> UNION ALL (SELECT 100) |> ORDER BY id
SELECT SUM(COUNT(*)) OVER () AS n FROM v GROUP BY b
""".strip().splitlines()
_MOST, _NAN = "9223372036854775807", "CAST('NaN' AS FLOAT64)"
_INF, _LEAST = "CAST('Infinity' AS FLOAT64)", "-9223372036854775807 - 1"
SUMS: dict[str, list[object]] = {
    f"SUM(x) FROM UNNEST([{_MOST}, 1, -1]) AS x": [9223372036854775807],
    f"SUM(x) FROM UNNEST([-1, {_LEAST}, 1]) AS x": [-9223372036854775808],
    "SUM(x) FROM UNNEST([-1, 4294967296, -4294967297, NULL]) AS x": [-2],
    f"SUM(DISTINCT x) FROM UNNEST([{_MOST}, 1, 1, -1]) AS x": [9223372036854775807],
    f"SUM(x) OVER () FROM UNNEST([{_MOST}, -1]) AS x": [9223372036854775806] * 2,
    f"AVG(x) FROM UNNEST([{_MOST}, {_MOST}]) AS x": [2.0**63],
    "SUM(x) FROM UNNEST([1e308, 1e308, -1e308]) AS x": [1e308],
    "SUM(x) FROM UNNEST([1e308, 1e308, -1.5e308, NULL]) AS x": [5e307],
    f"SUM(x) FROM UNNEST([1e308, 1e308, {_INF}]) AS x": [float("inf")],
    f"SUM(x) FROM UNNEST([1e308, 1e308, -{_INF}]) AS x": [float("-inf")],
    f"SUM(x) FROM UNNEST([{_INF}, -{_INF}]) AS x": ["NaN"],
    f"SUM(x) FROM UNNEST([1e308, {_NAN}, 1e308]) AS x": ["NaN"],
    "SUM(x) FROM UNNEST(ARRAY<FLOAT64>[NULL]) AS x": [None],
    "SUM(x) FROM UNNEST(ARRAY<INT64>[]) AS x": [None],
    "SUM(x) OVER () FROM UNNEST([-1e308, 1e308, 1e308]) AS x": [1e308] * 3,
    "AVG(x) FROM UNNEST([1e308, 1e308]) AS x": [1e308],
    "AVG(x) FROM UNNEST([-1e308, -1.5e308]) AS x": [-1.25e308],
    f"AVG(x) FROM UNNEST([1e308, 1e308, {_INF}]) AS x": [float("inf")],
    "AVG(DISTINCT x) FROM UNNEST([1e308, 1e308, 1.5e308]) AS x": [1.25e308],
    "AVG(x) OVER () FROM UNNEST([1e308, 1e308]) AS x": [1e308] * 2,
}
"""Sums whose parts, or whose results as FLOAT64, are out of range on the way."""
FAILING_SUMS = f"""
SUM(x) FROM UNNEST([{_MOST}, 1]) AS x
SUM(x) FROM UNNEST([{_LEAST}, -1]) AS x
SUM(DISTINCT x) FROM UNNEST([{_MOST}, 1]) AS x
SUM(x) OVER () FROM UNNEST([{_MOST}, 1]) AS x
SUM(x) FROM UNNEST([1e308, 1e308]) AS x
SUM(x) FROM UNNEST([-1e308, -1.5e308, 1e307]) AS x
SUM(DISTINCT x) FROM UNNEST([1e308, 1.1e308]) AS x
SUM(x) OVER () FROM UNNEST([1e308, 1e308]) AS x
SUM(f * 1e308) FROM v WHERE f BETWEEN -1e9 AND 1e9
""".strip().splitlines()
"""Sums that are out of range."""
