# Everything from a fresh clone: `make demo` shows it at work, `make test` checks it.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test bench numbers figures clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/installed  ## set up, compare five policies on the sinusoidal bandit, draw the figure
	$(BIN)/driftbandits compare --environment sinusoidal --horizon 10000 --runs 12 \
	  --policy recurrent --policy "recurrent(energy=0)" --policy thompson --policy swa \
	  --policy uniform --plot results/demo.png
	@echo "Open results/demo.png to see the curves."

test: .venv/tested  ## set up, check the format, lint, check the types, run the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

bench: .venv/benched  ## measure the speed beside PyTorch, in one run
	$(BIN)/python -m benchmarks.speed

numbers: .venv/installed  ## run every policy of the paper at full size and write docs/numbers.md
	$(BIN)/python -m benchmarks.numbers

figures: .venv/installed  ## draw the README's figure anew
	$(BIN)/driftbandits compare --environment sinusoidal --horizon 20000 --runs 20 \
	  --policy recurrent --policy "recurrent(energy=0)" --policy thompson --policy swa \
	  --policy uniform --measure mean_regret --plot docs/figures/sinusoidal.png

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
