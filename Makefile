# Everything from a fresh clone: `make demo` shows it at work, `make test` checks it.

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadgroup
# Most of the time of tests is XLA's. What checks algorithms, not speed or bits, is compiled simply:
# under half of the time. `make soak` compiles everything as users do.
SIMPLY := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
ALGORITHMS := tests/policies tests/environments tests/agents/test_policies.py
CLUSTER := tests/running/test_ray_cluster.py
LONG := tests/service/test_nothing_lost.py tests/running/test_published.py \
  $(ALGORITHMS) tests/test_same_numbers.py
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo reproduce paper field tracker docs test check soak browser bench clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/installed  ## set up, run every figure of the paper small, write the report
	$(BIN)/driftbandits reproduce --quick
	@echo "Open results/quick/report.html in a browser."

reproduce: .venv/installed  ## run every figure of the paper at full size; goes on where it was
	$(BIN)/driftbandits reproduce

paper: reproduce  ## publish the full-size reproduction in docs/paper and the README
	$(BIN)/python -m tools.publish.paper

field: .venv/installed  ## compare all policies on all problems, publish it in docs/field and the README
	$(BIN)/driftbandits run field
	$(BIN)/python -m tools.publish.field

tracker: .venv/installed  ## measure the tracker against all policies, publish it in docs/tracker and the README
	$(BIN)/driftbandits run tracker
	$(BIN)/python -m tools.publish.tracker_evidence

docs: .venv/installed  ## write the pages of policies and environments anew
	$(BIN)/python -m tools.publish.pages

test: .venv/tested $(if $(CI),browser)  ## set up, check format, lint and types, run all tests with coverage
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/coverage erase
	$(SIMPLY) $(PYTEST) --cov --cov-report= $(ALGORITHMS)
	$(PYTEST) --cov --cov-append --cov-report= $(addprefix --ignore ,$(ALGORITHMS) $(CLUSTER))
	$(BIN)/python -m pytest --cov --cov-append --cov-report= $(CLUSTER)  # it needs the cores for itself
	$(BIN)/python -m tools.print_coverage

check: .venv/tested  ## format, lint, types and the quick tests, in two minutes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -m quick

soak: .venv/tested  ## the long forms of the tests: more kills, longer horizons
	SOAK=1 $(PYTEST) $(LONG)

browser:  ## install Debian's Chromium, for the tests of pages (make test does so where CI is set)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { [ "$$(id -u)" = 0 ] && \
	  command -v apt-get >/dev/null && echo "Installing chromium for the tests of the pages ..." && \
	  { apt-get install -qq -y chromium || { apt-get update -qq && apt-get install -qq -y chromium; }; } \
	  >/dev/null 2>&1; } || echo "No Chromium: the tests of the pages will be left out."

bench: .venv/benched  ## measure the speed beside others (about 45 minutes, on an idle machine)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m tools.publish.measurements

clean:  ## remove what was made
	rm -rf .venv results .mypy_cache .pytest_cache .ruff_cache .coverage*

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: PYTHON must be Python 3.11 or newer, got $$($(PYTHON) --version)"; exit 2; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	@echo "Installing driftbandits and what it needs into .venv (about 970 MB) ..."
	@$(PIP) -e ".[service,report]"
	@touch $@

.venv/tested: .venv/installed
	@$(PIP) -e ".[test]"
	@touch $@

.venv/benched: .venv/installed
	@$(PIP) -e ".[bench]"
	@touch $@
