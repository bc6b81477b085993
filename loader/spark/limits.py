"""Limits for reading one bundle; no agent writes a bundle that exceeds them.

**Invariant:** these numbers bound the memory that an executor needs for a bundle, whatever the
object decompresses to.  By default an agent's bundle has 20 MiB and at most some 200,000 rows.

Pure: values only.
"""

from __future__ import annotations

ROW_MAX_BYTES = 100_000_000
"""BigQuery accepts rows of up to 100 MB ("Quotas and limits", load jobs)."""
PACKED_MAX_BYTES = 1 << 30
"""The maximum size of an object; a larger one is not read."""
PLAIN_MAX_BYTES = 1 << 30
"""The maximum size of a decompressed bundle."""
ROWS_MAX = 2_000_000
"""The maximum number of lines in a bundle."""
BAD_MAX = 100_000
"""The maximum number of bad rows in a bundle, and of rejects kept from a corrupt one."""
TEXT_MAX = 64 * 1024
"""How many bytes of a bad row are kept; the agent's sample of a file too big is as long."""
SAMPLE_ROWS = 1000
"""How many bad rows of a refused day are kept."""
GZIP_END_BYTES = 10
"""What follows the last block of a bundle: an empty block, checksum and length."""
