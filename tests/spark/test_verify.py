"""What an executor finds in bundles; no Spark is needed to ask it."""

from __future__ import annotations

import gzip
import json
import zlib
from datetime import date
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.format.names import Day
from jostler.schema import Use, fields_from_api, table_schema
from jostler.schema.native import find
from jostler.schema.slow import SlowJudge
from loader.bucket import open_bucket
from loader.spark import row as rows
from loader.spark import verify
from loader.spark.findings import NAME
from loader.spark.gunzip import CorruptError, blocks, salvaged, split
from loader.spark.rewrite import Copy, Unwanted, write
from loader.spark.verdicts import WRONG_DAY
from tests.loader.world import DAY, row
from tests.support.spool import SCHEMA, document
from tests.unit.schema.pairs import Pairs

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.schema import Fields
    from loader.spark.verify import Task

NATIVE = find(Use.AUTO)
FIELDS = table_schema(fields_from_api(SCHEMA))
DAY_PATH = "2026/01/02/"


def put(root: Path, name: str, lines: list[bytes], *, cut: int = 0) -> Task:
    data = gzip.compress(b"".join(line + b"\n" for line in lines), 1, mtime=0)
    (root / name).write_bytes(data[: len(data) - cut])
    return task(root, name)


def task(root: Path, name: str, ordinal: int = 0, **facts: object) -> Task:
    bucket = open_bucket(root.as_uri(), 5)
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
    some = list(verify.verified(list(tasks), (FIELDS,), 5))
    keys = [(pos, *key) for each in some for *key, pos in each.rows.tolist()]
    told = [line for each in tasks for line in rejects(each, FIELDS)]
    bad = [(line["Line"], line["Reason"]) for line in told]
    return keys, bad, [one.whole for each in some for one in each.bundles]


def rejects(task: Task, fields: Fields, most: int = 1000) -> list[dict[str, Any]]:
    """Verify a bundle and let its bad rows be written; return them."""
    (found,) = verify.verified([task], (fields,), 5)
    (bundle,) = found.bundles
    whole, bad = bundle.whole, frozenset(bundle.bad)
    if whole.unreadable:
        return []
    copy = Copy(
        task=task,
        bucket=task.bucket,
        corrupt=whole.corrupt,
        rejects="out/rejects.jsonl.gz",
        most=min(most, whole.bad),
    )
    count = write(copy, Unwanted(bad), fields, 5)
    data = open_bucket(task.bucket, 5).read(copy.rejects, "")
    told = [json.loads(line) for line in gzip.decompress(data).splitlines()]
    assert len(told) == count == min(most, whole.bad)
    return told


def test_every_line_is_reported_once_and_the_bundle_on_line_0(tmp_path: Path) -> None:
    lines = [row(1), b"x", row(2), b"", row(3)]
    keys, bad, whole = found(put(tmp_path, "a", lines))

    assert [pos for pos, *_ in keys] == [1, 3, 5]
    assert bad == [(2, "not-json"), (4, "empty")]
    assert whole[0].rows == 5
    assert whole[0].plain_bytes == sum(map(len, lines)) + 5


def test_a_bad_row_among_good_ones_of_the_usual_form_is_found(tmp_path: Path) -> None:
    """They are judged many at a time, and the last line need not end."""
    lines = [row(n) for n in range(300)]
    lines[7] = row(7, raw=b'{"Rate":"x"}')
    data = gzip.compress(b"\n".join(lines), mtime=0)
    (tmp_path / "a").write_bytes(data)
    keys, bad, whole = found(task(tmp_path, "a"))

    assert [pos for pos, *_ in keys] == [n for n in range(1, 301) if n != 8]
    assert bad == [(8, "wrong-type")]
    assert whole[0].plain_bytes == sum(map(len, lines)) + 300
    assert {x[1:] for x in keys} == {x[1:] for x in found(put(tmp_path, "b", lines))[0]}


def test_each_line_gets_the_verdict_of_the_exact_judge(tmp_path: Path) -> None:
    """Whether it is judged with many others at once, by the fast judge, or by the exact one."""
    seed = Random().randrange(10**9)
    for number, (columns, documents) in enumerate(Pairs(seed).schemas(4_000)):
        fields = table_schema(columns)
        exact = SlowJudge(fields)
        # Blocks are judged at once where all is good: most of a bundle is, as in real ones.
        raws = [raw for raw in documents if b"\n" not in raw]
        good = [raw for raw in raws if not exact.flaw(row(1, raw=raw))]
        lines = [row(n, raw=raw) for n, raw in enumerate(good + raws)]
        told = {x["Line"]: x["Reason"] for x in rejects(put(tmp_path, f"{number}", lines), fields)}
        flaws = {n: flaw.reason for n, line in enumerate(lines, 1) if (flaw := exact.flaw(line))}
        assert {n: told.get(n) for n in flaws} == flaws, f"seed {seed}"
        assert set(told.values()) - set(flaws.values()) <= {WRONG_DAY}, f"seed {seed}"


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
    some = list(verify.verified(tasks, (FIELDS, FIELDS), 5))
    keys = [key for each in some for key in each.rows[:, NAME].tolist()]
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
    lines = [b'{"Filename": "a"}', b'{"UUID": "u", "Filename": "b"}']
    lines.append(b'{"UUID": [], "Filename": "c"}')
    fields = table_schema(fields_from_api([*SCHEMA, {"name": "Filename", "type": "STRING"}]))
    bundle = put(tmp_path, "a", lines)

    (some,) = verify.verified([bundle], (fields,), 5)

    assert [one.whole.bare for one in some.bundles] == [2]
    assert [line["Reason"] for line in rejects(bundle, fields)] == ["wrong-type"]


def test_an_object_that_changed_since_it_was_listed_is_not_read(tmp_path: Path) -> None:
    listed = put(tmp_path, "a", [row(1)])
    put(tmp_path, "a", [row(1), row(2)])

    keys, bad, whole = found(listed, put(tmp_path, "b", [row(3)]))

    assert len(keys) == 1
    assert "changed since it was listed" in whole[0].unreadable
    assert bad == []


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_cut_bundle_has_bad_rows_only(tmp_path: Path, cut: int) -> None:
    keys, bad, whole = found(put(tmp_path, "a", [row(n) for n in range(50)], cut=cut))
    assert keys == []
    assert {reason for _, reason in bad} == {"corrupt-bundle"}
    assert [line for line, _ in bad] == [*range(1, whole[0].rows + 1)]


FORMS = {
    "our agent's": row(1),
    "the Go agent's": row(2, go=True),
    "keys in another order": b'{"raw":%b,"archiver":{"Filename":"%bm3.json"},"date":"%b"}'
    % (document(3), DAY_PATH.encode(), DAY.isoformat().encode()),
    "bare": b'{"UUID":"u","Filename":"/var/spool/exp/foo1/2026/01/02/m4.json"}',
}
GARBAGE = {"no JSON": b"x", "bare, and bad": b'{"Filename":{}}', "bad": row(9, raw=b'{"UUID":[]}')}
WIDE = table_schema(fields_from_api([*SCHEMA, {"name": "Filename", "type": "STRING"}]))


@pytest.mark.parametrize("first", [*FORMS.values(), *GARBAGE.values()], ids=[*FORMS, *GARBAGE])
def test_each_row_is_judged_by_its_own_form(tmp_path: Path, first: bytes) -> None:
    """Whatever the bundle begins with."""
    lines = [first, *FORMS.values(), *GARBAGE.values(), *FORMS.values(), *[row(5)] * 300]
    bundle = put(tmp_path, "a", lines)

    (found,) = verify.verified([bundle], (WIDE,), 5)

    told = rejects(bundle, WIDE)
    wanted = [n for n, line in enumerate(lines, 1) if line in GARBAGE.values()]
    assert [line["Line"] for line in told] == wanted
    assert {line["Reason"] for line in told} == {"not-json", "wrong-type"}
    whole = found.bundles[0].whole
    assert (whole.rows, whole.bad) == (len(lines), len(wanted))
    assert whole.bare == lines.count(FORMS["bare"])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "line",
    [
        row(9).replace(b'"date"', b'"\x80date"'),
        row(9, raw=b"[" * 100_000 + b"]" * 100_000),
        row(9, raw=b'{"Rate":' * 100_000 + b"1" + b"}" * 100_000),
        b'{"date":' + b"[" * 100_000,
    ],
    ids=["a key that is no text", "deep arrays", "deep objects", "no end"],
)
def test_a_row_that_no_decoder_takes_is_bad_like_any_other(
    tmp_path: Path, line: bytes, first: bool
) -> None:
    """It holds up no other row, wherever it stands."""
    lines = [line, row(1), row(2)] if first else [row(1), line, row(2)]
    keys, bad, whole = found(put(tmp_path, "a", lines))
    assert [number for number, _ in bad] == [1 if first else 2]
    assert len(keys) == whole[0].rows - 1 == 2


def test_a_copy_puts_the_standard_columns_around_bare_rows_alone(tmp_path: Path) -> None:
    bundle = put(tmp_path, "a", [row(1), FORMS["bare"], b"x"])
    copy = Copy(task=bundle, bucket=bundle.bucket, copy="out/b.jsonl.gz", bare=True)

    write(copy, Unwanted(bad=frozenset({3})), WIDE, 5)

    lines = gzip.decompress((tmp_path / "out/b.jsonl.gz").read_bytes()).splitlines()
    assert lines[0] == row(1)
    made = json.loads(lines[1])
    assert (made["date"], made["archiver"]["Filename"]) == ("2026-01-02", "2026/01/02/m4.json")
    assert lines[1].endswith(b',"raw":%b}' % FORMS["bare"])


BOMBS = {
    "line feeds": (b"\n" * 300_000, "more than 100,000 of its rows are bad"),
    "one long line": (b" " * 30_000_000, "it inflates to more than 20,000,000 bytes"),
    "good rows": ((row(1) + b"\n") * 12_000, "it has more than 10,000 lines"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bundle_beyond_the_limits_is_corrupt(
    tmp_path: Path, bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is told of it is bounded, as is the memory that it takes."""
    monkeypatch.setattr("loader.spark.gunzip.PLAIN_MAX_BYTES", 20_000_000)
    monkeypatch.setattr("loader.spark.verdicts.ROWS_MAX", 10_000)
    plain, why = BOMBS[bomb]
    (tmp_path / "a").write_bytes(gzip.compress(plain, 1))
    del plain
    bundle = task(tmp_path, "a")

    keys, _, (whole,) = found(bundle)

    assert keys == []
    assert whole.corrupt == why
    assert 0 < whole.bad == whole.rows <= 100_000
    (*_, told) = rejects(bundle, FIELDS, 10)
    assert (told["Reason"], told["Detail"]) == ("corrupt-bundle", why)


def test_a_row_of_90_mb_is_good(tmp_path: Path) -> None:
    lines = [row(0), row(1, raw=b'{"UUID":"%b"}' % (b"u" * 90_000_000)), row(2)]

    keys, bad, _ = found(put(tmp_path, "a", lines))

    assert [pos for pos, *_ in keys] == [1, 2, 3]
    assert bad == []


def test_a_row_that_bigquery_does_not_take_is_bad_and_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("gunzip", "verdicts"):
        monkeypatch.setattr(f"loader.spark.{module}.ROW_MAX_BYTES", 100_000)
    lines = [row(0), row(1, raw=b'{"UUID":"%b"}' % (b"u" * 99_000)), row(2, raw=b" " * 10**8)]
    bundle = put(tmp_path, "a", [*lines, row(3)])

    keys, bad, _ = found(bundle)

    assert [pos for pos, *_ in keys] == [1, 2, 4]
    assert bad == [(3, "row-too-long")]
    held = max(len(block) for block in blocks((tmp_path / "a").read_bytes()))
    assert held < 40_000_000


def test_the_text_of_a_bad_row_is_cut_and_clean(tmp_path: Path) -> None:
    line = b'{"\xff\x00' + b"x" * 100_000
    (told,) = rejects(put(tmp_path, "a", [line]), FIELDS)
    text = told["Row"]
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


VARIANTS = [
    *(b"{}", b"", b"x", b"{", b'{"Filename":"a","Size":1}', b'{"raw":{}}'),
    *(row(1).replace(b'"}', b'"},"x":null', 1), row(1, raw=b'{"Rate":1,"rate":2}'), row(1) + b" "),
    *(row(1, raw=b'{"Rate":1}}'), row(1, name="a\\u0041"), row(1, name='"'), row(1, raw=b"[]")),
    *(row(1, go=True), row(2, go=True, raw=b'{"Rate":"x"}'), row(1, day=date(2026, 1, 3))),
]


@pytest.mark.skipif(not NATIVE.module, reason=NATIVE.why_not)
def test_the_native_module_changes_no_verdict_and_no_identity(tmp_path: Path) -> None:
    """Whatever the rows are, in whatever order; and blocks end where they end."""
    rest = Random(seed := Random().randrange(10**9))
    for number in range(10):
        odd = rest.choice((0.0, 0.01, 0.3))
        lines = [
            rest.choice(VARIANTS)
            if rest.random() < odd
            else row(n, go=number % 5 == 0, raw=document(rest.randrange(9)))
            for n in range(rest.randrange(1, 200))
        ]
        data = b"\n".join(lines) + rest.choice((b"", b"\n"))
        (tmp_path / f"{number}").write_bytes(gzip.compress(data, mtime=0))
        with_it, without = (
            found(task(tmp_path, f"{number}", native=use)) for use in (Use.REQUIRE, Use.OFF)
        )
        assert with_it == without, f"seed {seed}"


def test_a_wrong_sum_is_found() -> None:
    data = bytearray(gzip.compress(b"{}\n" * 9, mtime=0))
    data[-6] ^= 1
    with pytest.raises(CorruptError):
        list(blocks(bytes(data)))


def test_a_copy_leaves_out_what_it_is_told_and_changes_no_byte(tmp_path: Path) -> None:
    lines = [row(n) for n in range(2000)]
    made = put(tmp_path, "a", lines)
    copy = Copy(task=made, bucket=made.bucket, copy="out/b.jsonl.gz")

    write(copy, Unwanted(repeated=frozenset({1, 7, 2000})), FIELDS, 5)

    wanted = [line for n, line in enumerate(lines, 1) if n not in {1, 7, 2000}]
    data = (tmp_path / "out/b.jsonl.gz").read_bytes()
    assert zlib.decompress(data, 31) == b"".join(line + b"\n" for line in wanted)


def test_relative_filenames() -> None:
    day = DAY_PATH.encode()
    assert rows.relative(b"2026/01/02/a", day) == b"2026/01/02/a"
    assert rows.relative(b"/var/spool/e/d/2026/01/02/a", day) == b"2026/01/02/a"
    assert rows.relative(b"/x12026/01/02/a", day) == b"/x12026/01/02/a"
    assert date.fromisoformat("2026-01-02") == DAY


@pytest.mark.parametrize(
    ("line", "field", "reason", "detail"),
    [
        (b'{"date":"2026-01-02","raw":{}}', "archiver", "missing-required", "has no archiver"),
        (
            b'{"date":"2026-01-02","archiver":null,"raw":{}}',
            *("archiver", "missing-required", "has no archiver"),
        ),
        (
            b'{"date":"2026-01-02","archiver":{"Filename":"2026/01/02/a.json"}}',
            *("raw", "missing-required", "has no raw"),
        ),
        (
            b'{"archiver":{"Filename":"2026/01/02/a.json"},"raw":{}}',
            *("date", "wrong-day", "day is 2026-01-02, the row has none"),
        ),
    ],
)
def test_a_row_without_a_standard_column_says_which(
    tmp_path: Path, line: bytes, field: str, reason: str, detail: str
) -> None:
    bundle = put(tmp_path, "a", [row(1), line])
    (told,) = rejects(bundle, FIELDS)
    assert (told["Field"], told["Reason"]) == (field, reason)
    assert detail in told["Detail"]
