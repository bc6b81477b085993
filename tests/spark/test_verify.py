"""What an executor finds in bundles; no Spark is needed to ask it."""

from __future__ import annotations

import gzip
import json
import zlib
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.format.names import Day
from jostler.schema import fields_from_api, table_schema
from loader.bucket import DirectoryBucket
from loader.spark import row as rows
from loader.spark import verify
from loader.spark.gunzip import CorruptError, blocks, salvaged, split
from loader.spark.rewrite import Copy, _copy
from tests.loader.world import DAY, row
from tests.support.spool import SCHEMA, document

if TYPE_CHECKING:
    from pathlib import Path

    from loader.spark.verify import Task

FIELDS = table_schema(fields_from_api(SCHEMA))
DAY_PATH = "2026/01/02/"


def put(root: Path, name: str, lines: list[bytes], *, cut: int = 0) -> Task:
    data = gzip.compress(b"".join(line + b"\n" for line in lines), 1, mtime=0)
    (root / name).write_bytes(data[: len(data) - cut])
    return task(root, name)


def task(root: Path, name: str, ordinal: int = 0, **facts: object) -> Task:
    bucket = DirectoryBucket(root)
    (entry,) = bucket.list(name)
    given: dict[str, Any] = {"node": "n", "day": Day(DAY), "table": 0, **facts}
    return verify.Task(
        ordinal=ordinal,
        bucket=bucket.url,
        name=name,
        generation=entry.generation,
        size_bytes=entry.size_bytes,
        **given,
    )


def found(*tasks: Task) -> tuple[list[tuple[int, int, int, int]], list[Any], list[Any]]:
    """Return good rows with their keys, bad rows with their line, and bundles."""
    batches = list(verify.verified(list(tasks), (FIELDS,), 5))
    table = [line for batch in batches for line in batch.to_pylist()]
    good = [line for line in table if not line["bad"] and not line["whole"]]
    keys = [(x["pos"], x["name_key"], x["key_high"], x["key_low"]) for x in good]
    bad = [(x["pos"] & 0xFFFFFFFF, x["bad"]["reason"]) for x in table if x["bad"]]
    return keys, bad, [x["whole"] for x in table if x["whole"]]


def test_every_line_is_reported_once_and_the_bundle_on_line_0(tmp_path: Path) -> None:
    lines = [row(1), b"x", row(2), b"", row(3)]
    keys, bad, whole = found(put(tmp_path, "a", lines))

    assert [pos for pos, *_ in keys] == [1, 3, 5]
    assert bad == [(2, "not-json"), (4, "empty")]
    assert whole[0]["rows"] == 5
    assert whole[0]["plain_bytes"] == sum(map(len, lines)) + 5


def test_a_bad_row_among_good_ones_of_the_usual_form_is_found(tmp_path: Path) -> None:
    """They are judged many at a time, and the last line need not end."""
    lines = [row(n) for n in range(300)]
    lines[7] = row(7, raw=b'{"Rate":"x"}')
    data = gzip.compress(b"\n".join(lines), mtime=0)
    (tmp_path / "a").write_bytes(data)
    keys, bad, whole = found(task(tmp_path, "a"))

    assert [pos for pos, *_ in keys] == [n for n in range(1, 301) if n != 8]
    assert bad == [(8, "wrong-type")]
    assert whole[0]["plain_bytes"] == sum(map(len, lines)) + 300
    assert {x[1:] for x in keys} == {x[1:] for x in found(put(tmp_path, "b", lines))[0]}


IDENTICAL = {
    "as our agent writes it": row(1),
    "as the Go agent does": row(1, go=True),
    "with keys in another order": b'{"raw":%b,"archiver":{"Filename":"%bm1.json"},"date":"%b"}'
    % (document(1), DAY_PATH.encode(), DAY.isoformat().encode()),
    "with white space": json.dumps(
        {"date": DAY.isoformat(), "archiver": {"Filename": f"{DAY_PATH}m1.json"}}
    )[:-1].encode()
    + b', "raw" : %b}' % document(1),
    "with a return at its end": row(1) + b"\r",
    "with an escape in its name": row(1).replace(b"m1.json", b"m\\u0031.json"),
}


@pytest.mark.parametrize("how", IDENTICAL)
@pytest.mark.parametrize("first", [row(2), row(2, go=True), b'{"date":"2026-01-02"}'])
def test_an_identity_does_not_depend_on_how_the_row_is_written(
    tmp_path: Path, how: str, first: bytes
) -> None:
    """Nor on the form of the row that the bundle begins with."""
    (_, *wanted), *_ = found(put(tmp_path, "a", [row(1)]))[0]
    keys, _, _ = found(put(tmp_path, "b", [first, IDENTICAL[how]]))
    assert list(keys[-1][1:]) == wanted


@pytest.mark.parametrize(
    "other",
    [
        row(1, raw=document(2)),
        row(1, name="m9.json"),
        row(1, raw=document(1) + b" "),
        row(1).replace(b"2026/01/02/m1", b"2026/01/03/m1"),
    ],
)
def test_other_names_and_other_bytes_are_other_rows(tmp_path: Path, other: bytes) -> None:
    keys, _, _ = found(put(tmp_path, "a", [row(1), other]))
    assert keys[0][1:] != keys[1][1:]


@pytest.mark.parametrize(
    "facts", [{"node": "m"}, {"table": 1}], ids=["another node", "another table"]
)
def test_rows_of_other_nodes_and_tables_are_other_rows(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    put(tmp_path, "a", [row(1)])
    tasks = [task(tmp_path, "a"), task(tmp_path, "a", 1, **facts)]
    batches = list(verify.verified(tasks, (FIELDS, FIELDS), 5))
    keys = [key for batch in batches for key in batch.column("name_key").to_pylist() if key]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("date_", "reason"),
    [('"2026-01-03"', "wrong-day"), ("null", "wrong-day"), ('"2026/01/02"', "bad-date")],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_row_of_another_day_is_bad(tmp_path: Path, date_: str, reason: str, first: bool) -> None:
    """BigQuery would refuse the whole day for it."""
    odd = row(1).replace(b'"2026-01-02"', date_.encode(), 1)
    lines = [odd, row(2)] if first else [row(2), odd]
    _, bad, _ = found(put(tmp_path, "a", lines))
    assert bad == [(1 if first else 2, reason)]


def test_bare_rows_are_judged_by_what_is_in_raw(tmp_path: Path) -> None:
    lines = [b'{"Filename": "a"}', b'{"UUID": "u", "Filename": "b"}', b'{"UUID": []}']
    fields = [*SCHEMA, {"name": "Filename", "type": "STRING"}]
    batches = list(
        verify.verified([put(tmp_path, "a", lines)], (table_schema(fields_from_api(fields)),), 5)
    )
    table = [line for batch in batches for line in batch.to_pylist()]
    assert [line["bad"]["reason"] for line in table if line["bad"]] == ["wrong-type"]
    assert [line["whole"]["bare"] for line in table if line["whole"]] == [True]


def test_an_object_that_changed_since_it_was_listed_is_not_read(tmp_path: Path) -> None:
    listed = put(tmp_path, "a", [row(1)])
    put(tmp_path, "a", [row(1), row(2)])

    keys, bad, whole = found(listed, put(tmp_path, "b", [row(3)]))

    assert len(keys) == 1
    assert "changed since it was listed" in whole[0]["unreadable"]
    assert bad == []


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_cut_bundle_has_bad_rows_only(tmp_path: Path, cut: int) -> None:
    keys, bad, whole = found(put(tmp_path, "a", [row(n) for n in range(50)], cut=cut))
    assert keys == []
    assert {reason for _, reason in bad} == {"corrupt-bundle"}
    assert [line for line, _ in bad] == [*range(1, whole[0]["rows"] + 1)]


def test_the_text_of_a_bad_row_is_cut_and_clean(tmp_path: Path) -> None:
    line = b'{"\xff\x00' + b"x" * 100_000
    (batch,) = verify.verified([put(tmp_path, "a", [line])], (FIELDS,), 5)
    text = batch.column("bad").to_pylist()[0]["text"]
    assert text.startswith('{"\ufffd\ufffdx')
    assert len(text.encode()) <= 65_536 + 8


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=40).map(lambda x: x.replace(b"\n", b"")), max_size=12),
    members=st.integers(1, 3),
    cut=st.integers(0, 40),
    ended=st.booleans(),
)
def test_lines_come_whole_or_not_at_all(
    lines: list[bytes], members: int, cut: int, ended: bool
) -> None:
    """Any lines, in any number of gzip members, with any part of the end missing."""
    plain = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    size = len(plain) // members + 1
    packed = [
        gzip.compress(plain[at : at + size], mtime=0) for at in range(0, len(plain) or 1, size)
    ]
    data = b"".join(packed)
    wanted = plain.split(b"\n")
    if wanted[-1] == b"":
        wanted.pop()
    part = data[: max(0, len(data) - cut)]
    try:
        read = [line for block in blocks(part) for line in split(block)]
    except CorruptError:
        assert cut
        kept = list(salvaged(part))
        assert kept
        assert kept[:-1] == wanted[: len(kept) - 1]
        if cut < len(packed[-1]):  # all members before it are whole
            before = plain[: size * (len(packed) - 1)]
            assert len(kept) > before.count(b"\n")
        return
    if not cut:
        assert read == wanted


def test_a_wrong_sum_is_found() -> None:
    data = bytearray(gzip.compress(b"{}\n" * 9, mtime=0))
    data[-6] ^= 1
    with pytest.raises(CorruptError):
        list(blocks(bytes(data)))


def test_a_copy_leaves_out_what_it_is_told_and_changes_no_byte(tmp_path: Path) -> None:
    lines = [row(n) for n in range(2000)]
    made = put(tmp_path, "a", lines)
    copy = Copy(task=made, bare=False, bucket=made.bucket, name="out/b.jsonl.gz")

    kept, _ = _copy(copy, frozenset({1, 7, 2000}), 5)

    wanted = [line for n, line in enumerate(lines, 1) if n not in {1, 7, 2000}]
    data = (tmp_path / "out/b.jsonl.gz").read_bytes()
    assert zlib.decompress(data, 31) == b"".join(line + b"\n" for line in wanted)
    assert kept == 1997


def test_relative_filenames() -> None:
    day = DAY_PATH.encode()
    assert rows.relative(b"2026/01/02/a", day) == b"2026/01/02/a"
    assert rows.relative(b"/var/spool/e/d/2026/01/02/a", day) == b"2026/01/02/a"
    assert rows.relative(b"/x12026/01/02/a", day) == b"/x12026/01/02/a"
    assert date.fromisoformat("2026-01-02") == DAY
