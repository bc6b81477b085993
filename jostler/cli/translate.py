"""The command `jostler translate`: show what a translation expression makes of a path.

**Invariant:** it reads nothing but its arguments.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jostler.cli.flags import HELP, parse, usage
from jostler.format.translation import Translation
from jostler.words import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

ABOUT = """jostler translate shows what an expression of -index-field makes of a file's path.

usage: jostler translate EXPRESSION PATH

EXPRESSION is REGEX~FORMAT: a regular expression with named groups, which must match the beginning
of PATH, and a text with {group}.  PATH is a Filename, <yyyy>/<mm>/<dd>/<name>.  For example

  jostler translate '.*/(?P<job>[^-]+)-~{job}' 2026/01/02/job7-a.json

shows job7.  Exit status: 0, or 2 with the reason if it cannot be done.

flags:
"""
FLAGS = (HELP,)
MISUSED = 2
_WORDS = ("EXPRESSION", "PATH")


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    parsed = parse(FLAGS, argv, os.environ, most_words=len(_WORDS))
    if parsed.values["help"]:
        sys.stdout.write(ABOUT + usage(FLAGS) + "\n")
        return 0
    missing = _WORDS[len(parsed.words) :]
    problems = [*parsed.problems, *(f"{name}: required" for name in missing)]
    if not problems:
        expression, path = parsed.words
        try:
            made = Translation.parse(expression).of(path)
        except ValueError as exc:
            problems = [str(exc)]
        else:
            sys.stdout.write(f"{shown(made)}\n")
            return 0
    sys.stderr.writelines(f"jostler translate: {shown(problem)}\n" for problem in problems)
    return MISUSED
