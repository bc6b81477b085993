"""The NET functions for IP addresses ("Net functions"), which run in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.googlesql.functions.calls import by_signature

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Function

NETS: dict[str, Function] = {
    "IP_FROM_STRING": by_signature([("S", "Y", "{python:ip_from_string:python}({0})")]),
    "SAFE_IP_FROM_STRING": by_signature([("S", "Y", "{python:safe_ip_from_string:python}({0})")]),
    "IP_TO_STRING": by_signature([("Y", "S", "{python:ip_to_string:python}({0})")]),
    "IP_TRUNC": by_signature([("YI", "Y", "{python:ip_trunc:python}({0}, {1})")]),
    "IPV4_TO_INT64": by_signature([("Y", "I", "{python:ipv4_to_int64:python}({0})")]),
    "IPV4_FROM_INT64": by_signature([("I", "Y", "{python:ipv4_from_int64:python}({0})")]),
}
