# make run      start the whole service on this machine, state in ./state
# make run-nfs  the same with shares that NFS clients mount, as root
# make run-ceph the same with shares on a Ceph cluster of one node, as root
# make cluster  start many nodes on this machine, as root, state in
#               ./state-cluster; `make stop-cluster` ends them
# make chaos    beat such a cluster until it breaks
# make soak     do so for HOURS=1, and see that nothing grows
# make check    style, types, unit tests and one story
# make test     everything that must be green
# make exhaust  every crash point and random order, not only a sample
# make mutate   plant faults, to see which of them the tests catch
# make servers  print how to get the servers that some tests need
# make screenshots  the pictures of the page in the documentation
# make constraints  the versions that deploy/wheels and the image install
# make venv     only the environment that all of them use

VENV := .venv
STATE_DIR ?= state
NFS_STATE_DIR ?= state-nfs
CEPH_STATE_DIR ?= state-ceph
CEPH_NFS_ADDRESS ?= 127.0.0.1
CLUSTER_DIR ?= state-cluster
STORY := tests/functional/stories/test_whole_story.py::test_in_one_process
MINUTES ?= 0
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run run-nfs stop-nfs run-ceph stop-ceph cluster stop-cluster chaos \
        soak check lint test test-deploy exhaust mutate servers venv constraints \
        genconfig genpolicy docs screenshots changelog clean

run: venv
	@exec $(BIN)/manila-lite serve --state-dir $(STATE_DIR) $(ARGS)

# Debian's packages are installed first. Clients are served until `make stop-nfs`.
run-nfs: venv
	@tools/install-storage-packages
	@$(BIN)/manila-lite-manage storage build-guard > /dev/null
	@exec $(BIN)/manila-lite serve --nfs --state-dir $(NFS_STATE_DIR) $(ARGS)

stop-nfs: venv
	@$(BIN)/manila-lite-manage storage stop --root $(NFS_STATE_DIR)/nfs

# Debian's packages are installed first. The cluster and its NFS gateway run until
# `make stop-ceph`.
run-ceph: venv
	@tools/install-ceph-packages
	@$(BIN)/manila-lite-manage storage build-guard --driver cephfs > /dev/null
	@$(BIN)/python tests/support/ceph_supervisor.py start \
	    $(CEPH_STATE_DIR)/ceph $(CEPH_NFS_ADDRESS)
	@exec $(BIN)/manila-lite serve --ceph $(CEPH_STATE_DIR)/ceph/ceph.conf \
	    --nfs-address $(CEPH_NFS_ADDRESS) --state-dir $(CEPH_STATE_DIR) $(ARGS)

stop-ceph: venv
	@$(BIN)/python tests/support/ceph_supervisor.py stop $(CEPH_STATE_DIR)/ceph

# ARGS=--small starts fewer nodes, with the servers of this machine.
cluster: venv
	@tools/install-cluster-packages
	@exec $(BIN)/python -W ignore -m tests.cluster \
	    --folder $(CLUSTER_DIR) up $(ARGS)

# ARGS='--small --seed 7 --rounds 3 --seconds 40'
chaos: venv
	@tools/install-cluster-packages
	@exec $(BIN)/python -W ignore -m tests.cluster \
	    --folder $(CLUSTER_DIR) chaos $(ARGS)

# In real time; tests/simulation/test_day.py simulates a day.
HOURS := 1
soak: venv
	@tools/install-cluster-packages
	@exec $(BIN)/python -W ignore -m tests.cluster \
	    --folder $(CLUSTER_DIR) chaos --hours $(HOURS) $(ARGS)

stop-cluster: venv
	@$(BIN)/python -m tests.cluster --folder $(CLUSTER_DIR) stop

# Only a whole run is compared with tests/budget.csv; BUDGET=--write-budget
# writes it.
BUDGET :=
budget = $(if $(ARGS),,--budget $1 $(BUDGET))

# A usual run tries so many cases of each unit test and half as many of any other
# one, `make check` half of these, `make exhaust` all of them.
CASES := --cases 8
FEWER := --cases 4

PYTEST := $(BIN)/pytest -n auto --maxprocesses 4

# A test that is blocked in a C library does not see that its time is over:
# its worker is ended, with a traceback, and another one takes its place.
# The longest time of a test, and a minute; enumerations may take longer.
ends_after = -o faulthandler_exit_on_timeout=true -o faulthandler_timeout=$1

# Otherwise each of about 300 test processes compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# pytest runs last, so that its summary is the last line.
check: lint
	$(PYTEST) --dist worksteal $(FEWER) $(call budget,check) \
	    $(call ends_after,360) \
	    tests/unit $(STORY) $(ARGS)

# Two workers more than cores: stories wait for their services.
test: lint
	$(BIN)/pytest -n $$(($$(nproc) + 2)) --maxprocesses 6 \
	    --dist worksteal --durations=15 $(CASES) $(call budget,test) \
	    $(call ends_after,660) $(ARGS)

define SERVERS
Without these servers their tests are skipped. On a Debian for tests, as root:

  apt-get install postgresql mariadb-server redis-server rabbitmq-server \\
      memcached haproxy prometheus logrotate libfaketime keepalived
  # Tests connect from this machine, as administrators without passwords.
  sed -i '1i host all postgres 127.0.0.1/32 trust' \\
      /etc/postgresql/*/main/pg_hba.conf
  mariadb -e "ALTER USER root@localhost IDENTIFIED VIA unix_socket \\
      OR mysql_native_password USING PASSWORD('')"
  for one in postgresql mariadb redis-server rabbitmq-server; do \\
      service $$one restart; done

Other addresses of database servers, as URLs of SQLAlchemy, are taken from
MANILA_LITE_TEST_POSTGRESQL and MANILA_LITE_TEST_MYSQL.
With CI=true a missing server fails the tests that need it.
endef
export SERVERS

servers:
	@printf '%b\n' "$$SERVERS"

# The scripts of deploy in Debian trees, as root; needs debootstrap.
test-deploy: venv
	tools/test-deploy

# MINUTES=20 limits it; MANILA_LITE_TEST_SEED, by default the commit, then
# selects where it begins. Tests run in order, so that runs cover different parts.
# A driver of real storage is killed at some hundred steps in one of them.
exhaust: venv
	$(PYTEST) --dist load --maxschedchunk 1 --durations=15 --timeout 900 \
	    --exhaust --time-limit $(MINUTES) $(CASES) \
	    $(call ends_after,1860) $(ARGS)

# ARGS='--seed 7 --count 200 --tier test'
mutate: venv
	$(BIN)/python tools/mutate.py $(ARGS)

venv: $(READY)

# The package index is configured in pip, not here.
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
	@echo 'Installing into $(VENV), this takes a minute or two, once.'
	@{ $(BIN)/python -m pip install --progress-bar off --editable . \
	        --requirement test-requirements.txt || echo failed; } | awk ' \
	    /^failed/ { exit 1 } \
	    /^Collecting / { printf "\r%d packages found", ++n; fflush() } \
	    /^Installing collected/ { printf ", installing them"; fflush() } \
	    END { print "." }'
	@touch $@

# What deploy/wheels fetches, and the container image has: with each release.
constraints: venv
	@$(BIN)/python -m pip install --quiet uv
	UV_CUSTOM_COMPILE_COMMAND='make constraints' $(BIN)/uv pip compile --quiet \
	    --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --extra mysql --extra mysqlclient --extra postgresql \
	    --extra redis --extra memcached --output-file constraints.txt setup.cfg

genconfig: venv
	$(BIN)/oslo-config-generator \
	    --config-file etc/manila_lite/config-generator.conf

genpolicy: venv
	$(BIN)/oslopolicy-sample-generator \
	    --config-file etc/manila_lite/policy-generator.conf

docs: venv
	$(BIN)/sphinx-build -W -q -b html doc/source build/html

# Debian's Chromium is installed first. Look at the pictures before you commit.
screenshots: venv
	tools/install-browser
	$(BIN)/python tools/make_screenshots.py

# The notes of all releases, from the working tree and the tags.
changelog: venv
	@mkdir -p build
	$(BIN)/reno --quiet report --no-show-source --title Changelog \
	    --output build/CHANGELOG.rst .

# The environment and the state of `make run` stay.
clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache \
	    .hypothesis .coverage etc/manila_lite/*.sample
	find . -name __pycache__ -not -path './$(VENV)/*' -prune \
	    -exec rm -rf {} +
