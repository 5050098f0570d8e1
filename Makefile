# Verbs of this project; CI calls the same ones (INTERFACES: commands on a fresh checkout).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := $(abspath ../shared/data)
export ADFS_DATA ?= $(if $(wildcard $(DATA)),$(DATA),)

# Kernels as plain Python: what the compiler hides (wrong types, out-of-bounds) shows here.
UNCOMPILED := $(addprefix tests/unit/test_,$(addsuffix .py,losses prox rows sampling certificates \
	primal_prox minibatch gossip dual_gradient pairs_clock apcg))

.PHONY: demo test check docs bench figures clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[mpi,plots]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[mpi,plots,docs,dev]"
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/python -m adfs demo --out demo-out

test: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 $(UNCOMPILED)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks integrations docs/conf.py
	$(BIN)/ruff format --check src tests benchmarks integrations docs/conf.py
	$(BIN)/mypy
	$(BIN)/lint-imports

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
	rm -rf $(VENV) demo-out docs-out figures-out bench-out build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
