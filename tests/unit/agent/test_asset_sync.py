"""Asset files of nodes: a revision only grows, and a wrong file stops nothing."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from jostler.agent import asset_sync
from jostler.agent.asset_sync import Stored, put
from jostler.errors import AuthError, ConflictError, RefusedError, TransientError
from jostler.format.names import Place
from jostler.schema import Asset
from jostler.storage import Storage, open_storage
from tests.support.agent import arguments, once, run
from tests.support.bucket import url_of
from tests.support.memory_bucket import Stepped
from tests.support.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")
NAME = "autoload/v1/assets/exp.foo1.json"


@pytest.fixture
def bucket(tmp_path: Path) -> Storage:
    return open_storage(url_of(tmp_path / "bucket"))


def offer(bucket: Storage, revision: int, owner: str) -> Stored:
    """Let a node offer an asset; return what the bucket had before."""
    return put(bucket, PLACE, "foo1", Asset(revision=revision, owner=owner)).stored


def stored(bucket: Storage) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bucket.read(NAME).data)
    return found


def test_only_a_greater_revision_replaces(bucket: Storage) -> None:
    """An older node, or one that says something else with the same revision, changes nothing."""
    assert offer(bucket, 2, "a") is Stored.ABSENT
    version = bucket.read(NAME).version
    assert offer(bucket, 2, "a") is Stored.SAME
    assert offer(bucket, 2, "b") is Stored.DIFFERS
    assert offer(bucket, 1, "b") is Stored.NEWER
    assert bucket.read(NAME).version == version
    assert offer(bucket, 3, "c") is Stored.OLDER
    assert stored(bucket) == {"revision": 3, "owner": "c"}


def test_what_differs_in_its_form_only_is_the_same(bucket: Storage) -> None:
    """The stored object may have been written by hand."""
    bucket.put_new(NAME, b'\xef\xbb\xbf{"owner": "a",\n\n"revision": 2}', {})
    assert offer(bucket, 2, "a") is Stored.SAME


def test_a_stored_asset_that_cannot_be_read_is_left(bucket: Storage) -> None:
    """A newer release may have written it."""
    bucket.put_new(NAME, b'{"revision": 1, "colour": "red"}', {})
    pair = put(bucket, PLACE, "foo1", Asset(revision=9))
    assert (pair.stored, "'colour': unknown field" in pair.problem) == (Stored.UNREADABLE, True)
    assert stored(bucket)["colour"] == "red"


@pytest.mark.parametrize("there", [0, 1])
@pytest.mark.parametrize(("other", "left"), [(2, 3), (3, 3), (5, 5)])
def test_a_node_that_lost_a_race_compares_again(
    bucket: Storage, there: int, other: int, left: int
) -> None:
    """Another one stores its asset between our look and our write; the greatest revision wins."""
    if there:
        offer(bucket, there, "first")
    races = []

    def race(request: str) -> None:
        if request.startswith(("put_new", "replace")) and not races:
            races.append(request)
            offer(bucket, other, "other")

    put(Stepped(bucket, race), PLACE, "foo1", Asset(revision=3, owner="ours"))  # type: ignore[arg-type]
    assert races
    assert stored(bucket)["revision"] == left
    assert stored(bucket)["owner"] == ("ours" if other < 3 else "other")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("exp.asset.json", ("exp", "")),
        ("my-exp.foo1.asset.json", ("my-exp", "foo1")),
        ("exp.json", None),
        (".asset.json", None),
        ("exp.a.b.asset.json", None),
        ("exp..asset.json", None),
    ],
)
def test_the_name_of_a_file_says_what_it_is_about(
    tmp_path: Path, name: str, told: tuple[str, str] | None
) -> None:
    """Experiment, and datatype if there is one."""
    if told:
        assert asset_sync.name_of(tmp_path / name) == told
    else:
        with pytest.raises(ValueError, match=r"EXPERIMENT\.DATATYPE\.asset\.json"):
            asset_sync.name_of(tmp_path / name)


def written(spool: Spool, name: str, asset: object) -> None:
    (spool.root / "datatypes" / f"{name}.asset.json").write_text(json.dumps(asset))


def events(text: str) -> dict[str, dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {one["event"]: one for one in found if one["event"].startswith("asset.")}


def test_an_agent_uploads_its_asset_files_and_goes_on_without_a_bad_one(tmp_path: Path) -> None:
    """The experiment's and those of its datatypes; each problem is logged with file and path."""
    spool = Spool(tmp_path / "spool")
    spool.write("a.json", b'{"Rate": 1}')
    written(spool, "exp", {"revision": 4, "owner": "a"})
    written(spool, "exp.foo1", {"revision": 1, "share": 7})
    written(spool, "exp.bar1", {"revision": 1})
    written(spool, "other", {"revision": 1, "no": "asset of ours"})
    url = url_of(tmp_path / "bucket")

    checked = run(*arguments(spool, url, "-check"))
    assert checked.returncode == 1
    assert "foo1.asset.json is not an asset" in checked.stdout
    assert "share: expected a number from 0 to 1, found 7" in checked.stdout
    assert "ok   asset exp.asset.json: is not in the bucket yet" in checked.stdout
    ran = once(spool, url)

    assert ran.returncode == 0
    told = events(ran.stdout)
    assert told["asset.uploaded"]["object"] == "autoload/v1/assets/exp.json"
    assert "share: expected a number from 0 to 1, found 7" in told["asset.wrong"]["error"]
    assert "-datatype bar1 not given" in told["asset.ignored"]["reason"]
    names = {path.name for path in (tmp_path / "bucket/autoload/v1/assets").iterdir()}
    assert names == {"exp.json"}
    assert list((tmp_path / "bucket").rglob("*-foo1-*-data.jsonl.gz"))


def test_an_agent_that_may_not_upload_only_compares(tmp_path: Path) -> None:
    """With -upload-schema=false, as for table schemas."""
    spool = Spool(tmp_path / "spool")
    url = url_of(tmp_path / "bucket")
    assert once(spool, url).returncode == 0
    written(spool, "exp", {"revision": 4})

    ran = once(spool, url, "-upload-schema=false")

    assert ran.returncode == 0
    assert "-upload-schema is false" in events(ran.stdout)["asset.not_uploaded"]["error"]
    assert not (tmp_path / "bucket/autoload/v1/assets").exists()


class Refusing:
    """A bucket that answers each write with an error."""

    def __init__(self, bucket: Storage, error: Exception) -> None:
        self.url = bucket.url
        self.read = bucket.read
        self._error = error

    def put_new(self, *_: object, **__: object) -> None:
        raise self._error


def test_a_bucket_that_changes_all_the_time_is_told(bucket: Storage) -> None:
    """After so many races as nodes may run."""
    with pytest.raises(ConflictError, match="changes too often"):
        put(_refusing(bucket, ConflictError("again")), PLACE, "", Asset(revision=1))


@pytest.mark.parametrize("error", [AuthError("no"), RefusedError("no"), ConflictError("no")])
def test_a_bucket_that_refuses_an_asset_keeps_no_agent_from_starting(
    bucket: Storage, tmp_path: Path, error: Exception
) -> None:
    """A person must act; files are archived meanwhile."""
    spool = Spool(tmp_path / "spool")
    written(spool, "exp", {"revision": 1})
    config: Any = SimpleNamespace(
        place=PLACE, local_data_dir=spool.root, datatypes=(), upload_schema=True
    )
    asset_sync.upload(_refusing(bucket, error), config)
    with pytest.raises(TransientError, match="away"):
        asset_sync.upload(_refusing(bucket, TransientError("away")), config)


def _refusing(bucket: Storage, error: Exception) -> Any:  # noqa: ANN401 - stands for a Storage
    return Refusing(bucket, error)
