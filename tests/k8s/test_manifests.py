"""The manifests build, are what Kubernetes accepts, and say what the programs understand."""

from __future__ import annotations

import copy
import json
import re
import shutil
from datetime import date
from typing import TYPE_CHECKING

import jsonschema
import kubernetes_validate
import pytest
import yaml

from loader.cli.options import parse
from tests.k8s.manifests import (
    BASES,
    K8S,
    OVERLAYS,
    ROOT,
    Doc,
    agent_config,
    built,
    containers,
    environment,
    one,
    overlay,
    pods,
)
from tests.k8s.valid import check

RUNBOOK_URL = "https://docs.example.org/jostler/runbook.md"  # as the alerts have it

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COMPONENTS = ("hostpath", "pushgateway", "spark-operator")


@pytest.fixture
def with_components(tmp_path: Path) -> list[Doc]:
    """The sandbox with every component, as somebody might write it."""
    shutil.copytree(K8S, tmp_path / "k8s")
    path = tmp_path / "k8s/overlays/sandbox/kustomization.yaml"
    text = yaml.safe_load(path.read_text())
    text["components"] = [f"../../components/{name}" for name in COMPONENTS]
    path.write_text(yaml.safe_dump(text))
    return built(path.parent)


@pytest.mark.parametrize("directory", [*BASES, *(f"overlays/{name}" for name in OVERLAYS)])
def test_every_document_is_valid(directory: str) -> None:
    """Strictly: an unknown member is a mistake."""
    docs = built(K8S / directory)
    assert docs
    for doc in docs:
        check(doc)


def test_every_document_is_valid_with_all_components(with_components: list[Doc]) -> None:
    """The Spark operator's resource takes the place of the CronJob."""
    for doc in with_components:
        check(doc)
    found = {(doc["kind"], doc["metadata"]["name"]) for doc in with_components}
    assert ("ScheduledSparkApplication", "jostler-load") in found
    assert ("CronJob", "jostler-load") not in found


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("DaemonSet", ("spec", "template", "spec", "restartPolice"), "Always"),
        ("PodMonitor", ("spec", "selecter"), {}),
        ("PrometheusRule", ("spec", "group"), []),
    ],
)
def test_the_check_finds_misspelt_members(kind: str, path: tuple[str, ...], value: object) -> None:
    """Else it would prove nothing."""
    name = "jostler-load" if kind == "PodMonitor" else ""
    doc = json.loads(json.dumps(one(overlay("production"), kind, name)))
    place = doc
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(doc)


def test_executors_pods_are_valid() -> None:
    """Their template is a Pod, which Spark completes by image and command."""
    config = one(built(K8S / "base/loader"), "ConfigMap", "jostler-load-spark")
    pod = yaml.safe_load(config["data"]["executor.yaml"])
    settings = spark_settings(config["data"]["spark-defaults.conf"])
    container = settings["spark.kubernetes.executor.podTemplateContainerName"]
    assert [c["name"] for c in pod["spec"]["containers"]] == [container]
    pod["metadata"]["name"] = "completed"
    pod["spec"]["containers"][0]["image"] = "completed"
    check(pod)


def spark_settings(text: str) -> dict[str, str]:
    """Read spark-defaults.conf."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split(maxsplit=1) for line in lines)  # type: ignore[misc]


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_agent_understands_its_environment(name: str) -> None:
    """Bucket of the overlay, node by the downward API, schema from the mounted file."""
    docs = overlay(name)
    config = agent_config(docs)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    agent, service = containers(pod)["jostler"], containers(pod)["sample"]
    assert config.node == "downward"
    assert config.listen == ("", agent["ports"][0]["containerPort"])  # for probes and Prometheus
    assert config.runbook_url == RUNBOOK_URL
    (node,) = [v for v in agent["env"] if v["name"] == "NODE_NAME"]
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    (datatype,) = config.datatypes
    mounts = {m["name"]: m["mountPath"] for m in agent["volumeMounts"]}
    schemas = one(docs, "ConfigMap", "jostler-datatypes")["data"]
    assert str(datatype.schema_file.parent) == mounts["datatypes"]
    assert datatype.schema_file.name in schemas
    assert environment(service, docs)["SPOOL"] == str(config.spool / datatype.name)
    assert mounts["spool"] == str(config.local_data_dir)


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_loader_understands_its_environment(name: str) -> None:
    """And loads from the bucket that the agent fills."""
    docs = overlay(name)
    pod = dict(pods(docs))["CronJob/jostler-load"]
    environ = environment(containers(pod)["driver"], docs)
    options = parse([], environ, date(2026, 1, 2))
    assert options.bucket == (f"gs://{agent_config(docs).bucket.removeprefix('gs://')}",)
    if name != "sandbox":
        service = one(docs, "Service")
        (port,) = service["spec"]["ports"]
        assert options.metrics == f"http://{service['metadata']['name']}:{port['port']}"


@pytest.mark.parametrize("name", OVERLAYS)
def test_executors_run_the_drivers_image(name: str) -> None:
    """An overlay names it once."""
    docs = overlay(name)
    driver = containers(dict(pods(docs))["CronJob/jostler-load"])["driver"]
    assert environment(driver, docs)["LOADER_IMAGE"] == driver["image"]
    assert "spark.kubernetes.container.image=$(LOADER_IMAGE)" in driver["command"]


def test_the_operators_job_runs_the_same_image(with_components: list[Doc]) -> None:
    """With the options that the CronJob would have."""
    application = one(with_components, "ScheduledSparkApplication")["spec"]
    cron = one(built(K8S / "base/loader"), "CronJob", "jostler-load")["spec"]
    driver = containers(cron["jobTemplate"]["spec"]["template"]["spec"])["driver"]
    images = yaml.safe_load((K8S / "overlays/sandbox/kustomization.yaml").read_text())["images"]
    (image,) = [f"{i['newName']}:{i['newTag']}" for i in images if i["name"] == driver["image"]]
    assert application["template"]["image"] == image
    assert application["schedule"] == cron["schedule"]
    assert application["concurrencyPolicy"] == cron["concurrencyPolicy"] == "Forbid"
    assert application["template"]["mainApplicationFile"] == f"local://{driver['command'][-1]}"
    (container,) = application["template"]["driver"]["template"]["spec"]["containers"]
    assert "JOSTLER_LOAD_BUCKET" in environment(container, with_components)


@pytest.mark.parametrize("name", OVERLAYS)
def test_everything_that_is_referred_to_exists(name: str) -> None:
    """ConfigMaps with their generated names, service accounts, roles."""
    docs = overlay(name)
    there = {(doc["kind"], doc["metadata"]["name"]) for doc in docs}
    spaces = {doc["metadata"].get("namespace") for doc in docs if doc["kind"] != "Namespace"}
    assert spaces == {one(docs, "Namespace")["metadata"]["name"]}
    for where, pod in pods(docs):
        for volume in pod.get("volumes", ()):
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in there, where
        account = pod.get("serviceAccountName")
        assert account is None or ("ServiceAccount", account) in there, where
        for container in containers(pod).values():
            for source in container.get("envFrom", ()):
                assert ("ConfigMap", source["configMapRef"]["name"]) in there, where
    binding = one(docs, "RoleBinding")
    assert ("Role", binding["roleRef"]["name"]) in there
    assert ("ServiceAccount", binding["subjects"][0]["name"]) in there
    settings = spark_settings(
        one(docs, "ConfigMap", "jostler-load-spark")["data"]["spark-defaults.conf"]
    )
    executor = settings["spark.kubernetes.authenticate.executor.serviceAccountName"]
    assert ("ServiceAccount", executor) in there


@pytest.mark.parametrize("name", OVERLAYS)
def test_each_identity_is_the_overlays_own(name: str) -> None:
    """Three Google service accounts, of the project that the loader loads into."""
    docs = overlay(name)
    driver = containers(dict(pods(docs))["CronJob/jostler-load"])["driver"]
    domain = f"{environment(driver, docs)['JOSTLER_LOAD_PROJECT']}.iam.gserviceaccount.com"
    names = ("jostler-agent", "jostler-load", "jostler-load-executor")
    assert identities(docs) == {name: f"{name}@{domain}" for name in names}


def identities(docs: list[Doc]) -> Mapping[str, str]:
    """Return the Google service account of each service account that has one."""
    return {
        doc["metadata"]["name"]: doc["metadata"]["annotations"]["iam.gke.io/gcp-service-account"]
        for doc in docs
        if doc["kind"] == "ServiceAccount"
    }


def test_overlays_share_nothing_that_must_differ() -> None:
    """Bucket, project, namespace and identities; and no image without a version."""
    seen: set[str] = set()
    for name in OVERLAYS:
        docs = overlay(name)
        own = {one(docs, "Namespace")["metadata"]["name"], agent_config(docs).bucket}
        own |= set(identities(docs).values())
        assert not seen & own
        seen |= own
        for where, pod in pods(docs):
            for container in containers(pod).values():
                image = container.get("image", "x:1")
                assert not image.endswith(":latest"), where
                assert ":" in image.rpartition("/")[2], where


def test_the_sample_datatype_is_the_examples() -> None:
    """There are two copies, for kustomize reads only what lies below it."""
    ours = K8S / "base/agent/datatypes/speed1.json"
    assert ours.read_bytes() == (ROOT / "examples/speed1.json").read_bytes()


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_other_jobs_run_as_the_hourly_one_does(name: str) -> None:
    """Same command, image, identity and limits; one looks further back, one only compares."""
    docs = overlay(name)
    found = copy.deepcopy(dict(pods(docs)))
    today = date(2026, 3, 15)
    hourly = found["CronJob/jostler-load"]
    (driver,) = hourly.pop("containers")
    windows = [parse([], environment(driver, docs), today).window]
    driver.pop("env")
    for job in ("jostler-load-late", "jostler-verify"):
        other = found[f"CronJob/{job}"]
        (container,) = other.pop("containers")
        assert other == hourly
        options = parse([], environment(container, docs), today)
        assert options.verify_only == (job == "jostler-verify")
        windows.append(options.window)
        container.pop("env")
        assert container == driver
    now, late, compared = windows
    assert now.start < today < now.end, "today's data is loaded today"
    assert late.end == now.start, "no day is in neither"
    assert compared == now


@pytest.mark.parametrize("name", OVERLAYS)
def test_policies_are_about_pods_and_ports_that_exist(name: str) -> None:
    """Only Prometheus may ask the agent; all other ports of its pod are the service's."""
    docs = overlay(name)
    policies = {d["metadata"]["name"]: d["spec"] for d in docs if d["kind"] == "NetworkPolicy"}
    pod = one(docs, "DaemonSet")["spec"]["template"]
    agent = policies["jostler-agent"]
    (metrics,) = containers(pod["spec"])["jostler"]["ports"]
    asked, others = agent["ingress"]

    assert agent["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert [port["port"] for port in asked["ports"]] == [metrics["containerPort"]]
    tcp = [(p["port"], p["endPort"]) for p in others["ports"] if p["protocol"] == "TCP"]
    assert tcp == [(1, metrics["containerPort"] - 1), (metrics["containerPort"] + 1, 65535)]
    spark = one(docs, "ConfigMap", "jostler-load-spark")["data"]
    (driver,) = policies["jostler-load-driver"]["ingress"]
    for port in driver["ports"]:
        assert re.search(
            rf"^spark\.driver\.\S*[pP]ort +{port['port']}$",
            spark["spark-defaults.conf"],
            re.MULTILINE,
        )
    executors = yaml.safe_load(
        one(docs, "ConfigMap", "jostler-load-spark")["data"]["executor.yaml"]
    )
    (only,) = driver["from"]
    wanted = only["podSelector"]["matchLabels"]
    assert wanted.items() <= executors["metadata"]["labels"].items()
