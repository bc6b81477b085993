"""The CronJob's own command, as a driver in a cluster that allows what its Role allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
import yaml

from tests.k8s.cluster import Cluster
from tests.k8s.manifests import Doc, containers, environment, one, overlay, pods
from tests.k8s.valid import check
from tests.loader.world import World, row
from tests.support.gcs import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

HOME = Path(pyspark.__file__).parent
DRIVER = "the-driver"
JOB = """
import sys
from loader.cli.main import main
sys.exit(main())
"""


def kubelet(log: Path, environ: dict[str, str]) -> Callable[[Doc], subprocess.Popen[bytes]]:
    """Return what runs an executor's pod: the start command of Spark's own entrypoint."""

    def start(pod: Doc) -> subprocess.Popen[bytes]:
        (container,) = pod["spec"]["containers"]
        assert container["args"] == ["executor"]
        given = {v["name"]: v.get("value", "127.0.0.1") for v in container["env"]}
        options = [text for name, text in given.items() if name.startswith("SPARK_JAVA_OPT_")]
        argv = ["java", *options, "-Xmx512m", "-cp", f"{HOME}/jars/*"]
        argv += ["org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"]
        argv += ["--driver-url", given["SPARK_DRIVER_URL"]]
        argv += ["--executor-id", given["SPARK_EXECUTOR_ID"]]
        argv += ["--cores", given["SPARK_EXECUTOR_CORES"]]
        argv += ["--app-id", given["SPARK_APPLICATION_ID"]]
        argv += ["--hostname", "127.0.0.1", "--podName", pod["metadata"]["name"]]
        argv += ["--resourceProfileId", given["SPARK_RESOURCE_PROFILE_ID"]]
        with log.open("ab") as out:
            return subprocess.Popen(argv, env=environ | given, stdout=out, stderr=out)

    return start


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """The directory that the pod mounts at /opt/spark/conf."""
    made = tmp_path / "conf"
    made.mkdir()
    for name, text in one(overlay("sandbox"), "ConfigMap", "jostler-load-spark")["data"].items():
        (made / name).write_text(text.replace("/opt/spark/conf", str(made)))
    return made


def command(driver: Doc, cluster: Cluster, job: Path) -> list[str]:
    """Return the container's command with its variables put in, and the addresses of the test."""
    text = "\n".join(driver["command"])
    known = environment(driver, overlay("sandbox")) | {"POD_NAMESPACE": cluster.namespace}
    for name, value in (known | {"POD_NAME": DRIVER, "POD_IP": "127.0.0.1"}).items():
        text = text.replace(f"$({name})", value)
    text = text.replace("k8s://https://kubernetes.default.svc:443", f"k8s://{cluster.url}")
    program, *words, _ = text.split("\n")
    ports = ("spark.driver.port", "spark.driver.blockManager.port")  # fixed ones may be taken
    words += [word for port in ports for word in ("--conf", f"{port}={free_port()}")]
    return [f"{HOME}/bin/{program}", *words, str(job)]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_driver_loads_with_executors_and_asks_only_what_it_may(
    world: World, conf: Path, tmp_path: Path
) -> None:
    """Command, settings, template and Role are the overlay's."""
    docs = overlay("sandbox")
    pod = dict(pods(docs))["CronJob/jostler-load"]
    driver = containers(pod)["driver"]
    job = tmp_path / "job.py"
    job.write_text(JOB)
    world.put_schema()
    world.put_bundle([row(number) for number in range(50)])
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environ |= {"SPARK_HOME": str(HOME), "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    what = {"BUCKET": world.url, "PROJECT": world.project, "PERIOD": "everything"}
    what["ENGINE"] = "spark"  # the bundles are small
    log = tmp_path / "executors.log"
    with Cluster("jostler-sandbox", one(docs, "Role")["rules"], kubelet(log, environ)) as cluster:
        metadata = {"name": DRIVER, "uid": "u", "namespace": cluster.namespace}
        cluster.pods[DRIVER] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": pod,
        }
        done = subprocess.run(
            command(driver, cluster, job),
            env=environ | {f"JOSTLER_LOAD_{name}": value for name, value in what.items()},
            capture_output=True,
            text=True,
            check=False,
            timeout=800,
        )
        told = log.read_text() if log.exists() else ""
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{told}"

    assert [asked for asked in cluster.asked if not asked[2]] == []
    assert len(cluster.made) == 2
    for executor in cluster.made:
        assert_like_the_template(executor, conf, driver["image"])
    assert set(cluster.pods) == {DRIVER}
    assert cluster.config_maps == {}
    used = {(verb, kind) for verb, kind, _ in cluster.asked}
    granted = {
        (verb, kind)
        for rule in cluster.rules
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted - used == {("delete", "pods")}, "of an executor that fails"


def assert_like_the_template(executor: Doc, conf: Path, image: str) -> None:
    """Fail unless Spark made the executor's pod of the template, valid, and owned by the driver."""
    executor.pop("status")
    check(executor)
    template = yaml.safe_load((conf / "executor.yaml").read_text())["spec"]
    (container,) = executor["spec"]["containers"]
    assert container["image"] == image
    assert container["securityContext"] == template["containers"][0]["securityContext"]
    assert executor["spec"]["securityContext"] == template["securityContext"]
    assert executor["spec"]["serviceAccountName"] == "jostler-load-executor"
    assert executor["spec"]["automountServiceAccountToken"] is False
    (owner,) = executor["metadata"]["ownerReferences"]
    assert owner["name"] == DRIVER
