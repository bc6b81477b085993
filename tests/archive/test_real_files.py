"""Real measurements are read back as they are stored; run only where the data is there."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from jostler.archive.reading import digest
from jostler.cli.main import main
from jostler.format.row import one_line
from tests.support.agent import run
from tests.support.bucket import url_of

DATA = Path(__file__).parents[3] / "shared" / "data"
ARCHIVE = DATA / "ndt7-2020-03-18.tar.gz"

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="the real data is not here")


def test_real_ndt7_results_are_read_back_byte_for_byte(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone by `cat`, and all by `retrieve`; every Hash is that of what is given back."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    spool = tmp_path / "spool"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(spool / "ndt" / "ndt7", filter="data")
    originals = shutil.copytree(spool / "ndt", tmp_path / "originals")
    (spool / "datatypes").mkdir(parents=True)
    shutil.copy(DATA / "ndt7.schema.json", spool / "datatypes" / "ndt7.json")
    argv = ["-gcs-bucket", url_of(tmp_path / "bucket"), "-experiment", "ndt", "-datatype", "ndt7"]
    argv += ["-node-name", "node1", "-local-data-dir", str(spool), "-once", "-missed-age", "0s"]
    done = run(*argv, "-prometheusx.listen-address", "")
    assert done.returncode == 0, done.stderr
    where = ("-bucket", url_of(tmp_path / "bucket"), "-experiment", "ndt")

    assert main(["list", *where, "-format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert len(rows) == 80
    for row in rows:
        raw = one_line((originals / "ndt7" / row["Filename"]).read_bytes())
        assert main(["cat", row["Address"]]) == 0
        assert capsysbinary.readouterr().out == raw
        assert row["Hash"] == digest(raw)

    days = ("-first-day", "2020-01-01", "-last-day", "2020-12-31")
    assert main(["retrieve", *where, *days, str(tmp_path / "to")]) == 0
    for path in originals.rglob("*.json"):
        copy = tmp_path / "to" / path.relative_to(originals)
        assert copy.read_bytes() == one_line(path.read_bytes())
