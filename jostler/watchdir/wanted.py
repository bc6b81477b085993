"""Which names matter.

**Invariant:** a name that starts with a dot is never wanted, as a file or as a directory; that
also hides what the agent itself keeps below a root.  Only names are judged here, nothing is read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names to report and the directories to enter.

    Attributes:
        extensions: what a file's name may end with, such as `(".json",)`.
    """

    extensions: tuple[str, ...]

    def file(self, name: str) -> bool:
        """Say whether a file of this name is reported."""
        return name.endswith(self.extensions) and not name.startswith(".")

    def directory(self, name: str) -> bool:
        """Say whether a directory of this name is entered."""
        return not name.startswith(".")

    def below(self, relative: str) -> bool:
        """Say whether no part of a path below a root is hidden."""
        return not any(part.startswith(".") for part in relative.split("/"))
