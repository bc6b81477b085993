# Every target sets up what it needs; a fresh clone wants only python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup check lint types test format lock demo bench clean

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: set PYTHON=python3.11 or newer"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "python3 cannot make a virtual environment: install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY) ## make the virtual environment from the lock file

check: lint types test ## lint, format check, strict types, all tests with branch coverage

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

test: $(READY) ## all tests, with branch coverage
	$(BIN)/python -m pytest --cov --cov-report=term

format: $(READY) ## let ruff write the format and the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## write requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet -o requirements.lock

demo: $(READY) ## the whole way, from files to SQL rows, with servers on this machine
	@$(BIN)/python -m demo

bench: $(READY) ## measure the agent on this machine
	$(BIN)/python -m bench.agent

clean: ## remove the virtual environment and what tools left
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* build dist *.egg-info
