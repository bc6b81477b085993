"""Remove the objects that killed runs left in staging, for any day.

**Invariant:** an object is removed only if its name has the form of `StagingPaths`, its run began
more than STALE_S ago, and it was written more than STALE_S ago.  By then no load job reads it:
BigQuery ends load jobs after six hours, and a run loads what it stages in the same wave.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.bigquery.record import STARTED
from loader.bucket import open_bucket, split_url
from loader.errors import BucketError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loader.bucket import Bucket
    from loader.cli.console import Console

STALE_S = 2 * 86_400
THREADS = 8
_STAGED_RE = re.compile(r"[^/]+\.[^/]+/[0-9]{8}/([0-9]{8}t[0-9]{6})-[0-9a-f]{6}/[^/]+", re.ASCII)


def sweep(staging: str, patience_s: float, console: Console) -> None:
    """Remove what killed runs left; report failures, which fail no day.

    Args:
        staging: the URL of the bucket, and the prefix in it.
        patience_s: how long a failing request is retried.
        console: shows what was removed, and what was not.
    """
    url, prefix = split_url(staging)
    try:
        removed, failed = remove_stale(open_bucket(url, patience_s), prefix, time.time())
    except BucketError as exc:
        if not url.startswith("file:"):  # a missing directory is normal: nothing was staged
            console.event("staging.not_removed", "warning", object=url, error=str(exc))
        return
    if removed:
        console.event("staging.swept", objects=removed)
    for name, error in failed:
        console.event("staging.not_removed", "warning", object=name, error=error)


def remove_stale(bucket: Bucket, prefix: str, now_s: float) -> tuple[int, list[tuple[str, str]]]:
    """Remove the stale objects.

    Args:
        bucket: the bucket of staging.
        prefix: the prefix of staging, without a slash at its end; may be empty.
        now_s: Unix time.

    Returns:
        How many objects were removed, and which could not be, with the reason.

    Raises:
        BucketError: staging cannot be listed.
    """
    names = list(_stale(bucket, f"{prefix}/" if prefix else "", now_s))

    def remove(name: str) -> tuple[str, str] | None:
        try:
            bucket.remove(name)
        except BucketError as exc:
            return name, str(exc)
        return None

    with ThreadPoolExecutor(THREADS, thread_name_prefix="staging") as pool:
        failed = [problem for problem in pool.map(remove, names) if problem]
    return len(names) - len(failed), failed


def _stale(bucket: Bucket, folder: str, now_s: float) -> Iterator[str]:
    oldest_s = now_s - STALE_S
    for name, written_s in bucket.written(folder):
        found = _STAGED_RE.fullmatch(name, len(folder))
        if found and written_s < oldest_s and _began_s(found[1]) < oldest_s:
            yield name


def _began_s(text: str) -> float:
    try:
        return datetime.strptime(text, STARTED).replace(tzinfo=UTC).timestamp()
    except ValueError:  # such as month 13: not a name that the loader writes
        return float("inf")
