"""Readers of a dataset: only those that jostler added are ever removed, whatever was before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.bigquery.governed import label_value
from loader.bigquery.readers import MEMORY, MOST, change_of, entry_of
from loader.errors import SchemaError

OWNERS = {"role": "OWNER", "specialGroup": "projectOwners"}
VIEW = {"view": {"projectId": "p", "datasetId": "d", "tableId": "v"}}
PEOPLE = [
    *(f"user:{name}@x.org" for name in "abc"),
    "group:a@x.org",
    "serviceAccount:s@p.iam.gserviceaccount.com",
    "domain:x.org",
]


class Dataset:
    """A dataset's readers and labels, with what an administrator gave."""

    def __init__(self) -> None:
        self.access: list[dict[str, Any]] = [OWNERS, VIEW]
        self.labels: dict[str, str] = {"team": "x"}

    def apply(self, wanted: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        change = change_of(self.access, self.labels, wanted)
        if change is None:
            return (), ()
        self.access = change.access
        labels = {**self.labels, **change.labels}
        self.labels = {key: text for key, text in labels.items() if text is not None}
        return change.added, change.removed

    def names(self) -> set[str]:
        return {member for member in PEOPLE if entry_of(member) in self.access}


actions = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.sets(st.sampled_from(PEOPLE))),
        st.tuples(st.just("give"), st.sampled_from(PEOPLE)),
        st.tuples(st.just("take"), st.sampled_from(PEOPLE)),
    ),
    max_size=12,
)


@given(actions)
def test_what_an_administrator_gave_stays(steps: list[tuple[str, Any]]) -> None:
    """A model of who gave what: after each run readers are those wanted and those given."""
    dataset, by_hand, ours = Dataset(), set[str](), set[str]()
    for what, whom in steps:
        if what == "want":
            able = {member for member in PEOPLE if entry_of(member) in dataset.access}
            dataset.apply(whom)
            ours = {member for member in whom if member in ours or member not in able}
            assert dataset.names() == whom | by_hand
            assert dataset.apply(whom) == ((), ())
        elif what == "give" and entry_of(whom) not in dataset.access:
            dataset.access.append(entry_of(whom))
            # Whom jostler added, and somebody takes and gives again, cannot be told apart.
            by_hand |= {whom} - ours
        elif what == "take" and entry_of(whom) in dataset.access:
            dataset.access.remove(entry_of(whom))
            by_hand.discard(whom)
    dataset.apply(set())
    assert dataset.names() == by_hand
    assert dataset.labels == {"team": "x"}
    assert dataset.access[:2] == [OWNERS, VIEW]


def test_a_member_is_told_in_any_case_and_by_any_role_that_reads() -> None:
    """Who can read already is not added, and so never removed."""
    dataset = Dataset()
    dataset.access += [
        {"role": "READER", "userByEmail": "A@X.org"},
        {"role": "WRITER", "groupByEmail": "a@x.org"},
        {"role": "roles/bigquery.metadataViewer", "domain": "x.org"},
    ]
    before = list(dataset.access)
    assert dataset.apply({"user:a@x.org", "group:a@x.org"}) == ((), ())
    assert dataset.apply({"domain:x.org"}) == (("domain:x.org",), ())
    assert dataset.apply(set()) == ((), ("domain:x.org",))
    assert dataset.access == before


def test_many_readers_are_remembered_in_few_labels() -> None:
    """Within the limits of labels; one more is refused with a hint."""
    everybody = {f"user:u{n}@x.org" for n in range(MOST)}
    dataset = Dataset()
    dataset.apply(everybody)
    memory = {key: text for key, text in dataset.labels.items() if key.startswith(MEMORY)}
    assert len(memory) == 40
    assert all(len(text) <= 63 and text.isalnum() for text in memory.values())
    assert len(dataset.apply({"user:u7@x.org"})[1]) == MOST - 1
    assert list(dataset.labels) == ["team", MEMORY]
    with pytest.raises(SchemaError, match="201 consumers, at most 200"):
        dataset.apply({*everybody, "domain:x.org"})


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Network operations", "network-operations"),
        ("ops@x.org", "ops-x-org"),
        ("Équipe", "équipe"),
        ("x" * 70, "x" * 63),
        ("界" * 63, "界" * 41),
    ],
)
def test_an_owner_becomes_a_label(text: str, label: str) -> None:
    """Lower-case letters, digits, dashes; at most 63 characters and 128 bytes with the key."""
    assert label_value(text) == label
