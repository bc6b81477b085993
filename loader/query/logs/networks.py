"""Functions of IPv4 addresses: by arithmetic, which all engines have; null for other texts.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.logs.function_table import Function
from loader.query.logs.values import INT64, STRING, Value, literal

if TYPE_CHECKING:
    from loader.query.logs.arguments import Arguments

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_DOT = "\\."
_BETWEEN = ", '.', "
_LAST = 2**32 - 1


def _part(text: str, first: int, last: int) -> str:
    """Return the octets from `first` to before `last`, with the dots between; null of other texts.

    The text of an argument is written again for each use, so few uses keep the SQL short.
    """
    octets = [_OCTET] * 4
    octets[first] = f"({octets[first]}"
    octets[last - 1] += ")"
    return f"REGEXP_EXTRACT({text}, {literal(f'^{_DOT.join(octets)}$')})"


def _number(text: str, place: int) -> str:
    return f"SAFE_CAST({_part(text, place, place + 1)} AS INT64)"


def _ip2long(args: Arguments) -> Value:
    text = args.text(0)
    parts = " + ".join(f"{_number(text, place)} * {256 ** (3 - place)}" for place in range(4))
    return Value(f"({parts})", INT64)


def _long2ip(args: Arguments) -> Value:
    number = args.whole(0)
    octets = (f"CAST(MOD(DIV({number}, {256**place}), 256) AS STRING)" for place in (3, 2, 1, 0))
    joined = f"CONCAT({_BETWEEN.join(octets)})"
    return Value(f"IF({number} >= 0 AND {number} <= {_LAST}, {joined}, NULL)", STRING)


def _network(args: Arguments) -> Value:
    """Compile network: the first address of the network of a prefix length."""
    text, prefix = args.text(0), args.written_number(1, 0, 32)
    whole, bits = divmod(prefix, 8)
    parts = [_part(text, 0, whole)] if whole else []
    if bits or not whole:  # an octet that is a part of the prefix, or one that says what is valid
        step = 2 ** (8 - bits)
        parts.append(f"CAST(DIV({_number(text, whole)}, {step}) * {step} AS STRING)")
    parts += ["'0'"] * (4 - whole - (bits > 0 or not whole))
    return Value(f"CONCAT({_BETWEEN.join(parts)})" if len(parts) > 1 else parts[0], STRING)


NETWORKS = {
    "ip2long": Function(_ip2long),
    "long2ip": Function(_long2ip),
    "network": Function(_network, 2, 2),
}
