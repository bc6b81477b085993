"""Compaction that leaves out repeats of feeds: only those, counted, and only where all is known."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from jostler.archive import compact_repeats, repeats
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.catalogue import Query
from jostler.archive.compact_days import FIRST, LAST, days
from jostler.archive.compact_repeats import WholeDay, compact_day, divided
from jostler.archive.repeats import repeated
from jostler.producer.naming import timed_name
from jostler.storage import open_storage
from tests.archive.test_compact import compact_all, index_of, names, put
from tests.support.bundles import DAY, PLACE, bundle
from tests.support.compactors import LostError, run_many
from tests.support.memory_bucket import MemoryBucket

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from jostler.archive.compact import Compacted
    from jostler.archive.keeping import Made
    from jostler.archive.repeats import Identity
    from jostler.storage import Storage

MIB = 1 << 20
TARGET = 256 * MIB


def saved(what: str, *, node: str, number: int, prefix: str = "bus_", **more: str) -> list[Made]:
    """Return a bundle of a collector: `0A 2B` is body A at second 0 and body B at second 2."""
    files = []
    for one in what.split():
        at = datetime(2026, 1, 2, 0, 0, int(one[:-1]), tzinfo=UTC)
        body = f'{{"v":"{one[-1]}"}}'.encode()
        files.append((timed_name(at, body, prefix=prefix), body))
    return list(bundle(files, node=node, number=number, **more))  # type: ignore[arg-type]


def day_of(bucket: MemoryBucket | Storage, small: int = MIB) -> WholeDay:
    """Return the day of a bucket as it is listed."""
    listed = days(bucket, PLACE, "foo1", FIRST, LAST, least=1)  # type: ignore[arg-type]
    members = tuple(next(listed)[1])
    return WholeDay(
        place=PLACE, datatype="foo1", day=DAY, schema="", members=members, small_bytes=small
    )


def collapse(bucket: MemoryBucket | Storage, small: int = MIB, target: int = TARGET) -> Compacted:
    """Compact the day of a bucket without repeats."""
    return compact_day(
        bucket,  # type: ignore[arg-type] # or one in memory
        day_of(bucket, small),
        target_bytes=target,
        version="jostler@2",
        threads=1,
    )


def told(rows: Iterable[tuple[str, str]]) -> str:
    """Return node, second and body of rows in the order of time."""
    found = []
    for node, filename in rows:
        says = repeats.timed(filename)
        assert says
        body = next(b for b in "ABCD" if timed_name(_T, f'{{"v":"{b}"}}'.encode())[20:] in filename)
        found.append((says.time, f"{int(says.time[13:15])}{body}{node}"))
    return " ".join(text for _, text in sorted(found))


_T = datetime(2026, 1, 2, tzinfo=UTC)


def rows_of(storage: MemoryBucket | Storage) -> str:
    """Return what is in a bucket."""
    with closing(BucketCatalogue(storage, [PLACE])) as catalogue:  # type: ignore[arg-type]
        return told((file.node, file.filename) for file in catalogue.files(Query()))


def test_of_what_replicas_saved_alike_the_first_stays(tmp_path: Path) -> None:
    """A A B A becomes A B A, and feeds do not interrupt one another; it is counted."""
    bucket = open_storage((tmp_path / "bucket").as_uri())
    for one in [
        *saved("0A 10B 20A", node="n", number=1, bucket=bucket.url),
        *saved("5A 15B 16C", node="s", number=2, bucket=bucket.url),
        *saved("3A 18C", node="s", number=3, prefix="tram_", bucket=bucket.url),
    ]:
        bucket.put_new(one.name, one.data, one.metadata)

    assert divided(bucket, day_of(bucket), target_bytes=TARGET).kept == ""
    assert not compact_all(bucket, small=1).done
    (done,) = collapse(bucket).done

    assert (done.rows, done.repeats, done.collapsed) == (6, 0, 2)
    assert rows_of(bucket) == "0An 3As 10Bn 16Cs 18Cs 20An"
    listed = day_of(bucket).members
    assert [(one.rows, one.collapsed) for one in listed] == [(6, 2)]
    assert not collapse(bucket).done


def test_without_the_option_repeats_stay() -> None:
    """And a later compaction with it counts what it leaves out."""
    bucket = MemoryBucket()
    put(bucket, [*saved("0A", node="n", number=1), *saved("1A", node="s", number=2)])

    assert compact_all(bucket).done[0].rows == 2
    done = collapse(bucket).done[0]
    assert (done.inputs, done.rows, done.collapsed) == (1, 1, 1)
    put(bucket, saved("2A", node="s", number=3))  # another bundle, which came late
    assert collapse(bucket).done[0].rows == 1

    (name,) = names(bucket)
    for made in (name, index_of(name)):
        assert bucket.objects[str(made)][2]["collapsed"] == "2"


def test_large_bundles_lose_their_repeats_and_one_of_repeats_alone_goes() -> None:
    """It has no row for a bundle of its own; large ones without repeats stay as they are."""
    bucket = MemoryBucket()
    put(bucket, [*saved("0A 1A 5B", node="n", number=1), *saved("7C 9A", node="n", number=3)])
    put(bucket, [*saved("2A 6B", node="s", number=2)])

    result = collapse(bucket, small=1, target=1)

    assert sum(one.collapsed for one in result.done) == 3
    assert rows_of(bucket) == "0An 5Bn 7Cn 9An"
    assert len(names(bucket)) == 2
    assert not collapse(bucket, small=1, target=1).done


def test_a_compactor_that_was_killed_before_it_removed_has_made_the_same_object() -> None:
    """The next one removes what is left, and stores nothing; it counts the rows as repeats."""
    bucket = MemoryBucket()
    put(bucket, [*saved("0A 5B", node="n", number=1), *saved("1A", node="s", number=2)])
    kept = dict(bucket.objects)
    collapse(bucket)
    done = dict(bucket.objects)
    bucket.objects |= kept

    assert collapse(bucket).done[0].objects_after == 0

    assert bucket.objects.keys() == done.keys()
    for name, (data, _, told) in done.items():
        again, _, counted = bucket.objects[name]
        assert (again, counted | {"repeats": ""}) == (data, told | {"repeats": ""})


@pytest.mark.parametrize("damage", ["data", "index", "no index"])
def test_where_a_bundle_is_not_known_repeats_stay_and_the_reason_is_told(damage: str) -> None:
    """What lies in it may be between two equal bodies, or be the one that stays."""
    bucket = MemoryBucket()
    between = saved("5B", node="s", number=2)
    put(bucket, [*saved("0A 10A", node="n", number=1), *between, *saved("1A", node="n", number=3)])
    data, index = (one.name for one in between)
    if damage == "no index":
        bucket.remove(index)
    else:
        name = data if damage == "data" else index
        held, version, metadata = bucket.objects[name]
        bucket.objects[name] = held[:-3], version, metadata

    result = collapse(bucket)

    assert data in result.kept
    assert [one.collapsed for one in result.done] == [0]
    assert data in bucket.objects
    assert (result.done[0].rows, len(result.left)) == (3, 1)


def test_a_day_that_changes_while_it_is_read_keeps_its_repeats() -> None:
    """A listing of several pages may have missed a row that a compactor has moved."""
    bucket = MemoryBucket()
    put(bucket, [*saved("0A 2A", node="n", number=1)])
    day = day_of(bucket)
    put(bucket, saved("1B", node="s", number=2))

    plan = divided(bucket, day, target_bytes=TARGET, threads=1)  # type: ignore[arg-type]

    assert (plan.repeats, plan.kept) == (
        frozenset(),
        "bundles of the day were stored or removed meanwhile",
    )


def test_only_names_of_a_collector_have_repeats() -> None:
    """Not other files with equal content, nor a name that has two contents."""
    a, b = (timed_name(_T.replace(second=s), b"A", prefix="x_") for s in (1, 2))

    def rows(*of: tuple[str, bytes]) -> list[Identity]:
        return [("n", f"2026/01/02/{name}", digest) for name, digest in of]

    assert repeated(rows((a, b"1"), (b, b"1"), (b, b"1"))) == set(rows((b, b"1")))
    assert repeated(rows((a, b"1"), (b, b"1"), (b, b"2"))) == frozenset()
    assert repeated(rows(("a.json", b"1"), ("b.json", b"1"))) == frozenset()


def test_the_first_of_each_run_stays_whoever_dies_when() -> None:
    """Compactors with and without the option, at once; each change of the feed is still there."""
    assert run_many(range(100), collapses=True)["collapsed"] > 100


def test_the_model_sees_a_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats in the order of nodes instead of that of time lose changes."""

    def by_node(rows: Iterable[Identity]) -> frozenset[Identity]:
        last = repeats.Repeats()
        says = [(repeats.timed(row[1]), row) for row in sorted(set(rows))]
        return frozenset(row for one, row in says if one and last.is_repeat("", one.body))

    monkeypatch.setattr(compact_repeats, "repeated", by_node)
    with pytest.raises(LostError):
        run_many(range(50), collapses=True)
