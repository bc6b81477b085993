"""Real measurements are read back as they are stored; run only where the data is there."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from jostler.archive.hashes import digest
from jostler.cli.main import main
from jostler.format.row import BOM, one_line
from tests.support.agent import run
from tests.support.bucket import url_of

DATA = Path(__file__).parents[3] / "shared" / "data"
ARCHIVE = DATA / "ndt7-2020-03-18.tar.gz"
OTHERWISE = 4

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="the real data is not here")


def written_otherwise(directory: Path) -> None:
    """Add some of the files as other writers of JSON would have written them."""
    for path in sorted(directory.rglob("*.json"))[:OTHERWISE]:
        content = path.read_bytes()
        pretty = content.replace(b'{"', b'{\n  "').replace(b',"', b',\n  "') + b"\n"
        path.with_name(f"pretty-{path.name}").write_bytes(pretty)
        path.with_name(f"crlf-{path.name}").write_bytes(pretty.replace(b"\n", b"\r\n"))
        path.with_name(f"bom-{path.name}").write_bytes(BOM + content)


def test_real_ndt7_results_are_read_back_byte_for_byte(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone by `cat`, and all by `retrieve`; every Hash is that of what is given back.

    So are some of them pretty-printed, with CRLF, and with a byte order mark: numbers keep their
    digits, for nobody parses them.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    spool = tmp_path / "spool"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(spool / "ndt" / "ndt7", filter="data")
    written_otherwise(spool / "ndt" / "ndt7")
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
    assert len(rows) == 80 + 3 * OTHERWISE
    for row in rows:
        raw = one_line((originals / "ndt7" / row["Filename"]).read_bytes())
        assert main(["cat", row["Address"]]) == 0
        assert capsysbinary.readouterr().out == raw
        assert row["Hash"] == digest(raw)

    days = ("-first-day", "2020-01-01", "-last-day", "2020-12-31")
    assert main(["retrieve", *where, *days, str(tmp_path / "to")]) == 0
    assert "without a hash" not in capsysbinary.readouterr().err.decode()
    for path in originals.rglob("*.json"):
        copy = tmp_path / "to" / path.relative_to(originals)
        assert copy.read_bytes() == one_line(path.read_bytes())
