"""Comparison of a table schema with the stored one: can BigQuery change the table accordingly?

**Invariant:** order of fields, missing modes, aliases of types, letter case of names, descriptions,
defaults and policy tags are ignored; every other difference counts.  `merged` keeps every stored
field in its place, so it is always compatible with existing tables.

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from jostler.schema.fields import Mode, spelled

if TYPE_CHECKING:
    from jostler.schema.fields import Field, Fields


class Relation(StrEnum):
    """How our schema relates to the stored one."""

    EQUAL = "equal"
    ADDITIONS = "additions"
    OLDER = "older"
    INCOMPATIBLE = "incompatible"


class Comparison(Struct, frozen=True, kw_only=True):
    """How our schema differs from the stored one; paths are dotted, `raw.Samples.RTT`.

    Attributes:
        relation: EQUAL; ADDITIONS: ours adds fields, so upload `merged`; OLDER: ours only lacks
            fields; or INCOMPATIBLE: there are conflicts.
        added: fields that only ours has; a new RECORD is listed without its fields.
        missing: fields that only the stored one has.
        relaxed: fields that are REQUIRED in the stored one and NULLABLE in ours.
        conflicts: sentences that name a field, both sides, and what BigQuery would allow.
    """

    relation: Relation
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def compare(stored: Fields, ours: Fields) -> Comparison:
    """Compare our schema with the stored one."""
    found = _Differences([], [], [], [])
    found.collect(stored, ours, "")
    if found.missing and (found.added or found.relaxed):
        found.conflicts.append(_at_once(found))
    return Comparison(
        relation=found.relation(),
        added=tuple(found.added),
        missing=tuple(found.missing),
        relaxed=tuple(found.relaxed),
        conflicts=tuple(found.conflicts),
    )


def merged(stored: Fields, ours: Fields) -> Fields:
    """Return the stored schema with our additions at the end of each level, as BigQuery adds them.

    A field that is REQUIRED there and NULLABLE in ours becomes NULLABLE.  Call this only if the
    relation is EQUAL or ADDITIONS.
    """
    mine = {field.key: field for field in ours}
    kept = tuple(_merged_field(old, mine[old.key]) if old.key in mine else old for old in stored)
    known = {field.key for field in stored}
    return kept + tuple(field for field in ours if field.key not in known)


def _merged_field(stored: Field, ours: Field) -> Field:
    return replace(
        stored,
        mode=ours.mode if ours.mode is Mode.NULLABLE else stored.mode,
        description=stored.description or ours.description,
        fields=merged(stored.fields, ours.fields),
    )


class _Differences(Struct):
    added: list[str]
    missing: list[str]
    relaxed: list[str]
    conflicts: list[str]

    def relation(self) -> Relation:
        if self.conflicts:
            return Relation.INCOMPATIBLE
        if self.added or self.relaxed:
            return Relation.ADDITIONS
        return Relation.OLDER if self.missing else Relation.EQUAL

    def collect(self, stored: Fields, ours: Fields, prefix: str) -> None:
        mine = {field.key: field for field in ours}
        for old in stored:
            path = prefix + old.name
            if new := mine.pop(old.key, None):
                self._pair(old, new, path)
            else:
                self.missing.append(path)
        for new in mine.values():
            self.added.append(prefix + new.name)
            if new.mode is Mode.REQUIRED:
                self.conflicts.append(
                    f"{prefix}{new.name}: stored has no such field, ours is REQUIRED; BigQuery adds"
                    " only NULLABLE or REPEATED fields to what exists"
                )

    def _pair(self, old: Field, new: Field, path: str) -> None:
        if old.mode is Mode.REQUIRED and new.mode is Mode.NULLABLE:
            self.relaxed.append(path)
        elif old.mode is not new.mode:
            self.conflicts.append(
                f"{path}: stored is {old.mode}, ours is {new.mode}; BigQuery's only change of mode"
                " is REQUIRED to NULLABLE"
            )
        if spelled(old) != spelled(new):
            self.conflicts.append(
                f"{path}: stored is {spelled(old)}, ours is {spelled(new)}; BigQuery changes no"
                f" type by loading: keep {spelled(old)} or add a field of another name"
            )
        elif old.type == "RECORD":
            self.collect(old.fields, new.fields, path + ".")


def _at_once(found: _Differences) -> str:
    new = [f"adds {', '.join(found.added)}"] if found.added else []
    new += [f"relaxes {', '.join(found.relaxed)}"] if found.relaxed else []
    return (
        f"{', '.join(found.missing)}: stored has this and ours lacks it, while ours"
        f" {' and '.join(new)}, as after a rename; BigQuery renames and drops no field by loading:"
        " keep the stored names beside the new ones"
    )
