"""The manifests build, are what Kubernetes accepts, and say what the programs understand."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import kubernetes_validate
import pytest
import yaml
from kubeflow_spark_api.models import SparkV1beta2ScheduledSparkApplication

from jostler.cli import configure, parse_flags
from loader.options import HELP, parse, variable
from tests.k8s.manifests import (
    BASES,
    K8S,
    OVERLAYS,
    ROOT,
    Doc,
    built,
    containers,
    environment,
    one,
    pods,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# The oldest in which native sidecars need no switch, and the newest that the checker knows.
VERSIONS = ("1.29", kubernetes_validate.latest_version())
SCHEMAS = {
    kind: json.loads((Path(__file__).parent / f"schemas/{kind.lower()}.json").read_text())
    for kind in ("PodMonitor", "PrometheusRule")
}
COMPONENTS = ("hostpath", "pushgateway", "spark-operator")
SERVICE_DRAIN_S = 30  # what the DaemonSet promises to the service
THREADS_S = 1  # what the agent's threads get after -flush-timeout: docs/agent.md


def overlay(name: str) -> list[Doc]:
    """Build an overlay."""
    return built(K8S / "overlays" / name)


@pytest.fixture
def with_components(tmp_path: Path) -> list[Doc]:
    """The sandbox with every component, as somebody might write it."""
    shutil.copytree(K8S, tmp_path / "k8s")
    path = tmp_path / "k8s/overlays/sandbox/kustomization.yaml"
    text = yaml.safe_load(path.read_text())
    text["components"] = [f"../../components/{name}" for name in COMPONENTS]
    path.write_text(yaml.safe_dump(text))
    return built(path.parent)


def check(doc: Doc) -> None:
    """Fail unless Kubernetes, or the operator whose kind it is, would accept the document."""
    if doc["kind"] in SCHEMAS:
        jsonschema.validate(doc, SCHEMAS[doc["kind"]])
    elif doc["kind"] == "ScheduledSparkApplication":
        model = SparkV1beta2ScheduledSparkApplication.from_dict(doc)
        assert model is not None
        assert not unread(doc, model.to_dict()), "members that the operator does not know"
    else:
        for version in VERSIONS:
            kubernetes_validate.validate(doc, version, strict=True)


def unread(given: object, read: object, path: str = "") -> list[str]:
    """Return the paths of members that were given and not read."""
    if isinstance(given, dict) and isinstance(read, dict):
        missing = [f"{path}.{key}" for key in given.keys() - read.keys()]
        both = given.keys() & read.keys()
        return missing + [p for key in both for p in unread(given[key], read[key], f"{path}.{key}")]
    if isinstance(given, list) and isinstance(read, list):
        return [p for a, b in zip(given, read, strict=True) for p in unread(a, b, f"{path}[]")]
    return []


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
    kinds = [doc["kind"] for doc in with_components]
    assert "ScheduledSparkApplication" in kinds
    assert "CronJob" not in kinds


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
def test_the_agent_is_a_native_sidecar_that_starts_first(name: str) -> None:
    """Before the service, so that no file is missed; it is then also stopped after it."""
    pod = one(overlay(name), "DaemonSet")["spec"]["template"]["spec"]
    agent = containers(pod)["jostler"]
    assert agent in pod["initContainers"]
    assert agent["restartPolicy"] == "Always"
    others = [c for c in pod["initContainers"] if c is not agent]
    assert pod["initContainers"].index(agent) == len(others), "directories are made before"
    assert all("restartPolicy" not in other for other in others)


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_grace_period_covers_service_and_flush(name: str) -> None:
    """They share it, one after the other: FACTS of Kubernetes, and docs/agent.md#stopping."""
    docs = overlay(name)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    config = agent_config(docs)
    needed_s = SERVICE_DRAIN_S + config.flush_timeout_s + THREADS_S
    assert pod["terminationGracePeriodSeconds"] >= needed_s + 5


def agent_config(docs: list[Doc]):  # noqa: ANN201 - Config, by the agent's own parser
    """Parse the agent's flags and variables as the agent does."""
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    agent = containers(pod)["jostler"]
    return configure(
        parse_flags(agent.get("args", []), environment(agent, docs)),
        lambda path: pytest.fail(f"reads {path}"),
    )


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_agent_understands_its_environment(name: str) -> None:
    """Bucket of the overlay, node by the downward API, schema from the mounted file."""
    docs = overlay(name)
    config = agent_config(docs)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    agent, service = containers(pod)["jostler"], containers(pod)["sample"]
    assert config.node == "downward"
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
    if variable("metrics") not in map(variable, (name for name, *_ in HELP)):
        environ.pop(variable("metrics"), None)
    options = parse([], environ, date(2026, 1, 2))
    assert options.bucket == (f"gs://{agent_config(docs).bucket.removeprefix('gs://')}",)


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
    cron = one(built(K8S / "base/loader"), "CronJob")["spec"]
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
def test_containers_may_do_as_little_as_possible(name: str) -> None:
    """Non-root, nothing writable but volumes, no capability; one exception, which is named."""
    for where, pod in pods(overlay(name)):
        assert pod["securityContext"]["runAsNonRoot"] is True, where
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert pod["enableServiceLinks"] is False, where
        for container in containers(pod).values():
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True, where
            assert security["allowPrivilegeEscalation"] is False, where
            assert security["capabilities"]["drop"] == ["ALL"], where
            if container["name"] == "spool-owner":
                assert security["capabilities"]["add"] == ["CHOWN", "FOWNER", "FSETID"]
            else:
                assert "add" not in security["capabilities"], where
                assert security.get("runAsNonRoot") is not False, where
                assert security.get("runAsUser", pod["securityContext"].get("runAsUser")), where


@pytest.mark.parametrize("name", OVERLAYS)
def test_memory_is_bounded_above_what_was_measured(name: str) -> None:
    """99 MiB was the highest peak of bench.agent; the limit is computed beside it."""
    docs = overlay(name)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    resources = containers(pod)["jostler"]["resources"]
    held_mib = agent_config(docs).memory_max / 2**20
    assert mib(resources["requests"]["memory"]) >= 99 * 1.25
    assert mib(resources["limits"]["memory"]) >= 80 + 2 * held_mib + 40
    assert "cpu" not in resources["limits"]
    for where, pod in pods(docs):
        for container in containers(pod).values():
            if container["name"] != "executor":  # Spark says what it needs
                assert container["resources"]["limits"]["memory"], where


def mib(quantity: str) -> int:
    """Read a quantity of memory."""
    assert quantity.endswith("Mi")
    return int(quantity[:-2])


@pytest.mark.parametrize("name", OVERLAYS)
def test_probes_never_ask_the_bucket(name: str) -> None:
    """An outage of the bucket neither restarts the agent nor unreadies the service's pod."""
    pod = one(overlay(name), "DaemonSet")["spec"]["template"]["spec"]
    agent = containers(pod)["jostler"]
    (port,) = agent["ports"]
    assert port["containerPort"] == 9990
    assert agent["startupProbe"]["httpGet"] == {"path": "/startupz", "port": port["name"]}
    assert agent["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert "readinessProbe" not in agent


@pytest.mark.parametrize("name", OVERLAYS)
def test_pod_security_fits_the_namespace(name: str) -> None:
    """A hostPath and a root init container want a privileged namespace; all else is restricted."""
    docs = overlay(name)
    level = one(docs, "Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    host = any("hostPath" in volume for _, pod in pods(docs) for volume in pod.get("volumes", ()))
    assert level == ("privileged" if host else "restricted")
    assert host == (name != "sandbox")


def test_the_hostpath_takes_the_place_of_the_emptydir() -> None:
    """Not both in one volume; the directory gets its owner before anything is made in it."""
    pod = one(overlay("production"), "DaemonSet")["spec"]["template"]["spec"]
    (spool,) = [volume for volume in pod["volumes"] if volume["name"] == "spool"]
    assert set(spool) == {"name", "hostPath"}
    assert list(containers(pod)) == ["spool-owner", "spool-dirs", "jostler", "sample"]


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
    copy = K8S / "base/agent/datatypes/speed1.json"
    assert copy.read_bytes() == (ROOT / "examples/speed1.json").read_bytes()
