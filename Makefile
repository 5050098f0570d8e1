# Verbs of this project; CI calls the same ones.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := $(abspath ../shared/data)
export ADFS_DATA ?= $(if $(wildcard $(DATA)),$(DATA),)
# Tests start hundreds of processes; without files of bytecode each of them compiles all sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test soak check docs bench figures fuzz clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[mpi,plots]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[mpi,plots,tables,docs,dev]"
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py demo-out

# Tests in three lanes (tests/conftest.py says which test is in which): under 90 seconds and under
# 10 minutes on two cores once the kernels are compiled, and as long as it takes.
PYTEST := $(BIN)/python -m pytest -n 2

quick: $(VENV)/.dev
	$(PYTEST) --dist worksteal -m quick tests/contracts tests/theorems tests/unit

# First some tests with kernels as plain Python: what the compiler hides (wrong types, indices out
# of bounds) is an error there. Files in their order: sorted by numbers of tests, the few tests that
# take longest would be last, with one core idle.
test: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) --dist worksteal -m "uncompiled and not soak" tests/unit
	$(PYTEST) --dist loadfile --no-loadscope-reorder

soak: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) --dist worksteal -m uncompiled tests/unit
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m soak
	$(MAKE) fuzz SECONDS=600

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks integrations examples docs/conf.py
	$(BIN)/ruff format --check src tests benchmarks integrations examples docs/conf.py
	$(BIN)/mypy
	$(BIN)/lint-imports

# New inputs for readers, commands and runs, for so many seconds; failures go to fuzz-out/.
SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -n -b html -d docs-out/.doctrees docs docs-out
	@echo "docs-out/index.html"

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]" || true
	$(BIN)/python benchmarks/run.py

# Figures 3 and 4 need real data: without it, the small versions.
figures: $(VENV)/.demo
	$(BIN)/python benchmarks/figures.py --out figures-out
	$(BIN)/python -m adfs reproduce all --out figures-out $(if $(ADFS_DATA),,--quick)

clean:
	rm -rf $(VENV) demo-out examples/demo-out docs-out docs/api docs/gallery figures-out bench-out fuzz-out build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
