"""Which data bundle an index row of `jostler why` belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.archive.lookup import Search, findings
from jostler.format.names import Place
from jostler.storage import open_storage
from jostler.why.asked import parse
from jostler.why.finding import State
from tests.archive.test_verify import GO_DATA, go_bundle

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_of_the_go_agent_is_found_although_its_datatype_has_dashes(tmp_path: Path) -> None:
    """Neither the index's name nor its rows tell where such a datatype's name ends."""
    bucket = open_storage(tmp_path.as_uri())
    data = GO_DATA.replace("foo1", "foo-bar-1")
    index = data.replace("/foo-bar-1/", "/index1/").replace("-data.", "-index1.")
    bucket.put_new(data, go_bundle("data.jsonl"), {})
    bucket.put_new(index, go_bundle("index1.jsonl"), {})
    asked = parse("2026/01/02/m1.json", spool="/var/spool/exp", datatypes=())
    assert asked.day is not None
    place = Place(data_dir="autoload/v1", organization="", experiment="exp")
    search = Search(
        places=(place,), days=(asked.day,), only_node="", first_node="", most=9, show=False
    )

    found, _ = findings(asked, bucket, search)

    assert [one.state for one in found] == [State.STORED]
    assert found[0].evidence["object"] == f"{bucket.url}/{data}"
