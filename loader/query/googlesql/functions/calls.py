"""Calls of functions, and signatures that give a call its Spark SQL.

**Invariant:** a call matches a signature only if BigQuery converts the arguments by itself; the
signature that converts fewest is taken, the first of several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.googlesql.conversions import coerced
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    FLOAT64,
    INT64,
    JSON,
    NULL,
    NUMERIC,
    STRING,
    TIMESTAMP,
    Type,
    array,
)
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp

    from loader.query.googlesql.places import Place

LETTERS = {
    "I": INT64, "F": FLOAT64, "S": STRING, "Y": BYTES, "B": BOOL, "D": DATE, "T": TIMESTAMP,
    "Z": DATETIME, "N": NUMERIC, "J": JSON,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function.

    Attributes:
        place: where it stands.
        name: the function's name in upper case.
        node: the call.
        nodes: its arguments.
        safe: whether it is called by `SAFE.`.
    """

    place: Place
    name: str
    node: exp.Expr
    nodes: list[exp.Expr]
    safe: bool = False

    def value(self, at: int) -> Value:
        """Translate an argument."""
        return self.place.value(self.nodes[at])

    def values(self) -> list[Value]:
        """Translate all arguments."""
        return [self.place.value(node) for node in self.nodes]

    def count(self, least: int, most: int) -> None:
        """Check the number of arguments.

        Raises:
            QueryError: it is another one.
        """
        if not least <= len(self.nodes) <= most:
            some = f"{least}" if least == most else f"{least} to {most}"
            raise self.refused(f"{self.name} has {some} arguments, not {len(self.nodes)}")

    def refused(self, message: str, at: int | None = None) -> QueryError:
        """Return the error for arguments that BigQuery refuses."""
        return refusal(Code.ARGUMENT, message, self.node if at is None else self.nodes[at])

    def unsupported(self, what: str, at: int | None = None) -> QueryError:
        """Return the error for a form that has no translation with the same answer."""
        return unsupported(what, self.node if at is None else self.nodes[at])

    def wanted(self, at: int, kind: Type) -> Value:
        """Translate an argument of a given type.

        Raises:
            QueryError: it has another one.
        """
        found = coerced(self.value(at), kind)
        if found is None:
            kinds = self.value(at).type
            raise refusal(Code.TYPE, f"{self.name} needs {kind} here, not {kinds}", self.nodes[at])
        return found

    def text(self, at: int, what: str) -> str:
        """Return an argument that must be a literal of STRING.

        Raises:
            QueryError: it is not.
        """
        value = self.value(at)
        if value.constant is None or not isinstance(value.constant.value, str):
            raise self.unsupported(f"{what} that is no literal", at)
        return value.constant.value

    def whole(self, at: int, what: str) -> int:
        """Return an argument that must be a literal of INT64.

        Raises:
            QueryError: it is not.
        """
        value = self.value(at)
        constant = value.constant.value if value.constant is not None else None
        if isinstance(constant, bool) or not isinstance(constant, int):
            raise self.unsupported(f"{what} that is no literal", at)
        return constant


if TYPE_CHECKING:
    Function = Callable[[Call], Value]
    Signatures = Mapping[str, list[tuple[str, str, str]]]


def by_signature(signatures: list[tuple[str, str, str]], *, total: bool = False) -> Function:
    """Return the translation of a function by its signatures.

    Args:
        signatures: (letters of the arguments' types, letter of the result's, template); `SS` takes
            two STRINGs, `[S` an array of STRING as result or argument.
        total: the function fails for no argument, so `SAFE.` changes nothing.
    """

    def function(call: Call) -> Value:
        if call.safe and not total:
            raise call.unsupported(f"SAFE.{call.name}")
        values = call.values()
        chosen = _chosen(values, signatures)
        if chosen is None:
            kinds = ", ".join(str(value.type) for value in values)
            raise refusal(Code.TYPE, f"{call.name} does not take ({kinds})", call.node)
        template, kind, converted = chosen
        for name in _python_names(template):
            call.place.python(name, call.node)
        sql = filled(template.replace("{python:", "").replace(":python}", ""), converted)
        return Value(sql, kind)

    return function


def _python_names(template: str) -> list[str]:
    return [part.partition(":python}")[0] for part in template.split("{python:")[1:]]


def _chosen(
    values: list[Value], signatures: list[tuple[str, str, str]]
) -> tuple[str, Type, list[str]] | None:
    best: tuple[int, tuple[str, Type, list[str]]] | None = None
    for letters, result, template in signatures:
        kinds = types_of(letters)
        if len(kinds) != len(values):
            continue
        converted = [coerced(value, kind) for value, kind in zip(values, kinds, strict=True)]
        if any(value is None for value in converted):
            continue
        changed = sum(
            value.type not in {kind, NULL} for value, kind in zip(values, kinds, strict=True)
        )
        if best is None or changed < best[0]:
            (kind,) = types_of(result)
            best = changed, (template, kind, [value.sql for value in converted if value])
    return best[1] if best else None


def types_of(letters: str) -> list[Type]:
    """Return the types that letters stand for."""
    found: list[Type] = []
    at = 0
    while at < len(letters):
        if letters[at] == "[":
            found.append(array(LETTERS[letters[at + 1]]))
            at += 2
        else:
            found.append(LETTERS[letters[at]])
            at += 1
    return found
