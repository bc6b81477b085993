"""Large documents are read piece by piece: the same verdict, and little memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jostler.schema import Field, Judge, Mode, Reason
from jostler.schema.document import parse
from jostler.schema.flaw import Flaw
from jostler.schema.slow import SlowJudge
from jostler.schema.stream import streamed, walk
from tests.unit.schema.pairs import Pairs


@pytest.mark.parametrize("piece", [12, 40, 2**16])
def test_read_piece_by_piece_a_document_is_judged_the_same(piece: int) -> None:
    """The same flaw where it is JSON, and some flaw where it is not."""
    for columns, documents in Pairs(piece).schemas(3_000):
        exact = SlowJudge(columns)
        for document in documents:
            flaw = exact.flaw(document)
            found = streamed(document, exact._record.flaw, piece=piece)
            if isinstance(parse(document), Flaw):
                assert found is not None, (document, flaw)
            else:
                assert found == flaw, (columns, document)


@pytest.mark.parametrize("piece", [12, 2**16])
def test_read_piece_by_piece_a_document_is_json_or_not(piece: int) -> None:
    """As a tree would say, and for the same reason; of an array nothing but its bracket is read."""
    for _, documents in Pairs(piece + 1).schemas(3_000):
        for document in documents:
            value = parse(document)
            expected = value if isinstance(value, Flaw) else None
            found = streamed(document, walk, piece=piece)
            if document.lstrip().startswith(b"["):
                assert found is not None
            else:
                assert (found and found.reason) == (expected and expected.reason), document


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", Reason.EMPTY),
        (b" " * 200, Reason.EMPTY),
        (b" " * 200 + b"[[],[]]", Reason.NOT_OBJECT),
        (b'"text"', Reason.NOT_OBJECT),
        (b"\xef\xbb\xbf{}", Reason.NOT_JSON),
        (b"{}{}", Reason.NOT_JSON),
        (b'{"a":1', Reason.NOT_JSON),
        (b'{"a":1,}', Reason.NOT_JSON),
        (b'{"a":[1,]}', Reason.NOT_JSON),
        (b'{"a":NaN}', Reason.NOT_JSON),
        (b'{"a":"\xff"}', Reason.NOT_UTF8),
        (b'{"a":' + b"[" * 100_000, Reason.TOO_DEEP),
        (b'{"a":' * 100_000, Reason.TOO_DEEP),
    ],
)
def test_what_is_no_object_is_named(document: bytes, reason: Reason) -> None:
    """The reasons are those of a small document."""
    flaw = streamed(document, walk)

    assert flaw
    assert flaw.reason is reason


PROGRAM = """
import re
from pathlib import Path
from jostler.schema import Field, Judge, Mode, json_object_flaw

def high_water():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024

wide = tuple(Field(name=f"c{index}", type="INTEGER") for index in range(10_000))
judges = {
    "any": json_object_flaw,
    "json": Judge((Field(name="x", type="JSON"),)).flaw,
    "wide": Judge((Field(name="x", type="RECORD", mode=Mode.REPEATED, fields=wide),)).flaw,
}
arrays = b'{"x":[' + b"[]," * 700_000 + b"[]]}"
objects = b'{"x":[' + b'{"":0},' * 200_000 + b"{}]}"
keys = b'{"x":{' + b",".join(b'"%x":0' % index for index in range(450_000)) + b"}}"
empty = b'{"x":[' + b"{}," * 2_000 + b"{}]}"
for document in arrays, objects, keys, empty:
    for name, judge in judges.items():
        Path("/proc/self/clear_refs").write_text("5")  # begin a new high water mark
        before = high_water()
        flaw = judge(document)
        print(name, flaw.reason if flaw else "good", int(high_water() - before))
"""


def test_a_large_document_takes_little_more_than_its_text() -> None:
    """Whatever it is made of and whichever judge reads it; trees would take 60 to 80 MiB.

    Decoded, each of 2,000 empty objects would take the slots of 10,000 columns: 160 MB for 6 KB.
    """
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = [line.split() for line in done.stdout.splitlines()]

    reasons = [reason for _, reason, _ in told]
    assert reasons[:3] == ["good", "good", "wrong-type"]
    assert reasons[3:6] == ["good", "good", "unknown-field"]
    assert reasons[6:9] == ["good", "good", "wrong-type"]
    assert reasons[9:] == ["good", "good", "good"]
    assert [line for line in told if int(line[-1]) > 40] == []


def test_a_large_ordinary_document_is_good() -> None:
    """Four MB of records with numbers and names, spelled as the table is or not."""
    inner = (Field(name="Name", type="STRING"), Field(name="RTT", type="FLOAT"))
    judge = Judge((Field(name="x", type="RECORD", mode=Mode.REPEATED, fields=inner),))
    document = b'{"x":[' + b",".join([b'{"Name":"abc, def","RTT":12.25}'] * 150_000) + b"]}"

    for good in (document, document.replace(b"Name", b"name")):
        assert judge.flaw(good) is None
    flaw = judge.flaw(document.replace(b'"RTT":12.25}]', b'"RTT":true}]'))
    assert flaw
    assert flaw.field == "x[149999].RTT"
