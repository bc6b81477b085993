"""The TOML file that sets flags of the commands that read an archive.

**Invariant:** a key that is no such flag is an error, so a mistyped one does not go unseen.  What
the command line or the environment sets, the file does not change.

    bucket = "archive-example"
    experiment = "ndt"
    datatype = ["ndt7", "annotation2"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.cli.commands import meant
from jostler.cli.flags import Parsed, parse, variable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostler.cli.flags import Flag

FILE = "jostler/archive.toml"


def parse_with_file(
    table: Sequence[Flag],
    allowed: Sequence[Flag],
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    most_words: int,
) -> Parsed:
    """Read flags: from the command line, else the environment, else the file, else defaults.

    Args:
        table: the known flags; `config` names the file.
        allowed: the flags that the file may set, also if the command does not have them.
        argv: without the program's name.
        environ: the environment variables.
        most_words: how many arguments without a dash are allowed.
    """
    parsed = parse(table, argv, environ, most_words=most_words)
    given = parsed.values["config"]
    path = Path(given) if given else default_path(environ)
    found, problems = _read(path, allowed, required=bool(given))
    if problems:
        parsed.problems.extend(problems)
        return parsed
    # A value of the file stands where its variable would, if no variable of the flag is set.
    lines = {
        variable(flag.name): text
        for flag in allowed
        if (text := found.get(flag.name)) is not None
        and not any(environ.get(name) for name in flag.variables)
    }
    merged = parse(table, argv, {**environ, **lines}, most_words=most_words)
    sources = {variable(flag.name): f"{path}: {flag.name}" for flag in allowed}
    for number, problem in enumerate(merged.problems):
        name, colon, rest = problem.partition(": ")
        if name in lines:
            merged.problems[number] = f"{sources[name]}{colon}{rest}"
    return merged


def default_path(environ: Mapping[str, str]) -> Path:
    """Return the file's path in the user's configuration directory."""
    given = environ.get("XDG_CONFIG_HOME", "")
    home = Path(given) if given.startswith("/") else Path(environ.get("HOME") or "/") / ".config"
    return home / FILE


def _read(
    path: Path, allowed: Sequence[Flag], *, required: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the values by flag as text, and what is wrong with the file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"-config: there is no file {path}"] if required else []
    except PermissionError as exc:
        return {}, [f"-config: {path}: {exc.strerror}"] if required else []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        return {}, [f"-config: {path}: {exc}"]
    by_name = {name: flag for flag in allowed for name in (flag.name, *flag.aliases)}
    found: dict[str, str] = {}
    problems = []
    for key, value in document.items():
        flag = by_name.get(key)
        text = _text(value)
        if flag is None:
            problems.append(f"{path}: {key}: there is no such key{meant(key, by_name)}")
        elif text is None:
            problems.append(f"{path}: {key}: expected a text, a number, or a list of texts")
        else:
            found[flag.name] = text
    return found, problems


def _text(value: object) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case list() if all(isinstance(one, str) for one in value):
            return ",".join(value)
    return None
