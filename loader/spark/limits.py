"""How much of one bundle is read: beyond that it is no bundle that an agent made.

**Invariant:** what an executor holds of a bundle is bounded by these numbers, whatever the object
inflates to.  An agent's bundle has 20 MiB by default, and then at most some 200,000 rows.

Pure: values only.
"""

from __future__ import annotations

ROW_MAX_BYTES = 100_000_000
"""BigQuery takes rows of up to 100 MB ("Quotas and limits", load jobs)."""
PACKED_MAX_BYTES = 1 << 30
"""An object of this size is read; a longer one is not."""
PLAIN_MAX_BYTES = 1 << 30
"""What a bundle may inflate to."""
ROWS_MAX = 2_000_000
"""So many lines a bundle may have."""
BAD_MAX = 100_000
"""So many bad rows a bundle may have; of a corrupt one so many lines are kept as rejects."""
TEXT_MAX = 64 * 1024
"""Of a bad row so many bytes are kept, as many as the agent keeps of a file that is too big."""
SAMPLE_ROWS = 1000
"""Of a day that is refused so many bad rows are kept."""
