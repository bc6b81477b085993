"""docs/kubernetes.md and docs/migrating.md: what they say to write and to run is right."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
import yaml

from jostler.cli.command_line import configure, parse_flags
from tests.k8s.manifests import K8S, OVERLAYS, ROOT, built, containers, environment, one, run
from tests.k8s.valid import check

if TYPE_CHECKING:
    from pathlib import Path

KUBERNETES = ROOT / "docs/kubernetes.md"
MIGRATING = ROOT / "docs/migrating.md"


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page, indented ones included."""
    found = re.findall(
        rf"^( *)```{language}\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


@pytest.fixture
def k8s(tmp_path: Path) -> Path:
    """A copy that may be changed, as a reader would."""
    return shutil.copytree(K8S, tmp_path / "k8s")


@pytest.mark.parametrize("page", [KUBERNETES, MIGRATING], ids=lambda page: page.stem)
def test_commands_are_shell(page: Path) -> None:
    """What they do only a cluster can tell."""
    for text in blocks(page, "sh"):
        run("bash", "-n", "-c", text)


def test_the_trial_overlay_is_valid(k8s: Path) -> None:
    """Made by the page's own commands; the agent understands its directory bucket."""
    (text,) = [text for text in blocks(KUBERNETES, "sh") if "overlays/trial" in text]
    writing = text[text.index("mkdir") : text.index("kubectl apply")]
    run("bash", "-eu", "-c", writing, cwd=k8s.parent)
    docs = built(k8s / "overlays/trial")
    for doc in docs:
        check(doc)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    agent = containers(pod)["jostler"]
    assert agent["image"] == "jostler:trial"
    config = configure(parse_flags([], environment(agent, docs)), lambda path: "")
    assert config.bucket == "file:///var/spool/bucket"
    assert config.limits.max_age_s == 60


def test_a_credential_file_can_be_mounted_by_the_pages_patch(k8s: Path) -> None:
    """It adds to the sidecar, and takes nothing away."""
    (patch,) = [text for text in blocks(KUBERNETES, "yaml") if "kind: DaemonSet" in text]
    path = k8s / "overlays/production/kustomization.yaml"
    text = yaml.safe_load(path.read_text())
    text["patches"].append({"patch": patch})
    path.write_text(yaml.safe_dump(text))
    docs = built(path.parent)
    for doc in docs:
        check(doc)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    agent = containers(pod)["jostler"]
    assert environment(agent, docs)["GOOGLE_APPLICATION_CREDENTIALS"]
    assert {mount["name"] for mount in agent["volumeMounts"]} >= {"google", "spool", "datatypes"}


def test_the_page_names_the_identities_of_the_overlays() -> None:
    """Each service account that is annotated is also made and bound."""
    (text,) = [text for text in blocks(KUBERNETES, "sh") if "service-accounts create" in text]
    (names,) = re.findall(r"for name in (.*); do", text)
    for overlay in OVERLAYS:
        docs = built(K8S / "overlays" / overlay)
        accounts = {d["metadata"]["name"] for d in docs if d["kind"] == "ServiceAccount"}
        assert accounts == set(names.split())


def test_the_page_shows_every_part() -> None:
    """Each directory of k8s/ that can be built, and nothing that is not there."""
    (shown,) = [text for text in blocks(KUBERNETES, "text") if text.startswith("k8s/")]
    parts = [path.parent.name for path in K8S.rglob("kustomization.yaml")]
    assert [name for name in parts if name not in shown] == []


def test_the_go_agents_arguments_are_understood() -> None:
    """Those of the manifest in docs/migrating.md."""
    (diff,) = blocks(MIGRATING, "diff")
    argv = re.findall(r"^ +- (-.+)$", diff, re.MULTILINE)
    assert len(argv) > 10
    node = "ndt-mlab1-lga01.mlab-sandbox.measurement-lab.org"
    argv = [word.replace("$(MLAB_NODE_NAME)", node) for word in argv]
    config = configure(parse_flags(argv, {}), lambda path: "")
    assert config.bucket == "gs://pusher-mlab-sandbox"
    assert config.node == "mlab1-lga01"
    assert config.listen == ("127.0.0.1", 9991)
