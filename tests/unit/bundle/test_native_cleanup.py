"""The clean-up by the native module: it unlinks what the one in Python does, and nothing else."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Cleaned, Cleanup, Confined, Entry, FileState
from jostler.bundle.cleanup import TOGETHER
from jostler.bundle.entry import Entries
from jostler.bundle.file import read_file
from jostler.format.row import content_hash
from jostler.schema import Use
from jostler.schema.native import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NATIVE = find(Use.AUTO)
pytestmark = pytest.mark.skipif(not NATIVE.module, reason=NATIVE.why_not)

DIRECTORIES = ("foo1/2026/01/02", "foo1/2026/01/03", "foo1/é")
OLD_NS = 1_600_000_000_123_456_789


class Tree:
    """Files that were read, and then changed in some way each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spool = Confined(str(root))
        self.entries: list[Entry] = []

    def add(self, path: str, happens: Callable[[Path], object]) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b'{"a":1}')
        os.utime(file, ns=(OLD_NS, OLD_NS))
        read = read_file(self.spool, path, 1000)
        # As if it had been read long after it was written: the state alone proves what it is.
        added_us = read.state.ctime_ns // 1000 + 10**7
        self.entries.append(Entry(path, read.state, added_us, content_hash(read.content)))
        happens(file)

    def cleaned(self, *, native: bool, most: int) -> Cleaned:
        cleanup = Cleanup(
            Entries(self.entries),
            lambda path: "theirs" not in path,
            self.spool,
            frozenset(one.path for one in self.entries if "given-up" in one.path),
            unlink_many=NATIVE.unlink_many if native else None,
        )
        while not cleanup.step(most):
            pass
        return cleanup.cleaned

    def left(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


def rewrite(file: Path) -> None:
    """Change the bytes and nothing else that a careless look would see."""
    file.write_bytes(b'{"a":2}')
    os.utime(file, ns=(OLD_NS, OLD_NS))


def replace(file: Path) -> None:
    other = file.with_name(".other")
    other.write_bytes(b'{"a":1}')
    os.utime(other, ns=(OLD_NS, OLD_NS))
    other.rename(file)


def link(file: Path) -> None:
    file.rename(file.with_name(".moved"))
    file.symlink_to(".moved")


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


HAPPENS: dict[str, Callable[[Path], object]] = {
    "same": lambda _file: None,
    "theirs": lambda _file: None,
    "given-up": lambda _file: None,
    "rewritten": rewrite,
    "replaced": replace,
    "longer": lambda file: file.write_bytes(b'{"a":1} '),
    "gone": lambda file: file.unlink(),
    "link": link,
    "directory": directory,
}


@pytest.mark.parametrize("seed", range(12))
def test_it_ends_as_the_one_in_python(tmp_path: Path, seed: int) -> None:
    """Whatever happened to the files, in any order, in parts of any size."""
    trees = Tree(tmp_path / "python"), Tree(tmp_path / "native")
    for tree in trees:
        drawn = random.Random(seed)
        for number in range(40):
            kind = drawn.choice([*HAPPENS, *["same"] * 8])
            where = drawn.choice([DIRECTORIES[0], *DIRECTORIES])
            tree.add(f"{where}/{number:02}-{kind}.json", HAPPENS[kind])
        if seed % 3 == 0:  # the row of a rejected file may have no hash
            tree.entries[5] = tree.entries[5]._replace(hash=b"")
    most = random.Random(seed).choice([1, 3, 1000])

    python, native = (tree.cleaned(native=tree is trees[1], most=most) for tree in trees)

    assert native.unlinked == python.unlinked
    assert native.changed == python.changed
    assert native.vanished == python.vanished
    assert list(native.kept) == list(python.kept)
    assert trees[1].left() == trees[0].left()
    assert any("same" in path for path in native.unlinked)


class Counted:
    """The native module's way to unlink; it remembers how many files went with each call."""

    def __init__(self) -> None:
        self.unlinked: list[int] = []

    def __call__(self, *given: object) -> int:
        assert NATIVE.unlink_many
        self.unlinked.append(NATIVE.unlink_many(*given))  # type: ignore[arg-type]
        return self.unlinked[-1]

    def clean_up(self, tree: Tree) -> Cleaned:
        cleanup = Cleanup(Entries(tree.entries), lambda _: True, tree.spool, unlink_many=self)
        assert cleanup.step(TOGETHER)
        return cleanup.cleaned


@pytest.mark.parametrize("directory", [DIRECTORIES[0], DIRECTORIES[2]])
def test_most_files_are_unlinked_in_one_call(tmp_path: Path, directory: str) -> None:
    tree, counted = Tree(tmp_path), Counted()
    for number in range(20):
        tree.add(f"{directory}/{number}.json", HAPPENS["same"])
    assert len(counted.clean_up(tree).unlinked) == 20
    assert counted.unlinked == [20]


def test_where_nothing_can_be_unlinked_together_it_is_rarely_tried(tmp_path: Path) -> None:
    tree, counted = Tree(tmp_path), Counted()
    for number in range(60):
        tree.add(f"{DIRECTORIES[0]}/{number}.json", HAPPENS["rewritten"])
    assert len(counted.clean_up(tree).changed) == 60
    assert sum(counted.unlinked) == 0
    assert len(counted.unlinked) < 10


def test_a_file_without_a_hash_stays(tmp_path: Path) -> None:
    """Its row has only a part of its content."""
    tree = Tree(tmp_path)
    for number in range(3):
        tree.add(f"{DIRECTORIES[0]}/{number}.json", HAPPENS["same"])
    tree.entries[1] = tree.entries[1]._replace(hash=b"")
    cleaned = Counted().clean_up(tree)
    assert (len(cleaned.unlinked), list(cleaned.kept)) == (2, [tree.entries[1].path])
    assert tree.entries[1].path in tree.left()


def test_a_file_of_the_same_name_in_another_directory_stays(tmp_path: Path) -> None:
    """Even if it is the same file by another path."""
    tree = Tree(tmp_path)
    here, there = DIRECTORIES[:2]
    tree.add(f"{here}/a.json", HAPPENS["same"])
    (tmp_path / there).mkdir()
    (tmp_path / there / "b.json").write_bytes(b"{}")
    (tmp_path / here / "b.json").hardlink_to(tmp_path / there / "b.json")
    state = FileState.of((tmp_path / there / "b.json").stat())
    added_us = state.ctime_ns // 1000 + 10**7
    tree.entries.append(Entry(f"{there}/b.json", state, added_us, content_hash(b"{}")))
    Counted().clean_up(tree)
    assert [path for path in tree.left() if path.endswith(".json")] == [f"{here}/b.json"]


def test_a_file_that_was_read_as_soon_as_it_was_written_is_left_to_python(tmp_path: Path) -> None:
    """It may have changed within the tick; only its bytes tell."""
    tree = Tree(tmp_path)
    tree.add(f"{DIRECTORIES[0]}/a.json", HAPPENS["same"])
    entry = tree.entries[0]
    added_us = entry.state.ctime_ns // 1000 + 1000
    assert unlink(tree, [entry._replace(added_us=added_us)]) == 0
    assert unlink(tree, [entry]) == 1


def test_it_ends_at_the_first_file_about_which_to_decide(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number, kind in enumerate(["same", "same", "longer", "same"]):
        tree.add(f"{DIRECTORIES[0]}/{number}-{kind}.json", HAPPENS[kind])
    assert unlink(tree, tree.entries) == 2
    assert tree.left()[-2:] == [f"{DIRECTORIES[0]}/2-longer.json", f"{DIRECTORIES[0]}/3-same.json"]


def test_no_path_leads_out_of_the_directory(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.add("foo1/2026/01/02/a.json", HAPPENS["same"])
    assert unlink(tree, tree.entries, skip=len("foo1/2026/01/")) == 0
    assert tree.left()[-1] == tree.entries[0].path


def unlink(tree: Tree, entries: list[Entry], skip: int | None = None) -> int:
    """Call the native module for files of one directory."""
    assert NATIVE.unlink_many
    paths, numbers, _ = Entries(entries).part(0, len(entries))
    above = len(paths[0].rpartition("/")[0]) + 1
    skip = above if skip is None else skip
    fd = os.open(tree.root / paths[0][: skip - 1], os.O_RDONLY)
    try:
        return NATIVE.unlink_many(fd, paths, skip, numbers)
    finally:
        os.close(fd)
