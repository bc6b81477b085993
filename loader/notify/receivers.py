"""The URLs that are told of days, and the secrets that sign what they are told.

**Invariant:** a receiver's full URL and its secret appear in no text that this module makes: a
receiver is shown by its host and a digest, for a path or a query may hold a token.  Secrets come
from a file only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from jostler.format.urls import masked

URL_MAX = 2000
ANY = "*"
PREFIX = "whsec_"
SECRET_MIN = 16
_INSIDE = (".svc", ".svc.cluster.local")
"""Names of a Kubernetes cluster's own services, whose traffic does not leave it."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A URL that is told of days.

    Attributes:
        url: the whole URL; `str` and `repr` do not show it.
    """

    url: str = field(repr=False)

    @property
    def id(self) -> str:
        """A digest of the URL: 16 hex digits, the same in each run."""
        return hashlib.blake2b(self.url.encode(), digest_size=8).hexdigest()

    def __str__(self) -> str:
        """Return the URL as it may be shown."""
        return f"{masked(self.url)} ({self.id[:8]})"


def receiver(text: str) -> Receiver:
    """Read a receiver's URL.

    Raises:
        ValueError: it is not one that is told; the message shows no more of it than `masked`.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError(f"{masked(text)} is not https://HOST/…")
    if "@" in parts.netloc:
        hint = "put a secret into the file of --notify-secrets"
        raise ValueError(f"{masked(text)}: has a user or a password ({hint})")
    if parts.fragment:
        raise ValueError(f"{masked(text)}: has a part after #, which is never sent")
    if len(text) > URL_MAX or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"{masked(text)}: a URL has at most {URL_MAX} printable ASCII characters and no space"
        )
    if parts.scheme == "http" and not _stays_inside(parts.hostname):
        hint = "http:// only to this machine and to services of the cluster, NAME.NAMESPACE.svc"
        raise ValueError(f"{masked(text)}: must be https:// ({hint})")
    return Receiver(text)


def _stays_inside(host: str) -> bool:
    if host == "localhost" or host.endswith(_INSIDE):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of receivers.

    Attributes:
        keys: pairs of the beginning of a URL (or `*`) and a key, in the order of the file.
    """

    keys: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    def of(self, receiver: Receiver) -> tuple[bytes, ...]:
        """Return the keys of a receiver, those of the longest beginning that fits.

        Two lines of the same beginning are two keys, so that a secret can be changed without a
        moment in which the receiver knows none of them.
        """
        fit = [begin for begin, _ in self.keys if begin == ANY or _begins(receiver.url, begin)]
        best = max(fit, key=lambda begin: (begin != ANY, len(begin)), default=None)
        return tuple(key for begin, key in self.keys if begin == best)


NO_SECRETS = Secrets()


def _begins(url: str, begin: str) -> bool:
    """Return whether a URL lies below another: https://a.example does not begin a.example.com."""
    return url == begin or (
        url.startswith(begin) and (begin.endswith("/") or url[len(begin)] in "/?")
    )


def secrets_from(path: str) -> Secrets:
    """Read the file of secrets: `URL-BEGINNING SECRET` in each line, or `* SECRET` for all others.

    Raises:
        ValueError: it cannot be read, or a line is wrong; the message shows only its number.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "is not UTF-8"
        raise ValueError(f"{path}: {why}") from None
    keys = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}: line {number}"
        if len(words) != 2:  # noqa: PLR2004 - as the message says
            raise ValueError(f"{where}: expected two words, URL-BEGINNING SECRET")
        begin, secret = words
        if begin != ANY and not urlsplit(begin).hostname:
            raise ValueError(f"{where}: the first word is neither https://HOST… nor *")
        keys.append((begin, _key(secret, where)))
    return Secrets(tuple(keys))


def _key(secret: str, where: str) -> bytes:
    """Return the key that a secret stands for: `whsec_` and base64, or the text's own bytes."""
    try:
        key = (
            base64.b64decode(secret.removeprefix(PREFIX), validate=True)
            if secret.startswith(PREFIX)
            else secret.encode()
        )
    except (binascii.Error, ValueError):
        raise ValueError(f"{where}: what follows {PREFIX} is not base64") from None
    if len(key) < SECRET_MIN:
        raise ValueError(f"{where}: a secret has at least {SECRET_MIN} bytes")
    return key
