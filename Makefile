# Everything a fresh machine (Linux, Python >= 3.10, pip, make) needs stands in this file.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST_ARGS ?=
BENCH_ARGS ?=
VERSIONS ?= 3.10 3.11 3.12 3.13
WHEEL_TESTS ?= -m "not live and not slow" --ignore=tests/browser --ignore=tests/live \
	--ignore=tests/test_architecture.py --ignore=tests/test_docs.py --ignore=tests/test_examples.py

.PHONY: demo soak test test-browser test-all lint docs bench format clean

# One stamp for each set of dependencies, so that a second run installs nothing.
$(VENV)/.base:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1"
	touch $@

$(VENV)/.%: $(VENV)/.base pyproject.toml
	$(PIP) --editable "$(if $(filter demo lint,$*),.,.[all])" --group $*
	touch $@

demo: $(VENV)/.demo ## run the main job on a real pipeline
	@$(BIN)/python -m demo

test: $(VENV)/.test ## run the whole suite but what needs a browser
	$(BIN)/python -m pytest --ignore=tests/browser $(PYTEST_ARGS)

test-browser: $(VENV)/.browser ## run what needs a browser (Debian: chromium, chromium-driver)
	$(BIN)/python -m pytest tests/browser $(PYTEST_ARGS)

lint: $(VENV)/.lint $(VENV)/.test ## formatting, lint rules, types, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.docs ## the documentation as a site in build/docs; a dead link fails
	rm -rf build/docs .cache
	$(BIN)/zensical build --strict
	rm -rf .cache

# The folder has the tests and what they read, but no source of ours beside it: what is imported
# is the wheel. Left out is what judges the source itself, or needs a browser or the frameworks.
test-all: $(VENV)/.base ## test the wheel in an empty folder, on each Python that is found
	rm -rf build/wheel && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	@set -eu; for version in $(VERSIONS); do \
	  for python in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python none; do \
	    "$$python" -c "" 2>/dev/null && break; done; \
	  [ "$$python" != none ] || { echo "skipped: Python $$version is not here"; continue; }; \
	  root=$$(mktemp -d); folder="$$root/bijotel"; trap 'rm -rf "$$root"' EXIT; mkdir "$$folder"; \
	  if [ -d ../shared ]; then ln -s "$$(cd ../shared && pwd)" "$$root/shared"; fi; \
	  cp -r tests benchmarks demo tools docs examples *.md pyproject.toml "$$folder"; \
	  "$$python" -m venv "$$folder/venv"; pip="$$folder/venv/bin/python -m pip install --quiet"; \
	  $$pip --upgrade "pip>=25.1"; \
	  $$pip "$$(echo build/wheel/*.whl)[all]" --group unit; \
	  echo "Python $$version:"; (cd "$$folder" && venv/bin/python -m pytest -q $(WHEEL_TESTS)); \
	  rm -rf "$$root"; done

soak: $(VENV)/.test ## the long form of the fault suite; writes its table into the docs
	BIJOTEL_SOAK=1 $(BIN)/python -m pytest tests/faults $(PYTEST_ARGS)

bench: $(VENV)/.test ## figures, each beside a floor measured in the same run; BENCH_ARGS=--write
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

clean:
	rm -rf $(VENV) demo-output
