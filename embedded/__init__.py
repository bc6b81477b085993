"""BigQuery for one machine: the part of its REST API that the loader and people use, on DuckDB.

**Invariant:** it imports nothing of the agent or the loader, so that each can check the other.

A request that it cannot answer as BigQuery would gets an error; docs/embedded.md lists these.
"""

from embedded.server import EmbeddedBigQuery
from embedded.store.database import InUseError

__all__ = ["EmbeddedBigQuery", "InUseError"]
