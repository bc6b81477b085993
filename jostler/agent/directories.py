"""Create the datatypes' directories in the spool, at the start and whenever one is removed.

**Invariant:** a datatype's directory is not a symbolic link.  Whoever may write in the spool could
point a link anywhere, and the agent deletes the files that it has stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.errors import ConfigError
from jostler.log import Log

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.config import Config

log = Log("jostler.agent")

LOOK_EVERY_S = 1.0


class Directories:
    """Belongs to the agent's thread.

    Args:
        config: with the spool and the datatypes.
    """

    def __init__(self, config: Config) -> None:
        self._paths = [config.spool / datatype.name for datatype in config.datatypes]
        self._next_s = 0.0
        self._failing = False

    def make(self) -> None:
        """Make what is missing.

        Raises:
            ConfigError: a directory cannot be made, or a link stands in its place.
        """
        for path in self._paths:
            if path.is_symlink():
                raise ConfigError(
                    [f"-datatype: {path} is a symbolic link; make it a directory or a mount"]
                )
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                raise ConfigError([f"-local-data-dir: {exc}"]) from exc

    def keep(self, now_s: float) -> None:
        """Make again what was removed while the agent runs; services write there.

        Args:
            now_s: monotonic seconds.
        """
        if now_s < self._next_s:
            return
        self._next_s = now_s + LOOK_EVERY_S
        try:
            made = [path for path in self._paths if _made(path)]
        except OSError as exc:
            if not self._failing:
                log.error("spool.lost", error=str(exc), next_try_s=LOOK_EVERY_S)
            self._failing = True
            return
        self._failing = False
        if made:
            log.warning("spool.made_again", directories=[str(path) for path in made])


def _made(path: Path) -> bool:
    """Make a directory; say whether it was missing."""
    if path.exists():
        return False
    path.mkdir(parents=True, exist_ok=True)
    return True
