"""The configuration: what is good, and each problem with its line."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from jostler.cli.flags import duration
from jostler.errors import ConfigError
from jostler.producer.collect.feeds import Feed, Header, Shape, shown_url
from jostler.producer.collect.feeds_file import read_feeds
from jostler.producer.collect.toml_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GOOD = """\
[[feed]]
id = "bus"
url = "https://u5er:pa55@api.example/feed?key=qu3ry&line=5#top"
every = "250ms"
timeout = "3s"
as = "wrapped"
dedup = false
prefix = "v2_"
postfix = "_x.json"

[feed.headers]
Authorization = { env = "TOKEN", scheme = "Bearer" }
X-Key = { file = "key" }
Accept = "application/json"

[[feed]]
id = "trains"
url = "http://127.0.0.1:8080/trains"
every = "1m"
"""


def read(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> tuple[Feed, ...]:
    path = tmp_path / "feeds.toml"
    path.write_text(text)
    return read_feeds(path, environ or {}, seconds=duration)


def problems(tmp_path: Path, text: str) -> list[str]:
    """Return the problems without the path: `LINE: PROBLEM`."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    return [one.removeprefix(f"{tmp_path}/feeds.toml:") for one in caught.value.problems]


def test_all_keys_are_read(tmp_path: Path) -> None:
    """With headers from a file beside it, from the environment, and as they stand."""
    (tmp_path / "key").write_text("s3cret-key\n")

    bus, trains = read(tmp_path, GOOD, {"TOKEN": "s3cret-token"})

    assert bus == Feed(
        id="bus",
        url="https://u5er:pa55@api.example/feed?key=qu3ry&line=5#top",
        every_s=0.25,
        timeout_s=3.0,
        headers=(
            Header(name="Authorization", value="Bearer s3cret-token", source="env TOKEN"),
            Header(name="X-Key", value="s3cret-key", source=f"file {tmp_path}/key"),
            Header(name="Accept", value="application/json"),
        ),
        shape=Shape.WRAPPED,
        dedup=False,
        prefix="v2_",
        postfix="_x.json",
    )
    assert (trains.prefix, trains.postfix, trains.shape) == ("trains_", ".json", Shape.JSON)
    assert (trains.every_s, trains.timeout_s, trains.dedup) == (60.0, 10.0, True)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """Not by `shown`, and not by the `repr` that a trace would have."""
    (tmp_path / "key").write_text("s3cret-key")

    feeds = read(tmp_path, GOOD, {"TOKEN": "s3cret-token"})

    shown = f"{[feed.shown() for feed in feeds]} {feeds!r}"
    assert [
        s
        for s in ("s3cret-token", "s3cret-key", "pa55", "u5er", "qu3ry", "application/json")
        if s in shown
    ] == []
    assert "https://***@api.example/feed?key=***&line=***" in shown
    assert "*** (env TOKEN)" in shown


def test_a_query_without_values_is_masked_whole() -> None:
    """`?abc` may be a key as well."""
    assert shown_url("http://h:8/p?abc&d=e") == "http://h:8/p?***&d=***"


BASE = '[[feed]]\nid = "a"\nurl = "http://h/"\nevery = "1s"\n'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "1: there is no feed: each is a table [[feed]]"),
        ("# only\n[feed]\nid = 'a'\n", "2: feed: expected a table [[feed]] for each feed"),
        (f"{BASE}\n[global]\nx = 1\n", "6: global: there is no such key; keys are feed"),
        (f"{BASE}evry = 1\n", "5: feed a: evry: there is no such key; did you mean every?"),
        (f"{BASE}\n\n{BASE}", "8: feed a: id: line 2 has it already"),
        (BASE.replace('id = "a"', "x"), "Expected '=' after a key in a key/value pair (at line 2,"),
        (BASE.replace('"1s"', "1"), "4: feed a: every: expected a text, found a number"),
        (BASE.replace('"1s"', '"soon"'), "4: feed a: every: 'soon' is not a duration such as"),
        (BASE.replace("1s", "99ms"), "4: feed a: every: 99ms is not from 100ms to 2678400s"),
        (f'{BASE}timeout = "2h"\n', "5: feed a: timeout: 2h is not from 100ms to 3600s"),
        (BASE.replace('"a"', '"a-b"'), "2: feed a-b: id: 'a-b' is not a datatype name"),
        (BASE.replace('"a"', '"index1"'), "2: feed index1: id: index1 is a datatype of jostler's"),
        (BASE.replace('"a"', "7"), "2: id: expected a text, found a number"),
        ('\n[[feed]]\nevery = "1s"\nurl = "http://h/"\n', "2: id: is missing"),
        (BASE.replace("http:", "ftp:"), "3: feed a: url: must begin with http:// or https://"),
        (BASE.replace("//h/", "///x"), "3: feed a: url: names no host"),
        (BASE.replace("//h/", "//h:x/"), "3: feed a: url: is not a URL, or its port"),
        (BASE.replace("//h/", "//h/ x"), "3: feed a: url: has a space or a control character"),
        (BASE.replace("//h/", "//[h/"), "3: feed a: url: is not a URL"),
        (f'{BASE}as = "xml"\n', "5: feed a: as: 'xml' is none of json, wrapped"),
        (f'{BASE}dedup = "yes"\n', "5: feed a: dedup: expected true or false, found a text"),
        (f'{BASE}prefix = "a/b"\n', "5: feed a: prefix: has a character outside"),
        (f'{BASE}prefix = ".a"\n', "5: feed a: prefix: has a character outside"),
        (f'{BASE}postfix = ".txt"\n', "5: feed a: postfix: files must end with .json"),
        (f'{BASE}postfix = "..json"\n', "5: feed a: postfix: has a character outside"),
        (f'{BASE}prefix = "{"x" * 100}"\n', "5: feed a: prefix: has more than 99 characters"),
        (f"{BASE}headers = [1]\n", "5: feed a: headers: expected a table of headers, found a list"),
        (
            f'{BASE}[feed.headers]\nA = "1"\n"b c" = "2"\n',
            "7: feed a: headers: b c: is not the name of a header",
        ),
        (
            f'{BASE}headers = {{ Range = "bytes=0-" }}\n',
            "5: feed a: headers: Range: is set by jostler alone",
        ),
        (
            f'{BASE}headers.X = {{ env = "NO" }}\n',
            "5: feed a: headers: X: the environment variable NO is not set",
        ),
        (
            f'{BASE}headers.X = {{ file = "no" }}\n',
            "no cannot be read: No such file or directory",
        ),
        (f'{BASE}headers.X = {{ url = "x" }}\n', "5: feed a: headers: X: expected a text, { env"),
        (f"{BASE}headers.X = 3\n", "5: feed a: headers: X: expected a text, { env"),
        (
            f'{BASE}headers.X = """s3cret\nInjected: 1"""\n',
            "5: feed a: headers: X: its value is not printable ASCII",
        ),
    ],
)
def test_each_problem_has_its_line(tmp_path: Path, text: str, found: str) -> None:
    """And its feed, its key and its reason; a header's value is not in it."""
    told = problems(tmp_path, text)

    assert len(told) == 1
    assert found in told[0]
    assert "s3cret" not in told[0]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """In the order of the file, whatever was looked at first."""
    text = "[[feed]]\nid = 1\n[[feed]]\nevery = 1\nwhat = 2\n[[feed]]\n[x]\n"

    lines = [int(one.partition(":")[0]) for one in problems(tmp_path, text)]

    assert lines == sorted(lines)
    assert set(lines) == {1, 2, 3, 4, 5, 6, 7}


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file"):
        read_feeds(tmp_path / "none.toml", {}, seconds=duration)


def test_lines_of_every_form_that_toml_has() -> None:
    """Dotted keys, quoted keys, inline tables, values of several lines, arrays of arrays."""
    text = """\
# a comment
top = 1
[a."b.c"]
"x y".z = [
  1, # not = a key
  2,
]
s = '''
[not.a.table]
k = 1
'''
t = "\u2028 is no end of a line"
[[f]]
  id = 1
  [f.sub]
  q = { r = 1, s.t = 2 }
  [[f.deep]]
  u = 1
[[f]]
id = 2
[[f.deep]]
u = 2
[[f.deep]]
u = 3
[z]
"""
    tomllib.loads(text)
    lines = Lines(text)
    expected = {
        ("top",): 2,
        ("a", "b.c"): 3,
        ("a", "b.c", "x y"): 4,
        ("a", "b.c", "x y", "z"): 4,
        ("a", "b.c", "s"): 8,
        ("a", "b.c", "t"): 12,
        ("f",): 13,
        ("f", 0): 13,
        ("f", 0, "id"): 14,
        ("f", 0, "sub", "q"): 16,
        ("f", 0, "sub", "q", "s", "t"): 16,
        ("f", 0, "deep", 0, "u"): 18,
        ("f", 1): 19,
        ("f", 1, "id"): 20,
        ("f", 1, "deep", 0): 21,
        ("f", 1, "deep", 1): 23,
        ("f", 1, "deep", 1, "u"): 24,
        ("f", 1, "missing"): 19,
        ("z",): 25,
        ("nothing",): 1,
    }
    assert {way: lines.of(way) for way in expected} == expected
