"""The NET functions: IP addresses as BYTES in network order, and hosts of URLs ("Net functions").

**Invariant:** an address has 4 or 16 bytes; anything else is BigQuery's error.

NET.PUBLIC_SUFFIX and NET.REG_DOMAIN use the list of publicsuffix.org, in the version of the
package `publicsuffixlist`.
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache

from publicsuffixlist import PublicSuffixList

SIZES = {4: 32, 16: 128}
_HOST = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://)(?:[^/?#@]*@)?"
    r"(?P<host>\[[^\]]*\]|[^/?#:]*)"
)


def ip_from_string(text: str | None) -> bytes | None:
    """NET.IP_FROM_STRING."""
    if text is None:
        return None
    found = safe_ip_from_string(text)
    if found is None:
        raise ValueError(f"NET.IP_FROM_STRING() encountered an unparseable IP-address: {text}")
    return found


def safe_ip_from_string(text: str | None) -> bytes | None:
    """NET.SAFE_IP_FROM_STRING."""
    if text is None or "%" in text:
        return None
    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return None


def ip_to_string(address: bytes | None) -> str | None:
    """NET.IP_TO_STRING."""
    if address is None:
        return None
    _check(address, "NET.IP_TO_STRING")
    return str(ipaddress.ip_address(bytes(address)))


def _check(address: bytes, function: str) -> None:
    if len(address) not in SIZES:
        raise ValueError(
            f"{function}() encountered a BYTES value of {len(address)} bytes; "
            "an IP address has 4 or 16"
        )


def ip_trunc(address: bytes | None, length: int | None) -> bytes | None:
    """NET.IP_TRUNC."""
    if address is None or length is None:
        return None
    _check(address, "NET.IP_TRUNC")
    bits = SIZES[len(address)]
    if not 0 <= length <= bits:
        raise ValueError(
            f"NET.IP_TRUNC() prefix length out of range: {length}; it must be from 0 to {bits}"
        )
    whole = int.from_bytes(address) >> (bits - length) << (bits - length)
    return whole.to_bytes(len(address))


def ip_net_mask(size: int | None, length: int | None) -> bytes | None:
    """NET.IP_NET_MASK."""
    if size is None or length is None:
        return None
    if size not in SIZES:
        raise ValueError(f"NET.IP_NET_MASK() output length must be 4 or 16, not {size}")
    return ip_trunc(b"\xff" * size, length)


def ipv4_from_int64(number: int | None) -> bytes | None:
    """NET.IPV4_FROM_INT64."""
    if number is None:
        return None
    if not -(2**31) <= number < 2**32:
        raise ValueError(f"NET.IPV4_FROM_INT64() encountered a non-IPv4 integer: {number}")
    return (number % 2**32).to_bytes(4)


def ipv4_to_int64(address: bytes | None) -> int | None:
    """NET.IPV4_TO_INT64."""
    if address is None:
        return None
    if len(address) != 4:  # noqa: PLR2004 - bytes of IPv4
        raise ValueError(
            f"NET.IPV4_TO_INT64() encountered a non-IPv4 address: {len(address)} bytes"
        )
    return int.from_bytes(address)


def host(url: str | None) -> str | None:
    """NET.HOST."""
    if url is None:
        return None
    text = url.strip()
    found = _HOST.match(text)
    if found is None:  # without a scheme and `//`, the host ends at the first of /?#:
        found = re.match(r"(?:[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:@]*)", text)
    name = found["host"] if found else ""
    return name or None


@cache
def _listed() -> PublicSuffixList:
    """Return the public suffixes, read once, without those of private domains."""
    return PublicSuffixList(only_icann=True, accept_unknown=False)


def _suffix(url: str | None) -> tuple[str, str] | None:
    """Return a URL's host and its public suffix, without dots around them."""
    name = (host(url) or "").strip(".")
    if not name or ".." in name or name.startswith("["):
        return None
    suffix = _listed().publicsuffix(name.lower())
    return (name, name[-len(suffix) :]) if suffix else None


def public_suffix(url: str | None) -> str | None:
    """NET.PUBLIC_SUFFIX."""
    found = _suffix(url)
    return found[1] if found else None


def reg_domain(url: str | None) -> str | None:
    """NET.REG_DOMAIN."""
    found = _suffix(url)
    if found is None or found[0] == found[1]:
        return None
    before = found[0][: -len(found[1]) - 1].rpartition(".")[2]
    return f"{before}.{found[1]}"
