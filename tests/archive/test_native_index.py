"""With the native module an audit finds the same, and a compaction makes the same bytes."""

from __future__ import annotations

import gzip
import random
import re
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.archive import native_index
from jostler.archive.audit import proof
from jostler.archive.audit.bundle import Checked, check
from jostler.archive.compact_input import read_input
from jostler.archive.compact_merge import planned
from jostler.archive.compact_order import order_of
from jostler.archive.compact_plan import Group, Member, member_in_memory
from jostler.archive.compact_proof import proven_merge
from jostler.archive.compact_rows import InputError
from jostler.format.blocks import Block, BlockWriter
from jostler.format.compression import FAST
from jostler.format.index_row import place
from jostler.format.names import BundleName
from jostler.schema.native import Use, find
from tests.support.bundles import DAY, PLACE, bundle

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.archive.compact_input import Input
    from jostler.archive.keeping import Made

pytestmark = pytest.mark.skipif(
    native_index._classes() is None, reason="the native module is not built"
)

BUCKET = "gs://memory"
PLACE_RE = re.compile(rb'"Offset":[0-9]+,"Length":[0-9]+')
NAMES = st.one_of(
    st.sampled_from(["a.json", "b.json", "b.json", 'q".json', "back\\slash", "tab\t", "ü/ö.json"]),
    st.text('ab"\\/. -é中\U0001f600\x7f\u2028', min_size=1, max_size=5),
)
CONTENTS = {
    "empty": b"{}",
    "small": b'{"a":1}',
    "repeated keys": b'{"a":1E2,"a":1.10}',
    "unicode": '{"ü":"\U0001f600"}'.encode(),
    "escapes": rb'{"a":"\u00fc\"\\"}',
    "like a head": b'{"a":"},\\"raw\\":{}"}',
    "spaces": b'{  "a" : [ ] }',
    "long": b'{"long":"%b"}' % (b"x" * 3000),
    "a block": b'{"block":"%b"}' % (b"y" * 200_000),
}
FILES = st.lists(st.tuples(NAMES, st.sampled_from(list(CONTENTS))), min_size=1, max_size=6)


def filled(files: list[tuple[str, str]]) -> list[tuple[str, bytes]]:
    return [(name, CONTENTS[content]) for name, content in files]


def by_python(work: Callable[[], Any]) -> Any:  # noqa: ANN401
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_index, "_classes", lambda: None)
        return work()


def lines_of(made: Made) -> list[bytes]:
    return gzip.decompress(made.data).splitlines(keepends=True)


def packed(
    data: Made, lines: list[bytes], index: Made, index_lines: list[bytes]
) -> tuple[Made, Made]:
    """Return a bundle of these lines; its index says where their blocks really are.

    Else the place of a block would tell both that something is wrong, and no row be looked at.
    """
    writers = BlockWriter(FAST), BlockWriter(FAST)
    writers[0].add_rows(lines)
    packed_data = writers[0].finish()
    of_blocks = zip(writers[0].blocks, _rows(writers[0]), strict=True)
    blocks = iter([block for block, rows in of_blocks for _ in range(rows)])
    writers[1].add_rows(
        [PLACE_RE.sub(lambda _: place(next(blocks, Block(1, 0, 0))), one) for one in index_lines]
    )
    return replace(data, data=packed_data), replace(index, data=writers[1].finish())


def _rows(writer: BlockWriter) -> list[int]:
    starts = [block.line for block in writer.blocks]
    return [end - start for start, end in pairwise([*starts, writer.lines + 1])]


def found(data: Made, index: Made) -> Checked:
    name, index_name = BundleName.parse(data.name), BundleName.parse(index.name)
    return check(name, BUCKET, data.data, index_name, index.data)


def same_of_both(data: Made, index: Made) -> Checked:
    """Check a bundle with the module and without it."""
    native = found(data, index)
    assert by_python(lambda: found(data, index)) == native
    return native


def members(objects: list[tuple[Made, Made]]) -> list[Member]:
    return [
        member_in_memory(BundleName.parse(data.name), data.data, index.data)
        for data, index in objects
    ]


def merged(objects: list[tuple[Made, Made]]) -> Any:  # noqa: ANN401
    """Merge bundles; return what was made, or what was said of the bundles."""
    listed = members(objects)
    group = Group(place=PLACE, datatype="foo1", day=DAY, schema="", members=tuple(listed))
    try:
        inputs: list[Input] = [
            read_input(member, data.data, index.data)
            for member, (data, index) in zip(listed, objects, strict=True)
        ]
        plan = planned(group, inputs)
        made = proven_merge(group, inputs, plan, bucket=BUCKET, version="jostler@2")
        for one in inputs:
            one.read_all()
    except InputError as exc:
        return str(exc), exc.foreign
    except Exception as exc:  # noqa: BLE001 - both must raise the same
        return type(exc), str(exc)
    about = [(len(one.data), one.rows, one.runs, list(one.keys()), one.index) for one in inputs]
    return made, about, plan.order.repeats, len(plan.order), plan.order.identities()


# Whole bundles


@settings(deadline=None, max_examples=60)
@given(FILES)
def test_an_audit_finds_the_same(files: list[tuple[str, str]]) -> None:
    """Whatever the Filenames and contents are."""
    assert same_of_both(*bundle(filled(files))).problems == ()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(FILES, st.sampled_from(["n1", "n2", "n10"])), min_size=1, max_size=4))
def test_a_compaction_makes_the_same_bytes(bundles: list[tuple[Any, str]]) -> None:
    """Rows of several nodes, versions and bundles, with repeats."""
    objects = [
        bundle(filled(files), node=node, number=number, version=f"jostler@{number % 2}")
        for number, (files, node) in enumerate(bundles)
    ]
    native = merged(objects)
    assert by_python(lambda: merged(objects)) == native
    made = native[0]
    assert same_of_both(made.data, made.index).problems == ()
    again = [*objects, (made.data, made.index)]  # a merged bundle is an input like any other
    assert by_python(lambda: merged(again)) == merged(again)


def test_the_module_takes_rows_of_the_usual_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else these tests would compare Python with itself."""
    one = bundle([("a.json", b"{}"), ("ü.json", b'{"a":"\\n"}')])
    monkeypatch.setattr(proof._Python, "is_of", None)
    assert found(*one).problems == ()
    inputs = [read_input(members([one])[0], one[0].data, one[1].data)]
    assert inputs[0].native
    assert type(order_of(inputs)).__name__ == "_Native"
    odd = bundle([('a".json', b"{}")])
    assert not read_input(members([odd])[0], odd[0].data, odd[1].data).native


def test_a_module_that_answers_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles would be removed whose rows are in no other one."""
    native = pytest.importorskip("jostler_native")

    class Credulous:
        @staticmethod
        def of(*_: object, **__: object) -> Credulous:
            return Credulous()

        def take(self, plain: bytes, *_: object, **__: object) -> tuple[int, int]:
            return 1, len(plain)

        def name_keys(self) -> bytes:
            return bytes(8)

        name_keys_of = name_keys

    assert native_index._classes()
    monkeypatch.setattr(native, "Index", Credulous)
    assert find(Use.AUTO).module
    assert native_index._classes() is None
    monkeypatch.delattr(native, "Index")
    assert native_index._classes() is None


# Bundles that have something wrong

CHANGES = [
    (b"2026-01-02", b"2026-01-03"),
    (b'"2026/01/02/', b'"2026/01/03/'),
    (b'"raw":{', b'"raw": {'),
    (b'"raw":{', b'"raw":["'),
    (b'{"date"', b'\xef\xbb\xbf{"date"'),
    (b"}}\n", b"}}\r\n"),
    (b"}}\n", b"}}"),
    (b"}}\n", b"}}\n\n"),
    (b"}}\n", b"} }\n"),
    (b"}}\n", b'},"more":1}\n'),
    (b'"a"', b'"b"'),
    (b'"n1"', b'"n2"'),
    (b".json", b".jsom"),
    (b".json", b".\\u006ason"),
    (b".json", b".js\xff"),
    (b".json", b"\x00"),
    (b"gs://memory", b"gs://other"),
    (b'"Version":"jostler@1"', b'"Version":""'),
    (b'"Line":', b'"Line":1'),
    (b'"Line":', b'"Line": '),
    (b'"Size":', b'"Size":-'),
    (b'"Size":', b'"Size":1'),
    (b'"Size":', b'"Size":00'),
    (b'"Size":1', b'"Size":'),
    (b'"Offset":', b'"Offset":1'),
    (b'"Length":', b'"Length":99999999999999999999'),
    (b'"Hash":"', b'"Hash":"0'),
    (b'"Start":', b'"Started":'),
    (b'"End":null', b'"End":5'),
    (b'"WorkID":"job-1"', b'"WorkID":null'),
    (b'"TimeAdded":"', b'"TimeAdded":"\\n'),
    (b'"TimeAdded":"', b'"TimeAdded":"\t'),
]


@pytest.mark.parametrize("content", [b"[]", b"1}", b'"{}', b"{", b"}", b"", b"[{}"])
def test_content_that_is_no_object_is_told_the_same(content: bytes) -> None:
    """Even if the index has its hash."""
    wrong = bundle([("a.json", b"{}"), ("b.json", content)])
    assert same_of_both(*wrong).problems
    both = [wrong, bundle([("z.json", b"{}")], number=2)]
    assert by_python(lambda: merged(both)) == merged(both)


@pytest.mark.parametrize("line", [0, 1])
def test_a_line_without_date_and_archiver_is_no_row(line: int) -> None:
    """Even if all that its index row says of it is right."""
    one = bundle([("a.json", b"{}"), ("b.json", b"{}")])
    head = lines_of(one[0])[0].partition(b'"Filename":')[0] + b'"Filename":'
    assert same_of_both(*changed(*one, "data", line, (head, b""))).problems


@pytest.mark.parametrize("where", ["data", "index", "both"])
def test_what_is_wrong_is_told_the_same(where: str) -> None:
    """A line that was changed is good for both, or bad for both."""
    files = [("a.json", b'{"a":1E2,"a":1.10}'), ("a.json", b"{}"), ("ü.json", b'{"a":"}}"}')]
    other = bundle([("z.json", b"{}")], number=2)
    for change, line in product(CHANGES, range(len(files))):
        data, index = changed(*bundle(files), where, line, change)
        same_of_both(data, index)
        both = [(data, index), other]
        assert by_python(lambda both=both: merged(both)) == merged(both), (change, line)


def changed(
    data: Made,
    index: Made,
    where: str,
    line: int,
    change: tuple[bytes, bytes],
) -> tuple[Made, Made]:
    lines, index_lines = lines_of(data), lines_of(index)
    old, new = change
    if where != "index":
        lines[line] = lines[line].replace(old, new)
    if where != "data":
        index_lines[line] = index_lines[line].replace(old, new)
    return packed(data, lines, index, index_lines)


@pytest.mark.parametrize("what", ["flip", "cut", "swap", "drop", "repeat", "other", "end"])
def test_damaged_objects_are_told_the_same(what: str) -> None:
    """Bytes that are flipped or missing, and rows that are exchanged, missing or too many."""
    rng = random.Random(what)
    many = [(f"m{n}.json", orjson.dumps({"n": n, "x": "y" * rng.randrange(400)})) for n in range(9)]
    for _ in range(12):
        data, index = bundle(many)
        whole = bytearray(data.data)
        lines = lines_of(data)
        at = rng.randrange(len(lines) - 1)
        match what:
            case "flip":
                whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
            case "cut":
                del whole[rng.randrange(len(whole)) :]
            case "swap":
                lines[at], lines[at + 1] = lines[at + 1], lines[at]
            case "drop":
                del lines[at:]
            case "repeat":
                lines.insert(at, lines[at])
            case "other":
                lines[at] = lines[at].replace(b'"n":', b'"N":')
            case "end":
                whole += rng.choice([b"\x00", bytes(whole)])
        worse, of_worse = replace(data, data=bytes(whole)), index
        if what not in {"flip", "cut", "end"}:
            worse, of_worse = packed(data, lines, index, lines_of(index))
        assert same_of_both(worse, of_worse).problems or worse == data
        both = [(worse, of_worse), bundle(many[:2], number=2)]
        assert by_python(lambda both=both: merged(both)) == merged(both)
