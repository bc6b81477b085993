"""Keepers at work at the same time, beside agents: no row is lost, repeated runs end clean."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive import compact as compaction
from jostler.archive.audit import mend as mending
from jostler.archive.audit.mend import QUARANTINE, Mender
from jostler.archive.audit.problem import Kind
from jostler.archive.compact import FAILED, compact
from jostler.archive.compact_days import FIRST, LAST, days
from jostler.archive.compact_plan import groups
from jostler.archive.delete import delete_day, old_days
from jostler.archive.keeping import store, store_then_remove
from jostler.errors import ConflictError
from jostler.format.blocks import BlockWriter
from jostler.format.compression import FAST
from jostler.format.names import BundleName
from jostler.format.row import Archiver, row, row_head
from tests.support.bundles import CREATED, DAY, PLACE, bundle
from tests.support.compactors import DATATYPE, SMALL, TARGET, LostError
from tests.support.keepers import DELETED, NOW, STAGING, Model, run_many
from tests.support.memory_bucket import Died, Stepped
from tests.support.senders import Sender, files_of, index_of, sealed
from tests.support.spool import document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostler.archive.keeping import Looked, Made
    from jostler.storage import Storage

NOW_SETTLED = timedelta(0)


def with_bundles(*numbers: int) -> Model:
    """Return a bucket with bundles of agents, and nothing at work."""
    model = Model(random.Random(0), deletes=False)
    model.bucket.removed = lambda _name: None  # each test says itself what must be there
    for number in numbers:
        model.senders[number].send(model.calm)
    return model


def mend(model: Model, storage: object = None, *, orphans: bool = False) -> list[Kind]:
    """Audit and mend once; return the kinds of problems that are left."""
    left = model.mend(storage or model.calm, orphans=orphans, settled=NOW_SETTLED)
    return [problem.kind for problem in left]


def stepped(model: Model, request: str, then: Callable[[], object]) -> Any:  # noqa: ANN401
    """Return the bucket of one actor; before the first such request, something happens."""
    waiting = [then]

    def step(what: str) -> None:
        if waiting and what.startswith(request):
            waiting.pop()()

    return Stepped(model.bucket, step)  # type: ignore[arg-type]


def die() -> None:
    raise Died


def merged(model: Model) -> str:
    (name,) = [name for name in model.data() if BundleName.parse(name).is_merged]
    return name


def take(model: Model, *names: str) -> dict[str, tuple[bytes, str, dict[str, str]]]:
    """Remove objects behind everybody's back; return them."""
    return {name: model.bucket.objects.pop(name) for name in names}


def rows_of(*numbers: int) -> set[Any]:
    """Return all that whole bundles with these rows say, if they say what the agents said."""
    rows = {row for number in numbers for row in Sender(number).rows()}
    return {(row, is_fact) for row in rows for is_fact in (False, True)}


def test_no_row_is_lost_whoever_dies_when() -> None:
    """Nor what an agent's index said of it; and an audit of a quiet end is clean."""
    assert run_many(range(120))["kept"] > 700


def _overwrites(storage: Storage, made: Sequence[Made], old: Sequence[Looked]) -> None:
    for one in made:
        try:
            store(storage, one)
        except ConflictError:
            store(storage, replace(one, replaces=storage.read(one.name).version))
    store_then_remove(storage, [], old)


def _merges_without_index(storage: Storage, made: Sequence[Made], _: Sequence[Looked]) -> None:
    store_then_remove(storage, made[:1], [])


@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (compaction, "store_then_remove", _merges_without_index),
        (mending, "store_then_remove", _overwrites),
        (Mender, "_quarantine", lambda *_: ""),
    ],
    ids=[
        "compaction removes before the index is there",
        "mend overwrites what another one stored",
        "salvage keeps no copy",
    ],
)
def test_the_model_sees_a_wrong_keeper(
    where: object, name: str, mutant: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mistakes that are easily made lose rows, or leave what nobody mends."""
    monkeypatch.setattr(where, name, mutant)
    with pytest.raises(LostError):
        run_many(range(2000))


# What the model has found


def test_a_lost_index_of_a_killed_merge_is_made_again_as_it_was_to_be() -> None:
    """Its rows have the times of the inputs, which the next compaction removes."""
    whole, killed = with_bundles(0, 1), with_bundles(0, 1)
    whole.compact(whole.calm)
    index = index_of(merged(whole))
    with pytest.raises(Died):
        killed.compact(stepped(killed, f"put_new {index}", die))
    assert mend(killed) == [Kind.REPEATED] * 4
    assert killed.bucket.objects[index][0] == whole.bucket.objects[index][0]
    killed.compact(killed.calm)
    assert killed.found() == rows_of(0, 1)


def test_a_row_of_a_merged_bundle_gets_no_times_of_another_nodes_row() -> None:
    """That file may have been there at another time, although it has this name and content."""
    model = with_bundles(0, 1)
    model.compact(model.calm)
    index = index_of(merged(model))
    take(model, index)
    for half in bundle(list(files_of(0).items()), node="n9"):
        model.bucket.put_new(half.name, half.data, half.metadata)
    assert mend(model) == []
    lines = gzip.decompress(model.bucket.objects[index][0]).splitlines()
    assert [json.loads(line)["raw"]["WorkID"] for line in lines] == [None] * 4


def test_a_merged_bundle_gets_the_earliest_times_before_its_inputs_go() -> None:
    """Its index had been lost, and was made again, when the rows were stored once more."""
    model = with_bundles(0, 1)
    model.compact(model.calm)
    take(model, index_of(merged(model)))
    mend(model)
    assert model.found() == {one for one in rows_of(0, 1) if not one[1]}
    Sender(0, again=1).send(model.calm)
    model.compact(model.calm)
    assert model.data() == [merged(model)]
    assert rows_of(0) <= model.found()
    assert mend(model) == []


def test_inputs_that_know_more_than_the_merged_bundle_stay() -> None:
    """Another compactor has made it of fewer inputs, while this one read its own."""
    model = with_bundles(0, 1)
    model.compact(model.calm)
    name = merged(model)
    take(model, index_of(name))
    mend(model)
    there = take(model, name, index_of(name))
    for number in (0, 1):
        Sender(number, again=1).send(model.calm)
    inputs = dict(model.bucket.objects)
    storage = stepped(model, f"put_new {name}", lambda: model.bucket.objects.update(there))
    ((_, members, _),) = days(storage, PLACE, DATATYPE, FIRST, LAST)
    (group,) = groups(members, small_bytes=SMALL, target_bytes=TARGET)
    result = compact(storage, group, target_bytes=TARGET, version="jostler@2", threads=1)
    assert [one.reason for one in result.left] == [FAILED, FAILED]
    assert inputs.items() <= model.bucket.objects.items()
    model.compact(model.calm)
    assert model.data() == [name]
    assert model.found() == rows_of(0, 1)


def test_inputs_stay_if_the_merged_bundle_is_merged_on_meanwhile() -> None:
    """What is in its place may lack what they know; that is no failure."""
    model = with_bundles(0, 1)
    model.compact(model.calm)
    name = merged(model)
    Sender(0, again=1).send(model.calm)
    before = dict(model.bucket.objects)
    gone = stepped(model, f"read {index_of(name)}", lambda: None)
    ((_, members, _),) = days(gone, PLACE, DATATYPE, FIRST, LAST)
    (group,) = groups(members, small_bytes=SMALL, target_bytes=TARGET)
    storage = stepped(model, f"metadata {index_of(name)}", lambda: take(model, index_of(name)))
    result = compact(storage, group, target_bytes=TARGET, version="jostler@2", threads=1)
    assert (result.done, result.left) == ([], [])
    assert before.keys() - model.bucket.objects.keys() == {index_of(name)}


def test_an_index_whose_rows_were_merged_meanwhile_goes_unasked() -> None:
    """An agent stored it after its data was merged; one with a row that nobody has stays."""
    model = with_bundles(0, 1)
    late = {name: value for name, value in model.bucket.objects.items() if "/index1/" in name}
    model.compact(model.calm)
    model.bucket.objects.update(late)
    assert mend(model) == []
    assert not late.keys() & model.bucket.objects.keys()
    assert all(f"{STAGING}{QUARANTINE}{name}" in model.bucket.objects for name in late)

    model.senders[2].send(model.calm)
    lost = str(sealed(2, 0, model.bucket.url).header.name)
    take(model, lost)
    assert mend(model) == [Kind.NO_DATA]
    assert index_of(lost) in model.bucket.objects


def test_a_compaction_leaves_no_index_of_what_was_without_one() -> None:
    """Somebody stores the index of a bundle whose rows are merged already."""
    model = with_bundles(0, 1)
    before = dict(model.bucket.objects)
    model.compact(model.calm)
    name = str(sealed(0, 0, model.bucket.url).header.name)
    model.bucket.objects[name] = before[name]
    model.senders[4].send(model.calm)
    index = {index_of(name): before[index_of(name)]}
    model.compact(stepped(model, f"remove {name}", lambda: model.bucket.objects.update(index)))
    assert model.data() == [merged(model)]
    assert not index.keys() & model.bucket.objects.keys()


def test_an_index_that_was_seen_alone_is_not_removed_when_its_data_is_there() -> None:
    """A compactor stores the data again, finds the index there, and removes what it has merged."""
    model = with_bundles(0, 1)
    inputs = dict(model.bucket.objects)
    model.compact(model.calm)
    name = merged(model)
    take(model, name)
    model.bucket.objects.update(inputs)
    storage = stepped(model, f"remove {index_of(name)}", lambda: model.compact(model.calm))
    mend(model, storage, orphans=True)
    assert model.data() == [name]
    assert model.found() == rows_of(0, 1)


def test_an_index_is_not_removed_for_data_that_the_same_mend_has_stored() -> None:
    """It was alone when the day was listed: a salvage had been killed, and its data was lost."""
    model = with_bundles(0)
    (name,) = model.data()
    model.bucket.objects[name] = model.bucket.objects[name][0][:-3], "7", {}
    with pytest.raises(Died):
        mend(model, stepped(model, f"remove {name}", die))
    (saved,) = set(model.data()) - {name}
    take(model, saved)
    mend(model, orphans=True)
    assert model.data() == [saved]
    assert model.found() == rows_of(0)


def test_a_bundle_that_its_agent_has_sent_again_is_not_taken_for_the_damaged_one() -> None:
    """Another keeper has moved that one away meanwhile; the new one has its name."""
    model = with_bundles()
    sender = model.senders[0]
    with pytest.raises(Died):
        sender.send(model.calm, marking=die)
    (name,) = model.data()
    data, _, told = model.bucket.objects[name]
    model.bucket.objects[name] = data[:20] + b"~~" + data[22:], "77", told

    def meanwhile() -> None:
        assert mend(model) == []
        sender.send(model.calm)

    assert Kind.DAMAGED in mend(model, stepped(model, f"remove {name}", meanwhile))
    assert sender.done
    assert model.found() == rows_of(0)


def test_what_is_left_of_a_merged_bundle_may_be_there_already() -> None:
    """Compressed otherwise: then the damaged one goes, and nothing is stored."""
    model = with_bundles(0, 1)
    model.compact(model.calm)
    name = merged(model)
    there = {one: model.bucket.objects[one] for one in (name, index_of(name))}
    model.senders[5].send(model.calm)
    model.compact(model.calm)
    larger = merged(model)
    data, _, told = model.bucket.objects[larger]
    model.bucket.objects |= there | {larger: (data[:-60], "99", told)}
    assert mend(model) == []
    assert model.data() == [name]
    assert f"{STAGING}{QUARANTINE}{larger}" in model.bucket.objects
    assert model.found() == rows_of(0, 1)


def test_an_index_that_names_a_longer_block_disagrees() -> None:
    """A salvage in place was killed before the index: a compaction refuses what it has left."""
    model = with_bundles()
    for number in (1, 2):
        files = [(f"{number}-{nth}.json", document(nth)) for nth in range(20)]
        for half in bundle(files, number=number):
            model.bucket.put_new(half.name, half.data, half.metadata)
    model.compact(model.calm)
    name = merged(model)
    data, _, told = model.bucket.objects[name]
    model.bucket.objects[name] = data[:-3], "77", told
    with pytest.raises(Died):
        mend(model, stepped(model, f"replace {index_of(name)}", die))
    assert {problem.kind for problem in model.audited(model.calm)} == {Kind.DISAGREES}
    assert mend(model) == []
    assert len(model.found()) == 40


def test_an_agent_accepts_an_index_that_names_larger_blocks() -> None:
    """Its own blocks have ended early, which a mend cannot see."""
    model = with_bundles(2)
    (name,) = model.data()
    sender = model.senders[0]
    with suppress(Died):
        sender.send(stepped(model, f"put_new {PLACE.root}/index1", die))
    assert mend(model) == [Kind.REPEATED]
    sender.send(model.calm)
    assert sender.done
    other = str(sealed(0, 0, model.bucket.url).header.name)
    model.bucket.objects[index_of(other)] = model.bucket.objects[index_of(name)]
    again = Sender(0)
    again.send(model.calm)
    assert "other bytes" in again.halt


def test_a_bundle_whose_blocks_ended_early_is_merged_after_its_index_was_lost() -> None:
    """The index that is made again names one block, which ends where the rows end."""
    model = with_bundles(1)
    name = replace(sealed(0, 0, model.bucket.url).header.name, created=CREATED)
    writer = BlockWriter(FAST)
    head = row_head(Archiver(version="jostler@1", commit="c"), DAY, f"{model.bucket.url}/{name}")
    text = random.Random(0)
    for nth in range(12):
        raw = b'{"text":"%b"}' % text.randbytes(30_000).hex().encode()
        writer.add(row(head, b'"%b/h%d.json"' % (DAY.path.encode(), nth), raw))
        if nth == 1:
            writer.end_block()
    model.bucket.put_new(str(name), writer.finish(), {})
    assert mend(model) == []
    assert model.audited(model.calm) == []
    model.compact(model.calm)
    assert model.data() == [merged(model)]


def test_an_index_that_is_stored_while_a_day_is_deleted_is_no_end() -> None:
    """Its agent stores it when the data is gone: it would list files that nobody can read."""
    model = with_bundles(3)
    index = take(model, *(name for name in model.bucket.objects if "/index1/" in name))
    (day,) = old_days(model.calm, [PLACE], DELETED, min_age=NOW_SETTLED, now=NOW)
    (name,) = model.data()
    storage = stepped(model, f"remove {name}", lambda: model.bucket.objects.update(index))
    with pytest.raises(ConflictError, match="was stored since the day was listed"):
        delete_day(storage, day)
    model.delete(model.calm)
    assert not index.keys() & model.bucket.objects.keys()
