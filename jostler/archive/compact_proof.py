"""Merge bundles, and prove that what was made holds each of their rows.

**Invariant:** a merged bundle is returned only if it reads as good as an audit wants it, has the
rows that were planned in their order, and each input is what its index says, to the last row.

A row that comes into the result is hashed once, there: the Hash of its index row there is that of
the input's, so a row that differs is found.  What is damaged is then said by merging once more,
with each row compared as it is read.  Where rows are left out, no result shows theirs, so all are
compared at once.

Pure.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from jostler.archive.audit.proof import proven
from jostler.archive.compact_merge import holds, merge
from jostler.archive.compact_rows import InputError
from jostler.errors import DamageError
from jostler.format.compression import FAST
from jostler.format.names import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.compact_input import Input
    from jostler.archive.compact_merge import Merged, Planned
    from jostler.archive.compact_plan import Group
    from jostler.format.compression import Compression


def proven_merge(
    group: Group,
    inputs: Sequence[Input],
    plan: Planned,
    *,
    bucket: str,
    version: str,
    compression: Compression = FAST,
) -> Merged:
    """Merge bundles of a group; arguments are those of `merge`.

    Raises:
        DamagedInputError: an input is not what its index says.
        DamageError: merging made another bundle than it was to make.
    """
    made_of = partial(
        merge, group, inputs, plan, bucket=bucket, version=version, compression=compression
    )
    if len(plan.order) == sum(one.rows for one in inputs):  # none is left out
        made = made_of(compare=False)
        with suppress(DamageError):
            _prove(group, plan, made, bucket)
            return made
    made = made_of()
    _prove(group, plan, made, bucket)
    return made


def _prove(group: Group, plan: Planned, made: Merged, bucket: str) -> None:
    """Read each row of a merged bundle as an audit does.

    Raises:
        DamageError: index and data disagree, or it has not the rows that were planned.
    """
    name, data, index = made.name, made.data.data, made.index.data
    proof = proven(name, bucket, data, replace(name, kind=Kind.INDEX), index)
    try:  # if not proven: rejected files, whose Hash is of something else
        is_as_planned = (
            plan.order.is_order_of(proof)
            if proof
            else holds(group, name, data, index) == tuple(plan.order.identities())
        )
    except InputError as exc:
        raise DamageError(f"{name}: merging made another bundle than its index: {exc}") from exc
    if not is_as_planned:
        raise DamageError(f"{name}: merging made other rows than it was to make")
