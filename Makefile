# Needs Python >= 3.11 and git; everything else goes into $(VENV).
PYTHON ?= python3
VENV ?= .venv
# Sample profiles for the tests that want real ones, and the reference tables beside them.
TRACES ?= ../shared/traces
REFERENCE ?= ../shared/reference
# A file's tests share its fixtures, some of them trainings: one worker runs them, in order.
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder

SAMPLE ?= 50
MINUTES ?= 5

# Hundreds of tests start a process of their own: compiled once, each starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
	--constraint constraints.txt
DEMO_READY := $(VENV)/.demo-ready
DEV_READY := $(VENV)/.dev-ready

ifneq ($(wildcard $(TRACES)/.),)
export MARIN_PROFILE_TRACES ?= $(abspath $(TRACES))
endif
ifneq ($(wildcard $(REFERENCE)/.),)
export MARIN_PROFILE_REFERENCE ?= $(abspath $(REFERENCE))
endif

.PHONY: demo install test test-long test-nightly mutants fuzz fuzz-bounds lint format docs wheel bench clean distclean

demo: $(DEMO_READY)
	rm -rf demo_out
	$(BIN)/python scripts/demo.py

install: $(DEV_READY)

test: $(DEV_READY)
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not long"

test-long: $(DEV_READY)
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "long and not timed and not nightly"
	$(BIN)/python -m pytest -m "long and timed"

test-nightly: $(DEV_READY)
	$(BIN)/python -m pytest -m nightly

# Whether the tests notice a changed numeric core: mutants of each module, drawn with a seed.
mutants: $(DEV_READY)
	$(BIN)/python scripts/mutants.py $(MODULES) --sample $(SAMPLE)

# Damaged profiles, drawn with a seed: what each comes to, and what fails, in fuzz_out/.
fuzz: $(DEV_READY)
	$(BIN)/python scripts/fuzz.py --minutes $(MINUTES)

# The same while compiled code checks every index.
fuzz-bounds: $(DEV_READY)
	MARIN_PROFILE_LOOPS=compiled NUMBA_BOUNDSCHECK=1 \
		NUMBA_CACHE_DIR=$(abspath $(VENV))/numba-bounds \
		$(BIN)/python scripts/fuzz.py --minutes $(MINUTES)

lint: $(DEV_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_secrets.py

format: $(DEV_READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages as a site, offline; a link that leads nowhere fails it.
docs: $(DEV_READY)
	$(BIN)/python scripts/make_docs.py --check
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs
	@echo build/docs/README.html

# What people install: the wheel alone, in an environment of its own.
wheel: $(DEV_READY)
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	.venv-wheel/bin/marin-profile --version
	$(BIN)/python tests/make_capture.py .venv-wheel/capture
	.venv-wheel/bin/marin-profile summarize --profile-dir .venv-wheel/capture \
		--output .venv-wheel/summary.json
	.venv-wheel/bin/marin-profile report --summary .venv-wheel/summary.json | head -3
	.venv-wheel/bin/marin-profile query --summary .venv-wheel/summary.json \
		--question "what are the top 3 ops?" | head -3

bench: $(DEV_READY)
	$(BIN)/python scripts/bench.py ratios

clean:
	rm -rf demo_out fuzz_out build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv*

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, $(PYTHON) is %d.%d: name another with PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade pip

$(DEMO_READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing marin-profile and Levanter into $(VENV) (a minute or two, once)"
	$(PIP_INSTALL) --editable ".[levanter]"
	@touch $@

$(DEV_READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing marin-profile, Levanter and the test tools into $(VENV) (a minute or two, once)"
	$(PIP_INSTALL) --editable ".[levanter,wandb,gcs,s3,http,mcp,dev]"
	@touch $@
