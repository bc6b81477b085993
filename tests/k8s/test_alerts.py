"""The alerts: correct, tested, explained, and about metrics that exist."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from jostler.cli.command_line import configure, parse_flags
from jostler.format.bigquery_names import TableName
from jostler.format.names import REJECTED
from jostler.schema import REJECTED1_FIELDS, table_schema
from loader.bigquery.ask import ask, connect
from loader.bigquery.ledger import Ledger
from loader.bigquery.warehouse import Warehouse, api_schema
from tests.k8s.manifests import K8S, ROOT, run, tool
from tests.k8s.metrics import FOREIGN, asked_for, documented
from tests.loader.world import BigQueryServer

if TYPE_CHECKING:
    from pathlib import Path

SPEC: dict[str, Any] = yaml.safe_load((K8S / "monitoring/prometheusrule.yaml").read_text())["spec"]
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in SPEC["groups"] for rule in group["rules"]
}
CASES = sorted((K8S / "monitoring/tests").glob("*.yaml"))
RUNBOOK = ROOT / "docs/runbook.md"
# The contract of /status.json; each code is a heading of the runbook.
CODES = (
    *("uploads_failing", "agent_stuck", "not_ready", "oldest_too_old", "rejects"),
    *("disk_low", "disk_fills", "memory_full", "watch_degraded", "overflow", "undeletable"),
    *("disk_lack", "files_given_up"),
)
PARTS = ("Means", "Data in danger?", "First look", "Do", "Escalate", "Over when")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The rules as Prometheus gets them from the operator, and their tests beside them."""
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump(SPEC))
    for case in CASES:
        shutil.copy(case, tmp_path)
    return path


def test_prometheus_accepts_the_rules(rules: Path) -> None:
    """Expressions, durations and the templates of annotations."""
    assert f"{len(ALERTS)} rules found" in run(tool("promtool"), "check", "rules", rules)


def test_alertmanager_accepts_the_runbooks_example(tmp_path: Path) -> None:
    """It is complete: routes, inhibition and receivers."""
    (example,) = re.findall(r"```yaml\n(route:.*?)```", RUNBOOK.read_text(), re.DOTALL)
    path = tmp_path / "alertmanager.yml"
    path.write_text(example)

    assert "2 receivers" in run(tool("amtool"), "check-config", path)


def test_a_fleets_alert_outlasts_those_of_its_last_nodes() -> None:
    """It inhibits them; if it ended first, each straggler would send a message of its own."""
    example = RUNBOOK.read_text().partition("inhibit_rules:")[2]
    fleets = re.findall(r'source_matchers: \[\'alertname="(\w+)"', example)

    assert len(fleets) >= 2
    assert {ALERTS[name].get("keep_firing_for") for name in fleets} == {"15m"}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_alerts_fire_when_they_should_and_only_then(rules: Path, case: Path) -> None:
    """Each test names all alerts that fire at a moment; one more or less is a failure."""
    run(tool("promtool"), "test", "rules", case.name, cwd=rules.parent)


@pytest.mark.long
def test_a_wrong_expectation_fails(rules: Path) -> None:
    """Else the tests would prove nothing."""
    case = rules.parent / "uploads.yaml"
    case.write_text(case.read_text().replace("JostlerNoSuccess", "JostlerMemoryFull"))
    with pytest.raises(AssertionError, match="FAILED"):
        run(tool("promtool"), "test", "rules", case.name, cwd=rules.parent)


def cases(name: str) -> list[dict[str, Any]]:
    """Return the tests of a file."""
    found: list[dict[str, Any]] = yaml.safe_load((K8S / f"monitoring/tests/{name}").read_text())[
        "tests"
    ]
    return found


def test_every_alert_is_seen_firing_and_silent() -> None:
    """It fires in some test; and where all is well none does, though all metrics are there."""
    fired = {
        alert
        for case in CASES
        for test in cases(case.name)
        for asked in test["promql_expr_test"]
        for alert in re.findall(r'alertname="(\w+)"', str(asked["exp_samples"]))
    }
    assert fired == set(ALERTS)
    (well,) = cases("well.yaml")
    assert all(asked["exp_samples"] == [] for asked in well["promql_expr_test"])
    there = {name for series in well["input_series"] for name in asked_for(series["series"])}
    assert {name for rule in ALERTS.values() for name in asked_for(rule["expr"])} <= there


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_leads_to_its_section(name: str) -> None:
    """Whoever is woken reads what is wrong, and is led to what to do."""
    notes = ALERTS[name]["annotations"]
    assert notes["runbook_url"].endswith(f"/runbook.md#{name.lower()}")
    assert len(re.sub(r"\{\{.*?\}\}", "something", notes["summary"])) <= 100
    assert notes["summary"] != notes["description"]


def sections() -> dict[str, str]:
    """Return the sections of the runbook by heading."""
    parts = re.split(r"^##+ (.+)$", RUNBOOK.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    """And every problem code of /status.json has one too."""
    headings = set(sections())
    assert {heading for heading in headings if heading.startswith("Jostler")} == set(ALERTS)
    assert {code.replace("_", "-") for code in CODES} <= headings


@pytest.mark.parametrize("heading", [*ALERTS, *(code.replace("_", "-") for code in CODES)])
def test_every_section_can_be_followed_at_night(heading: str) -> None:
    """What it means, whether data is in danger, what to look at and do, and when it is over."""
    text = sections()[heading]
    if heading in ALERTS:
        assert f"({ALERTS[heading]['labels']['severity']})" in text
        assert [part for part in PARTS if f"**{part}**" not in text] == []
    else:
        assert re.search(r"\(#jostler\w+\)", text), "leads to the alert that says what to do"


def blocks(language: str) -> list[str]:
    """Return the code blocks of the runbook."""
    found = re.findall(
        rf"^```{language}\n(.*?)^```$", RUNBOOK.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found
    return found


def test_the_runbooks_expressions_can_be_pasted(tmp_path: Path) -> None:
    """Prometheus understands them, and their metrics exist."""
    made = [{"record": f"block:{at}", "expr": text} for at, text in enumerate(blocks("promql"))]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "runbook", "rules": made}]}))
    run(tool("promtool"), "check", "rules", path)
    assert set().union(*(asked_for(text) for text in blocks("promql"))) <= documented()


def test_the_runbooks_commands_are_shell() -> None:
    """Each block parses; what they do only a cluster can tell."""
    for text in blocks("sh"):
        run("bash", "-n", "-c", text)


@pytest.mark.slow
def test_the_runbooks_questions_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BigQuery takes each of them, on the tables that agent and loader make."""
    server = BigQueryServer(tmp_path, "http://127.0.0.1:1")
    try:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
        warehouse = Warehouse("p", "US", 20.0)
        Ledger(warehouse, "jostler").prepare()
        name = TableName(project="p", dataset="demo_raw", table=REJECTED, wanted="demo_raw")
        warehouse.make_dataset("p", "demo_raw", "")
        warehouse.create_table(name, {"schema": api_schema(table_schema(REJECTED1_FIELDS))})
        warehouse.close()
        client = connect("p")
        for text in blocks("sql"):
            ask(client, text)
        client.close()
    finally:
        server.stop()


def test_every_metric_of_the_alerts_exists() -> None:
    """As its page describes it, so a renamed one cannot silence an alert."""
    asked = {name for rule in ALERTS.values() for name in asked_for(rule["expr"])}
    assert asked - FOREIGN <= documented()


def test_files_that_wait_as_they_should_wake_nobody() -> None:
    """Thresholds lie above what the agent's own defaults allow."""
    argv = ["-gcs-bucket", "b", "-node-name", "n", "-experiment", "e", "-datatype", "d1"]
    config = configure(parse_flags(argv, {}), lambda path: "")
    bundle_s = config.limits.max_age_s
    # What no event announced, and is bad, is taken by the first scan after -missed-age.
    missed_s = config.missed_age_s + 1.25 * config.missed_interval_s
    assert seconds(ALERTS["JostlerOldestFileTooOld"]) > missed_s + bundle_s
    assert seconds(ALERTS["JostlerNoSuccess"]) >= 3 * bundle_s


def seconds(rule: dict[str, Any]) -> float:
    """Return the first number of seconds that an expression compares with."""
    return float(re.findall(r"> ([0-9]{4,})", rule["expr"])[0])


def test_the_disk_alarms_come_before_kubernetes_acts() -> None:
    """The kubelet's default is to evict below 10 % of nodefs."""
    for name in ("JostlerDiskLow", "JostlerDiskNearlyFull"):
        assert float(ALERTS[name]["expr"].rpartition("< ")[2]) > 0.1
