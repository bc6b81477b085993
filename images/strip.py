"""Removes shells, package managers and programs from the agent's image, and at last itself.

**Invariant:** what stays is the interpreter, its libraries, certificates, time zones, and dpkg's
status file, which scanners read.  It is started without a shell: `RUN ["python3", "/strip.py"]`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

BIN = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/sbin")
KEPT = ("python3", "jostler")
GONE = (
    *("etc/apt", "usr/lib/apt", "usr/share/apt", "var/lib/apt", "var/cache", "var/log/apt"),
    *("usr/lib/dpkg", "usr/share/dpkg", "etc/dpkg", "usr/share/perl", "usr/share/perl5"),
    *(
        "usr/share/doc",
        "usr/share/man",
        "usr/share/info",
        "usr/share/locale",
        "usr/share/bash-completion",
    ),
    *("usr/share/debconf", "usr/share/lintian", "etc/cron.daily", "etc/logrotate.d", "etc/init.d"),
)


def strip(root: Path) -> None:
    """Remove all of it below a root directory."""
    for folder in BIN:
        for path in root.joinpath(folder).glob("*"):
            if not path.name.startswith(KEPT) and (path.is_symlink() or path.is_file()):
                path.unlink()
    for path in (*(root / name for name in GONE), *root.glob("usr/lib/*/perl*")):
        shutil.rmtree(path, ignore_errors=True)
    for path in root.glob("var/lib/dpkg/*"):
        if path.name != "status":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    strip(Path("/"))
    os.unlink(__file__)  # noqa: PTH108 - the last act
