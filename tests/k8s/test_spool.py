"""Two users share a spool: the containers' own scripts, run as the users of the manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.k8s.manifests import K8S, Doc, built, containers, environment, one

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WRITTEN = 3
MAIN = "import sys; from jostler.cli.main import main; sys.exit(main())"


class Pod:
    """The pod's containers as plain processes, with a directory as its volume."""

    def __init__(self, docs: list[Doc], root: Path) -> None:
        self._docs = docs
        self._spec = one(docs, "DaemonSet")["spec"]["template"]["spec"]
        self._root = root
        self.spool = root / "spool"
        self.bucket = root / "bucket"
        self.kinds = {
            key for volume in self._spec["volumes"] if volume["name"] == "spool" for key in volume
        } - {"name"}

    def run(self, name: str, *arguments: str, **more: str) -> None:
        """Run a container's command as its user, with this machine's Python; it must succeed."""
        container = containers(self._spec)[name]
        user = container["securityContext"]["runAsUser"]
        added = container["securityContext"]["capabilities"].get("add", ())
        group = self._spec["securityContext"]["fsGroup"] if user else 0
        environ = {"PATH": os.environ["PATH"]} | environment(container, self._docs) | more
        here = [text.replace("/var/spool", str(self.spool)) for text in arguments]
        done = subprocess.run(
            [*become(user, group, added), sys.executable, *here],
            env={key: text.replace("/var/spool", str(self.spool)) for key, text in environ.items()},
            umask=0o022,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"

    def script(self, name: str) -> None:
        """Run an init container that is a script."""
        container = containers(self._spec)[name]
        assert container["command"] == ["python3", "-c"]
        self.run(name, "-c", *container["args"])

    def agent(self) -> None:
        """Run the agent over what is there."""
        self.run(
            "jostler",
            *("-c", MAIN, "-once", "-missed-age", "0s"),
            GCS_BUCKET=f"file://{self.bucket}",
            LOCAL_DATA_DIR=str(self.spool),
            DATATYPE_SCHEMA_FILE=f"speed1:{self._root}/speed1.json",
        )

    def service(self) -> None:
        """Let the sample service write a few measurements."""
        program = self._root / "sample_service.py"
        self.run("sample", str(program), COUNT=str(WRITTEN), INTERVAL_S="0.01")


def become(user: int, group: int, capabilities: Iterable[str]) -> list[str]:
    """Return the words that run a program as somebody with these capabilities and no others.

    Python may be installed where others may not look, so they may read everything.  What this is
    about is writing and deleting.
    """
    caps = ",".join(["-all", "+dac_read_search", *(f"+{name.lower()}" for name in capabilities)])
    whose = [f"--reuid={user}", f"--regid={group}", f"--groups={group}"]
    return [
        "setpriv",
        *whose,
        f"--inh-caps={caps}",
        f"--ambient-caps={caps}",
        f"--bounding-set={caps}",
    ]


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory that other users may enter; pytest's own they may not."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root, with setpriv, can run the containers as other users")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        shutil.copy(K8S / "base/agent/sample_service.py", place)
        shutil.copy(K8S / "base/agent/datatypes/speed1.json", place)
        for path in place.iterdir():
            path.chmod(0o644)
        yield place


@pytest.fixture(params=["sandbox", "production"])
def pod(request: pytest.FixtureRequest, root: Path) -> Pod:
    """A pod of an overlay, with its volume as the kubelet would hand it over."""
    made = Pod(built(K8S / "overlays" / request.param), root)
    made.spool.mkdir(mode=0o755)
    if made.kinds == {"emptyDir"}:  # fsGroup: owned by the group, setgid, writable for it
        os.chown(made.spool, 0, 10000)
        made.spool.chmod(0o2777)
    made.bucket.mkdir()
    os.chown(made.bucket, 10001, 10000)
    return made


def test_the_agent_may_delete_what_the_service_writes(pod: Pod) -> None:
    """Twice over, as after a restart of the pod on the same volume."""
    for _ in range(2):
        if pod.kinds == {"hostPath"}:
            pod.script("spool-owner")
        pod.script("spool-dirs")
        pod.agent()
        pod.service()
        assert len(list(pod.spool.rglob("*.json"))) == WRITTEN
        pod.agent()
        assert not list(pod.spool.rglob("*.json"))
    assert len(list(pod.bucket.rglob("*-data.jsonl.gz"))) == 2
    assert not list(pod.bucket.rglob("*rejected1*.jsonl.gz"))
