"""The requests that one load sends, pinned: what the real services would be asked, word by word.

When a request changes on purpose, run this file with JOSTLER_PIN=1 and look at the difference.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.loader.world import row
from tests.support.proxy import FaultyServer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from tests.loader.world import World

PINNED = Path(__file__).with_name("requests.json")
IRRELEVANT = {"prettyPrint", "uploadType", "quotaUser", "requestId", "upload_id", "pageToken"}


def requests(server: str, proxy: FaultyServer, names: dict[str, str]) -> Iterable[dict[str, Any]]:
    """Take requests apart: what differs from run to run gets a name in capitals."""
    for line, body in zip(proxy.seen, proxy.bodies, strict=True):
        method, url = line.split(" ", 1)
        parts = urlsplit(url)
        query = {k: v for k, v in parse_qsl(parts.query) if k not in IRRELEVANT}
        told = {
            "server": server,
            "method": method,
            "path": unquote(parts.path),
            "query": query,
            "body": meant(body),
        }
        text = json.dumps({key: value for key, value in told.items() if value}, sort_keys=True)
        for value, name in names.items():
            text = text.replace(value, name)
        for pattern, name in CHANGING:
            text = re.sub(pattern, name, text)
        yield json.loads(text)


CHANGING = (
    (r"\d{8}t?T?\d{6}\.?\d*Z-[0-9a-f]{6}", "RUN"),
    (r"\d{8}[tT]\d{6}[zZ]?-[0-9a-f]{6}", "RUN"),
    (r"(?<=-)1[6-9]\d{11}\b", "MADE"),
    (r'"jostler-fingerprint": "[0-9a-f]{32}"', '"jostler-fingerprint": "FINGERPRINT"'),
    (r'"jostler-ledger": "[0-9a-f]{16}"', '"jostler-ledger": "LEDGER"'),
    (r'"(generation|ifGenerationMatch)": "\d{10,}"', r'"\1": "GENERATION"'),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"generation=\d+", "generation=GENERATION"),
    (r'"etag": "[^"]*"', '"etag": "ETAG"'),
    (r'"upload-id": "[0-9a-f]{32}"', '"upload-id": "DIGEST"'),
    (r'"crc32c": "[^"]*"', '"crc32c": "CRC"'),
    (r'"(creationTime|lastModifiedTime)": "\d+"', r'"\1": "MS"'),
)


def meant(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON of a body: all of it, or the first part of a multipart one."""
    if body.startswith(b"--"):
        body = body.split(b"\r\n\r\n", 1)[1].split(b"\r\n--", 1)[0]
    try:
        return json.loads(body)
    except ValueError:
        return None


def test_the_requests_of_a_load_are_the_ones_that_are_pinned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table, a good bundle and one that has to be written again."""
    world.put_schema()
    world.put_bundle([row(1), row(2)])
    world.put_bundle([*(row(n) for n in range(10, 40)), b"bad"])
    world.gcs.seen.clear()
    world.gcs.bodies.clear()
    upstream = int(world.bigquery.url.rpartition(":")[2])
    with FaultyServer(upstream) as bigquery, monkeypatch.context() as patch:
        patch.setenv("BIGQUERY_EMULATOR_HOST", bigquery.url)
        assert world.load().code == 0
        names = {world.project: "PROJECT", world.bucket: "BUCKET"}
        made = [
            *requests("storage", world.gcs, names),
            *requests("bigquery", bigquery, names),
        ]
    unique = sorted({json.dumps(one, sort_keys=True) for one in made})
    text = "[\n" + ",\n".join(unique) + "\n]\n"
    if os.environ.get("JOSTLER_PIN"):
        PINNED.write_text(text)
    assert json.loads(text) == json.loads(PINNED.read_text())
