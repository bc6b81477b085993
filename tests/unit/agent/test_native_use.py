"""The agent uses the native module for index rows, if it may."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from jostler.agent.agent import Agent
from jostler.agent.schema_sync import read_schemas
from jostler.cli.command_line import configure, parse_flags
from jostler.schema import Use
from jostler.schema.native import find
from jostler.watchdir import scan_once

if TYPE_CHECKING:
    from pathlib import Path

NATIVE = find(Use.AUTO)
REAL = NATIVE.module


class Watched:
    """The native module; it remembers the paths of the index rows that it wrote."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def index_rows(self, paths: list[str], *columns: Any, **told: Any) -> Any:  # noqa: ANN401
        self.paths += paths
        return REAL.index_rows(paths, *columns, **told)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(REAL, name)


@pytest.mark.skipif(not REAL, reason=NATIVE.why_not)
@pytest.mark.parametrize("use", ["auto", "off"])
def test_index_rows_are_written_by_the_module_unless_it_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    spool, bucket = tmp_path / "spool", tmp_path / "bucket"
    file = spool / "e" / "foo1" / "2026" / "01" / "02" / "a.json"
    for directory in (file.parent, spool / "datatypes", bucket):
        directory.mkdir(parents=True)
    file.write_bytes(b'{"a":"x"}')
    (spool / "datatypes" / "foo1.json").write_text('[{"name":"a","type":"STRING"}]')
    flags = ["-gcs-bucket", bucket.as_uri(), "-node-name", "n", "-experiment", "e", "-once"]
    flags += ["-datatype", "foo1", "-local-data-dir", str(spool), "-native", use]
    config = configure(parse_flags([*flags, "-missed-age", "0s"], {}), str)
    module = Watched()
    monkeypatch.setitem(sys.modules, "jostler_native", module)

    with scan_once([str(spool / "e" / "foo1")], extensions=config.extensions) as arrivals:
        tables = read_schemas(config.datatypes)
        stop = threading.Event()
        assert Agent(config, tables, arrivals, stop=stop, abort=stop).run()

    assert not file.exists()
    assert ("foo1/2026/01/02/a.json" in module.paths) is (use == "auto")
