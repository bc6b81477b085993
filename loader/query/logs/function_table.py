"""What a function is: how many arguments it takes, and how its SQL is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.logs.arguments import Arguments
    from loader.query.logs.values import Value

MANY = 100
"""The most arguments of a function that takes any number of them."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or operator.

    Attributes:
        compile: makes the SQL of a call.
        least: number of arguments, at least.
        most: number of arguments, at most.
    """

    compile: Callable[[Arguments], Value]
    least: int = 1
    most: int = 1

    def __call__(self, args: Arguments) -> Value:
        """Compile a call.

        Raises:
            QueryError: the arguments do not fit.
        """
        if self.least <= len(args) <= self.most:
            return self.compile(args)
        call = args.call
        wanted = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        wanted = f"{self.least} or more" if self.most == MANY and len(args) < self.least else wanted
        what = f"{call.name}: expected {wanted} arguments, found {len(args)}"
        raise QueryError(Code.ARGUMENT, what, call.start, call.end)
