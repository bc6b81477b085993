"""The documents: what they list is what the code has, and what they show works."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.archive.audit.problem import Kind as ProblemKind
from jostler.cli import cat, fetch, latest, push, requeue, retrieve
from jostler.cli import list as list_command
from jostler.cli.archive_flags import COMMON, WHERE
from jostler.cli.flags import HELP
from jostler.cli.keeping_flags import AUDIT as AUDIT_FLAGS
from jostler.cli.keeping_flags import DELETE as DELETE_FLAGS
from jostler.cli.keeping_flags import PROJECT
from jostler.cli.keeping_flags import RETENTION as RETENTION_FLAGS
from jostler.cli.options import TABLE
from jostler.cli.producer_flags import FLAGS as OF_THE_AGENT
from jostler.cli.why_options import FLAGS as WHY_FLAGS
from jostler.format.row import DISK_LACK
from jostler.schema.flaw import Reason
from jostler.why.finding import State
from tests.support.bucket import url_of
from tests.support.spool import DAY, Spool, document

if TYPE_CHECKING:
    from jostler.cli.flags import Flag

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "docs/agent.md"
FORMAT = ROOT / "docs/format.md"
WHY = ROOT / "docs/why.md"
KEEPING = ROOT / "docs/keeping.md"
RUNBOOK = ROOT / "docs/runbook.md"
ARCHIVE = ROOT / "docs/archive.md"
PRODUCERS = ROOT / "docs/producers.md"
README = ROOT / "README.md"
PAGES = sorted([README, ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

LOGGING = {"debug", "info", "warning", "error", "exception", "warn", "_uncovered"}
EVENT_RE = re.compile(r"[a-z]+\.[a-z_]+")


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the last table below a heading."""
    section = page.read_text().split(f"\n{heading}\n", 1)[1]
    section = re.split(r"\n## ", section, maxsplit=1)[0]
    last = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[-1]
    rows = [line.strip("|").split("|") for line in last.splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def code(cell: str) -> list[str]:
    """Return what stands in backquotes in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@cache
def calls() -> list[ast.Call]:
    """Return every call in the agent's code."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "jostler").rglob("*.py")]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]


def constants(node: ast.AST) -> set[str]:
    """Return the texts that stand in an expression."""
    found = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return {value for value in found if isinstance(value, str)}


def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a home of its own, and the commands of this installation."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


def test_every_flag_of_the_archives_commands_is_described() -> None:
    """Where the archive is, with variables; and which files are meant, whichever command it is."""
    text = ARCHIVE.read_text().split("\n## Flags\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `-")]
    described = {name: code(row[1]) for row in rows for name in code(row[0])}
    for flag in WHERE:
        for name in (flag.name, *flag.aliases):
            assert described.pop(f"-{name}") == flag.variables
    own = {
        *(f"-{flag.name}" for flag in (*list_command.FLAGS, *latest.FLAGS, *cat.WHERE_FROM)),
        *(f"-{flag.name}" for flag in (*fetch.FLAGS, *retrieve.FLAGS, *COMMON)),
    }
    commands = ARCHIVE.read_text().split("\n## Flags\n")[0]
    assert set(described) <= own
    assert [name for name in own - set(described) - {"-help"} if name not in commands] == []


@pytest.mark.parametrize(
    ("heading", "flags"),
    [
        ("Audit", (*PROJECT, *AUDIT_FLAGS)),
        ("Delete", (*PROJECT, *DELETE_FLAGS)),
        ("Retention", (*PROJECT[:1], *RETENTION_FLAGS)),
    ],
)
def test_every_flag_and_kind_of_the_keepers_commands_is_described(
    heading: str, flags: tuple[Flag, ...]
) -> None:
    """Each flag in its section, and the default where it stands alone; each kind of problem."""
    section = KEEPING.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for flag in flags:
        assert f"`-{flag.name}`" in section, flag.name
        rows = [line for line in section.splitlines() if line.startswith(f"| `-{flag.name}` |")]
        assert not (rows and flag.default) or f"`{flag.default}`" in rows[0]
    for page, told in ((KEEPING, "## Audit"), (RUNBOOK, "## What an audit finds")):
        text = page.read_text().split(f"\n{told}\n", 1)[1].split("\n## ", 1)[0]
        named = {
            n for line in text.splitlines() if line[:3] == "| `" for n in code(line.split("|")[1])
        }
        assert {name for name in named if not name.startswith(("-", "--"))} == set(ProblemKind)


def test_every_flag_is_described() -> None:
    """With its aliases, the variables that set it, and nothing that is not there."""
    described = {
        tuple(code(flag)): code(variable) for flag, variable, *_ in table(AGENT, "## Flags")
    }
    expected = {
        tuple(f"-{name}" for name in (flag.name, *flag.aliases)): flag.variables for flag in TABLE
    }
    assert described == expected


@pytest.mark.parametrize("flag", TABLE, ids=lambda flag: flag.name)
def test_every_default_is_described(flag: Flag) -> None:
    """As -help shows it."""
    rows = table(AGENT, "## Flags")
    (default,) = [row[2] for row in rows if code(row[0])[0] == f"-{flag.name}"]
    if flag.default:
        assert default == f"`{flag.default}`"
    else:
        assert (
            default == "none" or default.endswith("required") or f"{code(default)[0]}" in flag.help
        )


def test_every_log_event_is_described() -> None:
    """And each event that is described is in the code."""
    written = {
        text
        for call in calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr in LOGGING and call.args
        for text in constants(call.args[0])
        if EVENT_RE.fullmatch(text)
    }
    assert len(written) > 20
    assert {code(row[0])[0] for row in table(AGENT, "## Log events")} == written


def test_every_flag_and_state_of_why_is_described() -> None:
    """Its own flags in a table with their defaults, those of the agent by name."""
    own = [flag for flag in WHY_FLAGS if flag is HELP or flag not in TABLE]
    rows = {name: row for row in table(WHY, "## Flags") for name in code(row[0])}
    assert set(rows) == {f"-{name}" for flag in own for name in (flag.name, *flag.aliases)}
    for flag in own:
        assert not flag.default or f"`{flag.default}`" in rows[f"-{flag.name}"][1]
    shared = WHY.read_text().split("Beside these, of the agent's", 1)[1].split("\n## ")[0]
    assert set(code(shared)) == {f"-{flag.name}" for flag in WHY_FLAGS if flag not in own}
    states = [code(row[0]) for row in table(WHY, "## States")]
    assert {name for names in states for name in names} == set(State)


def test_every_flag_of_push_and_requeue_is_described() -> None:
    """Their own in tables with their defaults, those of the agent and the archive by name."""
    of_push, of_requeue = PRODUCERS.read_text().split("\n## jostler requeue\n", 1)
    rows = [line.strip("|").split("|") for line in of_push.splitlines() if line[:4] == "| `-"]
    own = {name: row for row in rows for name in code(row[0])}
    own.pop("-")
    flags = [flag for flag in push.FLAGS if flag not in OF_THE_AGENT]
    assert set(own) == {f"-{name}" for flag in flags for name in (flag.name, *flag.aliases)}
    for flag in flags:
        assert not flag.default or f"`{flag.default}`" in own[f"-{flag.name}"][1]
    shared = of_push.split("Beside these, of the [agent's]", 1)[1].split(". `-datatype`")[0]
    assert set(code(shared)) == {f"-{flag.name}" for flag in OF_THE_AGENT}
    for flag in requeue.FLAGS:
        assert flag in OF_THE_AGENT or f"`-{flag.name}`" in of_requeue


def test_the_three_lines_of_python_put_a_document(tmp_path: Path) -> None:
    """As the page has them, but for the directory."""
    (lines,) = blocks(PRODUCERS, "python")
    assert len([line for line in lines.splitlines() if line]) == 3
    schema = tmp_path / "datatypes/speed1.json"
    schema.parent.mkdir()
    schema.write_text('[{"name": "Rate", "type": "FLOAT", "description": "Mbit/s."}]')
    found: dict[str, object] = {}
    exec(lines.replace("/var/spool", str(tmp_path)), found)
    path = found["path"]
    assert isinstance(path, Path)
    assert (path.read_bytes(), path.is_relative_to(tmp_path / "demo/speed1")) == (
        b'{"Rate":93.2}',
        True,
    )


def test_every_rejection_reason_is_described() -> None:
    """The judge's, the intake's and that of files given up, and no other."""
    given = {
        text
        for call in calls()
        if isinstance(call.func, ast.Name) and call.func.id == "Rejection"
        for keyword in call.keywords
        if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant)
        for text in constants(keyword.value)
    }
    assert {"path", "name", "empty", "too-big", "unreadable"} <= given
    assert {code(row[0])[0] for row in table(FORMAT, "## rejected1")} == given | set(Reason) | {
        DISK_LACK
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """To a file of the repository and, with a fragment, to a heading in it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not fragment or fragment in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the fragments that lead to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_one_row_is_read_by_the_program_in_the_page(tmp_path: Path) -> None:
    """From a bucket that the agent made, with blocks enough that it matters."""
    spool = Spool(tmp_path / "spool")
    for number in range(60):
        spool.write(f"m{number}.json", document(number, size=20_000))
    jostler(tmp_path, spool, url_of(tmp_path / "bucket"))
    program = tmp_path / "one_row.py"
    program.write_text(blocks(FORMAT, "python")[0])
    (index,) = (tmp_path / "bucket").rglob("*-index1.jsonl.gz")

    done = subprocess.run(
        [sys.executable, str(program), str(index), f"{DAY}/m42.json"],
        capture_output=True,
        check=True,
    )

    assert b'"raw":' + document(42, size=20_000) + b"}\n" in done.stdout
    assert done.stdout.count(b"\n") == 1


def jostler(tmp_path: Path, spool: Spool, bucket: str) -> None:
    """Run the agent once over a spool."""
    argv = [*("-gcs-bucket", bucket, "-node-name", "n", "-experiment", "exp", "-datatype", "foo1")]
    argv += ["-local-data-dir", str(spool.root), "-once", "-missed-age", "0s"]
    environ = environment(tmp_path)
    subprocess.run(["jostler", *argv], check=True, capture_output=True, env=environ)


def test_the_agent_can_be_tried_as_the_readme_says(tmp_path: Path) -> None:
    """The commands, pasted into a shell, show two rows and a rejected one."""
    (commands,) = [block for block in blocks(README, "sh") if "jostler verify" in block]

    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail"],
        input=commands,
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
        cwd=tmp_path,
    )

    assert "2 bundles, rows: 1 rejected1, 2 speed1; 0 problems" in done.stdout
    for words in ('"raw":{"Rate": 93.20}', '"raw":{"Rate": 1E2}', '"Reason":"wrong-type"'):
        assert words in done.stdout
    assert not list(tmp_path.rglob("spool/demo/speed1/2026/01/02/*"))


def test_the_architecture_names_modules_that_are_there() -> None:
    """Each path of the page is a module or a folder of this tree."""
    text = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"`((?:jostler|loader|tests)/[\w./]+)`", text))

    assert len(named) > 20
    found = [p for p in named if (ROOT / p).exists() or (ROOT / f"{p}.py").exists()]
    assert sorted(named - set(found)) == []
