"""Check the manifests on a real control plane, and the alerts with a real Prometheus.

usage: python -m tools.k8s_real.check CACHE-DIR

It applies every overlay under the pod security of its namespace.  It lets a real Spark driver
request executors with only the rights of its service account.  It runs three agents through an
outage of their bucket, which must page once.  The exit status is 0 if all checks pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from tests.k8s.manifests import K8S, OVERLAYS, containers, tool
from tests.k8s.test_spark import HOME, JOB, kubelet
from tests.loader.world import BigQueryServer, World, row
from tests.support.gcs import GcsServer, free_port
from tests.support.proxy import FaultyServer
from tools.k8s_real.control_plane import ControlPlane
from tools.k8s_real.paging import page
from tools.k8s_real.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
SPARK_OPERATOR = "github.com/kubeflow/spark-operator/v2@v2.3.0"
CRDS = {
    PROMETHEUS_OPERATOR: "example/prometheus-operator-crd",
    SPARK_OPERATOR: "config/crd/bases",
}


def main() -> int:
    """Run all checks; return the exit status."""
    cache = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory(prefix="k8s-real-") as name:
        home = Path(name)
        with ControlPlane(cache / "bin", home / "plane", tool("kubectl")) as plane:
            print("control plane: ready")
            add_crds(plane)
            for overlay in OVERLAYS:
                apply(plane, overlay)
            accept_spark_operator(plane, home)
            refuse_what_is_privileged(plane)
            drive(plane, home)
        page(cache, home / "paging")
    print("k8s-real: all well")
    return 0


def add_crds(plane: ControlPlane) -> None:
    """Install the operators' custom resource definitions, from their Go modules."""
    for module, folder in CRDS.items():
        command = ["go", "mod", "download", "-json", module]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
        found = json.loads(done.stdout)["Dir"]
        plane.kubectl("apply", "--server-side", "-f", f"{found}/{folder}")
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def apply(plane: ControlPlane, overlay: str) -> None:
    """Apply an overlay, and check that the API server admits each of its pods."""
    text = plane.kubectl("kustomize", str(K8S / "overlays" / overlay))
    plane.kubectl("apply", "--server-side", "-f", "-", text=text)
    space = f"jostler-{overlay}"
    for cron in plane.get("cronjobs", "-n", space):
        name = cron["metadata"]["name"]
        plane.kubectl("create", "job", f"{name}-now", f"--from=cronjob/{name}", "-n", space)
    wanted = [d["metadata"]["name"] for d in yaml.safe_load_all(text) if d["kind"] == "DaemonSet"]
    wanted += [f"{cron['metadata']['name']}-now" for cron in plane.get("cronjobs", "-n", space)]
    wanted += [d["metadata"]["name"] for d in plane.get("deployments", "-n", space)]
    wait_until(
        f"pods of {wanted} in {space}",
        lambda: all(
            any(pod["metadata"]["name"].startswith(name) for pod in plane.get("pods", "-n", space))
            for name in wanted
        ),
    )
    level = plane.get("namespace", space)["metadata"]["labels"][
        "pod-security.kubernetes.io/enforce"
    ]
    refused = [
        event["message"]
        for event in plane.get("events", "-n", space)
        if "forbidden" in event.get("message", "")
    ]
    if refused:
        raise RuntimeError(f"{overlay}: {refused[0]}")
    print(f"overlay {overlay}: applied; pod security {level}; pods made: {', '.join(wanted)}")


def accept_spark_operator(plane: ControlPlane, home: Path) -> None:
    """Validate the component that no overlay uses against the operator's schema (dry run)."""
    place = home / "with-operator"
    place.mkdir()
    overlay, component = (
        os.path.relpath(K8S / part, place.resolve())
        for part in ("overlays/sandbox", "components/spark-operator")
    )
    kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    kind |= {"resources": [overlay], "components": [component]}
    (place / "kustomization.yaml").write_text(yaml.safe_dump(kind))
    text = plane.kubectl("kustomize", str(place))
    dry = ("--server-side", "--dry-run=server", "--force-conflicts")
    plane.kubectl("apply", *dry, "-f", "-", text=text)
    if "kind: ScheduledSparkApplication" not in text:
        raise RuntimeError("the component adds no ScheduledSparkApplication")
    print("component spark-operator: accepted by the operator's own schema")


def refuse_what_is_privileged(plane: ControlPlane) -> None:
    """Check that pod security is enforced: a privileged pod is refused."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "too-much", "namespace": "jostler-sandbox"},
        "spec": {
            "containers": [{"name": "c", "image": "x", "securityContext": {"privileged": True}}]
        },
    }
    answer = plane.kubectl("apply", "-f", "-", text=json.dumps(pod), fails=True)
    if "violates PodSecurity" not in answer:
        raise RuntimeError(f"a privileged pod was refused for another reason: {answer}")
    print("a privileged pod: refused by pod security")


def drive(plane: ControlPlane, home: Path) -> None:
    """Run the CronJob's driver, which loads a day with executors that this API server creates."""
    space = "jostler-sandbox"
    pod = await_pod(plane, space, "jostler-load-now")
    name = pod["metadata"]["name"]
    driver = containers(pod["spec"])["driver"]
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    plane.set_status("pod", name, space, {**ready, "podIP": "127.0.0.1"})
    token = plane.kubectl("create", "token", "jostler-load", "-n", space).strip()
    conf = home / "conf"
    conf.mkdir()
    data = next(
        found["data"]
        for found in plane.get("configmaps", "-n", space)
        if found["metadata"]["name"].startswith("jostler-load-spark")
    )
    for file, text in data.items():
        (conf / file).write_text(text.replace("/opt/spark/conf", str(conf)))
    (home / "job.py").write_text(JOB)
    with GcsServer() as gcs, FaultyServer(gcs.port) as proxy:
        os.environ["STORAGE_EMULATOR_HOST"] = proxy.url
        bigquery = BigQueryServer(home / "bigquery", gcs.url)
        try:
            world = World(bigquery, proxy)
            world.put_schema()
            world.put_bundle([row(number) for number in range(50)])
            environ = spark_environment(world, conf)
            argv = command(driver, plane, name, space, token, home / "job.py")
            with Kubelet(plane, space, kubelet(home / "executors.log", environ)) as pods:
                done = subprocess.run(
                    argv, env=environ, capture_output=True, text=True, check=False, timeout=400
                )
            if done.returncode or len(world.rows()) != 50:  # noqa: PLR2004 - rows put above
                log = (home / "executors.log").read_text()[-4000:]
                raise RuntimeError(f"driver: {done.returncode} {done.stderr[-6000:]} {log}")
            print(f"driver: {len(pods.seen)} executors asked for, made and used; 50 rows loaded")
        finally:
            bigquery.stop()


def spark_environment(world: World, conf: Path) -> dict[str, str]:
    """Return the environment of driver and executors."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environ |= {"SPARK_HOME": str(HOME), "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    environ |= {"BIGQUERY_EMULATOR_HOST": world.bigquery.url}
    settings = {"BUCKET": world.url, "PROJECT": world.project, "PERIOD": "everything"}
    return environ | {f"JOSTLER_LOAD_{name}": value for name, value in settings.items()}


def command(  # noqa: PLR0917 - each once, by the caller above
    driver: dict[str, Any], plane: ControlPlane, pod: str, space: str, token: str, job: Path
) -> list[str]:
    """Return the container's command, with this API's address and the service account's token."""
    text = "\n".join(driver["command"])
    known = {v["name"]: v.get("value", "") for v in driver["env"]}
    for name, value in (
        known | {"POD_NAME": pod, "POD_NAMESPACE": space, "POD_IP": "127.0.0.1"}
    ).items():
        text = text.replace(f"$({name})", value)
    text = text.replace("https://kubernetes.default.svc:443", plane.url)
    program, *words, _ = text.split("\n")
    secret = "spark.kubernetes.authenticate"
    settings = {
        f"{secret}.oauthToken": token,
        f"{secret}.caCertFile": str(plane.authority),
        "spark.driver.port": str(free_port()),
        "spark.driver.blockManager.port": str(free_port()),
    }
    words += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [f"{HOME}/bin/{program}", *words, str(job)]


class Kubelet:
    """Runs executors' pods as processes of this machine, and sets their status to Running."""

    def __init__(
        self,
        plane: ControlPlane,
        space: str,
        start: Callable[[dict[str, Any]], subprocess.Popen[bytes]],
    ) -> None:
        self._plane = plane
        self._space = space
        self._start = start
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet")
        self._processes: list[subprocess.Popen[bytes]] = []
        self.seen: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for process in self._processes:
            process.kill()
            process.wait()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            for pod in self._plane.get("pods", "-n", self._space, "-l", "spark-role=executor"):
                name = pod["metadata"]["name"]
                if name not in self.seen:
                    self.seen.add(name)
                    self._processes.append(self._start(pod))
                    self._plane.set_status("pod", name, self._space, {"phase": "Running"})


def await_pod(plane: ControlPlane, space: str, beginning: str) -> dict[str, Any]:
    """Wait for a pod whose name has a given beginning, and return it."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        found[:] = [
            pod
            for pod in plane.get("pods", "-n", space)
            if pod["metadata"]["name"].startswith(beginning)
        ]
        return bool(found)

    wait_until(f"a pod of {beginning}", there)
    return found[0]


if __name__ == "__main__":
    sys.exit(main())
