"""What can be said of the images without building them; `make image-check` builds and runs them."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE_LOCKS = ["requirements-agent.lock", "requirements-build.lock", "requirements-loader.lock"]
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)
OUTSIDE = """
import importlib, json, pkgutil, sys
import jostler
optional = ("jostler.archive.bigquery_", "jostler.archive.serve.",  # extras of their own
            "jostler.archive.audit.bigquery_",
            "jostler.producer.collect.collector", "jostler.producer.collect.fetching")
for module in pkgutil.walk_packages(jostler.__path__, "jostler."):
    if not module.name.endswith("__main__") and not module.name.startswith(optional):
        importlib.import_module(module.name)
from importlib.metadata import packages_distributions
owners = packages_distributions()
roots = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted({d.lower().replace("_", "-") for r in roots for d in owners.get(r, [])
                         if r != "google"})), json.dumps("loader" in roots))
"""
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://driver",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1g",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_EXECUTOR_POD_IP": "192.0.2.1",
    "SPARK_EXECUTOR_POD_NAME": "pod",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    **{f"SPARK_JAVA_OPT_{n}": f"-Dn={n}" for n in range(11)},
}


def pins(name: str) -> set[tuple[str, str]]:
    """Return name and version; a name has two where Pythons differ."""
    return set(PIN.findall((ROOT / name).read_text()))


def names(name: str) -> set[str]:
    return {package for package, _ in pins(name)}


def entry(arguments: list[str], environ: dict[str, str]) -> list[str]:
    command = runpy.run_path(str(ROOT / "images/spark_entrypoint.py"))["command"]
    found = command(arguments, environ)
    assert isinstance(found, list)
    return found


def test_the_dockerfile_has_no_fault_that_hadolint_knows() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("lock", IMAGE_LOCKS)
def test_an_image_is_built_from_versions_that_the_tests_ran_with(lock: str) -> None:
    found = pins(lock)
    assert found
    assert found <= pins("requirements.lock")


@pytest.mark.parametrize("lock", IMAGE_LOCKS)
def test_a_lock_has_a_hash_for_each_package_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(pins(lock))
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_agent_loads_nothing_that_its_image_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", OUTSIDE],
        capture_output=True, text=True, timeout=100, check=True, cwd=ROOT,
    )  # fmt: skip
    line = done.stdout.splitlines()[-1]
    loaded, end = json.JSONDecoder().raw_decode(line)
    there = names("requirements-agent.lock") | {"jostler"}
    used_if_there = {"grpcio", "grpcio-status", "pysocks"}  # by google-api-core and urllib3
    tools_of_the_tests = {"coverage", "setuptools", "setuptools-scm"}
    assert "orjson" in loaded
    assert set(loaded) - there - used_if_there - tools_of_the_tests == set()
    assert json.loads(line[end:]) is False


def test_the_agents_image_has_neither_spark_nor_bigquery() -> None:
    heavy = {"pyspark", "pandas", "pyarrow", "google-cloud-bigquery", "duckdb"}
    assert not heavy & names("requirements-agent.lock")


def test_an_executor_gets_what_spark_says_with_options_in_the_order_of_their_numbers() -> None:
    argv = entry(["executor"], EXECUTOR)
    assert argv[0] == "/usr/bin/java"
    assert argv[1:12] == [f"-Dn={n}" for n in range(11)]
    assert "-Xmx1g" in argv
    assert argv[argv.index("-cp") + 1] == "/opt/spark/conf:/opt/spark/jars/*"
    assert argv[argv.index("--podName") + 1] == "pod"


def test_a_driver_of_the_operator_is_a_submission_in_client_mode() -> None:
    argv = entry(["driver", "local:///job.py", "--x"], {"SPARK_DRIVER_BIND_ADDRESS": "192.0.2.1"})
    assert argv == [
        *("spark-submit", "--conf", "spark.driver.bindAddress=192.0.2.1"),
        *("--deploy-mode", "client", "local:///job.py", "--x"),
    ]


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ([], ["jostler-load"]),
        (["--bucket", "gs://b"], ["jostler-load", "--bucket", "gs://b"]),
        (["spark-submit", "job.py"], ["spark-submit", "job.py"]),
        (["jostler", "verify", "gs://b"], ["jostler", "verify", "gs://b"]),
    ],
)
def test_any_other_word_is_the_loaders(given: list[str], started: list[str]) -> None:
    assert entry(given, {}) == started


def test_the_health_check_is_well_where_the_server_is_switched_off() -> None:
    """An empty address is the operator's wish; an address where nobody answers is a fault."""
    asked = [sys.executable, "-m", "jostler", "status", "-health"]
    for address, status in (("", 0), ("127.0.0.1:1", 2)):
        done = subprocess.run(
            asked, env={"PROMETHEUSX_LISTEN_ADDRESS": address}, timeout=60, check=False, cwd=ROOT,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == status
