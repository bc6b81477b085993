"""Addresses of files on the command line or on standard input, and the files that they name.

**Invariant:** addresses of one bundle that follow one another cost one search, and so do some
thousands of addresses without a bundle, wherever they stand.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from jostler.archive.address import Address, AddressError, find, parse
from jostler.archive.address_batch import Asked, batches, find_all
from jostler.archive.files import day_in
from jostler.archive.query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.archive.catalogue import Catalogue, File
    from jostler.cli.archive_command import Archive
    from jostler.format.names import Place

STDIN = "-"
ADDRESSES_MOST = 1_000_000


def given(archive: Archive, words: Sequence[str]) -> list[Address]:
    """Parse the addresses; `-` stands for those on standard input, one a line.

    Raises:
        ValueError: there is none, or one has a wrong form.
    """
    texts: list[str] = []
    for word in words:
        if word == STDIN:
            texts += [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
        else:
            texts.append(word)
    if not words:
        raise ValueError("ADDRESS: required: a bundle's URL#Filename, a Filename, or a Hash")
    bucket = archive.values["bucket"]
    known = [archive.bucket(bucket).url] if bucket else []
    return [parse(text, known) for text in texts]


class Files:
    """Finds the files of addresses.

    Args:
        archive: where.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._catalogues: dict[tuple[str, Place], Catalogue] = {}

    def of(self, addresses: Iterable[Address]) -> Iterator[File | AddressError]:
        """Yield for each address, in order, the file or why there is none.

        Raises:
            ValueError: a flag that is needed is missing.
            JostlerError: the archive cannot be searched.
        """
        for batch in batches(addresses):
            searched = self._searched([address for address in batch if not address.bundle])
            for key, run in groupby(batch, key=lambda one: (one.bucket, one.bundle)):
                if key[1]:
                    yield from self._of_bundle(list(run))
                else:
                    yield from (next(searched) for _ in run)

    def _of_bundle(self, addresses: list[Address]) -> Iterator[File | AddressError]:
        first = addresses[0]
        bundle, place = first.bundle, first.place
        assert bundle
        assert place
        key = (first.bucket, place)
        if key not in self._catalogues:
            self._catalogues[key] = self._archive.catalogue_of(first.bucket, [place])
        wanted = {address.filename for address in addresses}
        query = Query(bundle=str(bundle))
        files = self._catalogues[key].files(query, self._archive.tally)
        found: dict[str, list[File]] = {}
        for file in files:
            if file.filename in wanted:
                found.setdefault(file.filename, []).append(file)
        for address in addresses:
            same = found.get(address.filename, [])
            if len(same) == 1:
                yield same[0]
                continue
            try:  # several in a merged bundle; or none, because the bundle was merged into another
                yield find(address, self._catalogues[key], Query(), self._archive.tally)
            except AddressError as exc:
                yield exc

    def _searched(self, addresses: list[Address]) -> Iterator[File | AddressError]:
        """Search addresses without a bundle, all when the first result is asked for."""
        if not addresses:
            return
        archive = self._archive
        query = archive.query()
        bounds = (query.start, query.end, query.first_day, query.last_day)
        back = timedelta(seconds=archive.values["lookback"])
        recent = replace(query, first_day=(datetime.now(UTC) - back).date())
        asked = [
            Asked(one, query if any(bounds) or day_in(one.filename) else recent)
            for one in addresses
        ]
        for one, found in zip(
            asked, find_all(asked, archive.catalogue, archive.tally), strict=True
        ):
            if isinstance(found, AddressError) and one.query is recent:
                found.hint = found.hint or "-lookback 8760h looks a year back"
            yield found
