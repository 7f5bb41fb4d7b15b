# Everything from a fresh clone: `make demo` shows it at work, `make test` checks it.

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest --numprocesses auto
# Most of the time of tests is XLA's. Where neither bits nor speed count, it is told not to optimise,
# which takes a third of the time. `make soak` optimises everything, as for users.
UNOPTIMISED := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
  --xla_cpu_parallel_codegen_split_count=1"
OPTIMISED := tests/numerics tests/simulation tests/agents/test_simulation.py tests/logs \
  tests/experiments/test_metrics.py tests/running/test_published.py tests/running/test_interrupted.py \
  tests/test_readme.py tests/test_same_numbers.py tests/policies/tracker/test_outliers.py
CLUSTER := tests/running/test_ray_cluster.py  # it needs the cores for itself
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: help demo reproduce paper field tracker calibration docs test check soak soak-service browser hosts bench clean

help:  ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: .venv/installed  ## set up, run every figure of the paper small, write the report
	$(BIN)/driftbandits reproduce --quick
	@echo "Open results/quick/report.html in a browser."

reproduce: .venv/installed  ## run every figure of the paper at full size; goes on where it was
	$(BIN)/driftbandits reproduce

paper: reproduce  ## publish the full-size reproduction in docs/evidence/paper and the README
	$(BIN)/python -m tools.publish.paper

field: .venv/installed  ## compare all policies on all problems, publish it in docs/evidence/field
	$(BIN)/driftbandits run field
	$(BIN)/python -m tools.publish.field

tracker: .venv/installed  ## measure the tracker against all policies, publish it in docs/evidence/tracker and the README
	$(BIN)/driftbandits run tracker
	$(BIN)/python -m tools.publish.tracker_evidence

calibration: .venv/installed  ## count how often our intervals and verdicts are right, for docs/explanation/calibration.md
	$(BIN)/python -m tools.calibration > docs/explanation/calibration.md

docs: .venv/documented  ## write the generated pages, build the site into site/ and check its links
	$(BIN)/python -m tools.publish.pages
	$(BIN)/python -m tools.publish.http_page
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser."

test: .venv/tested $(if $(CI),browser hosts)  ## set up, check format, lint and types, run all tests with coverage
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/coverage erase
	$(PYTEST) --cov --cov-report= $(OPTIMISED)
	$(UNOPTIMISED) $(PYTEST) --cov --cov-append --cov-report= $(addprefix --ignore ,$(OPTIMISED) $(CLUSTER))
	$(UNOPTIMISED) $(BIN)/python -m pytest --cov --cov-append --cov-report= $(CLUSTER)
	$(BIN)/python -m tools.print_coverage

check: .venv/tested  ## format, lint, types and the quick tests, in two minutes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -m quick

soak: .venv/tested  ## all tests, optimised as for users, the long ones in their long form
	SOAK=1 $(PYTEST) --ignore $(CLUSTER)
	SOAK=1 $(BIN)/python -m pytest $(CLUSTER)

soak-service: .venv/tested  ## mixed traffic, kills and poisons for SOAK_MINUTES (30), with a summary
	SOAK=1 $(BIN)/python -m pytest --capture no tests/service/test_soak.py

SUDO := $(if $(filter 0,$(shell id -u)),,sudo -n)
# $(call debian,COMMAND,PACKAGE,WHAT FOR): unless the command is there
debian = command -v $(1) >/dev/null || { \
	  command -v apt-get >/dev/null && echo "Installing $(2) for $(3) ..." && \
	  { $(SUDO) apt-get install -qq -y $(2) || \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -qq -y $(2); }; } \
	  >/dev/null 2>&1; } || echo "No $(2): $(3) will be left out."

browser:  ## install Debian's Chromium, for the tests of pages (make test does so where CI is set)
	@command -v chromium-browser >/dev/null || $(call debian,chromium,chromium,the tests of the pages)

hosts:  ## install Debian's iproute2, for the tests with several hosts (likewise)
	@$(call debian,ip,iproute2,the tests with several hosts)

bench: .venv/benched  ## measure the speed beside others (about 45 minutes, on an idle machine)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m tools.publish.measurements

clean:  ## remove what was made
	rm -rf .venv results site .mypy_cache .pytest_cache .ruff_cache .coverage*

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: PYTHON must be Python 3.11 or newer, got $$($(PYTHON) --version)"; exit 2; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	@echo "Installing driftbandits and what it needs into .venv (about 970 MB) ..."
	@$(PIP) -e ".[service,report]"
	@touch $@

.venv/tested: .venv/python pyproject.toml constraints.txt
	@echo "Installing driftbandits and what its tests need into .venv (about 1.7 GB) ..."
	@$(PIP) -e ".[test]"
	@touch .venv/installed .venv/documented $@

.venv/documented: .venv/python pyproject.toml constraints.txt
	@echo "Installing driftbandits and what its site needs into .venv (about 1.1 GB) ..."
	@$(PIP) -e ".[service,report,docs]"
	@touch .venv/installed $@

.venv/benched: .venv/installed
	@$(PIP) -e ".[bench]"
	@touch $@
