# make run      start the whole service on this machine, state in ./state
# make check    style, types, unit tests on SQLite, one story: 2 minutes
# make test     everything that must be green; of crash points and random
#               orders a sample: 12 minutes
# make exhaust  every crash point and random order: 40 minutes
# make venv     only the environment that all of them use

VENV := .venv
STATE_DIR ?= state
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run check lint test exhaust venv genconfig genpolicy docs clean

run: venv
	@exec $(BIN)/manila-lite serve --state-dir $(STATE_DIR) $(ARGS)

PYTEST := $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# pytest is last, so that its verdict is the last line.
check: lint
	$(PYTEST) -k 'not mysql and not postgresql' tests/unit \
	    tests/functional/stories/test_revert.py $(ARGS)

test: lint
	$(PYTEST) --durations=15 $(ARGS)

# Limit the minutes with MANILA_LITE_TEST_MINUTES. MANILA_LITE_TEST_SLICE, a
# hexadecimal number, says where a limited run begins.
exhaust: venv
	MANILA_LITE_TEST_EXHAUSTIVE=1 $(PYTEST) --durations=15 \
	    tests/simulation tests/drivers \
	    $$(find tests/functional -name 'test_*races.py') $(ARGS)

venv: $(READY)

# Which index packages come from is for pip's own configuration to say.
$(READY): setup.cfg pyproject.toml requirements.txt test-requirements.txt
	@for python in python3.11 python3; do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	            2>/dev/null; then \
	        exec $$python -m venv $(VENV); \
	    fi; \
	done; \
	echo 'manila_lite needs Python 3.11 or newer as python3.11 or python3;' \
	    "found: $$(python3 --version 2>&1)" >&2; \
	exit 1
	@echo 'Installing into $(VENV), this takes a few minutes once.'
	$(BIN)/python -m pip install --quiet --editable . \
	    --requirement test-requirements.txt
	@touch $@

genconfig: venv
	$(BIN)/oslo-config-generator \
	    --config-file etc/manila_lite/config-generator.conf

genpolicy: venv
	$(BIN)/oslopolicy-sample-generator \
	    --config-file etc/manila_lite/policy-generator.conf

docs: venv
	$(BIN)/sphinx-build -W -q -b html doc/source build/html

# The environment and the state of `make run` stay.
clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache \
	    .hypothesis .coverage etc/manila_lite/*.sample
	find . -name __pycache__ -not -path './$(VENV)/*' -prune \
	    -exec rm -rf {} +
