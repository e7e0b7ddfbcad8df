# `make demo`, `make test` and `make docs` set everything up by themselves, in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Small matrices are slower on several threads, and much slower on a busy machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test test-slow lint check bench bench-quick peers docs format clean

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
	$(BIN)/python benchmarks/startup.py

docs: .venv/installed
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site
	@echo "Read it: site/index.html"

# Methods of others for the benchmark. Without their dependencies, since NICE declares old versions of numpy and pandas,
# and DiCE declares xgboost and lightgbm, which what is used here does not need; the second line has what they do need.
peers: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps NICEx dice-ml raiutils
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt adversarial-robustness-toolbox jsonschema tqdm requests

# Every method on three rows of two data sets: minutes. The whole benchmark: docs/benchmark.md.
bench-quick: peers
	rm -rf build/bench-quick
	$(BIN)/acex bench run --data diabetes,cmc --rows 3 --cap 2000 --out build/bench-quick
	$(BIN)/acex bench table build/bench-quick
	$(BIN)/acex bench plot build/bench-quick

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
