"""Whether the native module is used, as the status page and the metrics show it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest

from jostler.agent.observe.document import document
from jostler.agent.observe.exposition import registry
from jostler.agent.observe.page import render
from jostler.agent.observe.status import Status
from jostler.cli.command_line import configure, parse_flags
from jostler.schema import Native, Use
from jostler.schema.native import find

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = Native(use=Use.AUTO, why_not="jostler-native cannot be imported: <b>")


@pytest.mark.parametrize("native", [find(Use.OFF), find(Use.AUTO), BROKEN])
def test_what_is_used_is_shown(native: Native, tmp_path: Path) -> None:
    """With the reason, if it could not be used; in metrics only the version, or none."""
    flags = ["-gcs-bucket", "b", "-node-name", "n", "-experiment", "e", "-datatype", "d1"]
    flags += ["-local-data-dir", str(tmp_path)]
    status = Status(configure(parse_flags(flags, {}), str), lambda _: {}, native)

    shown = document(status)

    assert shown["agent"]["native"] == native.description
    assert html.escape(native.description) in render(shown).decode()
    metrics = generate_latest(registry(status)).decode()
    (info,) = [line for line in metrics.splitlines() if line.startswith("jostler_build_info{")]
    assert f'native="{native.version}"' in info
