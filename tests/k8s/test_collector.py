"""The collectors' manifests: added to an overlay as docs/kubernetes.md says, they fit together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from jostler.cli.command_line import configure, parse_flags
from jostler.cli.flags import duration
from jostler.producer.collect.feeds_file import read_feeds
from tests.k8s.manifests import K8S, ROOT, Doc, built, containers, environment, one, pods
from tests.k8s.test_docs import KUBERNETES, blocks
from tests.k8s.test_pods import THREADS_S
from tests.k8s.valid import check

if TYPE_CHECKING:
    from jostler.config import Config

COLLECTOR_DRAIN_S = 1
BASE = K8S / "base/collector"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    """The sandbox with monitoring and with what the page says to add."""
    copied = shutil.copytree(K8S, tmp_path_factory.mktemp("collector") / "k8s")
    path = copied / "overlays/sandbox/kustomization.yaml"
    made = yaml.safe_load(path.read_text())
    (more,) = [text for text in blocks(KUBERNETES, "yaml") if "base/collector" in text]
    for key, items in yaml.safe_load(more).items():
        made[key] += items
    made["resources"].append("../../monitoring")
    path.write_text(yaml.safe_dump(made))
    return built(path.parent)


def collectors(docs: list[Doc]) -> Doc:
    """Return the pod's spec."""
    pod: Doc = one(docs, "StatefulSet")["spec"]["template"]["spec"]
    return pod


def agent(docs: list[Doc]) -> Config:
    """Parse the flags of its agent, as that does."""
    environ = environment(containers(collectors(docs))["jostler"], docs)
    return configure(parse_flags([], environ), lambda path: pytest.fail(f"reads {path}"))


def test_every_document_is_valid_in_an_overlay(docs: list[Doc]) -> None:
    """Strictly; and nothing that it refers to is missing, but for the secret, which is optional."""
    for doc in docs:
        check(doc)
    there = {(doc["kind"], doc["metadata"]["name"]) for doc in docs}
    pod = collectors(docs)
    maps = [v["configMap"]["name"] for v in pod["volumes"] if "configMap" in v]
    maps += [one["configMapRef"]["name"] for c in containers(pod).values() for one in c["envFrom"]]
    assert len(maps) == 4
    assert {("ConfigMap", name) for name in maps} <= there
    assert ("ServiceAccount", pod["serviceAccountName"]) in there
    assert ("Service", one(docs, "StatefulSet")["spec"]["serviceName"]) in there
    (secret,) = [v["secret"] for v in pod["volumes"] if "secret" in v]
    assert secret["optional"]
    volumes = {v["name"] for v in pod["volumes"]}
    volumes |= {v["metadata"]["name"] for v in volume_claims(docs)}
    for container in containers(pod).values():
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def volume_claims(docs: list[Doc]) -> list[Doc]:
    claims: list[Doc] = one(docs, "StatefulSet")["spec"]["volumeClaimTemplates"]
    return claims


def test_the_agent_takes_each_feed_into_the_overlays_bucket(docs: list[Doc]) -> None:
    """Its datatypes are the feeds, each with its schema; a replica's node is its pod."""
    pod, config = collectors(docs), agent(docs)
    both = containers(pod)
    assert config.bucket == "gs://archive-my-sandbox"
    (node,) = [v for v in both["jostler"]["env"] if v["name"] == "NODE_NAME"]
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    feeds = read_feeds(BASE / "feeds.toml", {}, seconds=duration)
    assert {feed.id for feed in feeds} == {one.name for one in config.datatypes}
    mounts = {m["name"]: m["mountPath"] for m in both["jostler"]["volumeMounts"]}
    schemas = one(docs, "ConfigMap", "jostler-feeds-datatypes")["data"]
    for datatype in config.datatypes:
        assert str(datatype.schema_file.parent) == mounts["datatypes"]
        assert datatype.schema_file.name in schemas
    assert (BASE / "datatypes/page1.json").read_bytes() == (
        ROOT / "examples/wrapped.json"
    ).read_bytes()


def test_both_have_one_spool_one_user_and_one_experiment(docs: list[Doc]) -> None:
    """The agent deletes what the collector writes, and both see the same free space."""
    pod = collectors(docs)
    both = containers(pod)
    assert both["jostler"]["envFrom"] == both["collector"]["envFrom"]
    assert pod["securityContext"]["runAsUser"] == 10001
    for container in both.values():
        assert "runAsUser" not in container["securityContext"]
        mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        assert mounts["spool"] == str(agent(docs).local_data_dir)
    assert [claim["metadata"]["name"] for claim in volume_claims(docs)] == ["spool"]


def test_a_secret_is_read_from_beside_the_feeds(tmp_path: Path, docs: list[Doc]) -> None:
    """As the commented line of feeds.toml names it, at the places where both are mounted."""
    mounts = {
        m["name"]: m["mountPath"] for m in containers(collectors(docs))["collector"]["volumeMounts"]
    }
    text = (BASE / "feeds.toml").read_text().replace("# headers", "headers")
    for name in ("feeds", "secrets"):
        (tmp_path / Path(mounts[name]).name).mkdir()
        assert Path(mounts[name]).parent == Path("/etc/jostler")
    (tmp_path / "secrets/page1").write_text("hidden\n")
    (tmp_path / "feeds/feeds.toml").write_text(text)

    (feed,) = read_feeds(tmp_path / "feeds/feeds.toml", {}, seconds=duration)

    assert [(one.name, one.value) for one in feed.headers] == [("Authorization", "Bearer hidden")]


def test_the_collector_is_started_as_its_flags_and_ports_say(docs: list[Doc]) -> None:
    """The file that is mounted, and the port that the probe and Prometheus ask."""
    collector = containers(collectors(docs))["collector"]
    flags = dict(word.lstrip("-").split("=", 1) for word in collector["args"])
    mounts = {m["name"]: m["mountPath"] for m in collector["volumeMounts"]}
    (port,) = collector["ports"]
    assert flags == {
        "config": f"{mounts['feeds']}/feeds.toml",
        "prometheusx.listen-address": f":{port['containerPort']}",
    }
    assert collector["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    monitor = one(docs, "PodMonitor", "jostler-collect")["spec"]
    labels = one(docs, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert [end["port"] for end in monitor["podMetricsEndpoints"]] == [port["name"]]
    of_agents = one(docs, "PodMonitor", "jostler")["spec"]
    assert of_agents["selector"]["matchLabels"].items() <= labels.items()


def test_the_pod_may_do_little_and_has_time_to_end(docs: list[Doc]) -> None:
    """As the others: non-root, nothing writable but volumes, bounded; a native sidecar."""
    pod = dict(pods(docs))["StatefulSet/jostler-collector"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (pod["enableServiceLinks"], pod["automountServiceAccountToken"]) == (False, False)
    for container in containers(pod).values():
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert "cpu" not in container["resources"]["limits"]
    (sidecar,) = pod["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    needed_s = COLLECTOR_DRAIN_S + agent(docs).flush_timeout_s + THREADS_S
    assert pod["terminationGracePeriodSeconds"] >= needed_s + 5


def test_only_prometheus_may_ask_for_its_pages(docs: list[Doc]) -> None:
    """The agents' policy, which leaves a service's ports open, is not about these pods."""
    policies = {d["metadata"]["name"]: d["spec"] for d in docs if d["kind"] == "NetworkPolicy"}
    labels = one(docs, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    mine = policies["jostler-collector"]
    assert mine["podSelector"]["matchLabels"].items() <= labels.items()
    (rule,) = mine["ingress"]
    ports = {
        port["containerPort"] for c in containers(collectors(docs)).values() for port in c["ports"]
    }
    assert {port["port"] for port in rule["ports"]} == ports
    assert rule["from"] == policies["jostler-agent"]["ingress"][0]["from"]
    (excluded,) = policies["jostler-agent"]["podSelector"]["matchExpressions"]
    assert excluded["operator"] == "DoesNotExist"
    assert excluded["key"] in labels
