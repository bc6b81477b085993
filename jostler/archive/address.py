"""Texts that name a stored file: a bundle's URL with a Filename, a Filename, or a Hash.

**Invariant:** `parse(file.address)` finds that file again, whatever its name is made of.

    gs://bucket/autoload/v1/…-data.jsonl.gz#2026/01/02/a1.json
    2026/01/02/a1.json
    a1.json
    526e88bfba086d12b116e8aac9bd51cc
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jostler.archive.query import FIRST_DAY, LAST_DAY, Query
from jostler.errors import JostlerError
from jostler.format.names import BUNDLE_SUFFIX, BundleName, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.catalogue import Catalogue
    from jostler.archive.files import File, Tally
CANDIDATES = 10
HASH_RE = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)
_MAGIC_RE = re.compile(r"[*?\[]")
_LAYOUT_RE = re.compile(r"autoload/v[12]/")


class AddressError(JostlerError):
    """An address names no file, or more than one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A parsed address.

    Attributes:
        text: as it was given.
        bucket: URL of the bucket; empty if the address names no bundle.
        bundle: the data object; None if the address names none.
        filename: a Filename or a file's own name; empty if the address is a hash.
        hash: in hexadecimal; empty if the address is no hash.
    """

    text: str
    bucket: str = ""
    bundle: BundleName | None = None
    filename: str = ""
    hash: str = ""

    @property
    def place(self) -> Place | None:
        """The place of the bundle; None if the address names none."""
        return self.bundle.place if self.bundle else None

    @property
    def most(self) -> int:
        """How many files are looked for: of equal contents one, else those that may be meant."""
        return 1 if self.hash else CANDIDATES

    def narrow(self, query: Query) -> Query:
        """Return a query for this file among the files of another query."""
        bundle = str(self.bundle) if self.bundle else ""
        return replace(query, bundle=bundle, filename=_exactly(self.filename), hash=self.hash)


def parse(text: str, buckets: Sequence[str] = ()) -> Address:
    """Parse an address.

    Args:
        text: the address.
        buckets: URLs of known buckets.  A bundle's URL is split behind one of them, else before
            `autoload/`.

    Raises:
        ValueError: the text has none of the forms.
    """
    url, mark, filename = text.partition(f"{BUNDLE_SUFFIX}#")
    if mark:
        bucket, name = _split(url + BUNDLE_SUFFIX, buckets)
        return Address(
            text=text, bucket=bucket, bundle=BundleName.parse(name), filename=unquote(filename)
        )
    if text.endswith(BUNDLE_SUFFIX):
        raise ValueError(f"{text!r} is a whole bundle: add #FILENAME for one of its files")
    if HASH_RE.fullmatch(text):
        return Address(text=text, hash=text.lower())
    if not text or "\n" in text or "://" in text:
        raise ValueError(
            f"{text!r} is neither <bundle's URL>#<Filename>, nor a Filename, nor a Hash"
        )
    return Address(text=text, filename=text)


def _split(url: str, buckets: Sequence[str]) -> tuple[str, str]:
    for bucket in buckets:
        if url.startswith(f"{bucket}/"):
            return bucket, url.removeprefix(f"{bucket}/")
    if url.startswith("gs://"):
        bucket, _, name = url.removeprefix("gs://").partition("/")
        return f"gs://{bucket}", name
    found = list(_LAYOUT_RE.finditer(url))
    if not url.startswith("file:///") or not found:
        raise ValueError(f"{url!r} is not the URL of a bundle")
    at = found[-1].start()
    return url[: at - 1], url[at:]


def _exactly(filename: str) -> str:
    """Return a pattern for one name, which may have the characters of a pattern itself."""
    return _MAGIC_RE.sub(r"[\g<0>]", filename)


def _moved(address: Address, query: Query) -> Query:
    """Return a query for a file whose bundle is gone: compaction has moved it to another one."""
    bundle = address.bundle
    assert bundle
    return replace(
        query,
        datatypes=(bundle.datatype,),
        nodes=() if bundle.is_merged else (bundle.node,),
        first_day=bundle.day.date,
        last_day=bundle.day.date,
        filename=_exactly(address.filename),
    )


def find_moved(file: File, catalogue: Catalogue) -> File | None:
    """Return where a file is now whose bundle went away after it was found; None if nowhere."""
    query = Query(
        datatypes=(file.datatype,),
        nodes=(file.node,),
        first_day=file.origin.day,
        last_day=file.origin.day,
        filename=_exactly(file.filename),
        hash=file.hash,
    )
    found = list(catalogue.files(query))
    return next((one for one in found if one.origin.data != file.origin.data), None)


def _where(address: Address, query: Query) -> str:
    """Say where a file was looked for."""
    if address.bundle:
        return "in this bundle, nor in one that this one was merged into"
    first, last = address.narrow(query).days()
    if first > last:
        return "in the days that were asked for: it names another one"
    if first == last:
        return f"in the folders of {first}"
    if first == FIRST_DAY:
        return "in any day's folder" if last == LAST_DAY else f"in the folders up to {last}"
    return f"in the folders from {first}" + (f" to {last}" if last < LAST_DAY else " on")


def find(address: Address, catalogue: Catalogue, query: Query, tally: Tally | None = None) -> File:
    """Return the one file that an address names; of equal contents, the first.

    Args:
        address: what is looked for.
        catalogue: where.
        query: among which files.
        tally: what the search does.

    Raises:
        AddressError: there is none, or there are several.
    """
    most = address.most
    found = list(catalogue.files(replace(address.narrow(query), limit=most), tally))
    if address.bundle:
        found = [file for file in found if file.filename == address.filename]
        found = found or list(catalogue.files(replace(_moved(address, query), limit=most), tally))
    return the_one(address, found, query)


def the_one(address: Address, found: Sequence[File], query: Query) -> File:
    """Return the file that an address names, if it is the only one.

    Args:
        address: what was looked for.
        found: what was found, up to `address.most` files.
        query: among which files.

    Raises:
        AddressError: there is none, or there are several.
    """
    if not found:
        raise AddressError(f"{address.text!r}: no such file {_where(address, query)}")
    if len(found) > 1:
        several = "\n  ".join(
            f"{file.address}, node {file.node}, hash {file.hash or 'unknown'}" for file in found
        )
        more = " or more" if len(found) == CANDIDATES else ""
        text = f"{address.text!r} names {len(found)}{more} files:\n  {several}"
        raise AddressError(text, hint="give one of these addresses, a hash, or -datatype and -node")
    return found[0]
