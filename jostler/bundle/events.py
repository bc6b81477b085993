"""The events of the delivery: what happened to a bundle after it was sealed.

**Invariant:** an event is a value; the bundle in it is already in its new state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from jostler.bundle.cleanup import Cleaned
    from jostler.bundle.in_flight import InFlight
    from jostler.bundle.in_flight_bundles import Released
    from jostler.bundle.job import UploadJob


class Stored(Struct, frozen=True, kw_only=True):
    """A bundle became durable; `released` are files that it does not hold."""

    bundle: InFlight
    job: UploadJob
    released: Released


class GivenBack(Struct, frozen=True, kw_only=True):
    """A bundle could not become durable; `released` are its files."""

    bundle: InFlight
    released: Released


class CleanedUp(Struct, frozen=True, kw_only=True):
    """The files of a stored bundle were looked at.

    Attributes:
        bundle: it is gone, or some of its files cannot be unlinked.
        job: its upload.
        first: they were looked at for the first time.
        cleaned: the result of the clean-up.
        released: those that belong to it no more.
    """

    bundle: InFlight
    job: UploadJob
    first: bool
    cleaned: Cleaned
    released: Released


Event = Stored | GivenBack | CleanedUp
