"""BigQuery for one machine: the part of its REST API that the loader and a person need, on DuckDB.

**Invariant:** it imports nothing of the agent or the loader, so that each can check the other.

It refuses what it cannot do as BigQuery does it; docs/embedded.md says what that is.
"""

from embedded.server import EmbeddedBigQuery
from embedded.store.database import InUseError

__all__ = ["EmbeddedBigQuery", "InUseError"]
