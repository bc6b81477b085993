"""What a start of the agent loads: each module and each dataclass costs every start its time."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.agent import arguments, environment
from tests.support.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.gcs import GcsServer

PROGRAM = """
import sys
from jostler.cli.main import main
status = main(sys.argv[1:])
ours = [m for name, m in list(sys.modules.items()) if name.startswith("jostler.")]
made = {f"{v.__module__}.{v.__name__}" for m in ours for v in vars(m).values()
        if isinstance(v, type) and "__dataclass_fields__" in vars(v)}
print("MODULES", *sys.modules)
print("DATACLASSES", *made)
sys.exit(status)
"""
# Outside the standard library.  `google` is the namespace of the client; Python's own site may load
# the finder of an installation in place.
MAY_LOAD = {"inotify_simple", "isal", "jostler", "jostler_native", "msgspec", "orjson"}
MAY_LOAD |= {"typing_extensions", "zlib_ng", "_distutils_hack"}
# Of the standard library, what takes milliseconds and needs a server, a child or an old package.
NEVER = {"asyncio", "argparse", "email", "http", "multiprocessing", "ssl", "subprocess", "xml"}
# These are values that other rooms copy with `dataclasses.replace`.
DATACLASSES = {
    "jostler.agent.view.View",
    "jostler.bundle.bundle.Attempt",
    "jostler.bundle.bundle.Bundle",
    "jostler.bundle.bundle.Header",
    "jostler.bundle.job.UploadJob",
    "jostler.bundle.record.Record",
    "jostler.format.names.BundleName",
    "jostler.format.names.Place",
    "jostler.schema.asset.Asset",
    "jostler.schema.fields.Field",
    "jostler.schema.flaw.Flaw",
    "jostler.storage.bucket.ObjectInfo",
    "jostler.storage.bucket.StoredObject",
}


def test_a_start_loads_only_what_the_run_needs(tmp_path: Path) -> None:
    """An agent that archives a file to a directory loads no client, no server, no old packages."""
    day = tmp_path / "spool/exp/foo/2026/01/02"
    day.mkdir(parents=True)
    (tmp_path / "bucket").mkdir()
    (day / "a.json").write_bytes(b'{"N":1}')
    schema = tmp_path / "foo.json"
    schema.write_bytes(b'[{"name":"N","type":"INTEGER"}]')
    flags = {
        "-gcs-bucket": (tmp_path / "bucket").as_uri(),
        "-local-data-dir": str(tmp_path / "spool"),
        "-state-dir": str(tmp_path / "state"),
        "-experiment": "exp",
        "-datatype": "foo",
        "-datatype-schema-file": f"foo:{schema}",
        "-mlab-node-name": "mlab1-lga01.mlab-sandbox.measurement-lab.org",
        "-missed-age": "0s",
    }
    argv = [word for pair in flags.items() for word in pair]

    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, "-once", *argv],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert not (day / "a.json").exists()
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line[0] in "MD")
    roots = {name.partition(".")[0] for name in said["MODULES"].split()}
    foreign = {name for name in roots if not name.startswith("__editable__")} - {"__main__"}
    assert foreign - set(sys.stdlib_module_names) <= MAY_LOAD
    assert not roots & NEVER
    assert set(said["DATACLASSES"].split()) <= DATACLASSES


def test_an_agent_over_http_loads_no_grpc(tmp_path: Path, gcs: GcsServer) -> None:
    """The loader needs it and Google's packages would import it: 9 MB, and a tenth of a start."""
    assert importlib.util.find_spec("grpc"), "nothing is tested where it is not installed"
    spool = Spool(tmp_path / "spool")
    spool.write_many(1)
    gcs.create_bucket("no-grpc")

    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, "-once", *arguments(spool, "no-grpc")],
        capture_output=True,
        text=True,
        check=False,
        env=environment(gcs.url),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert spool.left() == []
    modules = next(line for line in done.stdout.splitlines() if line.startswith("MODULES"))
    assert "google.cloud.storage" in modules.split()
    assert "grpc" not in modules.split()
