"""The command `jostler serve` as a process, over what a real agent stored."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.archive.serve.openapi import DOCUMENT
from jostler.cli.main import main
from jostler.cli.serve import FLAGS
from tests.support.agent import environment, once
from tests.support.bucket import url_of
from tests.support.serving import Answer, get
from tests.support.spool import Spool, document

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[2] / "docs/serve.md"
PRETTY = b'{\n  "UUID": "p",\n  "Rate": 1E2\n}\n'
FILES = "/v0/archive/files/"
ALWAYS = {"start": 1_700_000_000_000, "end": 4_000_000_000_000}


class Server:
    """A process of `jostler serve`."""

    def __init__(self, bucket: str, *more: str) -> None:
        argv = ("-listen-address=127.0.0.1:0", "-bucket", bucket, "-experiment=exp", "-cache-dir=-")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jostler", "serve", *argv, *more],
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr
        self.line = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.line)
        assert found, self.line
        self.port = int(found[1])

    def get(self, path: str, **parameters: object) -> Answer:
        return get(self.port, path, **parameters)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        assert self.process.stderr
        self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait(timeout=60)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with good files and a rejected one."""
    root = tmp_path_factory.mktemp("served")
    spool = Spool(root / "spool", "foo1")
    for number in range(3):
        spool.write(f"m{number}.json", document(number))
    spool.write("pretty.json", PRETTY)
    spool.write("bad.json", b'{"UUID":{}}', keep=False)
    done = once(spool, url_of(root / "bucket"))
    assert done.returncode == 0, done.stderr
    return root / "bucket"


@pytest.fixture(scope="module")
def server(bucket: Path) -> Iterator[Server]:
    started = Server(url_of(bucket))
    yield started
    assert started.end(signal.SIGTERM) in {0, -signal.SIGTERM}


def test_a_file_is_found_and_delivered_as_it_was_stored(server: Server) -> None:
    page = server.get(FILES, what="foo1", **ALWAYS).json
    by_name = {record["filename"].rpartition("/")[2]: record for record in page["files"]}
    record = by_name["pretty.json"]

    data = server.get(record["data"])

    assert sorted(by_name) == ["m0.json", "m1.json", "m2.json", "pretty.json"]
    assert data.body == PRETTY.replace(b"\n", b"")
    assert data.headers["content-type"] == "application/json"
    assert data.headers["etag"] == f'"{record["hash"]}"'


def test_a_rejected_file_is_delivered_with_its_own_bytes(server: Server) -> None:
    (record,) = server.get(FILES, what="rejected1", **ALWAYS).json["files"]

    data = server.get(record["data"])
    page = server.get(f"/file/{record['id']}").text

    assert data.body == b'{"UUID":{}}'
    assert "rejected" in page


def test_the_file_s_page_says_where_it_is(server: Server) -> None:
    record = server.get(FILES, what="foo1", **ALWAYS).json["files"][0]

    page = server.get(f"/file/{record['id']}").text

    assert "stored" in page
    assert "its row is in a data bundle" in page
    assert "-foo1-node1-exp-data.jsonl.gz" in page


def test_a_flipped_byte_is_told_and_not_delivered(bucket: Path, tmp_path: Path) -> None:
    """The row that it damages is refused with object, line and both hashes, or as unreadable."""
    copy = tmp_path / "bucket"
    subprocess.run(["cp", "-r", str(bucket), str(copy)], check=True)
    (data,) = copy.glob("autoload/v1/exp/foo1/**/*-data.jsonl.gz")
    packed = bytearray(data.read_bytes())
    packed[len(packed) // 2] ^= 1
    data.write_bytes(packed)
    damaged = Server(url_of(copy))
    try:
        records = damaged.get(FILES, what="foo1", **ALWAYS).json["files"]
        answers = [damaged.get(record["data"]) for record in records]
        page = damaged.get(f"/file/{records[-1]['id']}").text
    finally:
        damaged.end(signal.SIGINT)

    bad = [answer.json for answer in answers if answer.status != 200]
    assert {answer["code"] for answer in bad} == {"ArchiveError"}
    assert "-data.jsonl.gz" in bad[0]["message"]
    assert all(json.loads(answer.body) for answer in answers if answer.status == 200)
    assert "Not everything could be read" in page


def test_the_page_about_it_has_its_flags_and_every_error() -> None:
    """docs/serve.md has the flags with their defaults, and the codes with their statuses."""
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    flags = {row[1].strip(" `"): row[2] for row in rows if row[1].startswith(" `-")}
    codes = {row[1].strip(" `"): row[2].strip() for row in rows if row[2].strip().isdigit()}
    told = DOCUMENT["components"]["schemas"]["Error"]["properties"]["code"]["description"]
    in_openapi = {
        code: status
        for group, status in re.findall(r"([A-Za-z, ]+) \((\d+)\)", told)
        for code in re.findall(r"[A-Za-z]+", group)
    }

    assert set(flags) == {f"-{flag.name}" for flag in FLAGS}
    for flag in FLAGS:
        assert flag.default in {None, "false"} or f"`{flag.default}`" in flags[f"-{flag.name}"]
    assert codes == in_openapi


def test_it_listens_on_loopback_unless_it_is_told_otherwise() -> None:
    (listen,) = (flag for flag in FLAGS if flag.name == "listen-address")

    assert listen.read(listen.default or "") == ("localhost", 9991)


NOWHERE = ("-bucket=file:///nowhere", "-experiment=exp")
WRONG = [
    (["-experiment=exp"], 2, "-bucket"),
    (["-bucket=file:///nowhere"], 2, "-experiment"),
    ([*NOWHERE, "-listen-address=x"], 2, "HOST:PORT"),
    (
        ["-bucket=file:///usr", "-experiment=exp", "-listen-address=203.0.113.1:80"],
        1,
        "cannot listen on 203.0.113.1:80",
    ),
    ([*NOWHERE, "word"], 2, "word"),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home and an environment without settings."""
    for name in ("BUCKET", "GCS_BUCKET", "EXPERIMENT", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("argv", "status", "message"), WRONG)
def test_wrong_use_is_told_in_a_line(
    argv: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *argv]) == status
    assert message in capsys.readouterr().err
