"""Operators, literals, names and CASE: the rules of SQLGlot's classes that are no calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import OPERATORS, compared, distinct, like, member
from loader.query.googlesql.conversions import (
    NUMBERS,
    array_of,
    cast,
    coerced,
    supertype,
    unified,
    wanted,
)
from loader.query.googlesql.places import Place, field_of, null_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT64,
    INT64,
    NULL,
    NUMERIC,
    STRING,
    Type,
    array,
    struct,
)
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from loader.query.googlesql.places import Rule
    from loader.query.googlesql.scopes import Column, Scope, Source

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def _literal(place: Place, node: exp.Expr) -> Value:
    del place
    if node.is_string:
        return literal(str(node.this))
    return _number(str(node.this), node)


def _number(digits: str, node: exp.Expr) -> Value:
    try:
        if digits.isdigit():
            whole = int(digits)
            if whole > HIGHEST:
                raise refusal(Code.ARGUMENT, f"{digits} is no INT64", node)
            return literal(whole)
        found = float(digits)
    except ValueError:
        raise refusal(Code.SYNTAX, f"{digits!r} is no number", node) from None
    if found in (float("inf"), float("-inf")):
        raise refusal(Code.ARGUMENT, f"{digits} is no FLOAT64", node)
    return literal(found)


def _hex(place: Place, node: exp.Expr) -> Value:
    del place
    whole = int(str(node.this), 16) if node.args.get("is_integer") else int(str(node.this), 0)
    return literal(whole)


def _bytes(place: Place, node: exp.Expr) -> Value:
    """Return a literal of BYTES; SQLGlot keeps its escapes."""
    del place
    given = str(node.this)
    try:
        found = given.encode("latin-1", "strict") if _is_latin(given) else given.encode()
        plain = found.decode("latin-1")
        value = plain.encode("latin-1").decode("unicode_escape").encode("latin-1")
    except (UnicodeError, ValueError):
        raise unsupported("this literal of BYTES", node) from None
    return literal(value)


def _is_latin(given: str) -> bool:
    return all(ord(char) < 256 for char in given)  # noqa: PLR2004 - one byte


def _negative(place: Place, node: exp.Expr) -> Value:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string and str(inner.this).isdigit():
        whole = -int(str(inner.this))
        if whole < LOWEST:
            raise refusal(Code.ARGUMENT, f"{whole} is no INT64", node)
        return literal(whole)
    value = place.value(inner)
    constant = value.constant
    if constant is not None and isinstance(constant.value, float):
        return literal(-constant.value)
    if value.type not in {*NUMBERS, NULL}:
        raise refusal(Code.TYPE, f"-x needs a number, not {value.type}", node)
    return Value(f"(- {value.sql})", value.type if value.type != NULL else INT64)


ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def _arithmetic(place: Place, node: exp.Expr) -> Value:
    from loader.query.googlesql.functions import times  # noqa: PLC0415 - its rules use this module

    sign = ARITHMETIC[type(node)]
    if isinstance(node.expression, exp.Interval):
        return times.shifted(place, node, sign)
    left, right = place.value(node.this), place.value(node.expression)
    if DATE in {left.type, right.type} and sign != "*":
        return times.days_added(left, right, sign, node)
    return computed(sign, left, right, node)


def computed(sign: str, left: Value, right: Value, node: exp.Expr) -> Value:
    """Add, subtract or multiply two numbers; INT64 that overflows is an error in both engines.

    Raises:
        QueryError: they are no numbers.
    """
    for value in (left, right):
        if value.type not in {*NUMBERS, NULL}:
            raise refusal(Code.TYPE, f"{sign} needs numbers, not {value.type}", node)
    left, right = unified([left, right], node, f"the operands of {sign}")
    if left.type == NULL:
        return null_of(INT64)
    if left.type == NUMERIC:
        raise unsupported("arithmetic of NUMERIC (CAST it to FLOAT64)", node)
    return Value(f"({left.sql} {sign} {right.sql})", left.type)


def _division(place: Place, node: exp.Expr) -> Value:
    left, right = place.value(node.this), place.value(node.expression)
    if NUMERIC in {left.type, right.type}:
        raise unsupported("division of NUMERIC (CAST it to FLOAT64)", node)
    left, right = (wanted(value, FLOAT64, node, "an operand of /") for value in (left, right))
    return Value(f"({left.sql} / {right.sql})", FLOAT64)


BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}


def _bits(place: Place, node: exp.Expr) -> Value:
    sign = BITS[type(node)]
    left, right = (
        wanted(place.value(part), INT64, node, f"an operand of {sign}")
        for part in (node.this, node.expression)
    )
    return Value(f"({left.sql} {sign} {right.sql})", INT64)


def _complement(place: Place, node: exp.Expr) -> Value:
    value = wanted(place.value(node.this), INT64, node, "the operand of ~")
    return Value(f"(~ {value.sql})", INT64)


def _logic(word: str) -> Rule:
    def rule(place: Place, node: exp.Expr) -> Value:
        # A chain of ANDs is as deep as it is long.
        parts = [place.condition(part, f"an operand of {word}").sql for part in _chain(node)]
        return Value(f"({f' {word} '.join(parts)})", BOOL)

    return rule


def _chain(node: exp.Expr) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    kind, left = type(node), node
    while type(left) is kind:
        parts.append(left.args["expression"])
        left = left.this
    return [left, *reversed(parts)]


def _not(place: Place, node: exp.Expr) -> Value:
    return Value(f"(NOT {place.condition(node.this, 'the operand of NOT').sql})", BOOL)


def _comparison(place: Place, node: exp.Expr) -> Value:
    operator = OPERATORS[type(node).__name__]
    return compared(operator, place.value(node.this), place.value(node.expression), node)


def _distinct(place: Place, node: exp.Expr) -> Value:
    values = place.value(node.this), place.value(node.expression)
    return distinct(*values, node, negated=isinstance(node, exp.NullSafeEQ))


def _between(place: Place, node: exp.Expr) -> Value:
    value = place.value(node.this)
    low = compared(">=", value, place.value(node.args["low"]), node)
    high = compared("<=", value, place.value(node.args["high"]), node)
    return Value(f"({low.sql} AND {high.sql})", BOOL)


def _is(place: Place, node: exp.Expr) -> Value:
    value, what = place.value(node.this), node.expression
    negated = "NOT " if node.args.get("negate") else ""
    if isinstance(what, exp.Null):
        return Value(f"({value.sql} IS {negated}NULL)", BOOL)
    if isinstance(what, exp.Boolean):
        checked = wanted(value, BOOL, node, "the operand of IS TRUE")
        return Value(f"({checked.sql} IS {negated}{'TRUE' if what.this else 'FALSE'})", BOOL)
    raise unsupported("this form of IS", node)


def _in(place: Place, node: exp.Expr) -> Value:
    left = place.value(node.this)
    if node.args.get("query") is not None:
        found = place.work.subquery(place, node)
        return found if found.type == BOOL else in_array(left, found, node)
    if node.args.get("unnest") is not None:
        (inner,) = node.args["unnest"].expressions
        return in_array(left, place.value(inner), node)
    if node.args.get("field") is not None:
        raise unsupported("this form of IN", node)
    values = [place.value(item) for item in node.expressions]
    if not values:
        raise refusal(Code.SYNTAX, "IN needs at least one value", node)
    return member(left, values, node)


def in_array(left: Value, items: Value, node: exp.Expr) -> Value:
    """Say whether an array has a value; false for a NULL array.

    Raises:
        QueryError: the types do not fit.
    """
    if items.type.element is None:
        raise refusal(Code.TYPE, f"IN UNNEST needs an ARRAY, not {items.type}", node)
    element = Value("x", items.type.element)
    kind = supertype([Value(left.sql, left.type, left.constant), element])
    if kind is None or items.type.element not in {kind, NULL}:
        raise refusal(Code.TYPE, f"{left.type} is not compared with {items.type.element}", node)
    found = coerced(left, kind)
    assert found is not None
    if kind == FLOAT64 and node.args.get("query") is not None:
        raise unsupported("FLOAT64 IN a subquery", node)
    if kind == FLOAT64:
        template = "coalesce(exists({1}, _x -> _x = {0} AND NOT isnan(_x)), false)"
        return Value(f"({filled(template, [found.sql, items.sql])})", BOOL)
    # Spark's rule for NULL among the elements is that of IN.
    made = "coalesce(arrays_overlap({1}, array({0})), CASE WHEN {1} IS NULL THEN false END)"
    return Value(filled(made, [found.sql, items.sql]), BOOL)


def _like(place: Place, node: exp.Expr) -> Value:
    found = like(place.value(node.this), place.value(node.expression), node)
    return Value(f"(NOT {found.sql})", BOOL) if node.args.get("negate") else found


def _concatenation(place: Place, node: exp.Expr) -> Value:
    left, right = place.value(node.this), place.value(node.expression)
    left, right = unified([left, right], node, "the operands of ||")
    if left.type not in {STRING, BYTES} and left.type.element is None:
        raise refusal(Code.TYPE, f"|| needs STRING, BYTES or ARRAY, not {left.type}", node)
    return Value(f"concat({left.sql}, {right.sql})", left.type)


def _if(place: Place, node: exp.Expr) -> Value:
    condition = place.condition(node.this, "the condition of IF")
    yes = place.value(node.args["true"])
    no = node.args.get("false")
    if no is None:
        raise refusal(Code.ARGUMENT, "IF has three arguments", node)
    yes, other = unified([yes, place.value(no)], node, "the values of IF")
    return Value(f"CASE WHEN {condition.sql} THEN {yes.sql} ELSE {other.sql} END", yes.type)


def _case(place: Place, node: exp.Expr) -> Value:
    subject = place.value(node.this) if node.this is not None else None
    conditions, values = [], []
    for branch in node.args["ifs"]:
        if subject is None:
            conditions.append(place.condition(branch.this, "WHEN").sql)
        else:
            conditions.append(compared("=", subject, place.value(branch.this), branch).sql)
        values.append(place.value(branch.args["true"]))
    default = node.args.get("default")
    values.append(place.value(default) if default is not None else literal(None))
    values = unified(values, node, "the values of CASE")
    whens = [
        f"WHEN {condition} THEN {value.sql}"
        for condition, value in zip(conditions, values, strict=False)
    ]
    return Value(f"CASE {' '.join(whens)} ELSE {values[-1].sql} END", values[-1].type)


def _cast(place: Place, node: exp.Expr) -> Value:
    if node.args.get("format") is not None:
        raise unsupported("CAST with FORMAT", node)
    kind = type_named(node.args["to"])
    if isinstance(node.this, exp.Struct | exp.Tuple) and kind.kind == "STRUCT":
        return _typed_struct(place, node.this, kind)
    if isinstance(node.this, exp.Array) and kind.element is not None:
        items = [place.value(item) for item in node.this.expressions]
        cast_items = [wanted(item, kind.element, node, "an element") for item in items]
        listed = f"array({', '.join(item.sql for item in cast_items)})"
        return Value(listed if items else f"CAST(array() AS {kind.spark})", kind)
    value = place.value(node.this)
    return cast(place, value, kind, safe=isinstance(node, exp.TryCast), node=node)


def _typed_struct(place: Place, node: exp.Expr, kind: Type) -> Value:
    if len(node.expressions) != len(kind.fields):
        raise refusal(Code.ARGUMENT, f"{len(kind.fields)} fields were expected", node)
    parts = []
    for number, (item, (name, inner)) in enumerate(
        zip(node.expressions, kind.fields, strict=True), 1
    ):
        value = wanted(place.value(item), inner, node, "a field")
        parts.append(f"'{name or f'_field_{number}'}', {value.sql}")
    return Value(f"named_struct({', '.join(parts)})", kind)


TYPES = {
    "BIGINT": "INT64", "INT": "INT64", "DOUBLE": "FLOAT64", "BOOLEAN": "BOOL", "TEXT": "STRING",
    "VARCHAR": "STRING", "VARBINARY": "BYTES", "BINARY": "BYTES", "DATE": "DATE",
    "TIMESTAMPTZ": "TIMESTAMP", "TIMESTAMP": "DATETIME", "DATETIME": "DATETIME",
    "DECIMAL": "NUMERIC", "JSON": "JSON", "SMALLINT": "INT64", "TINYINT": "INT64",
}  # fmt: skip


def type_named(node: exp.Expr) -> Type:
    """Return the type that is written in a query.

    Raises:
        QueryError: Spark has no such type, or it has parameters.
    """
    name = node.this.value if isinstance(node.this, exp.DataType.Type) else str(node.this)
    if name == "ARRAY" and node.expressions:
        return array(type_named(node.expressions[0]))
    if name == "STRUCT":
        return struct(
            (item.name, type_named(item.args["kind"]))
            if isinstance(item, exp.ColumnDef)
            else ("", type_named(item))
            for item in node.expressions
        )
    if name not in TYPES:
        raise unsupported(f"the type {name}", node)
    if node.expressions:
        raise unsupported("a type with parameters", node)
    return Type(TYPES[name])


def _array(place: Place, node: exp.Expr) -> Value:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
        return place.work.subquery(place, node)
    return array_of([place.value(item) for item in node.expressions], node)


def named_struct(place: Place, items: list[exp.Expr], node: exp.Expr) -> Value:
    """Return a STRUCT of expressions, named by AS or by the column that they are.

    Raises:
        QueryError: it has no fields.
    """
    if not items:
        raise unsupported("a STRUCT without fields", node)
    names, parts, kinds = [], [], []
    for number, item in enumerate(items, 1):
        inner = item
        if isinstance(item, exp.Alias | exp.PropertyEQ):
            name, inner = (
                (item.alias, item.this)
                if isinstance(item, exp.Alias)
                else (item.this.name, item.expression)
            )
        else:
            name = item.name if isinstance(item, exp.Column | exp.Dot) else ""
        value = place.value(inner)
        names.append(name)
        kinds.append(value.type)
        spark = (name or f"_field_{number}").replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"'{spark}', {value.sql}")
    return Value(f"named_struct({', '.join(parts)})", struct(zip(names, kinds, strict=True)))


def _struct(place: Place, node: exp.Expr) -> Value:
    return named_struct(place, node.expressions, node)


def _bracket(place: Place, node: exp.Expr) -> Value:
    value = place.raw(node.this)
    if len(node.expressions) != 1 or value.type.element is None:
        raise unsupported(f"a subscript of {value.type.kind}", node)
    index = wanted(place.value(node.expressions[0]), INT64, node, "a subscript")
    start = int(node.args.get("offset") or 0)
    if node.args.get("safe"):
        template = "get({0}, CAST({1} AS INT))"
    else:
        template = (
            "CASE WHEN {1} < 0L OR {1} >= size({0}) THEN raise_error("
            "'an array index is out of bounds') ELSE get({0}, CAST({1} AS INT)) END"
        )
    place_sql = f"({index.sql} - {start}L)" if start else index.sql
    if index.constant is not None and isinstance(index.constant.value, int):
        place_sql = literal(index.constant.value - start).sql
    return Value(filled(template, [value.sql, place_sql]), value.type.element, None, value.origin)


def _dot(place: Place, node: exp.Expr) -> Value:
    call = node.expression
    if isinstance(call, exp.Anonymous):
        raise refusal(
            Code.UNKNOWN_FUNCTION,
            f"{node.this.sql('bigquery')[:40]}.{call.name} is no function",
            node,
        )
    value = place.raw(node.this)
    name = call.name
    found = field_of(value, name) if isinstance(call, exp.Identifier) else None
    if found is None:
        if value.type.kind == "JSON":
            raise unsupported("a field of JSON by its name (use JSON_VALUE)", node)
        raise refusal(Code.UNKNOWN_FIELD, f"{name!r} is no field of {value.type.kind}", call)
    return found


def _column(place: Place, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Column)
    parts = node.parts
    names = [part for part in parts if isinstance(part, exp.Identifier)]
    if len(names) != len(parts) or not names:
        raise unsupported("this name", node)
    value = _named(place, names)
    if place.keys is not None and place.keys and value.sql in place.keys:
        return value
    if any(one.name.lower() == names[0].name.lower() for one in place.scope.aliases):
        return value
    if place.keys is not None and not _is_outer(place, names):
        raise refusal(Code.ARGUMENT, f"{node.name} is neither grouped nor aggregated", node)
    return value


def _is_outer(place: Place, names: list[exp.Identifier]) -> bool:
    scope, name = place.scope, names[0].name
    return not scope.columns(name) and scope.source(name) is None


def _named(place: Place, names: list[exp.Identifier]) -> Value:
    """Find a column by the parts of a name, and the fields that the rest of them name."""
    first, rest = names[0], names[1:]
    for scope in place.scope.outwards():
        value = _here(scope, first, rest)
        if value is not None:
            if scope is not place.scope:
                _correlate(place.scope, scope)
            found, left = value
            return _fields(place, found, left)
    known = sorted(
        {
            column.name
            for scope in place.scope.outwards()
            for source in scope.sources
            for column in source.columns
        }
        | {source.alias for scope in place.scope.outwards() for source in scope.sources}
    )
    listed = ", ".join(name for name in known if name)[:200]
    message = f"{first.name!r} is no column here" + (f"; there are {listed}" if listed else "")
    raise refusal(Code.UNKNOWN_FIELD, message, first)


def _correlate(inner: Scope, outer: Scope) -> None:
    for scope in inner.outwards():
        if scope is outer:
            return
        scope.correlated = True


def _here(
    scope: Scope, first: exp.Identifier, rest: list[exp.Identifier]
) -> tuple[Value, list[exp.Identifier]] | None:
    """Find the value of a name's first part in one scope, and which parts are left."""
    aliased = [one for one in scope.aliases if one.name.lower() == first.name.lower()]
    found: list[Column] = aliased or scope.columns(first.name)
    source = scope.source(first.name)
    if source is not None and source.alias and rest and not (found and _has(found[0], rest[0])):
        return _of_source(source, first, rest)
    if len(found) > 1:
        raise refusal(Code.UNKNOWN_FIELD, f"{first.name!r} is in several tables", first)
    if found:
        return found[0].value, rest
    if source is None:
        return None
    if rest:
        return _of_source(source, first, rest)
    if source.element is not None:
        return source.element, rest
    return _row(source), rest


def _row(source: Source) -> Value:
    """Return a row as a STRUCT: what the name of a table is among expressions."""
    columns = [column for column in source.columns if not column.hidden]
    parts = [f"'{column.name}', {column.value.sql}" for column in columns]
    kind = struct((column.name, column.value.type) for column in columns)
    return Value(f"named_struct({', '.join(parts)})", kind)


def _has(column: Column, name: exp.Identifier) -> bool:
    return field_of(column.value, name.name) is not None


def _of_source(
    source: Source, first: exp.Identifier, rest: list[exp.Identifier]
) -> tuple[Value, list[exp.Identifier]]:
    columns = source.named(rest[0].name)
    if len(columns) > 1:
        raise refusal(Code.UNKNOWN_FIELD, f"{rest[0].name!r} is ambiguous", rest[0])
    if columns:
        return columns[0].value, rest[1:]
    if source.element is not None:
        return source.element, rest
    raise refusal(Code.UNKNOWN_FIELD, f"{first.name} has no column {rest[0].name!r}", rest[0])


def _fields(place: Place, value: Value, names: list[exp.Identifier]) -> Value:
    keys = place.keys or frozenset()
    for name in names:
        if value.sql in keys:
            place = Place(work=place.work, scope=place.scope)
            keys = frozenset()
        found = field_of(value, name.name)
        if found is None:
            if value.type.element is not None:
                message = f"{name.name!r} is a field of an ARRAY's elements: UNNEST it"
            else:
                message = f"{name.name!r} is no field of {value.type.kind}"
            raise refusal(Code.UNKNOWN_FIELD, message, name)
        value = found
    return value


def _paren(place: Place, node: exp.Expr) -> Value:
    return place.raw(node.this)


def _subquery(place: Place, node: exp.Expr) -> Value:
    return place.work.subquery(place, node)


def _null(place: Place, node: exp.Expr) -> Value:
    del place, node
    return literal(None)


def _boolean(place: Place, node: exp.Expr) -> Value:
    del place
    return literal(bool(node.this))


def _at_time_zone(place: Place, node: exp.Expr) -> Value:
    del place
    raise unsupported("AT TIME ZONE outside of EXTRACT", node)


RULES: dict[type[exp.Expr], Rule] = {
    exp.Literal: _literal,
    exp.RawString: lambda _, node: literal(str(node.this)),
    exp.ByteString: _bytes,
    exp.HexString: _hex,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Neg: _negative,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    exp.Div: _division,
    **dict.fromkeys(BITS, _bits),
    exp.BitwiseNot: _complement,
    exp.And: _logic("AND"),
    exp.Or: _logic("OR"),
    exp.Not: _not,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _comparison),
    exp.NullSafeEQ: _distinct,
    exp.NullSafeNEQ: _distinct,
    exp.Between: _between,
    exp.Is: _is,
    exp.In: _in,
    exp.Like: _like,
    exp.DPipe: _concatenation,
    exp.If: _if,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: _array,
    exp.Struct: _struct,
    exp.Tuple: _struct,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Column: _column,
    exp.Paren: _paren,
    exp.Subquery: _subquery,
    exp.Exists: _subquery,
    exp.AtTimeZone: _at_time_zone,
}
