"""Table schemas: a stored one only grows, and what cannot fit is said field by field."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jostler.agent.schema_sync import keep, sync
from jostler.errors import AuthError, SchemaError
from jostler.format.names import Place
from jostler.schema import Field, Mode, fields_from_api, fields_to_api, table_schema
from jostler.storage import Storage, open_storage
from tests.support.golden import go
from tests.support.spool import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")
NAME = PLACE.table_schema("foo1")
A, B, C = (Field(name=name, type="STRING") for name in "abc")


@pytest.fixture
def bucket(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "bucket").as_uri())


def agree(bucket: Storage, *fields: Field, upload: bool = True) -> list[str]:
    """Settle a schema of these fields; return the names that files are judged by."""
    table = sync(bucket, PLACE, "foo1", table_schema(fields), upload=upload)
    return [field.name for field in table[-1].fields]


def stored(bucket: Storage) -> list[str]:
    table = fields_from_api(json.loads(bucket.read(NAME).data))
    return [field.name for field in table[-1].fields]


def test_a_new_schema_is_uploaded(bucket: Storage) -> None:
    """As a BigQuery schema: an array of fields with lower-case keys."""
    assert agree(bucket, A, B) == ["a", "b"]
    api = json.loads(bucket.read(NAME).data)
    assert [column["name"] for column in api] == ["date", "archiver", "raw"]
    assert all(column["description"] for column in api)


def test_the_same_schema_in_other_spelling_is_left_alone(bucket: Storage) -> None:
    """Aliases, order, letter case and descriptions make no difference."""
    bucket.put_new(
        NAME,
        json.dumps(
            [
                {"name": "raw", "type": "STRUCT", "fields": [{"name": "A", "type": "STRING"}]},
                *fields_to_api(table_schema((A,)))[:2],
            ]
        ).encode(),
        {},
    )
    version = bucket.read(NAME).version
    agree(bucket, A)
    assert bucket.read(NAME).version == version


def test_additions_extend_the_stored_schema_at_its_end(bucket: Storage) -> None:
    """As BigQuery adds columns."""
    agree(bucket, B, A)
    assert agree(bucket, A, C, B) == ["b", "a", "c"]
    assert stored(bucket) == ["b", "a", "c"]


def test_an_older_schema_goes_on_with_the_stored_one(bucket: Storage) -> None:
    """An agent that was rolled back starts, and removes no field from the table."""
    agree(bucket, A, B)
    assert agree(bucket, A) == ["a", "b"]
    assert stored(bucket) == ["a", "b"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((Field(name="a", type="INTEGER"),), ["raw.a", "STRING", "INTEGER"]),
        ((Field(name="a", type="STRING", mode=Mode.REPEATED),), ["raw.a", "REPEATED"]),
        ((C,), ["raw.a", "raw.c"]),
        ((A, Field(name="n", type="STRING", mode=Mode.REQUIRED)), ["raw.n", "REQUIRED"]),
    ],
    ids=["type", "mode", "rename", "required"],
)
def test_what_cannot_fit_names_each_field(
    bucket: Storage, fields: tuple[Field, ...], words: list[str]
) -> None:
    """Both sides, and the stored schema stays as it is."""
    agree(bucket, A)
    with pytest.raises(SchemaError) as caught:
        agree(bucket, *fields)
    for word in words:
        assert word in str(caught.value)
    assert stored(bucket) == ["a"]


def test_without_permission_to_upload_new_fields_are_an_error(bucket: Storage) -> None:
    """-upload-schema=false only compares."""
    with pytest.raises(SchemaError, match="does not exist"):
        agree(bucket, A, upload=False)
    agree(bucket, A)
    assert agree(bucket, A, upload=False) == ["a"]
    with pytest.raises(SchemaError, match=r"raw\.b"):
        agree(bucket, A, B, upload=False)


def go_table() -> bytes:
    """Return a table schema as the Go agent stores it: the standard columns are REQUIRED."""
    return go("foo1.table.json")


OURS = table_schema(fields_from_api(SCHEMA))


@pytest.mark.parametrize("upload", [True, False])
def test_a_schema_of_the_go_agent_is_left_as_it_is(bucket: Storage, upload: bool) -> None:
    """That its standard columns are REQUIRED is no difference: every row has them."""
    bucket.put_new(NAME, go_table(), {})
    version = bucket.read(NAME).version

    fields = sync(bucket, PLACE, "foo1", OURS, upload=upload)

    assert bucket.read(NAME).version == version
    assert fields == fields_from_api(json.loads(go_table()))


def test_a_node_with_an_older_schema_than_the_go_agents_goes_on_with_the_stored_one(
    bucket: Storage,
) -> None:
    """As beside one of ours."""
    bucket.put_new(NAME, go_table(), {})
    older = table_schema(fields_from_api(SCHEMA[:2]))
    assert sync(bucket, PLACE, "foo1", older, upload=True)[-1].fields == OURS[-1].fields


def test_an_addition_to_a_schema_of_the_go_agent_changes_nothing_else(bucket: Storage) -> None:
    """BigQuery would relax the columns, but nobody asked for it."""
    bucket.put_new(NAME, go_table(), {})
    sync(bucket, PLACE, "foo1", table_schema((*OURS[-1].fields, C)), upload=True)
    now = json.loads(bucket.read(NAME).data)
    assert [field.get("mode") for field in now[:2]] == ["REQUIRED", "REQUIRED"]
    assert now[2]["fields"][-1]["name"] == "c"


def test_what_is_relaxed_is_not_told_as_missing(bucket: Storage) -> None:
    """A field of the datatype's own may be relaxed, by whoever may upload."""
    agree(bucket, replace(A, mode=Mode.REQUIRED))
    with pytest.raises(SchemaError) as caught:
        agree(bucket, A, upload=False)
    assert caught.value.problems == [
        "raw.a: is REQUIRED in the stored schema, NULLABLE in the agent's"
    ]
    assert "lacks" not in str(caught.value)


def test_an_object_that_is_no_schema_is_named(bucket: Storage) -> None:
    """Nobody overwrites what somebody put there."""
    bucket.put_new(NAME, b"not a schema", {})
    with pytest.raises(SchemaError, match="is not a table schema"):
        agree(bucket, A)


def test_nodes_of_different_versions_cannot_undo_each_other(bucket: Storage) -> None:
    """Each adds its field at the same moment; all of them are there afterwards."""
    agree(bucket, A)
    start = threading.Barrier(6)

    def node(number: int) -> None:
        start.wait()
        # Fields that only this node has: it must take over what others have added meanwhile.
        while True:
            known = [Field(name=name, type="STRING") for name in stored(bucket)]
            try:
                agree(bucket, *known, Field(name=f"n{number}", type="STRING"))
            except SchemaError:  # another node was faster, so ours lacks its field: look again
                continue
            return

    threads = [threading.Thread(target=node, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(stored(bucket)) == {"a", *(f"n{number}" for number in range(6))}


def test_jostlers_own_schemas_never_stop_it(bucket: Storage) -> None:
    """The Go agent's index1 schema differs; data is archived all the same."""
    other = table_schema((Field(name="Filename", type="INTEGER"),))
    bucket.put_new(PLACE.table_schema("index1"), json.dumps(fields_to_api(other)).encode(), {})
    ours = table_schema((Field(name="Filename", type="STRING"),))
    assert sync(bucket, PLACE, "index1", ours, upload=True) == ours


def test_a_schema_that_may_not_be_written_is_no_outage(bucket: Storage) -> None:
    """A person must act; asking again for ever would hide that."""
    agree(bucket, A)

    class ReadOnly:
        url = bucket.url
        read = staticmethod(bucket.read)

        def replace(self, *_: object) -> None:
            raise AuthError("403")

    storage: Any = ReadOnly()
    with pytest.raises(SchemaError, match="no permission to write"):
        agree(storage, A, B)
    assert agree(storage, A) == ["a"]


def test_a_schema_is_kept_once_under_its_digest(bucket: Storage) -> None:
    """The name says what is in it; a bucket that refuses it stops no agent."""
    fields = table_schema((A, B))
    digest = keep(bucket, PLACE, "foo1", fields)
    (kept,) = bucket.list("autoload/v1/schemas/")
    assert keep(bucket, PLACE, "foo1", fields) == digest
    assert (kept.name, kept.version) == (
        PLACE.kept_schema("foo1", digest),
        bucket.read(kept.name).version,
    )
    organized = Place(data_dir="autoload/v2", organization="org", experiment="exp")
    assert organized.kept_schema("foo1", "d") == "autoload/v2/schemas/org/exp/foo1/d.json"
    bucket.replace(kept.name, b"[]", kept.version)
    assert keep(bucket, PLACE, "foo1", fields) == ""
