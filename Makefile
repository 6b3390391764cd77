# Two commands do everything on a machine with Python 3.11 or later, make and a C compiler: `make report`, `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORTS := reports
# Checks accessibility in the browser tests; never committed, never shipped. A new version: npm view axe-core dist.integrity
AXE := axe-core 4.14.1 sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==
BEGAN := $(shell date +%s)
TOOK = echo "make $@ took $$(( $$(date +%s) - $(BEGAN) )) s"

.PHONY: help report test test-fast test-yolo accuracy lint package sample-reports clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

report: $(VENV)/.report ## Record this machine's GPU for a moment and render it; without a GPU, render a real H200 run
	@$(BIN)/python -m gpu_report.first_report $(REPORTS) && $(TOOK)

test: $(VENV)/.test ## Run all tests, the browser and the YOLO ones included
	@$(BIN)/python tests/needs.py
	@bash .ci/fetch-npm $(AXE) .npm/axe-core
	@$(BIN)/pytest -q --durations=5 && $(TOOK)

test-fast: $(VENV)/.test ## Run the tests that need neither a browser nor a training
	$(BIN)/pytest -q -m "not browser and not yolo"

test-yolo: $(VENV)/.test ## Run the trainings with ultralytics 8.3.0, 8.4.0 and the newest
	@bash .ci/test-yolo && $(TOOK)

accuracy: $(VENV)/.report ## Say how right the findings are on the labelled runs (ARGS=--write puts it into docs/accuracy.md)
	@$(BIN)/python benchmarks/accuracy.py $(ARGS)

lint: $(VENV)/.test ## Check style, types and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

package: $(VENV)/.test ## Build the wheel, install it alone elsewhere, and render from it
	bash .ci/package

sample-reports: $(VENV)/.report ## Render every sample run
	@mkdir -p $(REPORTS)
	@ls -d sample_runs/*/ | xargs -P 2 -I RUN sh -c '$(BIN)/gpu-report render $(REPORTS)/$$(basename RUN).html --run RUN'

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.report: setup.cfg pyproject.toml | $(VENV)/bin/python
	@echo "setting up $(VENV) (once) ..."
	@$(BIN)/pip install --quiet --editable . && touch $@

$(VENV)/.test: setup.cfg pyproject.toml | $(VENV)/bin/python
	@echo "setting up $(VENV) with torch and ultralytics for the tests (once; about 6 GB, 2 minutes) ..."
	@$(BIN)/pip install --quiet --editable '.[yolo,dev]' && touch $@ $(VENV)/.report

clean: ## Remove what was made, but not recorded runs
	rm -rf $(VENV) $(REPORTS) .npm build dist test-artifacts ./*.egg-info
