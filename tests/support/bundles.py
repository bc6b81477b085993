"""Make bundles as an agent does, without an agent: data and index object with their metadata."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import orjson

from jostler.archive.keeping import Made
from jostler.format.blocks import BlockWriter
from jostler.format.compression import FAST
from jostler.format.index_row import Facts, index_raw, last_members, place, shared
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.format.row import Archiver, instant, row, row_head
from jostler.storage import upload_id

if TYPE_CHECKING:
    from collections.abc import Iterable

PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")
DAY = Day(date(2026, 1, 2))
CREATED = datetime(2026, 1, 3, tzinfo=UTC)


def bundle(
    files: Iterable[tuple[str, bytes]],
    *,
    node: str = "n1",
    number: int = 1,
    datatype: str = "foo1",
    day: Day = DAY,
    place_: Place = PLACE,
    bucket: str = "gs://memory",
    version: str = "jostler@1",
    schema: str = "",
    added_us: int = 1_767_312_000_000_000,
) -> tuple[Made, Made]:
    """Return data and index object of a bundle.

    Args:
        files: Filename (below the day's folder) and content of each.
        node: that stores them.
        number: of the bundle; gives it its name and the times of its files.
        datatype: of the files.
        day: of the files.
        place_: of the experiment.
        bucket: URL of the bucket.
        version: of the agent.
        schema: digest in the metadata.
        added_us: when the first file was read.
    """
    name = BundleName(
        place=place_,
        datatype=datatype,
        day=day,
        created=CREATED + timedelta(seconds=number),
        node=node,
        kind=Kind.DATA,
    )
    archiver = Archiver(version=version, commit="c0ffee")
    head = row_head(archiver, day, f"{bucket}/{name}")
    names = [f"{day.path}/{file}" for file, _ in files]
    raws = [raw for _, raw in files]
    writer = BlockWriter(FAST)
    for filename, raw in zip(names, raws, strict=True):
        writer.add(row(head, orjson.dumps(filename), raw))
    data = writer.finish()
    index_name = replace(name, kind=Kind.INDEX)
    index = BlockWriter(FAST)
    index_head = row_head(archiver, day, f"{bucket}/{index_name}")
    told = shared(datatype, node, f"{bucket}/{name}")
    for line, (filename, raw) in enumerate(zip(names, raws, strict=True), 1):
        block = [one for one in writer.blocks if one.line <= line][-1]
        when_us = added_us + number * 1_000_000 + line
        value = index_raw(
            orjson.dumps(filename),
            size=len(raw),
            added=instant(when_us),
            shared=told,
            line=line,
            digest=hashlib.blake2b(raw, digest_size=16).hexdigest(),
            place=place(block),
            last=last_members(Facts(when_us, None, "job-1")),
        )
        index.add(row(index_head, orjson.dumps(filename), value))
    about = {
        "rows": str(len(names)),
        "first-time-added": instant(added_us + number * 1_000_000 + 1),
        "last-time-added": instant(added_us + number * 1_000_000 + len(names)),
        "version": version,
    }
    judged = {"schema": schema} if schema else {}
    return (
        Made(name=str(name), data=data, metadata=about | judged),
        Made(
            name=str(index_name),
            data=index.finish(),
            metadata=about | {"data-upload-id": upload_id(data)},
        ),
    )
