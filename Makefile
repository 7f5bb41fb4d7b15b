# Everything from a fresh clone: `make demo` shows it at work, `make test` checks it.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo reproduce paper field tracker docs test browser bench clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/installed  ## set up, run every figure of the paper small, write the report
	$(BIN)/driftbandits reproduce --quick
	@echo "Open results/quick/report.html in a browser."

reproduce: .venv/installed  ## run every figure of the paper at full size; goes on where it was
	$(BIN)/driftbandits reproduce

paper: reproduce  ## publish the full-size reproduction in docs/paper and the README
	$(BIN)/python -m benchmarks.paper

field: .venv/installed  ## compare all policies on all problems, publish it in docs/field and the README
	$(BIN)/driftbandits run field
	$(BIN)/python -m benchmarks.field

tracker: .venv/installed  ## measure the tracker against all policies, publish it in docs/tracker and the README
	$(BIN)/driftbandits run tracker
	$(BIN)/python -m benchmarks.tracker_evidence

docs: .venv/installed  ## write the pages of policies and environments anew
	$(BIN)/python docs/pages.py

test: .venv/tested browser  ## set up, check the format, lint, check the types, run the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --ignore tests/test_cluster.py
	$(BIN)/python -m pytest tests/test_cluster.py  # a cluster of two nodes: it needs the cores for itself

browser:  # Debian's Chromium for the tests of the page, where it may be installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { [ "$$(id -u)" = 0 ] && \
	  command -v apt-get >/dev/null && echo "Installing chromium for the tests of the page ..." && \
	  { apt-get install -qq -y chromium || { apt-get update -qq && apt-get install -qq -y chromium; }; } \
	  >/dev/null 2>&1; } || echo "No Chromium: the tests of the page will be left out."

bench: .venv/benched  ## measure the speed beside others (about 45 minutes, on an idle machine)
	$(BIN)/python -m benchmarks

clean:  ## remove what was made
	rm -rf .venv results .mypy_cache .pytest_cache .ruff_cache

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: PYTHON must be Python 3.11 or newer, got $$($(PYTHON) --version)"; exit 2; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	@echo "Installing driftbandits and what it needs into .venv (about 600 MB) ..."
	@$(PIP) -e .
	@touch $@

.venv/tested: .venv/installed
	@$(PIP) -e ".[test]"
	@touch $@

.venv/benched: .venv/installed
	@$(PIP) -e ".[bench]"
	@touch $@
