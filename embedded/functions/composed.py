"""Rewrite functions as calls of several DuckDB functions, or of functions written in Python.

**Invariant:** the result is as GoogleSQL's function reference says.

A form of a function without an equivalent expression is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.duck import call, duck
from embedded.functions.kinds import may_be
from embedded.functions.searches import searched
from embedded.model.errors import ApiError, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule = Callable[[exp.Expr], exp.Expr]

NET = {
    "IP_FROM_STRING": "STRING", "SAFE_IP_FROM_STRING": "STRING", "IP_TO_STRING": "BYTES",
    "IP_TRUNC": "BYTES", "IP_NET_MASK": "INT64", "IPV4_FROM_INT64": "INT64",
    "IPV4_TO_INT64": "BYTES",
}  # fmt: skip
HLL = frozenset({"INIT", "MERGE", "MERGE_PARTIAL", "EXTRACT"})
ANONYMOUS = {"IEEE_DIVIDE": "bq_ieee_divide", "ERROR": "error"}
_SKETCH = "string_split(decode(:x), ',')"
_HLL = {
    "INIT": "encode(array_to_string(list_distinct(list(md5(CAST(:x AS VARCHAR)))), ','))",
    "EXTRACT": f"CASE WHEN octet_length(:x) = 0 THEN 0 ELSE len({_SKETCH}) END",
    "MERGE": f"len(list_distinct(flatten(list({_SKETCH}))))",
    "MERGE_PARTIAL": f"encode(array_to_string(list_distinct(flatten(list({_SKETCH}))), ','))",
}
BODIES: dict[str, tuple[str, str]] = {
    "bq_json_type": (
        "j",
        (
            "CASE json_type(j) WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' "
            "WHEN 'VARCHAR' THEN 'string' WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' "
            "ELSE CASE WHEN j IS NOT NULL THEN 'number' END END"
        ),
    ),
    "bq_range_bucket": (
        "p, l",
        "CASE WHEN p IS NOT NULL AND l IS NOT NULL THEN len(list_filter(l, lambda e: e <= p)) END",
    ),
    "bq_array_first": (
        "l",
        (
            "CASE WHEN len(l) = 0 THEN error('ARRAY_FIRST cannot get the first element of an empty "
            "array') ELSE l[1] END"
        ),
    ),
    "bq_array_last": (
        "l",
        (
            "CASE WHEN len(l) = 0 THEN error('ARRAY_LAST cannot get the last element of an empty "
            "array') ELSE l[-1] END"
        ),
    ),
    "bq_regexp_instr": (
        "s, p",
        (
            "CASE WHEN regexp_matches(s, p) THEN CAST(length(regexp_extract(s, "
            "'(?s:^(.*?))(?:' || p || ')', 1)) + 1 AS BIGINT) WHEN s IS NOT NULL AND p IS NOT NULL "
            "THEN 0 END"
        ),
    ),
    "bq_generate": (
        "a, b, s",
        (
            "CASE WHEN s = 0 THEN error('Sequence step cannot be 0.') "
            "ELSE generate_series(a, b, s) END"
        ),
    ),
    "bq_reverse_bytes": (
        "x",
        "unhex(array_to_string(list_reverse(regexp_extract_all(hex(x), '..')), ''))",
    ),
}


def net(node: exp.Expr) -> exp.Expr:
    """Rewrite a NET function as a call of the function in Python (`nets`)."""
    inner = node.this
    name = str(inner.this).upper() if isinstance(inner, exp.Anonymous) else ""
    if isinstance(inner, exp.Host):
        return call("py_host", inner.this)
    if isinstance(inner, exp.RegDomain):
        return call("py_reg_domain", inner.this)
    args = inner.expressions
    if name == "PUBLIC_SUFFIX":
        return call("py_public_suffix", *args)
    kinds = may_be(args[0]) if args else None
    if kinds and NET[name] not in kinds:
        raise ApiError(
            "invalidQuery",
            f"No matching signature for function NET.{name} for argument types: "
            f"{' or '.join(sorted(kinds))}",
        )
    return call(f"py_{name.lower()}", *args)


def anonymous(node: exp.Expr) -> exp.Expr:
    """Rewrite a function for which SQLGlot has no class."""
    name = str(node.this).upper()
    if name == "SEARCH" and not isinstance(node.parent, exp.Dot | exp.NetFunc):
        return searched(node)
    if isinstance(node.parent, exp.Dot):  # HLL_COUNT
        return duck(_HLL[name], x=node.expressions[0])
    if isinstance(node.parent, exp.NetFunc) or name not in ANONYMOUS:
        return node
    return call(ANONYMOUS[name], *node.expressions)


def dot(node: exp.Expr) -> exp.Expr:
    """Replace HLL_COUNT.f(x) by f(x), which is already rewritten; do not change a path."""
    if isinstance(node.this, exp.Identifier) and node.this.name.upper() == "HLL_COUNT":
        after: exp.Expr = node.expression
        return exp.Paren(this=after.copy())
    return node


def formatted(node: exp.Expr) -> exp.Expr:
    """Rewrite FORMAT as a call in Python; its arguments are passed as JSON with their types."""
    kinds = exp.Array(expressions=[duck("typeof(:x)", x=arg) for arg in node.expressions])
    texts = exp.Array(
        expressions=[duck("CAST(to_json(:x) AS VARCHAR)", x=arg) for arg in node.expressions]
    )
    typed = [
        exp.cast(each, "VARCHAR[]", dialect="duckdb") if not each.expressions else each
        for each in (kinds, texts)
    ]
    return call("py_format", node.this, *typed)


def to_json(node: exp.Expr) -> exp.Expr:
    """Rewrite TO_JSON_STRING and TO_JSON."""
    pretty = node.args.get("options") or exp.false()
    text = call("bq_to_json_string", node.this, pretty)
    if not node.args.get("to_json"):
        return text
    return duck("CAST(:x AS JSON)", x=text)


def joined(node: exp.Expr) -> exp.Expr:
    """Rewrite STRING_AGG with LIMIT, which DuckDB does not have."""
    inner = node.this
    if not isinstance(inner, exp.Limit):
        return node
    rows = exp.ArrayAgg(this=inner.this.copy())
    where = exp.Where(this=_ranked(inner.this).copy().is_(exp.null()).not_())
    return duck(
        "array_to_string(list_slice(:rows, 1, :n), :sep)",
        rows=exp.Filter(this=rows, expression=where),
        n=inner.expression,
        sep=node.args.get("separator") or exp.Literal.string(","),
    )


def _ranked(node: exp.Expr) -> exp.Expr:
    """Return the aggregated expression without ORDER BY and DISTINCT."""
    while isinstance(node, exp.Order | exp.Limit):
        node = node.this
    return node.expressions[0] if isinstance(node, exp.Distinct) else node


def concatenated(node: exp.Expr) -> exp.Expr:
    """Rewrite ARRAY_CONCAT_AGG."""
    inner = node.this
    limit = inner.expression if isinstance(inner, exp.Limit) else None
    rows = exp.ArrayAgg(this=(inner.this if limit is not None else inner).copy())
    where = exp.Where(this=_ranked(inner).copy().is_(exp.null()).not_())
    whole: exp.Expr = exp.Filter(this=rows, expression=where)
    if limit is not None:
        whole = call("list_slice", whole, exp.Literal.number(1), limit.copy())
    return call("flatten", whole)


def most_frequent(node: exp.Expr) -> exp.Expr:
    """Rewrite APPROX_TOP_COUNT with exact counts, the greatest first."""
    return duck(
        "list_transform(list_slice(list_reverse_sort(list_transform(map_entries(CASE WHEN "
        "count(*) > count(:x) THEN error('APPROX_TOP_COUNT of NULL is not supported by the "
        "embedded BigQuery') ELSE histogram(:x) END), lambda e: "
        "{'n': CAST(e.value AS BIGINT), 'v': e.key})), 1, :n), "
        "lambda e: {'value': e.v, 'count': e.n})",
        x=node.this, n=node.expression,
    )  # fmt: skip


def generated(node: exp.Expr) -> exp.Expr:
    """Rewrite GENERATE_ARRAY, in which a step of 0 is an error."""
    step = node.args.get("step")
    bare = step.this if isinstance(step, exp.Neg) else step
    while isinstance(bare, exp.Cast):
        bare = bare.this
    if step is None or isinstance(bare, exp.Interval):
        return node
    if isinstance(bare, exp.Literal):
        if bare.name.strip("0.") == "":
            raise ApiError("invalidQuery", "Sequence step cannot be 0.")
        return node
    return call("bq_generate", node.args["start"], node.args["end"], step)


def _safe(sign: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        sides = [node.this, *([node.expression] if node.args.get("expression") else [])]
        if any(may_be(side) != frozenset({"INT64"}) for side in sides):
            raise unsupported(f"{node.key.upper()} of other types than INT64")
        if len(sides) == 1:
            return duck("TRY(-CAST(:a AS BIGINT))", a=sides[0])
        return duck(f"TRY(CAST(:a AS BIGINT) {sign} CAST(:b AS BIGINT))", a=sides[0], b=sides[1])

    return rule


def _text(node: exp.Expr) -> exp.Expr:
    """Rewrite STRING of a JSON value, or of a date or timestamp in UTC."""
    kinds = may_be(node.this)
    zone = node.args.get("zone")
    if zone is not None and zone.name != "UTC":
        raise unsupported("STRING in another zone than UTC (use FORMAT_TIMESTAMP)")
    if kinds and not kinds & {"JSON", "STRING"}:
        return call("bq_string", node.this)
    return call("bq_json_string", node.this)


def _sha2(node: exp.Expr) -> exp.Expr:
    """Rewrite SHA512 as a call in Python; DuckDB has SHA256 alone."""
    length = node.args.get("length")
    if length is None or length.name != "512":
        return node
    return call("py_sha512", call("bq_bytes", node.this))


def _macro(name: str, *keys: str) -> Rule:
    return lambda node: call(name, node.this, *(node.args[key] for key in keys))


def _reverse(node: exp.Expr) -> exp.Expr:
    return (
        call("bq_reverse_bytes", node.this) if may_be(node.this) == frozenset({"BYTES"}) else node
    )


def _normalize(node: exp.Expr) -> exp.Expr:
    form = node.args.get("form")
    name = form.name.upper() if isinstance(form, exp.Expr) else "NFC"
    return call("py_normalize", node.this, exp.Literal.string(name))


def _percentile_disc(node: exp.Expr) -> exp.Expr:
    return call("quantile_disc", node.this, node.expression)


RULES: dict[type[exp.Expr], Rule] = {
    exp.NetFunc: net,
    exp.Anonymous: anonymous,
    exp.Dot: dot,
    exp.Format: formatted,
    exp.JSONFormat: to_json,
    exp.GroupConcat: joined,
    exp.ArrayConcatAgg: concatenated,
    exp.ApproxTopK: most_frequent,
    exp.GenerateSeries: generated,
    exp.SafeAdd: _safe("+"),
    exp.SafeSubtract: _safe("-"),
    exp.SafeMultiply: _safe("*"),
    exp.SafeNegate: _safe("-"),
    exp.String: _text,
    exp.Reverse: _reverse,
    exp.Normalize: _normalize,
    exp.PercentileDisc: _percentile_disc,
    exp.SHA2Digest: _sha2,
    exp.Soundex: _macro("py_soundex"),
    exp.ToBase32: _macro("py_to_base32"),
    exp.FromBase32: _macro("py_from_base32"),
    exp.SafeConvertBytesToString: _macro("py_safe_text"),
    exp.JSONType: _macro("bq_json_type"),
    exp.RangeBucket: _macro("bq_range_bucket", "expression"),
    exp.ArrayFirst: _macro("bq_array_first"),
    exp.ArrayLast: _macro("bq_array_last"),
    exp.RegexpInstr: _macro("bq_regexp_instr", "expression"),
    exp.ParseNumeric: _macro("bq_numeric"),
}
