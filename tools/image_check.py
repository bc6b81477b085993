"""`make image-check`: build both images without a registry or a Docker engine, and run them.

**Invariant:** all files are in one temporary directory, which is removed at the end; also after an
error, no process keeps running and nothing stays mounted.

The base image is Debian by debootstrap (Python 3.13), because there may be no image registry.  So
this checks the Dockerfile, but not the base image that production pins.  It must run as root.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.gcs import GcsServer, free_port  # noqa: E402 - after the path

FILES = 200
WAIT_S = 60.0
UID, GID = 10001, 10000
# This machine's settings for package registries; none of them stays in an image.
OF_THE_HOST = ("/etc/pip.conf", "/opt/wheels", "/etc/ssl/certs/ca-certificates.crt")
NOT_IN_AGENT = (
    *("pip", "pip3", "gcc", "cc", "java", "make", "perl", "jostler-load", "spark-submit"),
    *("sh", "bash", "dash", "apt", "apt-get", "dpkg", "busybox", "su", "mount"),
)


def run(
    *argv: str,
    timeout: float = 120,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    done = subprocess.run(
        argv, text=True, stdout=subprocess.PIPE, check=True, timeout=timeout, env=env, cwd=cwd
    )
    return done.stdout.strip()


def say(text: str) -> None:
    print(f"image-check: {text}", flush=True)


def until(what: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"image-check: {what}: not within {WAIT_S:.0f} s")
        time.sleep(0.05)


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


class Builder:
    """Runs Buildah with its own store below `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        store = ("--root", str(home / "store"), "--runroot", str(home / "run"))
        self.buildah = ("buildah", *store, "--storage-driver", "vfs")

    def base(self) -> None:
        say("base: debootstrap trixie")
        packages = "--include=python3,python3-venv,ca-certificates"
        target = str(self.home / "base")
        run("debootstrap", "--variant=minbase", packages, "trixie", target, timeout=600)
        made = run(*self.buildah, "from", "scratch")
        run(*self.buildah, "copy", "-q", made, target, "/", timeout=300)
        run(*self.buildah, "commit", "-q", "--rm", made, "localhost/base", timeout=300)
        shutil.rmtree(target)

    def build(self, target: str, commit: str) -> None:
        say(f"build: {target}")
        host = [f"--volume={path}:{path}:ro" for path in OF_THE_HOST if Path(path).exists()]
        arguments = ("BASE=localhost/base", "VERSION=0.1.0", f"COMMIT={commit}")
        arguments += ("SOURCE=https://example.org/jostler", "CREATED=2026-01-02T00:00:00Z")
        run(
            *(*self.buildah, "build", "--isolation", "chroot", "--format", "docker"),
            *("--pull-never", "--env", f"PIP_CERT={OF_THE_HOST[-1]}", *host),
            *(f"--build-arg={argument}" for argument in arguments),
            *("--target", target, "-t", f"localhost/{target}", str(ROOT)),
            timeout=1800,
        )

    def unpack(self, target: str) -> tuple[Path, dict[str, Any]]:
        """Return the root file system of an image, and its configuration."""
        made = run(*self.buildah, "from", "--pull-never", f"localhost/{target}")
        found = json.loads(run(*self.buildah, "inspect", "--type", "image", f"localhost/{target}"))
        root = Path(run(*self.buildah, "mount", made))
        for above in root.parents:  # another user's number must find its way
            if above.is_relative_to(self.home) and above != self.home:
                above.chmod(0o711)
        return root, found["Docker"]["config"]


class Container:
    """A program of an image: process 1 of its PID namespace, not root, its root read-only.

    It uses bubblewrap, because runc and crun need cgroups, which a sandbox may not have.
    """

    def __init__(
        self, home: Path, root: Path, config: dict[str, Any], *, args: list[str],
        binds: dict[str, Path] | None = None, env: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.log = Path(tempfile.mkdtemp(dir=home)) / "log"
        self._inside = [
            *("setpriv", "--reuid", str(UID), "--regid", str(GID), "--clear-groups"),
            *("--no-new-privs", "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc"),
            *("--as-pid-1", "--die-with-parent", "--clearenv", "--ro-bind", str(root), "/"),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/"),
        ]
        for inside, outside in (binds or {}).items():
            self._inside += ["--bind", str(outside), inside]
        for pair in (*config["Env"], *(f"{key}={value}" for key, value in (env or {}).items())):
            name, _, value = pair.partition("=")
            self._inside += ["--setenv", name, value]
        with self.log.open("wb") as log:
            argv = (*self._inside, "--", *config["Entrypoint"], *args)
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def exec(self, *argv: str) -> int:
        asked = (*self._inside, "--", *argv)
        done = subprocess.run(asked, check=False, timeout=60, capture_output=True)
        return done.returncode

    def end(self, timeout_s: float = WAIT_S, *, ask: bool = True) -> int:
        """Send SIGTERM to process 1 if `ask`, and return the exit status."""
        if ask:
            outer = self.process.pid
            first = int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
            status = Path(f"/proc/{first}/status").read_text().splitlines()
            assert next(x for x in status if x.startswith("NSpid:")).split()[-1] == "1"
            assert next(x for x in status if x.startswith("Uid:")).split()[1] == str(UID)
            os.kill(first, signal.SIGTERM)
        return self.process.wait(timeout_s)

    def remove(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)


def spool(home: Path, experiment: str) -> Path:
    """Write files and the datatype's schema, owned by the agent's user."""
    made = Path(tempfile.mkdtemp(dir=home))
    day = made / experiment / "speed1" / time.strftime("%Y/%m/%d", time.gmtime())
    day.mkdir(parents=True)
    (made / "datatypes").mkdir()
    fields = [{"name": "Rate", "type": "FLOAT"}, {"name": "UUID", "type": "STRING"}]
    (made / "datatypes/speed1.json").write_text(json.dumps(fields))
    for number in range(FILES):
        (day / f"m{number}.json").write_text(json.dumps({"Rate": number / 7, "UUID": str(number)}))
    own(made)
    return made


def own(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        os.chown(path, UID, GID)


def agent_runs(home: Path, root: Path, config: dict[str, Any], bucket: str, **env: str) -> None:
    """Run the agent on the files, end it with SIGTERM, and check what it stored."""
    files, store = spool(home, "demo"), home / "bucket"
    port = free_port()
    box = Container(
        home, root, config,
        args=["-gcs-bucket", bucket, "-experiment", "demo", "-datatype", "speed1",
              "-node-name", "check", "-settle-age", "1s", "-missed-interval", "2s"],
        binds={"/var/spool": files, str(store): store},
        env={"PROMETHEUSX_LISTEN_ADDRESS": f"127.0.0.1:{port}", **env},
    )  # fmt: skip
    try:
        until(f"the agent does not answer; see\n{box.log.read_text()}",
              lambda: box.exec(*config["Healthcheck"]["Test"][1:]) == 0
              or box.process.poll() is not None)  # fmt: skip
        if box.process.poll() is not None:
            raise SystemExit(box.log.read_text())
        url = f"http://127.0.0.1:{port}/metrics"
        taken = f'jostler_files_taken_total{{datatype="speed1"}} {FILES}.0'
        until("the agent has not taken all files", lambda: taken in page(url))
        status = box.end()
        assert status == 0, (status, box.log.read_text())
    finally:
        box.remove()
    left = list(files.rglob("m*.json"))
    assert not left, f"{len(left)} files were not archived: {box.log.read_text()}"
    shown = bucket if "://" in bucket else f"gs://{bucket}"
    asked = [sys.executable, "-m", "jostler", "verify", shown]
    done = subprocess.run(asked, env=dict(os.environ, **env), cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0, box.log.read_text()
    say(f"agent: {FILES} files through {bucket}, SIGTERM ended it with 0, spool empty, verified")


def agent(home: Path, builder: Builder) -> None:
    root, config = builder.unpack("agent")
    assert config["User"] == f"{UID}:{GID}"
    for name in NOT_IN_AGENT:
        found = [path for path in root.glob(f"*/**/bin/{name}") if path.exists()]
        assert not found, found
    for pattern in ("opt/**/pip", "usr/**/ensurepip", "opt/**/pyspark", "opt/**/loader"):
        assert not list(root.glob(pattern)), pattern
    say("agent: no shell, package manager, compiler, Java, Spark or loader")
    check_description(root, config, "jostler")
    agent_runs(home, root, config, f"file://{home}/bucket")
    with GcsServer() as server:
        server.create_bucket("check")
        agent_runs(home, root, config, "check", STORAGE_EMULATOR_HOST=server.url)


def check_description(root: Path, config: dict[str, Any], name: str) -> None:
    """Check the image's labels and its list of parts (SBOM) against its content."""
    labels = config["Labels"]
    wanted = ("title", "description", "licenses", "version", "revision", "created", "source")
    missing = [w for w in (*wanted, "documentation", "base.name", "base.digest")
               if f"org.opencontainers.image.{w}" not in labels]  # fmt: skip
    assert not missing, missing
    bill = json.loads((root / "opt/jostler/sbom.cdx.json").read_text())
    parts = {(part["purl"].split("/")[0], part["name"]) for part in bill["components"]}
    assert {("pkg:pypi", "jostler"), ("pkg:pypi", "orjson"), ("pkg:deb", "libc6")} <= parts
    say(f"{name}: {len(parts)} parts in its list, all labels")


def loader(home: Path, builder: Builder) -> None:
    """Load what the agent stored into an embedded BigQuery, with Spark local[*]."""
    from embedded import EmbeddedBigQuery  # noqa: PLC0415 - only here

    root, config = builder.unpack("loader")
    check_description(root, config, "jostler-loader")
    with EmbeddedBigQuery(home / "bigquery") as server:
        box = Container(
            home, root, config, binds={f"{home}/bucket": home / "bucket"},
            args=["--bucket",
                  f"file://{home}/bucket", "--project", "check", "--master", "local[*]"],
            env={"BIGQUERY_EMULATOR_HOST": server.url},
        )  # fmt: skip
        try:
            status = box.end(600, ask=False)
        finally:
            box.remove()
    print(box.log.read_text())
    assert status == 0, status
    assert str(FILES) in box.log.read_text()
    say("loader: jostler-load with local[*] ended with 0, read-only root, not root")


def sizes(builder: Builder) -> None:
    for name in ("base", "agent", "loader"):
        root = builder.unpack(name)[0]
        used = int(run("du", "-sxm", str(root)).split()[0])
        say(f"size: {name} {used} MiB on disk")


def main() -> int:
    if os.geteuid() != 0:
        raise SystemExit("image-check: needs root: debootstrap, mounts, another user's number")
    run(str(Path(sys.executable).with_name("hadolint")), str(ROOT / "Dockerfile"))
    commit = run("git", "-C", str(ROOT), "rev-parse", "HEAD")
    home = Path(tempfile.mkdtemp(prefix="jostler-image-"))
    home.chmod(0o755)
    (home / "bucket").mkdir()
    os.chown(home / "bucket", UID, GID)
    builder = Builder(home)
    try:
        builder.base()
        for target in ("agent", "loader"):
            builder.build(target, commit)
        sizes(builder)
        agent(home, builder)
        loader(home, builder)
    finally:
        subprocess.run((*builder.buildah, "umount", "--all"), check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)
    say("all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
