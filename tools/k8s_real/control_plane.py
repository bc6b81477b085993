"""A Kubernetes control plane on loopback: etcd, API server, controllers, scheduler; no kubelet.

**Invariant:** all processes listen on loopback and keep their files in one directory; the end of
the context ends them.  The only node has no kubelet, so pods are admitted and scheduled but never
run.  A caller that needs a running pod starts the process itself and sets the pod's status.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

from tests.support.gcs import free_port

if TYPE_CHECKING:
    from pathlib import Path

START_S = 120.0
NODE = "node1"


class ControlPlane:
    """The four processes of a control plane; use it as a context.

    Args:
        binaries: directory of etcd and the kube- programs.
        home: directory for data, keys and logs.
        kubectl: the program.
    """

    def __init__(self, binaries: Path, home: Path, kubectl: str) -> None:
        self._binaries = binaries
        self.home = home
        self._kubectl = kubectl
        self._processes: list[subprocess.Popen[bytes]] = []
        self._token = secrets.token_hex(16)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.authority = home / "certs" / "apiserver.crt"

    def __enter__(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        keys = self.home / "sa.key"
        command = ["openssl", "genrsa", "-out", str(keys), "2048"]
        subprocess.run(command, check=True, capture_output=True)
        (self.home / "tokens.csv").write_text(f"{self._token},admin,admin,system:masters\n")
        etcd = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        self._start(
            "etcd",
            *("--data-dir", str(self.home / "etcd"), "--name", "default"),
            *("--listen-client-urls", etcd, "--advertise-client-urls", etcd),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}", "--unsafe-no-fsync"),
        )
        self._start(
            "kube-apiserver",
            *("--etcd-servers", etcd, "--bind-address", "127.0.0.1"),
            *("--secure-port", str(self.port), "--cert-dir", str(self.home / "certs")),
            *("--token-auth-file", str(self.home / "tokens.csv"), "--authorization-mode", "RBAC"),
            *("--service-account-issuer", self.url),
            *("--service-account-key-file", str(keys)),
            *("--service-account-signing-key-file", str(keys)),
            *("--service-cluster-ip-range", "10.96.0.0/16"),
            "--allow-privileged=true",  # so that pod security alone refuses it
        )
        self._await_ready()
        self._write_kubeconfig()
        managers = ("--kubeconfig", str(self.kubeconfig), "--bind-address", "127.0.0.1")
        self._start(
            "kube-controller-manager",
            *managers,
            *("--secure-port", str(free_port()), "--leader-elect=false"),
            *("--service-account-private-key-file", str(keys)),
            *("--root-ca-file", str(self.authority)),
            # No kubelet says that the node lives.
            "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
        )
        self._start(
            "kube-scheduler", *managers, "--secure-port", str(free_port()), "--leader-elect=false"
        )
        self._make_node()
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's configuration for kubectl."""
        return self.home / "kubeconfig"

    def kubectl(self, *argv: str, text: str = "", fails: bool = False) -> str:
        """Run kubectl as administrator and return its output.

        Raises:
            RuntimeError: it failed, or with `fails` it did not.
        """
        done = subprocess.run(
            [self._kubectl, *argv],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
        )
        if (done.returncode != 0) is not fails:
            raise RuntimeError(f"kubectl {' '.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout + (done.stderr if fails else "")

    def get(self, *argv: str) -> Any:  # noqa: ANN401 - whatever the object is
        """Return an object, or a list's items."""
        found = json.loads(self.kubectl("get", *argv, "-o", "json"))
        return found["items"] if found["kind"].endswith("List") else found

    def set_status(self, kind: str, name: str, namespace: str, status: dict[str, Any]) -> None:
        """Say to the API what a kubelet would say of an object."""
        patch = json.dumps({"status": status})
        argv = ["patch", kind, name, "--subresource=status", "--type=merge", "-p", patch]
        self.kubectl(*argv, *(("-n", namespace) if namespace else ()))

    def _start(self, program: str, *argv: str) -> None:
        with (self.home / f"{program}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen([str(self._binaries / program), *argv], stdout=log, stderr=log)
            )

    def _await_ready(self) -> None:
        until = time.monotonic() + START_S
        command = ["curl", "-sfk", "-H", f"Authorization: Bearer {self._token}"]
        while subprocess.run(
            [*command, f"{self.url}/readyz"], check=False, capture_output=True
        ).returncode:
            died = [p.args for p in self._processes if p.poll() is not None]
            if died or time.monotonic() > until:
                raise RuntimeError(f"the API server is not ready; ended: {died}; see {self.home}")
            time.sleep(0.3)

    def _write_kubeconfig(self) -> None:
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        }
        self.kubeconfig.write_text(json.dumps(config))

    def _make_node(self) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        self.kubectl("apply", "-f", "-", text=json.dumps(node))
        room = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        ready = [{"type": "Ready", "status": "True", "reason": "Made", "message": "by the check"}]
        status = {"capacity": room, "allocatable": room, "conditions": ready}
        self.set_status("node", NODE, "", status)
        self.kubectl("taint", "node", NODE, "node.kubernetes.io/not-ready-", fails=False)
