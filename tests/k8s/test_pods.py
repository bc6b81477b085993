"""The pods: started in order, allowed little, stopped with time enough, bounded and probed."""

from __future__ import annotations

import pytest

from tests.k8s.manifests import OVERLAYS, agent_config, containers, one, overlay, pods

SERVICE_DRAIN_S = 30  # what the DaemonSet promises to the service
THREADS_S = 1  # what the agent's threads get after -flush-timeout: docs/agent.md


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
    """80 MiB was the highest peak of bench.agent over HTTP, and metrics take 7 more.

    A file of 20 MiB that is read and judged takes up to five times its size, the program 87 MiB.
    """
    docs = overlay(name)
    pod = one(docs, "DaemonSet")["spec"]["template"]["spec"]
    resources = containers(pod)["jostler"]["resources"]
    held_mib = agent_config(docs).memory_max / 2**20
    assert mib(resources["requests"]["memory"]) >= (80 + 7) * 1.2
    assert mib(resources["limits"]["memory"]) >= 87 + 5 * 20 + 37 + held_mib
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
    docs = overlay(name)
    agent = containers(one(docs, "DaemonSet")["spec"]["template"]["spec"])["jostler"]
    (port,) = agent["ports"]
    assert agent_config(docs).listen == ("", port["containerPort"])
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
