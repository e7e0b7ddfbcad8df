# `make demo`, `make test` and `make docs` set everything up by themselves, in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Small matrices are slower on several threads, and much slower on a busy machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test test-slow lint check bench docs format clean

demo: .venv/installed
	$(BIN)/acex demo

test: .venv/installed
	$(BIN)/pytest -n 2

test-slow: .venv/installed
	$(BIN)/pytest -n 2 -m slow

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

bench: .venv/installed
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/published.py

docs: .venv/installed
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site
	@echo "Read it: site/index.html"

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv site

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "acex needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
