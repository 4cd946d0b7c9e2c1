# Two commands: `make demo` and `make test`. Each builds the environment in .venv first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types docs tests clean

demo: $(READY)
	$(BIN)/naysay demo

test: lint types docs tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

tests: $(READY)
	$(BIN)/python -m pytest -n 2

# Rebuilt when the dependencies change; otherwise reused.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("naysay needs Python 3.11 or newer; run: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@echo "Building the environment in $(VENV) (about a minute, and only the first time) ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
