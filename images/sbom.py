"""Writes what an image is made of: `python3 sbom.py NAME VERSION VENV`, as CycloneDX 1.6 JSON.

Python packages are those of the virtual environment, Debian's those of dpkg's status file.  It has
neither time nor random number in it, so equal images have equal lists.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import quote

STATUS = Path("/var/lib/dpkg/status")
Component = dict[str, str]


def python(venv: Path) -> list[Component]:
    """List the packages of a virtual environment."""
    (packages,) = venv.glob("lib/python3*/site-packages")
    found = {
        (d.name.lower().replace("_", "-"), d.version) for d in distributions(path=[str(packages)])
    }
    return [
        component(name, version, f"pkg:pypi/{name}@{quote(version)}")
        for name, version in sorted(found)
    ]


def debian(status: Path) -> list[Component]:
    """List the installed packages of a dpkg status file; none where there is no such file."""
    text = status.read_text(encoding="utf-8") if status.exists() else ""
    found = []
    for paragraph in text.split("\n\n"):
        facts = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if ": " in line and line[0] != " "
        )
        if facts.get("Status") == "install ok installed":
            name, version, arch = facts["Package"], facts["Version"], facts["Architecture"]
            found.append(
                component(name, version, f"pkg:deb/debian/{name}@{quote(version)}?arch={arch}")
            )
    return sorted(found, key=lambda made: made["purl"])


def component(name: str, version: str, purl: str) -> Component:
    """Describe one package."""
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def bill(name: str, version: str, parts: list[Component]) -> dict[str, object]:
    """Return the whole document."""
    image = {"type": "container", "bom-ref": f"{name}@{version}", "name": name, "version": version}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": image},
        "components": parts,
    }


if __name__ == "__main__":
    _, image_name, image_version, environment = sys.argv
    made = bill(image_name, image_version, [*python(Path(environment)), *debian(STATUS)])
    json.dump(made, sys.stdout, indent=1)
