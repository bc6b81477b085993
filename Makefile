# Every target sets up what it needs; a fresh clone wants only python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WORKERS ?= 6
READY  := $(VENV)/.ready

# Installs a Debian package if this user may; a fresh machine may lack what the tests need.
apt = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
  && apt-get update -qq && apt-get install -qq -y $(1) >/dev/null; }

PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup native rust fuzz-native java chromium systemd k8s-tools k8s-check k8s-real check lint types test check-long coverage format lock image-check demo screenshot bench bench-keeping bench-loader bench-query bench-records model torture torture-compact torture-keeping clients clean without-native

help: ## show the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: set PYTHON=python3.11 or newer"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(call apt,python3-venv) \
	  || { echo "python3 cannot make a virtual environment: install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY) native ## make the virtual environment from the lock file, and the native module where cargo is

# The native module is optional: without a cargo that is new enough all works, and files are judged more slowly.
RUST_MIN := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' native/Cargo.toml)
rust = export PATH="$(CURDIR)/$(BIN):$$PATH:$$HOME/.cargo/bin"; cd native
rust_is_new = printf '%s\n' $(RUST_MIN) "$$(cargo --version 2>/dev/null | cut -d' ' -f2)" | sort -VC
NATIVE := $(VENV)/.native

$(NATIVE): $(READY) native/Cargo.toml native/Cargo.lock native/pyproject.toml $(wildcard native/src/*.rs)
	@$(rust); slower="the native module is not built, so files are judged more slowly"; \
	if ! $(rust_is_new); then echo "$$slower: install cargo $(RUST_MIN) or newer"; \
	elif python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .; then touch "$(CURDIR)/$@"; \
	else echo "$$slower: cargo failed as said above; make native tries it again"; fi

native: $(NATIVE) ## build the native module and install it (needs cargo)

rust: $(READY) # the crate alone: format, lints and tests, as far as cargo and its tools are there
	@$(rust); if $(rust_is_new); then \
	  { ! cargo fmt --version >/dev/null 2>&1 || cargo fmt --check; } \
	  && { ! cargo clippy --version >/dev/null 2>&1 || cargo clippy --quiet --release --locked --all-targets -- -D warnings; } \
	  && cargo test --quiet --release --locked --no-default-features; fi

PAIRS ?= 2000000
fuzz-native: $(NATIVE) ## the native judge against the exact one, on PAIRS=2000000 generated and changed documents
	JOSTLER_NATIVE_PAIRS=$(PAIRS) JOSTLER_NATIVE_EXAMPLES=20000 $(BIN)/python -m pytest -q -s -o timeout=0 \
	  tests/unit/schema/test_native.py -k 'accepts_only or accepted_alone'

java:
	@command -v java >/dev/null || $(call apt,openjdk-17-jre-headless) \
	  || { echo "Spark needs a Java runtime, 17 or 21: install openjdk-17-jre-headless"; exit 1; }

# Without it the browser's tests are skipped, and say so.
chromium:
	@command -v chromedriver >/dev/null \
	  || $(call apt,--no-install-recommends chromium chromium-driver fonts-dejavu-core) \
	  || echo "the status page is not tested in a browser: install chromium and chromium-driver"

# All are looked for on the PATH first.  Debian's kubectl is too old to know components; promtool and amtool are
# unpacked, not installed, for their packages would start servers.
deb = { dir=$$(mktemp -d) && cd "$$dir" \
  && { apt-get download -qq $(1) 2>/dev/null || { apt-get update -qq && apt-get download -qq $(1); }; } \
  && dpkg-deb -x $(1)_*.deb . && mv usr/bin/$(2) "$(CURDIR)/$(BIN)/" && rm -r "$$dir"; }

k8s-tools: $(READY) # kubectl, promtool and amtool, for tests/k8s
	@PATH="$(CURDIR)/$(BIN):$$PATH"; command -v kubectl >/dev/null || command -v kustomize >/dev/null \
	  || $(BIN)/python -m pip install --quiet --require-hashes -r tests/k8s/kubectl.lock \
	  || { echo "the tests of k8s/ need kubectl 1.21 or newer, or kustomize"; exit 1; }
	@PATH="$(CURDIR)/$(BIN):$$PATH"; command -v promtool >/dev/null || $(call deb,prometheus,promtool) \
	  || { echo "the tests of k8s/ need promtool: it is part of Prometheus"; exit 1; }
	@PATH="$(CURDIR)/$(BIN):$$PATH"; command -v amtool >/dev/null || $(call deb,prometheus-alertmanager,amtool) \
	  || { echo "the tests of k8s/ need amtool: it is part of Alertmanager"; exit 1; }

# Without it the tests of the systemd unit are skipped, and say so.
systemd:
	@command -v systemd-analyze >/dev/null || $(call apt,--no-install-recommends systemd) \
	  || echo "the systemd unit is not tested: install systemd"

k8s-check: java k8s-tools ## build and check the manifests, the alerts and the dashboard alone
	$(BIN)/python -m pytest tests/k8s

check: java k8s-tools $(READY) native ## lint, format check, strict types, tests
	@$(MAKE) --no-print-directory -j2 -O lint types rust
	@$(MAKE) --no-print-directory test without-native

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

# Six at once: most tests wait for a process or a server; a file stays with one worker, which has one
# Spark session, one BigQuery and one GCS server for all its files.
test: java chromium systemd k8s-tools $(READY) native ## all tests but the long ones
	$(PYTEST) -m "not long"

check-long: java k8s-tools $(READY) native ## the long tests: days of alerts, Spark clusters, the tutorial (CI runs them, too)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m long

# The suite has run with the module, where it could be built; this shows that all judges and batches do without it, too.
HIDDEN := PYTHONPATH=tests/support/without_native $(BIN)/python
without-native: $(READY) native # what judges, reads batches and cuts rows, once more with the native module hidden
	@! $(HIDDEN) -c 'import jostler_native' 2>/dev/null || { echo "the native module is not hidden"; exit 1; }
	@test ! -e $(NATIVE) || $(HIDDEN) -m pytest -q -p no:xdist tests/unit/schema/test_judge.py tests/unit/schema/test_native.py \
	  tests/unit/bundle/test_batch.py tests/unit/agent/test_batching.py tests/spark/test_verify.py tests/archive/test_compact.py \
	  tests/loader/test_trust.py::test_a_trusted_day_costs_its_index_and_a_sample -k 'not 90_mb and not lines_come'

# Tracing makes the tests, and each process that they start, a third slower.
coverage: java chromium systemd k8s-tools $(READY) native ## all tests, with branch coverage
	$(PYTEST) --cov --cov-report=term

format: $(READY) ## let ruff write the format and the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

COMPILE := uv pip compile --universal --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet

lock: ## write the lock files anew (needs uv): of everything, and of each image
	$(COMPILE) pyproject.toml --extra dev -o requirements.lock
	$(COMPILE) --no-annotate -c requirements.lock pyproject.toml -o requirements-agent.lock
	$(COMPILE) --no-annotate -c requirements.lock pyproject.toml --extra loader --extra query -o requirements-loader.lock
	printf 'maturin\nsetuptools\nsetuptools-scm\n' | $(COMPILE) --no-annotate -c requirements.lock - -o requirements-build.lock

image-check: java $(READY) ## build both images here and run them (slow; root, Debian; see docs/image.md)
	@for p in buildah debootstrap bwrap; do command -v $$p >/dev/null || $(call apt,buildah debootstrap bubblewrap) \
	  || { echo "the check of the images needs $$p"; exit 1; }; done
	$(BIN)/python tools/image_check.py

K8S_CACHE ?= $(HOME)/.cache/jostler-k8s
k8s-real: java k8s-tools ## the manifests on a real control plane, alerts by real Prometheus (slow; needs Go and Debian)
	@command -v go >/dev/null || { echo "the control plane is built with Go 1.24 or newer: install it"; exit 1; }
	tools/k8s_real/build.sh $(K8S_CACHE)
	$(BIN)/python -m tools.k8s_real.check $(K8S_CACHE)

demo: java $(READY) ## the whole way, from files to SQL rows, with servers on this machine
	@$(BIN)/python -m demo

screenshot: chromium $(READY) ## take docs/status-page.png of a running agent
	$(BIN)/python -m tests.browser.screenshot

bench: $(READY) ## measure the agent on this machine
	$(BIN)/python -m bench.agent
	$(BIN)/python -m bench.push

bench-keeping: $(READY) ## measure the audit on this machine, beside inflating alone
	$(BIN)/python -m bench.keeping

bench-records: $(READY) ## records a second through rows and blocks, beside a published benchmark
	$(BIN)/python -m bench.records

bench-query: java $(READY) ## measure jostler-query, beside Spark's JSON reader and DuckDB
	$(BIN)/python -m bench.query --mb 1000 --days 365 --bundles 10000

bench-loader: java $(READY) ## measure the loader on this machine, beside Spark's JSON reader
	$(BIN)/python -m bench.loader
	$(BIN)/python -m bench.stages
	$(BIN)/python -m bench.runs
	$(BIN)/python -m bench.loads

# Versions that need nothing but the package registries: later ones of dbt fetch a parser elsewhere.
# Spark's connector is for Spark 3.5; Maven fetches it.
CLIENTS := .venv-clients
CONNECTOR := com.google.cloud.spark:spark-3.5-bigquery:0.42.1
$(CLIENTS)/.ready: Makefile pyproject.toml
	@$(PYTHON) -m venv $(CLIENTS) && $(PYTHON) -m venv $(CLIENTS)/server
	$(CLIENTS)/server/bin/python -m pip install --quiet -e '.[embedded]' grpcio pyarrow google-cloud-bigquery-storage
	$(CLIENTS)/bin/python -m pip install --quiet pandas-gbq sqlalchemy-bigquery 'ibis-framework[bigquery]' \
	  'sqlglot<30.1' 'dbt-core<1.11' 'dbt-bigquery<1.11' grpcio google-cloud-bigquery-storage
	@if command -v java >/dev/null && command -v mvn >/dev/null && command -v openssl >/dev/null; then \
	  $(PYTHON) -m venv $(CLIENTS)/spark \
	  && $(CLIENTS)/spark/bin/python -m pip install --quiet 'pyspark==3.5.*' google-cloud-bigquery \
	  && mvn -q dependency:copy -Dartifact=$(CONNECTOR) -DoutputDirectory=$(CLIENTS)/jars; \
	else echo "Spark's connector is left out: it needs java, mvn and openssl"; fi
	@touch $@

clients: $(CLIENTS)/.ready ## other clients of the embedded BigQuery: pandas-gbq, SQLAlchemy, ibis, dbt, Go, Spark (slow)
	$(CLIENTS)/bin/python tests/clients/run.py

MINUTES ?= 30
RUNS ?= 200
KILLS ?= 200
model: $(READY) ## put known defects back into the agent and see the model of its promise find each (slow)
	$(BIN)/python -m tests.torture.defects

torture: java $(READY) ## kill agents (MINUTES=30), loaders with requests (RUNS=200), collectors and pushes (KILLS=200) at random, fail everything, count all (slow)
	$(BIN)/python -m tests.torture.agents --minutes $(MINUTES)
	$(BIN)/python -m tests.torture.loaders --runs $(RUNS)
	$(BIN)/python -m tests.torture.collectors --kills $(KILLS)
	$(BIN)/python -m tests.torture.pushes --kills $(KILLS)

torture-compact: $(READY) ## kill compactors at every step, then at random (KILLS=200), then the model 50,000 times (slow)
	$(BIN)/python -m tests.torture.compactors --kills $(KILLS) --runs 50000

KEEPING_KILLS ?= 500
torture-keeping: $(READY) ## kill audits and deletions KEEPING_KILLS=500 times, then beside agents and compactions, then the model 20,000 times (slow)
	$(BIN)/python -m tests.torture.keeping --kills $(KEEPING_KILLS)
	$(BIN)/python -m tests.torture.keepers --kills $(KEEPING_KILLS) --runs 20000

clean: ## remove the virtual environment and what tools left
	rm -rf $(VENV) $(CLIENTS) native/target .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* build dist *.egg-info
