"""Decide which changes of a table's schema are allowed: new columns, and REQUIRED to NULLABLE.

**Invariant:** every row that fits the old schema fits the merged one.

Any other change is an error with BigQuery's message.  Source: "Modifying table schemas".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from embedded.model.errors import invalid

if TYPE_CHECKING:
    from embedded.model.errors import ApiError
    from embedded.model.fields import Field

Fields = tuple["Field", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes that an operation may make to a table's schema.

    Args:
        table: the table's name, for messages.
        add: whether fields may be added; a load needs ALLOW_FIELD_ADDITION.
        relax: whether REQUIRED may become NULLABLE; a load needs ALLOW_FIELD_RELAXATION.
        in_order: whether old fields must keep their positions; a load matches fields by name.
    """

    table: str
    add: bool = True
    relax: bool = True
    in_order: bool = True

    def merged(self, old: Fields, new: Fields) -> Fields:
        """Return the schema after the change, old fields first and in their old order.

        Raises:
            ApiError: BigQuery does not allow the change.
        """
        return self._merge(old, new, "")

    def _merge(self, old: Fields, new: Fields, path: str) -> Fields:
        offered = {field.name.lower(): field for field in new}
        kept = []
        for field in old:
            after = offered.pop(field.name.lower(), None)
            if after is None:
                raise self._refusal(f"Field {path}{field.name} is missing in new schema")
            kept.append(self._merge_field(field, after, path + field.name))
        self._check_places(old, new, path)
        for field in offered.values():
            if not self.add:
                raise self._refusal(f"Cannot add fields (field: {path}{field.name})")
            if field.mode == "REQUIRED":
                raise self._refusal(
                    f"Cannot add required fields to an existing schema. (field: {path}{field.name})"
                )
            if field.default:  # "Specify default column values": add it, then set its default
                raise self._refusal(
                    f"Cannot add fields with a default value (field: {path}{field.name})"
                )
        return (*kept, *offered.values())

    def _check_places(self, old: Fields, new: Fields, path: str) -> None:
        if not self.in_order:
            return
        for before, after in zip(old, new, strict=False):
            if before.name.lower() != after.name.lower():
                raise self._refusal(
                    f"Fields can be added at the end only (field: {path}{after.name}, "
                    f"expected: {path}{before.name})"
                )

    def _merge_field(self, old: Field, new: Field, path: str) -> Field:
        if old.type != new.type:
            raise self._refusal(f"Field {path} has changed type from {old.type} to {new.type}")
        relaxed = (old.mode, new.mode) == ("REQUIRED", "NULLABLE")
        if old.mode != new.mode and not (relaxed and self.relax):
            raise self._refusal(f"Field {path} has changed mode from {old.mode} to {new.mode}")
        if (old.max_length, old.precision, old.scale) != (
            new.max_length,
            new.precision,
            new.scale,
        ):
            raise self._refusal(f"Field {path} has changed its type parameters")
        return replace(
            old,
            mode=new.mode,
            description=new.description if self.in_order else old.description or new.description,
            default=new.default if self.in_order else old.default,
            fields=self._merge(old.fields, new.fields, f"{path}."),
        )

    def _refusal(self, what: str) -> ApiError:
        return invalid(f"Provided Schema does not match Table {self.table}. {what}")
