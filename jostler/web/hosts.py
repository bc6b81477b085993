"""Where a server listens, and by which names it may be asked: its own, and any address.

**Invariant:** a name that is neither known nor an address is not answered.  So a foreign web page
whose name was made to resolve to this machine (DNS rebinding) cannot read what is served here.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address; an empty host means all interfaces.

    Raises:
        OSError: the system refuses.
    """
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def is_known(given: Sequence[str], names: Collection[str]) -> bool:
    """Return whether a request may be answered.

    Args:
        given: the values of its Host headers; there must be exactly one.
        names: names in lower case that are known, beside addresses.
    """
    if len(given) != 1:
        return False
    try:
        name = urlsplit(f"//{given[0]}").hostname or ""
    except ValueError:
        return False
    return name in names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
