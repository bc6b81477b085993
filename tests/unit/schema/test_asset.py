"""Assets: each problem is told with its path, and the more exact one wins field by field."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.errors import SchemaError
from jostler.format.names import Place, parse_asset
from jostler.schema.asset import Asset, Assets, parse_asset_file, published_asset

WHOLE: dict[str, Any] = {
    "revision": 3,
    "owner": "Network operations",
    "description": "Speed tests.",
    "classification": "internal",
    "producers": ["serviceAccount:agent@p.iam.gserviceaccount.com"],
    "consumers": ["user:a@x.org", "group:b@x.org", "domain:x.org"],
    "source": "https://x.org/speed",
    "retention_days": 400,
    "requirements": "No addresses of people.",
    "share": 0.25,
    "notify": ["https://x.org/told?a=b"],
    "max_bad_fraction": 0.02,
}
PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")


def asset(**values: Any) -> Asset:  # noqa: ANN401 - JSON
    return parse_asset_file(json.dumps({"revision": 1, **values}).encode(), source="x")


def problems(data: bytes | object) -> list[str]:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(SchemaError) as caught:
        parse_asset_file(text, source="exp.asset.json")
    assert str(caught.value).startswith("exp.asset.json is not an asset\n")
    return caught.value.problems


def test_the_published_schema_is_that_of_the_package() -> None:
    """docs/ has it for editors; it is of draft 2020-12 and knows the fields that the code knows."""
    docs = Path(__file__).parents[3] / "docs/asset.schema.json"

    assert docs.read_bytes() == (resources.files("jostler.schema") / docs.name).read_bytes()
    assert published_asset()["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    jsonschema.Draft202012Validator.check_schema(published_asset())
    names = {field.name for field in fields(Asset)}
    assert set(published_asset()["properties"]) - {"$schema"} == names == set(WHOLE)


def test_what_is_written_is_read_again() -> None:
    """All fields, in bytes that do not depend on the order or the form of the file."""
    found = parse_asset_file(json.dumps(WHOLE).encode(), source="x")
    backwards = dict(reversed(WHOLE.items())) | {"$schema": "asset.schema.json", "revision": 3.0}

    assert found.to_api() == WHOLE
    assert parse_asset_file(found.to_json(), source="x") == found
    again = parse_asset_file(json.dumps(backwards).encode(), source="x")
    assert again.to_json() == found.to_json()


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"revision": 0}, "revision: expected an integer of at least 1, found 0"),
        ({"revision": True}, "revision: expected an integer of at least 1, found true"),
        ({}, "(file): no 'revision'"),
        ({"revision": 1, "owner": "a\nb"}, "owner: expected one line of 1 to 200 characters"),
        ({"revision": 1, "classification": "secret"}, "classification: expected public, internal"),
        ({"revision": 1, "consumers": ["user:a@x.org", "b@x.org"]}, "consumers[1]: expected user:"),
        ({"revision": 1, "consumers": ["user:a@x.org\n"]}, "consumers[0]: expected user:"),
        ({"revision": 1, "consumers": ["allUsers"]}, "consumers[0]: expected user:"),
        ({"revision": 1, "producers": ["domain:x.org"] * 2}, "producers: expected at most 200"),
        ({"revision": 1, "retention_days": 0}, "retention_days: expected an integer from 1 to"),
        ({"revision": 1, "share": 1.5}, "share: expected a number from 0 to 1, found 1.5"),
        ({"revision": 1, "max_bad_fraction": "1%"}, "max_bad_fraction: expected a number from 0"),
        ({"revision": 1, "notify": ["ftp://x.org"]}, "notify[0]: expected an http:// or https://"),
        ({"revision": 1, "notify": ["https://u:p@x.org/"]}, "notify[0]: expected an http://"),
        ({"revision": 1, "Owner": "me"}, "'Owner': unknown field; did you mean 'owner'?"),
        ({"revision": 1, "size": 1}, "'size': unknown field; known are $schema, revision, owner"),
        ([], "(file): expected object, found []"),
        (b'{"revision": 1, "revision": 2}', "(file): the key 'revision' stands twice"),
        (b'{"revision": NaN}', "(file): NaN is not JSON"),
        (b"{", "(file): Expecting property name"),
        (b"\xff", "(file): 'utf-8' codec"),
        (b"[" * 100_000, "(file): nested too deeply"),
    ],
)
def test_each_problem_is_told_with_its_path(found: object, told: str) -> None:
    """In a sentence that says what was expected."""
    (sentence,) = problems(found)
    assert sentence.startswith(told)


@pytest.mark.parametrize(
    "notify",
    [
        ["https://user:t0ken@x.org/t0ken"],
        ["ftp://x.org/t0ken?key=t0ken"],
        ["t0ken"],
        ["https://x.org/t0ken"] * 2,
        [{"t0ken": "t0ken"}],
        "https://x.org/t0ken",
    ],
)
def test_a_wrong_address_is_told_without_what_may_be_a_token(notify: object) -> None:
    """The sentence goes to logs of agents and loaders, which more people read than the file."""
    (sentence,) = problems({"revision": 1, "notify": notify})
    assert sentence.startswith("notify")
    assert "t0ken" not in sentence


def test_all_problems_are_told_at_once() -> None:
    """One sentence each."""
    told = problems({"revision": "2", "share": -1, "consumers": ["x", 5], "size": 1})
    assert [line.partition(":")[0] for line in told] == [
        "'size'",
        "consumers[0]",
        "consumers[1]",
        "revision",
        "share",
    ]


def assets(**by_datatype: Asset) -> Assets:
    """Return assets of one experiment; `exp` is its own, other names are its datatypes."""
    return Assets((PLACE, "" if name == "exp" else name, one) for name, one in by_datatype.items())


def test_the_more_exact_asset_wins_field_by_field() -> None:
    """An empty list is something said; a field that nobody gives is None."""
    found = assets(
        exp=asset(owner="ops", consumers=["domain:x.org"], share=0.5),
        foo1=asset(revision=7, consumers=[], share=0.1),
    )
    merged = found.of("exp", "foo1")
    assert (merged.owner, merged.consumers, merged.share) == ("ops", (), 0.1)
    assert (merged.retention_days, merged.revision) == (None, 7)
    assert found.of("exp", "bar1").share == 0.5
    assert found.of("other", "foo1") == Asset()
    assert found.of("exp", "foo1", "org") == Asset()


def test_of_several_buckets_the_newest_asset_counts() -> None:
    """In whichever order they are read."""
    old, new = asset(owner="old"), asset(revision=2, owner="new")
    for one, other in ((old, new), (new, old)):
        assert Assets([(PLACE, "", one), (PLACE, "", other)]).of("exp").owner == "new"


@pytest.mark.parametrize(
    ("of_experiment", "of_foo1", "kept"),
    [(None, None, None), (30, None, 30), (30, 90, 90), (30, 10, 30), (None, 90, None)],
)
def test_jostlers_own_datatypes_are_kept_as_long_as_any_other(
    of_experiment: int | None, of_foo1: int | None, kept: int | None
) -> None:
    """Their rows are about all of them; the experiment's description is not about them."""
    given_days = {
        name: asset(description=f"about {name}", **({"retention_days": days} if days else {}))
        for name, days in (("exp", of_experiment), ("foo1", of_foo1))
    }
    found = assets(**given_days).of("exp", "index1")
    assert (found.retention_days, found.description) == (kept, None)
    own = assets(**given_days, index1=asset(retention_days=5, description="mine"))
    assert own.of("exp", "index1").retention_days == 5
    assert own.of("exp", "index1").description == "mine"


experiments = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,9}", fullmatch=True).filter(
    lambda name: name not in {"tables", "schemas", "assets"}
)


@given(experiments, st.just("") | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]*", fullmatch=True))
def test_the_name_of_an_asset_is_read_again(experiment: str, datatype: str) -> None:
    """In both layouts."""
    for data_dir, organization in (("autoload/v1", ""), ("a/autoload/v2", "org1")):
        place = Place(data_dir=data_dir, organization=organization, experiment=experiment)
        assert parse_asset(place.asset(datatype)) == (place, datatype)


@pytest.mark.parametrize(
    "name",
    [
        "autoload/v1/assets/exp.foo1.bar1.json",
        "autoload/v1/assets/exp..json",
        "autoload/v1/assets/exp",
        "autoload/v1/assets/.json",
        "autoload/v1/assets/org/exp.json",
        "autoload/v2/assets/exp.json",
        "autoload/v1/tables/exp.json",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    """What no asset is called."""
    with pytest.raises(ValueError, match=r"name|autoload"):
        parse_asset(name)
