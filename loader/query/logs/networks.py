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
_ADDRESS = f"^{_OCTET}(?:\\.{_OCTET}){{3}}$"
_LAST = 2**32 - 1
_DOT = ", '.', "


def _octet(text: str, place: int) -> str:
    return f"SAFE_CAST(SPLIT({text}, '.')[SAFE_OFFSET({place})] AS INT64)"


def _is_address(text: str) -> str:
    return f"REGEXP_CONTAINS({text}, {literal(_ADDRESS)})"


def _ip2long(args: Arguments) -> Value:
    text = args.text(0)
    parts = " + ".join(f"{_octet(text, place)} * {256 ** (3 - place)}" for place in range(4))
    return Value(f"IF({_is_address(text)}, {parts}, NULL)", INT64)


def _long2ip(args: Arguments) -> Value:
    number = args.whole(0)
    octets = (f"CAST(MOD(DIV({number}, {256**place}), 256) AS STRING)" for place in (3, 2, 1, 0))
    joined = f"CONCAT({_DOT.join(octets)})"
    return Value(f"IF({number} >= 0 AND {number} <= {_LAST}, {joined}, NULL)", STRING)


def _network(args: Arguments) -> Value:
    """Compile network: the first address of the network of a prefix length."""
    text, prefix = args.text(0), args.written_number(1, 0, 32)
    octets = [_octet_of_network(text, place, prefix - 8 * place) for place in range(4)]
    return Value(f"IF({_is_address(text)}, CONCAT({_DOT.join(octets)}), NULL)", STRING)


def _octet_of_network(text: str, place: int, bits: int) -> str:
    if bits >= 8:  # noqa: PLR2004 - a whole octet
        return f"SPLIT({text}, '.')[SAFE_OFFSET({place})]"
    if bits <= 0:
        return "'0'"
    octet = _octet(text, place)
    return f"CAST({octet} - MOD({octet}, {2 ** (8 - bits)}) AS STRING)"


NETWORKS = {
    "ip2long": Function(_ip2long),
    "long2ip": Function(_long2ip),
    "network": Function(_network, 2, 2),
}
