"""Status documents of agents in several states."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2026, 11, 21, 7, 40, tzinfo=UTC)
MINUTES = 240
HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>.json"
)
BUCKET = "gs://archive-sandbox"

Document = dict[str, Any]


def at(seconds_ago: float) -> str:
    """Return an instant before the document's present, as documents write it."""
    return (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


def well() -> Document:
    """Return the document of an agent that does its work."""
    return {
        "format": 1,
        "now": at(0),
        "agent": {
            "version": "0.1.0",
            "commit": "abc1234",
            "native": "1.0.0",
            "node": "mlab1-lga0t",
            "experiment": "ndt",
            "bucket": BUCKET,
            "mode": "run",
            "started": at(MINUTES * 60 + 71),
            "ready": True,
            "heartbeat": at(1),
            "local_data_dir": "/var/spool",
        },
        "health": {
            "level": "ok",
            "since": None,
            "headline": "All is well: files arrive and are archived.",
            "problems": [],
        },
        "uploads": {
            "failing": False,
            "failing_since": None,
            "pending": 0,
            "threads": 4,
            "errors": [],
        },
        "watch": {
            "degraded": "",
            "scanning": False,
            "watches": 14,
            "unwatched": 0,
            "buffered": 12,
            "events": 88_123,
            "found": 12,
            "overflows": 0,
            "lost": 0,
            "scans": {"start": 1, "periodic": 11},
        },
        "spool": {"free_bytes": 8_123_456_789, "size_bytes": 21_474_836_480},
        "memory": {"held_bytes": 11_943_040, "limit_bytes": 67_108_864},
        "journal": {"entries": 0, "replayed": 0},
        "datatypes": [datatype("ndt7"), datatype("annotation2")],
        "history": history(),
    }


def datatype(name: str) -> Document:
    """Return a busy datatype's entry."""
    return {
        "name": name,
        "kind": "data",
        "waiting": {"files": 310, "bytes": 8_123_456, "oldest": at(540)},
        "open": [
            {
                "day": "2026-11-21",
                "bundle": bundle(name, "073100"),
                "files": 310,
                "row_bytes": 7_340_032,
                "row_bytes_max": 20_971_520,
                "held_bytes": 912_000,
                "opened": at(540),
                "seals_at": at(-3060),
                "seals_by": "age in 51 min, or 13.0 MiB more",
            }
        ],
        "uploading": [],
        "stored": [stored(name, f"{hour:02}3000", 600 + 3600 * (6 - hour)) for hour in (6, 5, 4)],
        "rejected": [],
        "totals": {
            "taken": 90_000,
            "archived": 89_690,
            "rejected": {},
            "kept": {},
            "deleted": {},
            "ignored": {"hidden": 4},
            "changed": 0,
            "vanished": 2,
            "file_bytes": 2_100_000_000,
            "bundles": 96,
            "object_bytes": 210_000_000,
        },
        "last_arrival": at(2),
        "last_success": at(600),
    }


def bundle(name: str, time: str) -> str:
    """Return an object's name."""
    return (
        f"autoload/v1/ndt/{name}/2026/11/21/20261121T{time}.000000Z"
        f"-{name}-mlab1-lga0t-ndt-data.jsonl.gz"
    )


def stored(name: str, time: str, seconds_ago: float) -> Document:
    """Return a stored bundle's entry."""
    object_name = bundle(name, time)
    return {
        "bundle": object_name,
        "url": f"{BUCKET}/{object_name}",
        "link": f"https://console.cloud.google.com/storage/browser/_details/{object_name}",
        "files": 911,
        "object_bytes": 2_204_331,
        "at": at(seconds_ago),
        "seconds": 0.9,
    }


def history(*, failing: int = 0) -> Document:
    """Return four hours, in the last `failing` minutes of which nothing was stored."""
    rng = random.Random(1)
    arrived = [round(22 + 9 * math.sin(i / 40) + rng.random() * 6) for i in range(MINUTES)]
    archived = [0] * MINUTES
    stored_s: list[float | None] = [None] * MINUTES
    backlog: list[int] = []
    held = 0
    for minute in range(MINUTES):
        held += arrived[minute]
        if minute % 30 == 20 and minute < MINUTES - failing:
            archived[minute], held = held, 0
            stored_s[minute] = round(1800 + rng.random() * 120, 1)
        backlog.append(held)
    sizes = [round(files * 26_000 * (0.8 + rng.random() / 2)) for files in arrived]
    return {
        "step_s": 60,
        "end": at(0),
        "arrived": arrived,
        "archived": archived,
        "bytes": sizes,
        "backlog": backlog,
        "stored_s": stored_s,
    }


def bucket_down() -> Document:
    """Return the document of an agent whose bucket answers 503."""
    document = well()
    under_way = bundle("ndt7", "063000")
    text = "storage.googleapis.com answers HTTP 503 Service Unavailable"
    document["health"] = {
        "level": "bad",
        "since": at(528),
        "headline": "Uploads have been failing since 07:31 UTC (8 min 48 s): GCS answers 503. "
        "Nothing is lost: 1,204 files wait on disk.",
        "problems": [
            {
                "code": "uploads_failing",
                "level": "bad",
                "since": at(528),
                "text": f"Uploads have been failing for 8 min 48 s: {text}",
                "hint": "Check the bucket, the network and the service account; "
                "the agent retries by itself.",
            },
            {
                "code": "rejects",
                "level": "attention",
                "since": at(5880),
                "text": "3 files were rejected in the last hour",
                "hint": "See rejects below, or ask BigQuery's rejected1.",
            },
        ],
    }
    document["uploads"] = {
        "failing": True,
        "failing_since": at(528),
        "pending": 1,
        "threads": 4,
        "errors": [
            {
                "at": at(20),
                "since": at(528),
                "class": "TransientError",
                "text": text,
                "hint": "wait; if it lasts, look at the provider's status page",
                "times": 9,
                "failing": 1,
                "what": under_way,
                "tries": 9,
                "next_try_s": 31.5,
                "objects": [under_way],
            }
        ],
    }
    ndt7 = document["datatypes"][0]
    ndt7["level"] = "bad"
    document["spool"]["full_in_s"] = 111_720
    document["health"]["problems"][0]["runbook"] = (
        "https://docs.example.org/runbook.md#uploads-failing"
    )
    ndt7["waiting"] = {"files": 1204, "bytes": 28_123_456, "oldest": at(520)}
    ndt7["uploading"] = [
        {
            "bundle": under_way,
            "files": 800,
            "row_bytes": 18_874_368,
            "object_bytes": 2_104_331,
            "sealed": at(600),
            "reason": "age",
            "tries": 9,
        }
    ]
    ndt7["rejected"] = rejects(3)
    ndt7["totals"]["rejected"] = {"type": 3}
    document["history"] = history(failing=60)
    return document


def rejects(count: int) -> list[Document]:
    """Return rejected files, the first with a name that is markup, the second one that hides."""
    names = [HOSTILE, "photo\u202egnp.json\x1b[31m", "é" + "long-name-" * 24 + ".json"]
    names += [f"ndt7-{number:06}.json" for number in range(count)]
    return [
        {
            "file": f"ndt7/2026/11/21/{name}",
            "reason": "type",
            "field": "Download.MeanThroughputMbps",
            "detail": "expected FLOAT, found a string",
            "at": at(1700 + number),
        }
        for number, name in enumerate(names[:count])
    ]


def thousand_rejects() -> Document:
    """Return the document of an agent that rejected a thousand files."""
    document = well()
    document["health"] = {
        "level": "attention",
        "since": at(5880),
        "headline": "1,000 files were rejected in the last hour; all else is well.",
        "problems": [
            {
                "code": "rejects",
                "level": "attention",
                "since": at(5880),
                "text": "1,000 files were rejected in the last hour",
                "hint": "See rejects below, or ask BigQuery's rejected1.",
            }
        ],
    }
    document["datatypes"][0]["rejected"] = rejects(1000)
    document["datatypes"][0]["totals"]["rejected"] = {"type": 990, "unknown": 10}
    return document


def empty_datatype(name: str) -> Document:
    """Return the entry of a datatype to which nothing has happened."""
    return {
        "name": name,
        "kind": "data",
        "waiting": {"files": 0, "bytes": 0, "oldest": None},
        "open": [],
        "uploading": [],
        "stored": [],
        "rejected": [],
        "totals": {"taken": 0, "archived": 0, "rejected": {}, "kept": {}, "deleted": {}},
        "last_arrival": None,
        "last_success": None,
    }


def starting() -> Document:
    """Return the document of an agent that has only begun."""
    document = well()
    document["agent"] |= {"ready": False, "started": at(4)}
    document["health"] = {
        "level": "attention",
        "since": at(4),
        "headline": "Starting: the first scan of the spool is running.",
        "problems": [
            {
                "code": "not_ready",
                "level": "attention",
                "since": at(4),
                "text": "The first scan is not done",
                "hint": "Wait; if it takes longer than minutes, see the log.",
            }
        ],
    }
    document["watch"] |= {"scanning": True, "scans": {}, "events": 0, "found": 0, "buffered": 0}
    document["datatypes"] = [empty_datatype("ndt7"), empty_datatype("annotation2")]
    series = ("arrived", "archived", "bytes", "backlog", "stored_s")
    document["history"] = {"step_s": 60, "end": at(0), **{name: [] for name in series}}
    return document


def quiet() -> Document:
    """Return the document of an agent that is ready but to which nothing has come."""
    document = starting() | {"health": well()["health"], "agent": well()["agent"]}
    zeros = {name: [0] * 40 for name in ("arrived", "archived", "bytes", "backlog")}
    document["history"] = {"step_s": 60, "end": at(0), **zeros, "stored_s": [None] * 40}
    return document


STATES = {
    "well": well,
    "bucket_down": bucket_down,
    "starting": starting,
    "quiet": quiet,
    "thousand_rejects": thousand_rejects,
}
