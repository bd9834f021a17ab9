# Every target installs what it needs into .venv on first use. `make help` lists them.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
LLM     := $(VENV)/.llm
WORKERS ?= 2
KILLS   ?= 3000
ARGS    ?=

CHECKED := src $(wildcard tests bench docs examples)
TYPED   := src $(wildcard tests/support tests/typing bench docs/generate.py examples/museum/guide.py)
# Recall is measured on public data that is not in the repository: only where TOLD_EVAL_DATA names its folder.
DATALESS := $(if $(TOLD_EVAL_DATA),,bench/recall.py bench/tune.py)
BENCHES := $(filter-out bench/_% bench/__init__.py $(DATALESS),$(sort $(wildcard bench/*.py)))

.DEFAULT_GOAL := help
.PHONY: help setup demo museum test lint types ocr suite bench generate generate-check docs docs-check
.PHONY: crash clean llm
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv where there is one, pip everywhere else (and where uv cannot reach the index that pip is configured for).
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("told needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || { command -v uv >/dev/null && uv venv --quiet --seed --python $(PYTHON) $(VENV); } || $(PYTHON) -m venv $(VENV)
	@if ! { command -v uv >/dev/null && uv pip install --quiet --python $(BIN)/python --editable '.[dev]'; }; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'; fi
	@touch $@

setup: $(STAMP)  ## install told with its tools into .venv, and the default embedding model
	@$(BIN)/told models install || echo "make: the default model could not be fetched; told uses the light one. Try again: $(BIN)/told models install" >&2

demo: setup  ## remember a year of conversation and look around in it
	@$(BIN)/told demo $(ARGS)

museum: $(STAMP)  ## talk to a museum guide that remembers; make museum ARGS=--replay plays a visit
	@$(BIN)/python examples/museum/guide.py $(ARGS)

test: lint types generate-check docs-check llm ocr suite  ## everything that must be green: lint, types, generated code and docs, the whole suite

# Once, whether it works or not: the one test that talks to a real model is skipped where there is none.
llm: $(LLM)  ## the smallest language model and what runs it, for the test that talks to a real one
$(LLM): $(STAMP)
	@{ $(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: xllamacpp \
		&& $(BIN)/told models install smollm2 >/dev/null; } \
		|| echo "make: no local language model, so its test is skipped. Try again: rm $(LLM); make llm" >&2
	@touch $@

lint: $(STAMP)  ## ruff check and ruff format
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check --quiet $(CHECKED)

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy $(TYPED)

# Only in a container, where root may install: elsewhere the tests that need it are skipped and say so.
ocr:
	@command -v tesseract >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& timeout 120 apt-get install -y -qq --no-install-recommends tesseract-ocr >/dev/null 2>&1; } \
		|| echo "make: tesseract is not installed; the tests that read images with it are skipped" >&2

suite: $(STAMP)  ## the tests alone; make suite ARGS="-k erase -x"
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(ARGS)

crash: $(STAMP)  ## the crash suite with thousands of kills; make crash KILLS=10000
	TOLD_KILLS=$(KILLS) $(BIN)/pytest tests/crash --timeout 0 $(ARGS)

bench: $(STAMP)  ## every benchmark, each printing its table
	@set -e; for program in $(BENCHES); do echo "== $$program"; $(BIN)/python $$program $(ARGS); done

generate: $(STAMP)  ## write the SDK clients and the reference tables from the verb spec
	$(BIN)/python -m told.api.generate --write
	$(BIN)/python docs/generate.py --write

generate-check: $(STAMP)
	@$(BIN)/python -m told.api.generate --check

docs: $(STAMP)  ## write the generated reference tables
	$(BIN)/python docs/generate.py --write

docs-check: $(STAMP)
	@test ! -f docs/generate.py || $(BIN)/python docs/generate.py --check

clean:  ## remove caches and build output; the environment stays (rm -rf .venv)
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/results
	find src tests bench docs examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
