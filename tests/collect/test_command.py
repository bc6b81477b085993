"""`jostler collect` as a process, and what it does with an agent beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import tomllib
import urllib.request
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.cli.collect import main
from tests.support.agent import RunningAgent, run
from tests.support.bucket import rows, url_of
from tests.support.feeds import FeedServer, reply
from tests.torture.collectors import campaign

if TYPE_CHECKING:
    from collections.abc import Callable

WRAPPED = Path(__file__).parents[2] / "examples/wrapped.json"


def table(name: str, url: str, **more: object) -> str:
    """Return one feed as TOML."""
    pairs = {"id": name, "url": url, "every": "100ms", **more}
    return "\n".join(["[[feed]]", *(f"{key} = {json.dumps(pairs[key])}" for key in pairs), "", ""])


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    end_s = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as found:
        text: str = found.read().decode()
        return text


def metrics(url: str) -> dict[str, float]:
    """Return the values of jostler's metrics, by name and labels."""
    lines = get(f"{url}/metrics").splitlines()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("jostler_")
    }


@pytest.mark.slow
def test_it_collects_tells_and_takes_a_new_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong one changes nothing; what stays goes on with its counts; no secret is ever shown."""
    config, spool = tmp_path / "feeds.toml", tmp_path / "spool"
    numbers = count()
    with FeedServer(keep=True) as server:
        good = server.by("/good", lambda _: reply(b'{"n": %d}' % next(numbers)))
        bad = server.always("/bad", reply(b"<script>", "500 <b>Oops"))
        header = '[feed.headers]\nX-Key = { env = "KEY" }\n'
        first = f"{table('good', f'{good}?key=s3cret')}{header}{table('bad', bad)}"
        config.write_text(first)
        monkeypatch.setenv("KEY", "s3cret")
        argv = ["collect", "-config", str(config), "-experiment", "exp", "-log-format", "json"]
        argv += ["-local-data-dir", str(spool), "-prometheusx.listen-address", "127.0.0.1:0"]
        with RunningAgent(*argv) as collector:
            port = collector.wait_for("status.listening")["port"]
            collector.wait_for("feed.failed", feed="bad", why="127.0.0.1 answers 500 <b>Oops")
            url = f"http://127.0.0.1:{port}"
            until(lambda: metrics(url)['jostler_feed_saved_total{feed="good"}'] > 1)
            page = get(url)
            is_told_of(url, page)

            config.write_text(first.replace("every", "evry"))
            os.kill(collector.pid, signal.SIGHUP)
            told = collector.wait_for("collect.reload_refused")["problems"]
            assert len(told) == 4
            refused = metrics(url)
            assert refused["jostler_collect_configuration_refused"] == 1
            assert "evry: there is no such key" in get(url)

            other = table("other", good, **{"as": "wrapped"})
            config.write_text(f"{table('good', f'{good}?key=s3cret')}{header}{other}")
            os.kill(collector.pid, signal.SIGHUP)
            event = collector.wait_for("collect.reloaded")
            counts = [event[name] for name in ("feeds", "begun", "changed", "ended")]
            assert counts == [2, 1, 0, 1]
            until(lambda: metrics(url).get('jostler_feed_saved_total{feed="other"}', 0) > 0)
            after = metrics(url)
            key = 'jostler_feed_saved_total{feed="good"}'
            assert after[key] >= refused[key] > 1  # it was not begun anew
            assert after["jostler_collect_configuration_refused"] == 0
            assert 'jostler_feed_attempts_total{feed="bad"}' not in after

            shown = "".join([page, get(url), get(f"{url}/status.json"), get(f"{url}/metrics")])
            assert collector.stop() == 0
            assert "s3cret" not in shown + json.dumps(collector.log)
        assert "'x-key': 's3cret'" in str(server.asked)
        assert "key=s3cret" in str(server.asked)
    saved = sorted((spool / "exp/good").rglob("*.json"))
    assert len(saved) >= after[key]
    assert not [p for p in (spool / "exp").iterdir() if p.name.startswith(".")]
    archive(tmp_path, spool, [path.read_bytes() for path in saved])


def is_told_of(url: str, page: str) -> None:
    """Assert that page and status tell of the failing feed, and first."""
    assert "1 of 2 feeds failing." in page
    assert "answers 500 &lt;b&gt;Oops" in page
    assert page.index("<b>bad</b>") < page.index("<b>good</b>")
    assert get(f"{url}/healthz").startswith("the loop turned ")
    (failing,) = [f for f in json.loads(get(f"{url}/status.json"))["feeds"] if f["id"] == "bad"]
    assert failing["failures"] == {"status": failing["error"]["times"]}


def archive(tmp_path: Path, spool: Path, contents: list[bytes]) -> None:
    """Let an agent take what was collected: rows have the bytes, index rows the times."""
    (spool / "datatypes").mkdir()
    (spool / "datatypes/good.json").write_text('[{"name": "n", "type": "INTEGER"}]')
    shutil.copy(WRAPPED, spool / "datatypes/other.json")
    names = {path.name for path in (spool / "exp").rglob("*.json")}
    argv = ["-gcs-bucket", url_of(tmp_path / "bucket"), "-node-name", "n", "-experiment", "exp"]
    argv += ["-datatype", "good,other", "-local-data-dir", str(spool), "-once"]

    done = run(*argv, "-missed-age", "0s")

    assert done.returncode == 0, done.stdout
    assert rows(url_of(tmp_path / "bucket"), "rejected1") == []
    raws = [row["raw"] for row in rows(url_of(tmp_path / "bucket"), "good")]
    assert sorted(raws, key=lambda raw: int(raw["n"])) == [json.loads(one) for one in contents]
    assert rows(url_of(tmp_path / "bucket"), "other")
    indexed = rows(url_of(tmp_path / "bucket"), "index1")
    assert {row["raw"]["Filename"].rpartition("/")[2] for row in indexed} == names
    for row in indexed:
        stamp = row["raw"]["Filename"].rpartition("_")[0].rpartition("_")[2]
        at = datetime.strptime(f"{stamp}+0000", "%Y%m%dT%H%M%S.%fZ%z")
        assert datetime.fromisoformat(row["raw"]["Start"]) == at


@pytest.mark.slow
def test_killed_at_random_it_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A few of the kills of `make torture`; every file under its name is whole."""
    counted = campaign(tmp_path, kills=8, seed=18)

    assert counted.problems == []
    assert counted.killed == 8
    assert counted.files >= 4


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "feeds.toml"
    path.write_text(text)
    return str(path)


def test_check_shows_what_it_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As TOML again, with secrets masked."""
    monkeypatch.setenv("KEY", "s3cret")
    text = table("a", "https://u:s3cret@h/x?k=s3cret") + '[feed.headers]\nX = { env = "KEY" }\n'

    status = main(["-config", config(tmp_path, text), "-experiment", "e", "-check"])

    out = capsys.readouterr().out
    assert status == 0
    assert "# all is well: 1 feed" in out
    assert "s3cret" not in out
    (feed,) = tomllib.loads(out)["feed"]
    assert feed == {
        "id": "a",
        "url": "https://***@h/x?k=***",
        "every": "0.1s",
        "timeout": "10s",
        "headers": {"X": "*** (env KEY)"},
        "as": "json",
        "dedup": True,
        "prefix": "a_",
        "postfix": ".json",
    }


def test_wrong_use_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Flags and file together, and nothing is started."""
    path = config(tmp_path, table("a", "ftp://h/"))

    status = main(["-config", path, "-connections", "0", "-experiment", "a/b", "-wat", "1"])

    told = capsys.readouterr().err.splitlines()
    assert status == 2
    assert all(line.startswith("jostler collect: ") for line in told)
    words = ("-wat: no such flag", "-connections: 0 is not", "-experiment: 'a/b' is", ":3: feed a:")
    assert [word for word in words if not any(word in line for line in told)] == []
    assert len(told) == 5  # with how to see the usage


def test_what_is_required_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """By name."""
    assert main([]) == 2

    told = capsys.readouterr().err
    assert "-config: is required" in told
    assert "-experiment: is required" in told
