# Three commands: `make demo`, `make test` and `make test-integrations`. Each builds what it needs first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
OWN := .venv-integrations
LOWEST := .venv-lowest

.PHONY: demo test test-integrations test-lowest coverage lint types docs tests wheel sdist clean

# Interpreters that `make wheel` tries; those that are not installed are skipped.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

# Tests with the lowest versions, which need no pandas; and tests of the source distribution.
LOWEST_EXTRAS := faiss report text llm
LOWEST_TESTS ?= tests/pools/test_everything.py tests/samplers/test_static.py tests/search/test_exact.py tests/formats \
  tests/jobs/test_job_config.py tests/report/test_report_page.py tests/test_positives.py tests/test_tables.py tests/test_cli.py
SDIST_TESTS ?= tests/contract tests/test_docs.py tests/test_benchmarks.py

demo: $(RUNS)
	$(BIN)/naysay demo --out demo

# The checks need one core each, and the tests two: beside each other, no core is idle.
test: $(READY)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory --jobs=3 types docs tests

# PyKEEN, Lightning, Ray, Polars, TensorBoard, Weights & Biases, PyG's neighbour sampling and an S3 server, which take long
# to install and to import.
test-integrations: $(OWN)/.ready
	$(OWN)/bin/python -m pytest tests/integrations/own_environment tests/contract/own_environment

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

# Bytecode is kept: the tests load the library in two processes, and start many more.
tests: export PYTHONDONTWRITEBYTECODE :=
tests: $(READY)
	@command -v chromium >/dev/null || echo "No Chromium: the report is not opened in a browser. Run: apt-get install chromium"
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Build the wheel, install it into a clean environment for each interpreter, and run a smoke test there.
wheel: $(READY)
	rm -rf dist && $(BIN)/python -m build --wheel --outdir dist .
	@for python in $(PYTHONS); do \
	  $$python -c '' 2>/dev/null || { echo "$$python is not installed: skipped"; continue; }; \
	  echo "== $$python"; rm -rf dist/env && $$python -m venv dist/env && \
	  dist/env/bin/pip install --quiet --disable-pip-version-check dist/*.whl && \
	  (cd dist && env/bin/python -I ../tests/smoke.py) || exit 1; \
	done

# Build the source distribution, unpack it, and run some of its tests against its own source.
sdist: $(READY)
	rm -rf dist/sdist && $(BIN)/python -m build --sdist --outdir dist .
	mkdir -p dist/sdist && tar -xzf dist/naysay-*.tar.gz --strip-components=1 -C dist/sdist
	cd dist/sdist && PYTHONPATH=$$PWD/src:$$PWD ../../$(BIN)/python -m pytest $(SDIST_TESTS)

# The lowest versions of what naysay needs by itself; torch and all else is that of .venv. They warn of each other.
test-lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python -m pytest -W ignore::DeprecationWarning $(LOWEST_TESTS)

# The share of lines and branches that the tests run, as text and as coverage.xml.
coverage: $(READY)
	$(BIN)/python -m pip install --quiet --group coverage
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-report=xml

# What the demonstration needs, then what development needs beside it. Rebuilt when the dependencies change; otherwise reused.
$(RUNS): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "naysay needs Python 3.11 or newer; run: make PYTHON=python3.11 ...")'
	@echo "Building the environment in $(VENV), only this once ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # which knows dependency groups
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo]'
	@touch $(RUNS)

$(READY): $(RUNS)
	@echo "Adding what the tests need ..."
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo]' --group dev
	@touch $(READY)

# An environment of its own that sees the packages of .venv, so that torch is installed once.
$(OWN)/.ready: $(READY)
	@echo "Building the environment in $(OWN), only this once ..."
	@test -x $(OWN)/bin/python || $(BIN)/python -m venv $(OWN)
	@$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' > \
	  $$($(OWN)/bin/python -c 'import site; print(site.getsitepackages()[0])')/venv.pth
	@$(OWN)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[pykeen,lightning,ray]' polars \
	  tensorboard wandb 'moto[server]>=5'
	@$(OWN)/bin/python tests/integrations/own_environment/build_neighbour_sampling.py $(OWN)/torch_sparse
	@touch $(OWN)/.ready

$(LOWEST)/.ready: $(READY)
	@echo "Building the environment in $(LOWEST), only this once ..."
	@test -x $(LOWEST)/bin/python || $(BIN)/python -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(LOWEST)/bin/python -m pip install --quiet --group lowest
	@$(LOWEST)/bin/uv pip compile --quiet --resolution lowest-direct pyproject.toml $(LOWEST_EXTRAS:%=--extra %) -o $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip install --quiet --requirement $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip install --quiet --no-deps --editable .
	@$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' > \
	  $$($(LOWEST)/bin/python -c 'import site; print(site.getsitepackages()[0])')/venv.pth
	@touch $(LOWEST)/.ready

clean:
	rm -rf $(VENV) $(OWN) $(LOWEST) dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
