# Two commands do everything on a machine with Python 3.11 or later, and make: `make report`, `make test`. What else they
# need is installed where that asks nothing (root with apt), else the command for it is named (.ci/needs).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORTS := reports
# Checks accessibility in the browser tests; never committed, never shipped. A new version: npm view axe-core dist.integrity
AXE := axe-core 4.14.1 sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==
# Several files at once, each in one process.
TOGETHER := --dist loadfile --no-loadscope-reorder
# Draws the timeline; never committed, shipped in the wheel where it is there. As new as what the newest plotly.py brings.
CHARTS := plotly.js-basic-dist-min 4.1.1 sha512-1oNF8PeQx2hv/y7tqEVWKD3JGwn/MGEMQ8mL9HUwsaqG9FGy/OU5FHUHvzqbqxN4mnwZGI9abTiE775C4kkjMQ==
CHARTS_DIR := templates/vendor/plotly-basic
# With it each process would compile all of pandas anew, which takes a second.
unexport PYTHONDONTWRITEBYTECODE
BEGAN := $(shell date +%s)
TOOK = echo "make $@ took $$(( $$(date +%s) - $(BEGAN) )) s"

.PHONY: help report chart-library chart-library-if-any needs-of-test test test-fast test-long fuzz test-yolo accuracy lint package sample-reports
.PHONY: compiled-tests screenshots clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

report: $(VENV)/.report ## Record this machine's GPU for a moment and render it; without a GPU, render a real H200 run
	@$(BIN)/python -m gpu_report.cli.first_report $(REPORTS) && $(TOOK)

chart-library: ## Fetch the smaller chart library (needs npm): reports take 1.3 MB less, and open sooner
	@bash .ci/needs npm
	@bash .ci/fetch-npm $(CHARTS) $(CHARTS_DIR)

# Where it cannot be had, a report takes all of plotly.js, which plotly.py brings. A network that drops packets would
# block npm for five minutes; milliseconds.
chart-library-if-any:
	@npm_config_fetch_retries=0 npm_config_fetch_timeout=15000 bash .ci/fetch-npm $(CHARTS) $(CHARTS_DIR) 2>/dev/null || \
	    echo "note: reports take 1.3 MB more without the smaller chart library: make chart-library"

report sample-reports package: chart-library-if-any
test: needs-of-test chart-library

needs-of-test: # before gigabytes are fetched
	@bash .ci/needs test $(PYTHON)

test: $(VENV)/.test ## Run all tests, the browser and the YOLO ones included
	@bash .ci/needs browser
	@bash .ci/fetch-npm $(AXE) .npm/axe-core
	@PYTEST=$(BIN)/pytest bash .ci/run-tests
	@$(TOOK)

test-fast: $(VENV)/.test ## Run the tests that need neither a browser nor a training, nor the time that a recording takes
	$(BIN)/pytest -q -m "not browser and not yolo and not live and not long" $(TOGETHER) -n 2

test-long: $(VENV)/.test ## Draw 400 trainings of each kind, play 300 broken machines and a recorded week (15 minutes)
	$(BIN)/pytest -q -m long $(TOGETHER) -n 2

FUZZ_MUTATIONS ?= 100000
FUZZ_SEED ?= 1
fuzz: $(VENV)/.test ## Mutate run folders and logs (FUZZ_MUTATIONS, FUZZ_SEED); what fails is kept under .fuzz/
	$(BIN)/python tests/fuzz.py --mutations $(FUZZ_MUTATIONS) --seed $(FUZZ_SEED)

test-yolo: $(VENV)/.test ## Run the trainings with ultralytics 8.3.0, 8.4.0 and the newest
	@bash .ci/test-yolo && $(TOOK)

compiled-tests: $(VENV)/.test # the processes of `test` read all tests at once: each would compile them, for 12 s of a core
	@said=$$($(BIN)/pytest -qqq --collect-only) || { echo "$$said"; exit 1; }

accuracy: $(VENV)/.report ## Say how right the findings are on the labelled runs (ARGS=--write puts it into docs/accuracy.md)
	@$(BIN)/python benchmarks/accuracy.py $(ARGS)

lint: $(VENV)/.test ## Check style, types and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

package: ## Build the wheel, install it alone elsewhere, and render from it
	@bash .ci/needs venv $(PYTHON)
	PYTHON=$(PYTHON) bash .ci/package

sample-reports: $(VENV)/.report ## Render every sample run
	@$(BIN)/python .ci/sample_reports.py $(REPORTS)

screenshots: $(VENV)/.test ## Make the pictures of docs/ from sample runs (ARGS="verdict dark" only these); needs Chromium
	@$(BIN)/python docs/pictures/screenshots.py $(ARGS)

$(VENV)/bin/python:
	@bash .ci/needs venv $(PYTHON)
	$(PYTHON) -m venv $(VENV)

$(VENV)/.report: setup.cfg pyproject.toml | $(VENV)/bin/python
	@echo "setting up $(VENV) (once) ..."
	@bash .ci/install . && touch $@

$(VENV)/.test: setup.cfg pyproject.toml | $(VENV)/bin/python
	@echo "setting up $(VENV) with torch and ultralytics for the tests (once; about 6 GB, 2 minutes) ..."
	@$(BIN)/pip install --quiet --upgrade pip # that of Python 3.11 takes twice as long to look for 150 packages
	@bash .ci/install '.[yolo,dev]' && touch $@ $(VENV)/.report

clean: ## Remove what was made, but not recorded runs
	rm -rf $(VENV) $(REPORTS) .npm templates/vendor build dist test-artifacts ./*.egg-info
