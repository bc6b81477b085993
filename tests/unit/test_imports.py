"""Who may import whom: the rooms of the design, whose imports go down only."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EMBEDDED = tuple(
    f"embedded.{name}" for name in ("api", "jobs", "load", "sql", "store", "functions", "model")
)
ROOMS = (
    *(f"jostler.{name}" for name in ("cli", "agent", "archive", "producer")),
    *(f"jostler.{name}" for name in ("watchdir", "bundle", "schema", "storage", "web", "format")),
    *(f"loader.{name}" for name in ("cli", "query", "notify", "plan", "spark", "bigquery")),
    *EMBEDDED,
    *("jostler.why", "jostler", "loader", "embedded", "demo"),  # what lies beside the rooms
)


@cache
def room(module: str) -> str:
    """Return the room that a module lies in; nothing for one of another project."""
    return next((r for r in ROOMS if module == r or module.startswith(f"{r}.")), "")


def names(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports; of `from a import b`, b may be one."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module)):
            return [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return []


class _AtRunTime(ast.NodeTransformer):
    """Drops what only a type checker imports."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        checked = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if checked else node


@dataclass(frozen=True)
class Imports:
    """For each room the rooms that it imports, each with a place where it does."""

    all: dict[str, dict[str, str]]
    at_run_time: dict[str, dict[str, str]]


@cache  # not at the top of the module: each worker of a run imports it, and one runs its tests
def imports() -> Imports:
    """Read all modules of the project."""
    found = Imports({name: {} for name in ROOMS}, {name: {} for name in ROOMS})
    for top in ("jostler", "loader", "embedded"):
        for path in (ROOT / top).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            tree = ast.parse(path.read_text())
            collect(tree, path, found.all[room(module)], room(module))
            run = _AtRunTime().visit(tree)
            collect(run, path, found.at_run_time[room(module)], room(module))
    return found


def collect(tree: ast.AST, path: Path, found: dict[str, str], own: str) -> None:
    """Add the rooms that a module imports, but its own."""
    for node in ast.walk(tree):
        for other in {room(name) for name in names(node)} - {"", own}:
            found.setdefault(other, f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}")


def wrong(rooms: tuple[str, ...], forbidden: tuple[str, ...]) -> list[str]:
    """Return the imports out of some rooms into forbidden ones."""
    return [
        f"{where}: {name} imports {other}"
        for name in ROOMS
        if name.startswith(rooms)
        for other, where in imports().all[name].items()
        if other.startswith(forbidden)
    ]


@pytest.mark.parametrize(
    ("rooms", "forbidden"),
    [
        (("jostler",), ("loader", "embedded", "demo")),
        (("loader",), ("embedded", "demo", "jostler.cli", "jostler.agent", "jostler.bundle")),
        (("embedded",), ("jostler", "loader", "demo")),
        (("jostler.agent",), ("jostler.archive", "jostler.cli")),
        (("jostler.archive", "jostler.producer"), ("jostler.cli", "jostler.agent")),
        (("jostler.watchdir", "jostler.bundle", "jostler.schema"), ROOMS[:4]),
        (("jostler.storage", "jostler.web", "jostler.format"), ROOMS[:7]),
        (("jostler.format",), ("jostler.storage",)),
        (("embedded.jobs",), ("embedded.api",)),
        (("embedded.load", "embedded.sql"), ("embedded.api", "embedded.jobs")),
        (("embedded.store", "embedded.functions"), EMBEDDED[:4]),
        (("embedded.functions",), ("embedded.store",)),
        (("embedded.model",), EMBEDDED[:6]),
    ],
    ids=lambda names: names[0],
)
def test_imports_go_down_only(rooms: tuple[str, ...], forbidden: tuple[str, ...]) -> None:
    """From the edge to the contract, and never out of the package that is alone."""
    assert wrong(rooms, forbidden) == []


def test_the_loaders_rooms_do_not_import_its_command_line() -> None:
    """Where values and reports have their types is all that they know of it."""
    rooms = ("loader.notify", "loader.plan", "loader.spark", "loader.bigquery")
    assert [name for name in rooms if "loader.cli" in imports().at_run_time[name]] == []


@pytest.mark.parametrize(
    ("package", "types"), [("jostler.", True), ("loader.", False), ("embedded.", True)]
)
def test_no_two_rooms_import_each_other(package: str, types: bool) -> None:
    """Directly or around a corner; what lies beside the rooms is not looked at."""
    found = imports().all if types else imports().at_run_time
    rooms = {name: set(found[name]) for name in ROOMS if name.startswith(package)}
    while leaves := {name for name in rooms if not rooms[name] & rooms.keys()}:
        for name in leaves:
            del rooms[name]
    assert rooms == {}
