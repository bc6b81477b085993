"""`jostler delete` and `jostler retention`: what goes, what stays, and what a crash leaves."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive import delete
from jostler.archive.audit.audit import audit
from jostler.archive.audit.days import Limits
from jostler.archive.audit.problem import Kind
from jostler.archive.audit.scope import Scope
from jostler.archive.delete import delete_day, old_days, retained
from jostler.archive.retention import lifecycle, parse
from jostler.cli.main import main
from jostler.errors import ConflictError
from jostler.format.names import Day
from jostler.storage import open_storage
from tests.support.bucket import url_of
from tests.support.kept import PLACE, Dying, DyingError, KeptArchive, contents, index_of
from tests.support.proxy import Fault, FaultyServer

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.format.names import Place
    from tests.support.gcs import GcsServer

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD, OTHER = date(2026, 1, 2), date(2026, 1, 3)
DAYS = Scope(datatypes=frozenset({"foo1"}), first=OLD, last=OLD)
LIMITS = Limits(today=date(2026, 6, 1))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: what is tested here is the order of changes."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def archive(tmp_path: Path) -> KeptArchive:
    made = KeptArchive(open_storage(url_of(tmp_path / "bucket")))
    fill(made)
    return made


def fill(archive: KeptArchive) -> None:
    archive.put(contents(range(3)), day=OLD)
    archive.put(contents(range(3, 6)), day=OLD)
    archive.put(contents(range(6, 9)), day=OTHER)


def flags(archive: KeptArchive, *more: str) -> list[str]:
    where = ["-bucket", archive.storage.url, "-experiment", "exp", "-datatype", "foo1"]
    return ["delete", *where, "-start", str(OLD), "-end", str(OLD), *more]


def test_nothing_goes_without_yes(archive: KeptArchive, capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown what would go; then it goes, and nothing else."""
    before = archive.objects()
    other = {name for name in before if "/2026/01/02/" not in name}

    assert main(flags(archive)) == 0
    told = capsys.readouterr().out
    assert "WOULD DELETE autoload/v1/exp/foo1/2026/01/02/: 4 objects, 6 rows," in told
    assert "1 day: 4 objects, 6 rows" in told
    assert archive.objects() == before

    assert main(flags(archive, "-yes")) == 0
    assert "DELETED autoload/v1/exp/foo1/2026/01/02/: 4 objects, 6 rows" in capsys.readouterr().out
    assert set(archive.objects()) == other
    assert main(flags(archive, "-yes")) == 0
    assert "0 days: 0 objects, 0 rows, 0 B deleted; 0 days left" in capsys.readouterr().out
    assert main(flags(archive)) == 0
    assert "0 days: 0 objects, 0 rows, 0 B would be deleted; 0 days left" in capsys.readouterr().out


def test_what_is_young_is_never_touched(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a young day nor an old one that got a bundle lately."""
    before = archive.objects()
    assert main(flags(archive, "-yes", "-min-age", "876000h")) == 1
    told = capsys.readouterr().out
    assert "LEFT autoload/v1/exp/foo1/2026/01/02/: 4 objects, 6 rows," in told
    assert "the day is younger than -min-age 36,500 d\n0 days: " in told
    lately = datetime(2026, 1, 21, tzinfo=UTC)  # the bundles were opened right after the day
    (day,) = old_days(archive.storage, [PLACE], DAYS, min_age=timedelta(days=18), now=lately)
    assert "a bundle of 2026-01-03T00:00:0" in day.kept
    assert archive.objects() == before


def test_a_day_is_as_young_as_its_end_whenever_its_bundles_were_opened(tmp_path: Path) -> None:
    """A bundle that was opened in the morning may have been stored after midnight."""
    storage = open_storage(url_of(tmp_path / "bucket"))
    storage.put_new(
        data_in(PLACE).replace("T000000", "T000001").replace("20260103", "20260102"), b"", {}
    )
    lately = datetime(2026, 1, 12, 23, tzinfo=UTC)
    age = timedelta(days=10)
    (day,) = old_days(storage, [PLACE], DAYS, min_age=age, now=lately)
    assert "the day is younger than -min-age" in day.kept
    (day,) = old_days(storage, [PLACE], DAYS, min_age=age, now=lately + timedelta(hours=1))
    assert not day.kept


def test_a_deletion_that_the_bucket_refuses_counts_only_what_is_gone(
    gcs: GcsServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says what to do; with the right to delete it ends the work."""
    gcs.create_bucket("refusing")
    with FaultyServer(gcs.port) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        archive = KeptArchive(open_storage("refusing", 10.0))
        fill(archive)
        both = flags(archive, "-yes", "-end", str(OTHER))
        proxy.faults.append(Fault(status=403, method="DELETE", path="01%2F03", reason="forbidden"))
        assert main(both) == 1
        told = capsys.readouterr().out
        assert "DELETED autoload/v1/exp/foo1/2026/01/02/: 4 objects, 6 rows" in told
        assert "LEFT autoload/v1/exp/foo1/2026/01/03/: 2 objects, 3 rows" in told
        assert "(grant roles/storage.objectUser on the bucket" in told
        assert "; a part may be gone: delete again\n1 day: 4 objects, 6 rows," in told
        assert " deleted; 1 day left" in told
        assert main(both) == 0
        assert "1 day: 2 objects, 3 rows, " in capsys.readouterr().out
        assert {name for name in archive.objects() if "/tables/" not in name} == set()


def test_to_show_what_would_go_asks_for_no_bundle(
    gcs: GcsServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listings say how many rows each has; an archive has millions."""
    gcs.create_bucket("listed")
    with FaultyServer(gcs.port) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        archive = KeptArchive(open_storage("listed"))
        fill(archive)
        proxy.seen.clear()
        assert main(flags(archive)) == 0
        where = ["-bucket", archive.storage.url, "-experiment", "exp"]
        assert main(["retention", *where, "-retain", "foo1=30"]) == 0
        asked = list(proxy.seen)
    assert ": 4 objects, 6 rows," in capsys.readouterr().out
    assert asked
    assert not [request for request in asked if ".jsonl" in request]


def test_rows_that_nothing_tells_are_not_counted_as_none(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Data without metadata and index, as of another program; the Go agent's index tells them."""
    archive.put_go()
    assert main(flags(archive)) == 0
    assert "2026/01/02/: 6 objects, 9 rows, " in capsys.readouterr().out
    archive.storage.put_new(data_in(PLACE), b"", {})
    assert main(flags(archive, "-end", str(OTHER))) == 0
    told = capsys.readouterr().out
    assert "2026/01/02/: 7 objects, an unknown number of rows, " in told
    assert "2 days: 9 objects, at least 3 rows, " in told


def test_what_is_left_of_a_day_goes_too(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index without data, and a text index without either; they are counted."""
    first, second = archive.names[:2]
    archive.storage.remove(str(first))
    for name in (str(second), str(index_of(second))):
        archive.storage.remove(name)
    archive.storage.put_new(second.token_filters, b"tokens", {})
    sizes = sum(info.size_bytes for info in archive.storage.list("") if "/2026/01/02/" in info.name)
    assert main(flags(archive)) == 0
    told = capsys.readouterr().out
    assert f"2026/01/02/: 2 objects, 0 rows, {sizes} B" in told

    assert main(flags(archive, "-yes")) == 0
    left = {name for name in archive.objects() if "/tables/" not in name}
    assert left == {str(archive.names[2]), str(index_of(archive.names[2]))}

    archive.storage.put_new(first.token_filters, b"tokens", {})
    assert main(flags(archive, "-yes")) == 0
    assert first.token_filters not in archive.objects()


def test_a_day_with_an_object_that_is_no_bundle_stays(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody said whose it is; without it the day would not be gone."""
    archive.storage.put_new("autoload/v1/exp/foo1/2026/01/02/notes.txt", b"", {})
    before = archive.objects()
    assert main(flags(archive, "-yes")) == 1
    assert "2026/01/02/notes.txt is no bundle: find out who stored it" in capsys.readouterr().out
    assert archive.objects() == before


def test_a_retention_keeps_so_many_whole_days_before_today() -> None:
    scope = retained({"foo1": 30}, date(2026, 2, 2))["foo1"]
    assert scope.has(OLD)
    assert not scope.has(OTHER)


def test_wrong_use_is_reported(archive: KeptArchive, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is deleted for want of a limit."""
    where = ["delete", "-bucket", archive.storage.url, "-experiment", "exp"]
    assert main([*where, "-start", "2026-01-02", "-end", "2026-01-02", "-yes"]) == 2
    assert main([*where, "-datatype", "foo1", "-yes"]) == 2
    days = ["-datatype", "foo1", "-start", "2026-01-02", "-end", "2026-01-02"]
    assert main(["delete", "-bucket", archive.storage.url, *days]) == 2
    told = capsys.readouterr().err
    for words in ("-datatype: required", "-start and -end: required", "-experiment: required"):
        assert words in told


def test_a_deletion_that_dies_anywhere_leaves_no_index_without_data(tmp_path: Path) -> None:
    """What is left is found by an audit, and to delete again ends the work."""
    steps, died = 0, True
    while died:
        archive = KeptArchive(open_storage(url_of(tmp_path / str(steps))))
        fill(archive)
        old = old_days(archive.storage, [PLACE], DAYS, min_age=timedelta(0), now=NOW)
        try:
            delete_day(Dying(archive.storage, steps), next(old))  # type: ignore[arg-type]
            died = False
        except DyingError:
            pass
        told = [
            p.kind for day in audit(archive.storage, [PLACE], Scope(), LIMITS) for p in day.problems
        ]
        assert set(told) <= {Kind.NO_INDEX}
        assert len(told) == steps % 2 * died
        for day in old_days(archive.storage, [PLACE], DAYS, min_age=timedelta(0), now=NOW):
            delete_day(archive.storage, day)
        left = {name for name in archive.objects() if "/tables/" not in name}
        assert left == {str(archive.names[2]), str(index_of(archive.names[2]))}
        steps += 1
    assert steps == 5


def test_an_object_that_changed_meanwhile_stays(archive: KeptArchive) -> None:
    """Another keeper has made its index again, say."""
    (day,) = old_days(archive.storage, [PLACE], DAYS, min_age=timedelta(0), now=NOW)
    archive.swap(index_of(archive.names[0]), lambda data: data)
    with pytest.raises(ConflictError):
        delete_day(archive.storage, day)
    assert str(archive.names[0]) in archive.objects()


def test_retention_shows_what_is_older_and_the_rules(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that deletes it; nothing is changed."""
    before = archive.objects()
    where = ["-bucket", archive.storage.url, "-experiment", "exp", "-project", "p"]
    assert main(["retention", *where, "-retain", "foo1=30,bar1=7"]) == 0
    told, said = capsys.readouterr()
    assert "autoload/v1/exp/foo1: kept 30 days; older: 2 days from 2026-01-02 to 2026-01-03" in told
    assert "has nothing of bar1" in said
    assert "bar1" not in told
    assert "-datatype foo1 -start 2026-01-02 -end 2026-01-03 -project p\n" in told
    assert "ALTER TABLE `p.raw_exp.foo1` SET OPTIONS (partition_expiration_days = 30);" in told
    rule = json.loads(told[told.index("{") : told.rindex("}") + 1])
    assert rule["rule"][0]["condition"] == {
        "age": 30,
        "matchesPrefix": ["autoload/v1/exp/foo1/", "autoload/v1/tokens/exp/foo1/"],
    }
    assert archive.objects() == before
    assert main(["retention", *where]) == 2
    assert main(["retention", *where, "-retain", "foo1"]) == 2
    assert main(["retention", *where, "-retain", "index1=3"]) == 2
    capsys.readouterr()
    # The printed command deletes: a shorter retention than -min-age is said to it, too.
    assert main(["retention", *where, "-retain", "foo1=7", "-naming", "third-party"]) == 0
    command = next(line for line in capsys.readouterr().out.splitlines() if "delete" in line)
    assert command.endswith("-end 2026-01-03 -min-age 168h -naming third-party -project p")
    assert main(["retention", *where[:4], "-retain", "foo1=7", "-datatype", "bar1"]) == 0
    assert '"rule": []' in capsys.readouterr().out


def test_retention_is_what_assets_say_where_the_flag_says_nothing(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """The flag wins; of an experiment with a wrong asset only the flag counts."""
    put = archive.storage.put_new
    put(PLACE.asset(), b'{"revision": 1, "retention_days": 40}', {})
    put(PLACE.asset("foo1"), b'{"revision": 1, "retention_days": 50}', {})
    where = ["-bucket", archive.storage.url, "-experiment", "exp", "-project", "p"]

    assert main(["retention", *where]) == 0
    told = capsys.readouterr().out
    assert "exp/foo1: kept 50 days; older: 2 days" in told
    assert "`p.raw_exp.foo1` SET OPTIONS (partition_expiration_days = 50);" in told
    (of_foo1, of_indexes) = json.loads(told[told.index("{") : told.rindex("}") + 1])["rule"]
    assert (of_foo1["condition"]["age"], of_indexes["condition"]["age"]) == (50, 50)
    assert main(["retention", *where, "-retain", "foo1=30"]) == 0
    assert "exp/foo1: kept 30 days" in capsys.readouterr().out

    archive.storage.remove(PLACE.asset("foo1"))
    put(PLACE.asset("foo1"), b'{"revision": 1, "retention_days": "long"}', {})
    assert main(["retention", *where]) == 2
    assert main(["retention", *where, "-retain", "bar1=30"]) == 1
    out, err = capsys.readouterr()
    assert "foo1: kept" not in out
    assert "retention_days: expected an integer from 1 to 36,500, found 'long'" in err


@pytest.mark.parametrize("text", ["foo1", "=3", "foo1=", "foo1=0", "foo1=x", "foo1=99999"])
def test_a_retention_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not DATATYPE=DAYS"):
        parse([text])
    with pytest.raises(ValueError, match="twice"):
        parse(["foo1=3", "foo1=4"])


def test_the_rule_of_a_bucket_keeps_indexes_as_long_as_any_data() -> None:
    """They share a folder; with a datatype that is kept for ever, they all stay."""
    retain = {"foo1": 30, "bar1": 7}
    rules = lifecycle({PLACE: ["bar1", "foo1", "index1"]}, retain)["rule"]
    ages = {rule["condition"]["matchesPrefix"][0]: rule["condition"]["age"] for rule in rules}
    assert ages == {
        "autoload/v1/exp/foo1/": 30,
        "autoload/v1/exp/bar1/": 7,
        "autoload/v1/exp/index1/": 30,
    }
    rules = lifecycle({PLACE: ["bar1", "foo1", "index1", "other"]}, retain)["rule"]
    assert len(rules) == 2
    rules = lifecycle({PLACE: ["bar1", "index1"]}, retain)["rule"]
    assert [rule["condition"]["age"] for rule in rules] == [7, 7]  # foo1 is of another place


def test_the_data_of_an_organization_goes_without_that_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Searches for an organization look at autoload/v1, too; a deletion must not."""
    storage = open_storage(url_of(tmp_path / "bucket"))
    places = [
        PLACE,
        *(replace(PLACE, data_dir="autoload/v2", organization=o) for o in ("o1", "o2")),
    ]
    for place in places:
        storage.put_new(data_in(place), b"", {})
    where = ["-bucket", storage.url, "-experiment", "exp", "-datatype", "foo1"]
    days = ["-start", str(OLD), "-end", str(OLD), "-yes", "-min-age", "1h"]

    assert main(["delete", *where, *days, "-organization", "o1"]) == 0
    assert [info.name for info in storage.list("")] == [data_in(PLACE), data_in(places[2])]
    assert main(["delete", *where, *days]) == 0
    assert [info.name for info in storage.list("")] == [data_in(places[2])]

    capsys.readouterr()
    assert main(["delete", *where, *days]) == 0  # as when an earlier one was killed at its end
    assert "autoload/v1/exp/ has no datatype foo1" in capsys.readouterr().err
    assert main(["delete", *where[:-1], "foo1,index1", *days]) == 2
    assert "-datatype: index1 goes with its data" in capsys.readouterr().err


def test_retention_prints_the_command_for_each_organization(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its name the command would delete the data of all, in autoload/v1."""
    storage = open_storage(url_of(tmp_path / "bucket"))
    for place in (
        PLACE,
        *(replace(PLACE, data_dir="autoload/v2", organization=o) for o in ("o1", "o2")),
    ):
        storage.put_new(data_in(place), b"", {})

    def commands(*more: str) -> list[str]:
        where = ["-bucket", storage.url, "-experiment", "exp", "-retain", "foo1=30"]
        assert main(["retention", *where, *more]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.partition(" exp ")[2] for line in lines if "jostler delete" in line]

    what = f"-datatype foo1 -start {OLD} -end {OLD}"
    everywhere = [what, f"-organization o1 {what}", f"-organization o2 {what}"]
    assert commands() == everywhere
    assert sorted(commands("-organization", "o1")) == sorted(everywhere[:2])


def data_in(place: Place) -> str:
    """Return the name of a bundle of the day, whatever is in it."""
    folder = f"{place.root}/foo1/{Day(OLD).path}"
    return f"{folder}/20260103T000000.000000Z-foo1-n1-exp-data.jsonl.gz"


def test_a_bundle_that_is_stored_during_a_deletion_stays_and_is_reported(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late agent's or a compaction's: the day is not gone, nor is its partition to go."""
    real = delete.store_then_remove
    late = []

    def stored_meanwhile(*args: Any) -> None:  # noqa: ANN401 - passed on as they are
        late.append(archive.put(contents([9]), day=OLD, node="late"))
        real(*args)

    monkeypatch.setattr(delete, "store_then_remove", stored_meanwhile)
    assert main(flags(archive, "-yes")) == 1
    told = capsys.readouterr().out
    assert (
        f"{late[0]} was stored since the day was listed; a part may be gone: delete again" in told
    )
    assert "0 days: 0 objects, 0 rows, 0 B deleted; 1 day left" in told
    assert "DELETED" not in told
    assert str(late[0]) in archive.objects()
