"""Names: what is written is also read, and nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.format import names
from jostler.format import nodes as node_names
from jostler.format.names import BundleName, Day, Kind, Place

words = st.from_regex(r"[A-Za-z0-9_]{1,12}", fullmatch=True)
experiments = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,12}", fullmatch=True).filter(
    lambda text: text not in names.OWN_FOLDERS
)
organizations = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True).filter(
    lambda text: text not in names.OWN_FOLDERS
)
nodes = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)
days = st.dates(date(2000, 1, 1), date(2099, 12, 31)).map(Day)
instants = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001 - made aware
    lambda when: when.replace(tzinfo=UTC)
)
places = st.one_of(
    st.builds(
        Place, data_dir=st.just("autoload/v1"), organization=st.just(""), experiment=experiments
    ),
    st.builds(
        Place,
        data_dir=st.sampled_from(["autoload/v2", "some/where/autoload/v2"]),
        organization=organizations,
        experiment=experiments,
    ),
)


@given(
    st.builds(
        BundleName,
        place=places,
        datatype=words.filter(lambda text: text != names.INDEX),
        day=days,
        created=instants,
        node=nodes,
        kind=st.sampled_from(Kind),
    )
)
def test_a_bundle_name_parses_back_into_its_parts(name: BundleName) -> None:
    """Whatever is written is read back the same, dashes in node and experiment included."""
    assert BundleName.parse(str(name)) == name
    if name.kind is Kind.DATA and not name.is_merged:
        assert names.parse_token_filters(name.token_filters) == name


@pytest.mark.parametrize(
    "name",
    [
        "autoload/v1/tokens/exp/foo1/2026/01/02/20260102T000000.000000Z-foo1-n1-exp-data.bloom",
        "autoload/v1/tokens/exp/foo1/2026/01/02/20260102T000000.000000Z-foo1-n1-other-tokens.bloom",
        "autoload/v1/exp/foo1/2026/01/02/20260102T000000.000000Z-foo1-n1-exp-tokens.bloom",
        "autoload/v1/tokens/exp/index1/2026/01/02/20260102T000000.000000Z-foo1-n1-exp-tokens.bloom",
    ],
)
def test_what_is_no_name_of_token_filters_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of"):
        names.parse_token_filters(name)


def test_a_datatype_with_dashes_is_read_from_the_folder_of_a_bundle() -> None:
    """The Go agent takes such names; data bundle and index are still told to be a pair."""
    stamp = "20220929T010203.000004Z-my-type-mlab1-lga01-ndt"
    data = BundleName.parse(f"autoload/v1/ndt/my-type/2022/09/28/{stamp}-data.jsonl.gz")
    index = BundleName.parse(f"autoload/v1/ndt/index1/2022/09/28/{stamp}-index1.jsonl.gz")

    assert (data.datatype, data.node) == ("my-type", "mlab1-lga01")
    assert data.place.table_schema("my-type") == "autoload/v1/tables/ndt/my-type.table.json"
    assert data.pair == index.pair
    with pytest.raises(ValueError, match="not a datatype name"):
        names.check_datatype("my-type")


@given(st.text())
def test_what_is_no_bundle_name_is_refused(text: str) -> None:
    """Any text either is refused or is exactly what would be written."""
    try:
        parsed = BundleName.parse(text)
    except ValueError:
        return
    assert str(parsed) == text


def test_names_are_those_of_the_written_format() -> None:
    """The names of DESIGN stand here letter by letter."""
    place = Place(data_dir="autoload/v2", organization="org1", experiment="ndt")
    created = datetime(2022, 9, 29, 1, 2, 3, 4, tzinfo=UTC)
    day = Day.parse("2022/09/28")
    args = {"place": place, "datatype": "ndt7", "day": day, "created": created}
    data = BundleName(**args, node="mlab1-lga01", kind=Kind.DATA)  # type: ignore[arg-type]
    index = BundleName(**args, node="mlab1-lga01", kind=Kind.INDEX)  # type: ignore[arg-type]
    stamp = "20220929T010203.000004Z-ndt7-mlab1-lga01-ndt"

    assert str(data) == f"autoload/v2/org1/ndt/ndt7/2022/09/28/{stamp}-data.jsonl.gz"
    assert str(index) == f"autoload/v2/org1/ndt/index1/2022/09/28/{stamp}-index1.jsonl.gz"
    assert place.table_schema("ndt7") == "autoload/v2/tables/ndt/ndt7.table.json"


@pytest.mark.parametrize(
    ("host", "node"),
    [
        ("mlab1.lga01.measurement-lab.org", "mlab1-lga01"),
        ("ndt-iupui-mlab1-lga01.measurement-lab.org", "mlab1-lga01"),
        ("ndt.iupui.mlab1.lga01.measurement-lab.org", "mlab1-lga01"),
        ("mlab1-lga01.mlab-oti.measurement-lab.org", "mlab1-lga01"),
        ("mlab4d-lga0t.mlab-sandbox.measurement-lab.org", "mlab4d-lga0t"),
        ("ndt-mlab1-lga01.mlab-oti.measurement-lab.org-d9h6", "mlab1-lga01"),
        ("lga3356-c89ffeef.rnp.autojoin.measurement-lab.org", "c89ffeef-lga3356"),
        ("ndt-lga3356-040e9f4b.mlab.sandbox.measurement-lab.org", "040e9f4b-lga3356"),
        ("third-party", "third-party"),
    ],
)
def test_an_mlab_host_name_is_shortened_to_machine_and_site(host: str, node: str) -> None:
    """Each of the three generations, with service, suffix or neither."""
    assert node_names.mlab_node(host) == node


@pytest.mark.parametrize(
    "host",
    ["", "example.org", "mlab5.lga01.measurement-lab.org", "mlab1.lga01.measurement-lab.org.evil"],
)
def test_other_host_names_are_refused(host: str) -> None:
    """A name of no generation is a clear error."""
    with pytest.raises(ValueError, match="not an M-Lab host name"):
        node_names.mlab_node(host)


@given(st.text())
def test_any_node_name_can_be_made_safe_or_is_refused(text: str) -> None:
    """What comes out can stand in an object name and stays as it is when done again."""
    try:
        safe = node_names.safe_node(text)
    except ValueError:
        return
    assert node_names.safe_node(safe) == safe
    assert not set(safe) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


@pytest.mark.parametrize(
    ("filename", "reason"),
    [
        ("x.json", "lies in no"),
        ("2022/09/x.json", "not yyyy/mm/dd"),
        ("2022/02/30/x.json", "not a day of the calendar"),
        ("1999/12/31/x.json", "2000 to 2099"),
        ("2100/01/01/x.json", "2000 to 2099"),
        ("2022/09/29/h/x.json", "not yyyy/mm/dd"),
        ("2022/09/29/a b.json", "character outside"),
        ("2022/09/29/a\n.json", "character outside"),
        ("2022/09/29/é.json", "character outside"),
        ("2022/09/29/a..json", "contains '..'"),
        ("2022/9/29/x.json", "not yyyy/mm/dd"),
        ("\u0662\u0660\u0662\u0662/09/29/x.json", "not yyyy/mm/dd"),
    ],
)
def test_a_path_outside_the_rules_is_refused_with_its_reason(filename: str, reason: str) -> None:
    """Depth, calendar, range of years and characters each have their own words."""
    with pytest.raises(ValueError, match=reason):
        names.parse_file(filename)


def test_a_path_within_the_rules_is_split_into_day_and_name() -> None:
    """The day is the directory's."""
    assert names.parse_file("2022/09/29/a:b_c-1.2.json") == (
        Day(date(2022, 9, 29)),
        "a:b_c-1.2.json",
    )


@pytest.mark.parametrize(
    ("data_dir", "organization"),
    [("autoload/v1", "org"), ("autoload/v2", ""), ("autoload/v3", ""), ("autoload/v2", "Org")],
)
def test_organization_and_version_must_fit(data_dir: str, organization: str) -> None:
    """v2 wants an organization, v1 forbids it, others do not exist."""
    with pytest.raises(ValueError, match=r"organization|neither"):
        Place(data_dir=data_dir, organization=organization, experiment="e")
