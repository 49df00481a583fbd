# Every target sets up .venv by itself, and is quick when nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := CMakeLists.txt pyproject.toml $(wildcard src/hilbin/_core/*.cpp src/hilbin/_core/*.hpp)
EXTRAS := test

.PHONY: demo test lint bench papers docs sanitize fuzz clean

demo: $(VENV)/.installed
	$(BIN)/hilbin demo

test: $(VENV)/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# DATA is a folder of data sets; without it the benchmarks that use them measure on fewer. QUICK=1 only sees that every
# benchmark runs: small sizes, nothing is recorded.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py $(if $(DATA),--data $(DATA)) $(if $(QUICK),--quick)

# The tables and figures of the five papers again; DATA is needed. ONLY=paper3 redraws one of them.
papers: $(VENV)/.bench
	$(BIN)/python benchmarks/papers.py $(if $(DATA),--data $(DATA)) $(if $(ONLY),--only $(ONLY))

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

# The core's tests on a core built with the address and undefined-behavior sanitizers, or models fitted
# and asked by several threads with SANITIZER=thread.
SANITIZER := address
sanitize: $(VENV)/.installed
	tools/sanitize.sh $(BIN)/python $(SANITIZER)

# Minutes of damaged and forged input; another SEED does other experiments.
SEED := 0
fuzz: $(VENV)/.installed
	$(BIN)/python tests/fuzz/fuzzing.py all --first $(SEED) --count 1000000 --seconds 60

clean:
	rm -rf $(VENV) build docs/_build docs/gallery docs/api/generated

# Build tools live in the environment, so that the core is rebuilt in place, from where it was.
$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja \
	  "setuptools>=70.1"
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(CORE)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[$(EXTRAS)]"
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[bench,plot,images]"
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[docs]"
	@touch $@
