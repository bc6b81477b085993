"""Apply assets to BigQuery: descriptions, labels, readers, the expiration of partitions.

**Invariant:** what does not differ is not written.  A failure is a problem of one table or dataset,
and stops no load.  Of an experiment with an asset that cannot be read nothing is changed.

Datasets come first: a table's label says that its experiment had an asset, and goes last.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostler.format.bigquery_names import Naming, TableName, table_name, view_name
from jostler.format.names import Place
from jostler.schema import Asset
from loader.bigquery import tables
from loader.bigquery.governed import (
    Wish,
    dataset_changes,
    expiration_change,
    is_marked,
    labels_of,
    table_changes,
)
from loader.bigquery.views import VIEWS
from loader.errors import SchemaError, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from google.cloud import bigquery

    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Warehouse
    from loader.cli.console import Console
    from loader.cli.options import Options
    from loader.plan.assets import RunAssets
    from loader.plan.discover import Table

    Owned = tuple[str, str]

THREADS = 8
RACES_MAX = 10
INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """A dataset, and whose tables or views it has.

    Attributes:
        name: project and dataset.
        owned: organization and experiment of each.
        one: whether it is of one experiment by its name, so that what is said of that is said of
            the dataset, too.
        plain_description: the description that it was made with.
    """

    name: tuple[str, str]
    owned: frozenset[Owned]
    one: bool
    plain_description: str


class Governance:
    """Applies the assets of a run.

    Args:
        warehouse: the BigQuery project.
        assets: what is said of experiments and datatypes.
        options: names of tables and views, and whether assets are applied; if they are not, only
            the expirations of the command line are.
        console: shows what was changed.
        problem: is told of what could not be applied, and why.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        assets: RunAssets,
        options: Options,
        *,
        console: Console,
        problem: Callable[[str, str], None],
    ) -> None:
        self._warehouse = warehouse
        self._assets = assets
        self._options = options
        self._console = console
        self._problem = problem

    def apply(self, found: Iterable[Table], ready: Mapping[str, Ready]) -> dict[str, Ready]:
        """Apply the assets to tables and their datasets; return the tables that changed.

        Args:
            found: tables that are ready.
            ready: what is known of each, by name.
        """
        found = list(found)
        certain = [table for table in found if self._is_certain(table)]
        concerned = {
            _owned(table.place)
            for table in certain
            if self._assets.all.has(*_owned(table.place))
            or is_marked(ready[str(table.name)].found.labels)
        }
        with ThreadPoolExecutor(THREADS, thread_name_prefix="asset") as pool:
            datasets = [one for one in self._datasets(certain) if one.owned & concerned]
            failed: set[Owned] = set()
            for one, done in zip(datasets, pool.map(self._dataset, datasets), strict=True):
                failed |= frozenset() if done else one.owned
            work = [(table, ready[str(table.name)]) for table in found]
            changed = pool.map(
                lambda one: self._table(*one, keep=_owned(one[0].place) in failed), work
            )
            return {
                str(table.name): after
                for (table, before), after in zip(work, changed, strict=True)
                if after is not before
            }

    def _is_certain(self, table: Table) -> bool:
        """Return whether all assets of a table's experiment are known, and are to be applied."""
        return self._options.applies_assets and _owned(table.place) not in self._assets.unread

    # Tables

    def _table(self, table: Table, ready: Ready, *, keep: bool) -> Ready:
        """Apply a table's asset; return what is known of the table then."""
        wish = self._wish(table)
        if keep and not wish.known:  # its label leads the next run to the dataset
            return ready
        found = ready.found
        try:
            for _ in range(RACES_MAX):
                if self._is_certain(table):
                    changes = table_changes(found, wish)
                else:
                    changes = expiration_change(found, wish.days if wish.by_option else None)
                if not changes:
                    return ready if found is ready.found else replace(ready, found=found)
                after = self._warehouse.change_table(found, changes)
                if after:
                    self._console.event(
                        "asset.applied", resource=str(table.name), what=sorted(changes)
                    )
                again = after or self._warehouse.get_table(table.name)
                if again is None:
                    return ready
                found = again
        except WarehouseError as exc:
            self._problem(str(table.name), f"its asset cannot be applied: {exc}")
        return ready

    def _wish(self, table: Table) -> Wish:
        asset = self._assets.of(table)
        days, by_option = self._assets.days_kept(table)
        return Wish(
            known=asset != Asset(),
            description=asset.description,
            plain_description=tables.description(table),
            labels=labels_of(asset),
            days=days,
            by_option=by_option,
        )

    # Datasets

    def _datasets(self, found: Iterable[Table]) -> list[Governed]:
        """Return the datasets of tables and views, each with all experiments that it is for."""
        owned: dict[tuple[str, str], set[Owned]] = defaultdict(set)
        plain: dict[tuple[str, str], str] = {}
        shared: set[tuple[str, str]] = set()
        for table in found:
            place = table.place
            for name, text in ((table.name, tables.DATASET), (table.view, VIEWS)):
                key = name.project, name.dataset
                owned[key].add(_owned(place))
                plain.setdefault(key, text)
            # Views of several organizations, or experiments, lie in one dataset.
            if place.organization or self._options.naming is Naming.THIRD_PARTY:
                shared.add((table.view.project, table.view.dataset))
        project = {name.project for name in (table.name for table in found)}
        for other in self._assets.all.experiments:
            for key in self._names(other, project) & owned.keys():
                owned[key].add(other)
        certain = {
            key: experiments
            for key, experiments in owned.items()
            if not experiments & self._assets.unread
        }
        return [
            Governed(
                name=key,
                owned=frozenset(experiments),
                one=key not in shared and len(experiments) == 1,
                plain_description=plain[key],
            )
            for key, experiments in sorted(certain.items())
        ]

    def _names(self, owned: Owned, projects: Iterable[str]) -> set[tuple[str, str]]:
        """Return the datasets that an experiment's tables and views lie in, if it has any."""
        organization, experiment = owned
        data_dir = "autoload/v2" if organization else "autoload/v1"
        place = Place(data_dir=data_dir, organization=organization, experiment=experiment)
        names: list[TableName] = []
        for project in projects:
            names.append(table_name(self._options.naming, project, place, ""))
            names += [
                view_name(
                    self._options.naming,
                    place,
                    "",
                    view_project=self._options.view_project,
                    project=project,
                    bucket=bucket,
                )
                for bucket in self._options.bucket
            ]
        return {(name.project, name.dataset) for name in names}

    def _dataset(self, one: Governed) -> bool:
        """Apply the assets of a dataset; say whether all of them could be."""
        text = ".".join(one.name)
        assets = self._assets.all
        asset = Asset()
        if one.one:
            ((organization, experiment),) = one.owned
            asset = assets.of(experiment, organization=organization)
        readers = frozenset[str]().union(*(assets.consumers(*owned) for owned in one.owned))
        wish = Wish(
            known=any(assets.has(*owned) for owned in one.owned),
            description=asset.description,
            plain_description=one.plain_description,
            labels=labels_of(asset),
            readers=readers,
        )
        try:
            self._settle(one.name, wish)
        except WarehouseError as exc:
            if exc.reason == INVALID and self._one_by_one(one.name, wish):
                return False
            self._problem(text, f"its asset cannot be applied: {exc}")
            return False
        except SchemaError as exc:
            self._problem(text, f"its asset cannot be applied: {exc}; {exc.hint}")
            return False
        return True

    def _one_by_one(self, name: tuple[str, str], wish: Wish) -> bool:
        """Add new readers alone, so that one who does not exist keeps no other away.

        Returns:
            Whether a reader was the reason why BigQuery refused.
        """
        text = ".".join(name)
        found = self._warehouse.get_dataset(*name)
        change = dataset_changes(found, wish)[1] if found else None
        new = change.added if change else ()
        well = wish.readers.difference(new)
        refused = False
        for member in ("", *new):
            try:
                self._settle(name, replace(wish, readers=well | ({member} - {""})))
                well |= {member} - {""}
            except WarehouseError as exc:
                if not member:
                    return False
                refused = True
                self._problem(text, f"{member} does not become a reader: {exc}")
        return refused

    def _settle(self, name: tuple[str, str], wish: Wish) -> None:
        """Change a dataset until it is as wished.

        Raises:
            WarehouseError: BigQuery refuses.
            SchemaError: too many readers are wished for.
        """
        for _ in range(RACES_MAX):
            found: bigquery.Dataset | None = self._warehouse.get_dataset(*name)
            if found is None:  # its tables failed
                return
            changes, readers = dataset_changes(found, wish)
            if not changes:
                return
            if self._warehouse.change_dataset(found, changes):
                self._console.event(
                    "asset.applied",
                    resource=".".join(name),
                    what=sorted(changes),
                    added=list(readers.added) if readers else [],
                    removed=list(readers.removed) if readers else [],
                )
                return


def _owned(place: Place) -> Owned:
    return place.organization, place.experiment
