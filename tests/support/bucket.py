"""Read and check what a bucket has, as any reader would."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from jostler.archive.verify import verify
from jostler.storage import open_storage

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.storage import Storage
    from tests.support.spool import Spool


def url_of(directory: Path) -> str:
    """Return the URL of a directory bucket."""
    return directory.absolute().as_uri()


def problems(bucket: str | Storage, originals: Path | None = None) -> list[str]:
    """Return the problems that `jostler verify` reports."""
    storage = open_storage(bucket) if isinstance(bucket, str) else bucket
    return verify(storage, "", originals).problems


def rows(bucket: str | Storage, datatype: str) -> list[dict[str, Any]]:
    """Return the rows of all bundles in a datatype's folder."""
    storage = open_storage(bucket) if isinstance(bucket, str) else bucket
    found = []
    for info in storage.list("autoload/"):
        if f"/{datatype}/" in info.name and info.name.endswith(".jsonl.gz"):
            plain = gzip.decompress(storage.read(info.name).data)
            found += [json.loads(line) for line in plain.splitlines()]
    return found


def reasons(bucket: str | Storage) -> dict[str, str]:
    """Return why each rejected file was refused, by Filename."""
    raws = [row["raw"] for row in rows(bucket, "rejected1")]
    return {raw["Filename"]: raw["Reason"] for raw in raws}


def assert_all_archived(spool: Spool, bucket: str | Storage) -> None:
    """Assert that every file is stored once with its bytes, and spool and journal are empty."""
    assert problems(bucket, spool.originals) == []
    assert spool.left() == []
    assert spool.journal() == []
