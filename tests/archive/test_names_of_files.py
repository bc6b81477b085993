"""Names that come from strangers and from users: addresses, patterns, templates, saved files."""

from __future__ import annotations

import errno
import fnmatch
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jostler.archive.address import parse
from jostler.archive.catalogue import File, Query
from jostler.archive.saving import Directory, Saved, SaveError, TakenError
from jostler.archive.template import Template
from tests.support.archive import DATA, FILE, ORIGIN

WHEN = FILE.added


def named(filename: str) -> File:
    return structs.replace(FILE, filename=filename)


@given(st.text(min_size=1), st.sampled_from(["gs://b", "file:///tmp/autoload/v1/x y"]))
def test_the_address_of_a_file_names_it(filename: str, bucket: str) -> None:
    """Whatever its name is made of, the address is one line and is read back."""
    file = named(filename.encode(errors="replace").decode())
    moved = structs.replace(file, origin=replace(ORIGIN, bucket=bucket))
    assert len(moved.address.splitlines()) == 1
    found = parse(moved.address, [bucket])
    assert (found.bucket, str(found.bundle), found.filename) == (bucket, DATA, file.filename)
    query = found.narrow(Query())
    matches = query.identity_matcher()
    assert matches
    assert matches(moved)


@pytest.mark.parametrize("name", ["*.json", "y[1].json", "a?", "[!x]"])
def test_an_address_is_no_pattern(name: str) -> None:
    """A file that is named is that file, and not what would match."""
    matches = parse(name).narrow(Query()).identity_matcher()
    assert matches
    assert matches(named(f"2026/01/02/{name}"))
    assert not matches(named("2026/01/02/y1.json"))
    assert not matches(named("2026/01/02/ab"))


def test_a_bucket_that_is_not_known_ends_before_the_layout() -> None:
    """The last `autoload/` of a directory's URL begins the object's name."""
    found = parse(f"file:///a/autoload/v1/b/{DATA}#x")
    assert (found.bucket, str(found.bundle)) == ("file:///a/autoload/v1/b", DATA)


@pytest.mark.parametrize(
    "text", ["", "gs://b/x#y", f"gs://b/{DATA}", "http://h/x", "a\nb", "gs://b/x.jsonl.gz#y"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """With a reason."""
    with pytest.raises(ValueError, match=r"bundle|Hash"):
        parse(text)


@given(
    st.text("ab.[]*?!-/", min_size=1, max_size=6).filter(lambda text: "[" not in text),
    st.text("ab./", min_size=1, max_size=6),
)
def test_a_pattern_matches_as_in_a_shell(pattern: str, path: str) -> None:
    """Own names if it has no slash, whole paths if it has one."""
    file = named(f"x/{path}")
    matches = Query(filename=pattern).identity_matcher()
    assert matches
    compared = file.path if "/" in pattern else file.name
    if pattern.startswith("/"):
        compared = file.filename
    assert matches(file) == fnmatch.fnmatchcase(compared, pattern)


def test_a_template_is_filled_with_columns() -> None:
    """And with nothing else."""
    template = Template("{Datatype}/{{{Node}}}/{start_iso}-{end_iso}-{Start}{Name}")
    expected = "foo1/{n1}/20260102T030405Z-20260102T030405Z-a.json"
    assert template.name(FILE) == expected
    for wrong in ("{x}", "{Name.__class__}", "{Name!r}", "{Name:>9}", "{", "{}", "", "a/"):
        with pytest.raises(ValueError, match=r"field|names no file|'\{'|Single"):
            Template(wrong)


@given(st.text(max_size=40))
def test_no_name_leads_out_of_the_directory(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """Names are data of strangers."""
    root = tmp_path_factory.getbasetemp() / "to"
    try:
        path = Path(Directory(root).path(name))
    except SaveError:
        return
    assert path.is_relative_to(root)
    assert ".." not in path.parts
    assert path != root


def test_dots_lead_nowhere() -> None:
    """They stay names, at the end and in between."""
    to = Directory(Path("/to"))
    assert to.path("../../x.json") == "/to/%2E%2E/%2E%2E/x.json"
    assert to.path("a/./..") == "/to/a/%2E/%2E%2E"


@pytest.mark.parametrize("alone", [False, True])
def test_a_file_is_never_overwritten_nor_followed(tmp_path: Path, *, alone: bool) -> None:
    """Equal content is good; other content is an error; an empty file was never finished."""
    to = Directory(tmp_path, alone=alone)
    path = Path(to.path("d/a.json"))
    assert to.save(str(path), b"1", WHEN) is Saved.WRITTEN
    assert path.stat().st_mtime == WHEN.timestamp()
    assert to.save(str(path), b"1", WHEN) is Saved.ALREADY
    with pytest.raises(SaveError, match="other content"):
        to.save(str(path), b"2", WHEN)
    path.write_bytes(b"")
    assert to.save(str(path), b"3", WHEN) is Saved.WRITTEN
    link = Path(to.path("link.json"))
    link.symlink_to(tmp_path / "d/other")
    with pytest.raises(SaveError):
        to.save(str(link), b"4", WHEN)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.json", "d", "link.json"]
    with pytest.raises(SaveError, match="too long"):
        to.path("x" * 300)
    assert os.listdir(tmp_path / "d") == ["a.json"]  # noqa: PTH208 - names alone


def test_without_hard_links_a_file_is_not_overwritten_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT has none, for example; link(2) then fails with EPERM."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    to = Directory(tmp_path)
    path = Path(to.path("a.json"))
    assert to.save(str(path), b"1", WHEN) is Saved.WRITTEN
    assert to.save(str(path), b"1", WHEN) is Saved.ALREADY
    with pytest.raises(TakenError):
        to.save(str(path), b"2", WHEN)
    assert path.read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["a.json"]  # noqa: PTH208 - names alone


@pytest.mark.parametrize("call", ["open", "write", "utime", "close"])
def test_what_interrupts_a_save_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Python delivers Ctrl-C when a call into the system has returned."""
    real = getattr(os, call)

    def interrupted(*args: object, **named: object) -> None:
        real(*args, **named)
        monkeypatch.undo()
        raise KeyboardInterrupt

    to = Directory(tmp_path, alone=True)
    monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        to.save(to.path("a.json"), b"1", WHEN)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - names alone


def test_few_names_are_kept_and_no_file_is_overwritten(tmp_path: Path) -> None:
    """Memory does not grow with the files, whether their directories come once or in turn."""
    for turn in (Saved.WRITTEN, Saved.ALREADY):  # the second finds the directories full
        to = Directory(tmp_path, alone=True, names_most=3)
        assert to.was_empty is (turn is Saved.WRITTEN)
        for number in range(12):
            path = to.path(f"d{number % 3}/{number}.json")
            assert to.save(path, b"1", WHEN) is turn
            assert to._kept == sum(len(names or ()) for names in to._names.values()) <= 4
    assert to.has(to.path("d0/0.json"))
    assert not to.has(to.path("d0/1.json"))
    with pytest.raises(SaveError, match="other content"):
        to.save(to.path("d0/0.json"), b"2", WHEN)
    assert len(list(tmp_path.rglob("*.json"))) == 12
