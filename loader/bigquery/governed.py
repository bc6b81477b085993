"""What assets say of tables and datasets, compared with what BigQuery has.

**Invariant:** a property that an asset says nothing of is left as it is, unless jostler had set it:
the label `jostler-asset` says which properties these are.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loader.bigquery.readers import ReadersChange, change_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.cloud import bigquery

    from jostler.schema import Asset
    from loader.bigquery.warehouse import Json

MARK = "jostler-asset"
NOTHING_SET = "none"
DESCRIPTION, EXPIRATION, OWNER, CLASSIFICATION = (
    "description",
    "expiration",
    "owner",
    "classification",
)
LABELS = (OWNER, CLASSIFICATION)
DAY_MS = 86_400_000
LABEL_CHARACTERS = 63
LABEL_BYTES = 128  # of key and value ("Requirements for labels")
NEVER = 0
"""A number of days that means: partitions do not expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a table or dataset shall have.

    Attributes:
        known: whether there is an asset; without one, what an earlier one had set is taken back.
        description: None if nothing is said of it.
        plain_description: the description that it has without an asset.
        labels: owner and classification; None if nothing is said of one.
        days: how long partitions are kept, of a table; NEVER to keep them; None: nothing is said.
        by_option: whether `days` is from the command line: such an expiration stays when the option
            is no longer given.
        readers: members that shall be able to read, of a dataset.
    """

    known: bool
    description: str | None = None
    plain_description: str = ""
    labels: Mapping[str, str | None] = field(default_factory=dict)
    days: int | None = None
    by_option: bool = False
    readers: frozenset[str] = frozenset()


def labels_of(asset: Asset) -> dict[str, str | None]:
    """Return the labels that an asset asks for; None for what it does not say."""
    texts = {OWNER: asset.owner, CLASSIFICATION: asset.classification}
    return {key: None if text is None else label_value(text, key) for key, text in texts.items()}


def label_value(text: str, key: str = OWNER) -> str:
    """Write a text as the value of a label: `Network operations` becomes `network-operations`."""
    safe = "".join(char if char.isalnum() or char in "_-" else "-" for char in text.lower())
    data = safe[:LABEL_CHARACTERS].encode()[: LABEL_BYTES - len(key)]
    return data.decode(errors="ignore")


def table_changes(found: bigquery.Table, wish: Wish) -> Json:
    """Return the properties of a table that must change."""
    marked = _marked(found.labels)
    days = NEVER if wish.days is None and EXPIRATION in marked else wish.days
    changes = {
        **_described(found.description, wish, marked),
        **expiration_change(found, days),
    }
    return _labelled(changes, found.labels, wish, marked)


def expiration_change(found: bigquery.Table, days: int | None) -> Json:
    """Return how the partitioning must change, so that partitions are kept so many days.

    Args:
        found: the table.
        days: NEVER to keep them for ever; None to leave it as it is.
    """
    known = kept_days(found)
    if days is None or (days or float("inf")) == known:
        return {}
    spec = found.to_api_repr()["timePartitioning"]
    # Null removes the property; leaving it out would keep it.
    lifetime = str(days * DAY_MS) if days else None
    return {"timePartitioning": {**spec, "expirationMs": lifetime}}


def dataset_changes(found: bigquery.Dataset, wish: Wish) -> tuple[Json, ReadersChange | None]:
    """Return the properties of a dataset that must change, and what changes of its readers.

    Raises:
        SchemaError: there are more readers than can be remembered.
    """
    marked = _marked(found.labels)
    changes = _described(found.description, wish, marked)
    changes = _labelled(changes, found.labels, wish, marked)
    access = found.to_api_repr().get("access") or []
    readers = change_of(access, found.labels, wish.readers)
    if readers:
        changes["access"] = readers.access
        changes["labels"] = {**changes.get("labels", found.labels), **readers.labels}
    return changes, readers


def kept_days(found: bigquery.Table) -> float:
    """Return for how many days after its day a table keeps a partition; infinite: for ever."""
    partitioning = found.time_partitioning
    lifetime_ms = partitioning.expiration_ms if partitioning else None
    return int(lifetime_ms) / DAY_MS if lifetime_ms else float("inf")


def is_marked(labels: Mapping[str, str]) -> bool:
    """Return whether an asset was applied to a table or dataset."""
    return MARK in labels


def _marked(labels: Mapping[str, str]) -> frozenset[str]:
    """Return the properties that jostler has set by an asset."""
    return frozenset(labels.get(MARK, "").split("_"))


def _described(description: str | None, wish: Wish, marked: frozenset[str]) -> Json:
    wanted = description
    if wish.description is not None:
        wanted = wish.description
    elif DESCRIPTION in marked:
        wanted = wish.plain_description
    return {} if wanted == description else {"description": wanted}


def _labelled(changes: Json, labels: Mapping[str, str], wish: Wish, marked: frozenset[str]) -> Json:
    """Add the changes of labels: those of the asset, and the one that says what it has set."""
    wanted: dict[str, str | None] = {
        key: text
        for key, text in {key: wish.labels.get(key) for key in LABELS}.items()
        if text is not None or key in marked
    }
    by_asset = {key for key in LABELS if wish.labels.get(key) is not None}
    by_asset |= {DESCRIPTION} if wish.description is not None else set()
    by_asset |= {EXPIRATION} if wish.days and not wish.by_option else set()
    wanted[MARK] = ("_".join(sorted(by_asset)) or NOTHING_SET) if wish.known else None
    if all(labels.get(key) == text for key, text in wanted.items()):
        return changes
    return {**changes, "labels": {**labels, **wanted}}
