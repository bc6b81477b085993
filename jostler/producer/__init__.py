"""Ways into the spool for what does not write good files by itself."""

from jostler.producer.checking import RefusedError
from jostler.producer.outbox import NameTakenError, Outbox, Outcome, Published, Staged
from jostler.producer.spool import Spool

__all__ = [
    "NameTakenError",
    "Outbox",
    "Outcome",
    "Published",
    "RefusedError",
    "Spool",
    "Staged",
]
