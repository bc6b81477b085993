"""The dashboard: what Grafana reads, with queries that Prometheus understands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.k8s.manifests import K8S, built, one, run, tool
from tests.k8s.metrics import FOREIGN, asked_for, documented

if TYPE_CHECKING:
    from pathlib import Path

DASHBOARD: dict[str, Any] = json.loads((K8S / "monitoring/dashboards/jostler.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
DRAWN = [panel for panel in PANELS if panel["type"] != "row"]
VARIABLES = {variable["name"] for variable in DASHBOARD["templating"]["list"]}


def queries() -> list[str]:
    """Return all queries, with values in place of variables."""
    found = [target["expr"] for panel in DRAWN for target in panel["targets"]]
    for name in (*VARIABLES, "__rate_interval"):
        found = [query.replace(f"${name}", "5m") for query in found]
    return found


def test_grafana_finds_what_it_needs() -> None:
    """Identity, schema, panels that are told apart and explained."""
    assert DASHBOARD["uid"]
    assert DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"] >= 36
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel in DRAWN:
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["title"]
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_panels_lie_beside_each_other() -> None:
    """On the grid of 24 columns, none over another."""
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    """As rules that record them, for its checker checks rules."""
    made = [{"record": f"panel:query{at}", "expr": query} for at, query in enumerate(queries())]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": made}]}))
    assert f"{len(made)} rules found" in run(tool("promtool"), "check", "rules", path)


def test_no_variable_is_unknown() -> None:
    """A misspelt one would be taken for text."""
    assert not [query for query in queries() if "$" in query]


@pytest.mark.parametrize("panel", DRAWN, ids=lambda panel: panel["title"])
def test_every_metric_of_the_dashboard_exists(panel: dict[str, Any]) -> None:
    """As its page describes it."""
    asked = {name for target in panel["targets"] for name in asked_for(target["expr"])}
    assert asked
    assert asked - FOREIGN <= documented()


def test_grafanas_sidecar_loads_it() -> None:
    """From a ConfigMap with the label that it looks for."""
    config = one(built(K8S / "monitoring"), "ConfigMap", "jostler-dashboard")
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config["data"]["jostler.json"]) == DASHBOARD
