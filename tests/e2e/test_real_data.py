"""Real measurements go through whole; run only where the data lies beside the project."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.agent import RunningAgent
from tests.support.bucket import problems, rows, url_of

if TYPE_CHECKING:
    from tests.support.gcs import GcsServer

DATA = Path(__file__).parents[3] / "shared" / "data"
ARCHIVE = DATA / "ndt7-2020-03-18.tar.gz"

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="the real data is not here")


@pytest.mark.parametrize("kind", ["directory", "gcs"])
def test_real_ndt7_results_are_archived_as_data(
    tmp_path: Path, gcs: GcsServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written while the agent runs, half by rename: one data bundle holds each, bytes unchanged."""
    bucket = url_of(tmp_path / "bucket")
    if kind == "gcs":
        bucket = "real"
        gcs.create_bucket(bucket)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    originals = tmp_path / "originals" / "ndt7"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(originals, filter="data")
    files = sorted(path for path in originals.rglob("*") if path.is_file())
    spool = tmp_path / "spool"
    (spool / "datatypes").mkdir(parents=True)
    shutil.copy(DATA / "ndt7.schema.json", spool / "datatypes" / "ndt7.json")
    argv = ["-gcs-bucket", bucket, "-experiment", "ndt", "-datatype", "ndt7", "-log-format", "json"]
    argv += ["-mlab-node-name", "mlab4-knw01.mlab-oti.measurement-lab.org"]
    argv += ["-local-data-dir", str(spool), "-bundle-age-max", "1s", "-settle-age", "200ms"]
    with RunningAgent(*argv) as agent:
        agent.wait_for("agent.started")
        for number, path in enumerate(files):
            target = spool / "ndt" / "ndt7" / path.relative_to(originals)
            target.parent.mkdir(parents=True, exist_ok=True)
            if number % 2:
                target.write_bytes(path.read_bytes())
            else:
                hidden = target.with_name(f".{target.name}")
                hidden.write_bytes(path.read_bytes())
                hidden.rename(target)
        while any(path.is_file() for path in (spool / "ndt" / "ndt7").rglob("*")):
            agent.wait_for("bundle.stored")
        assert agent.stop() == 0

    assert problems(bucket, originals.parent) == []
    assert len(rows(bucket, "ndt7")) == len(files) == 80
    assert rows(bucket, "rejected1") == []
    assert {p.name for p in (spool / ".jostler-ndt").iterdir()} <= {"lock", "reserve", "vanished"}
