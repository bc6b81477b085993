"""The manifests as Kubernetes would get them: built by kustomize, read as documents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from jostler.cli.command_line import configure, parse_flags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.config import Config

ROOT = Path(__file__).parents[2]
K8S = ROOT / "k8s"
OVERLAYS = ("sandbox", "staging", "production")
BASES = ("base/agent", "base/collector", "base/loader", "monitoring")

Doc = dict[str, Any]


def tool(*names: str) -> str:
    """Return the path of the first of these programs that is there, or skip the test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return found
    pytest.skip(f"none of {', '.join(names)} is installed: `make k8s-tools` gets them")


def run(*argv: str | Path, cwd: Path | None = None) -> str:
    """Run a program; fail the test with what it said if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=400, cwd=cwd)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@cache
def built(directory: Path) -> list[Doc]:
    """Build a kustomization; the documents must not be changed."""
    program = tool("kubectl", "kustomize")
    verb = "kustomize" if Path(program).name == "kubectl" else "build"
    return list(yaml.safe_load_all(run(program, verb, directory)))


def one(docs: list[Doc], kind: str, name: str = "") -> Doc:
    """Return the only document of a kind; `name` may be its beginning, as of generated ones."""
    every = [doc for doc in docs if doc["kind"] == kind]
    exact = [doc for doc in every if doc["metadata"]["name"] == name]
    (found,) = exact or [doc for doc in every if doc["metadata"]["name"].startswith(name)]
    return found


def pods(docs: list[Doc]) -> Iterator[tuple[str, Doc]]:
    """Yield name and pod spec of everything that makes pods."""
    for doc in docs:
        name = f"{doc['kind']}/{doc['metadata']['name']}"
        if doc["kind"] in {"DaemonSet", "Deployment", "StatefulSet"}:
            yield name, doc["spec"]["template"]["spec"]
        elif doc["kind"] == "CronJob":
            yield name, doc["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        elif doc["kind"] == "ScheduledSparkApplication":
            for part in ("driver", "executor"):
                yield f"{name}/{part}", doc["spec"]["template"][part]["template"]["spec"]
        if doc["kind"] == "ConfigMap" and "executor.yaml" in doc["data"]:
            yield f"{name}/executor", yaml.safe_load(doc["data"]["executor.yaml"])["spec"]


def containers(pod: Doc) -> dict[str, Doc]:
    """Return all containers of a pod by name, in the order in which they start."""
    every = [*pod.get("initContainers", ()), *pod["containers"]]
    return {container["name"]: container for container in every}


def environment(container: Doc, docs: list[Doc]) -> dict[str, str]:
    """Return the variables that a container gets; what the downward API gives is `downward`."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found |= one(docs, "ConfigMap", source["configMapRef"]["name"])["data"]
    return found | {
        variable["name"]: variable.get("value", "downward") for variable in container.get("env", ())
    }


def overlay(name: str) -> list[Doc]:
    """Build an overlay."""
    return built(K8S / "overlays" / name)


def agent_config(docs: list[Doc]) -> Config:
    """Parse the agent's flags and variables as the agent does."""
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    agent = containers(pod)["jostler"]
    return configure(
        parse_flags(agent.get("args", []), environment(agent, docs)),
        lambda path: pytest.fail(f"reads {path}"),
    )
