"""Fixtures of all tests, hypothesis settings, and the temporary directory."""

import os
import pathlib
import shutil
import time

import hypothesis
import pytest

from tests.support import seeds

pytest_plugins = ['tests.support.databases']

MEMORY = pathlib.Path('/dev/shm')
REQUIRED_SPACE = 4 << 30  # bytes; a test run needs far less


# An example may be slow because the machine is busy.
hypothesis.settings.register_profile(
    'manila_lite',
    deadline=None,
    derandomize=not seeds.is_exploratory(),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('manila_lite')


LIMIT = 'MANILA_LITE_TEST_MINUTES'
SLICE = 'MANILA_LITE_TEST_SLICE'
_START = time.monotonic()


def pytest_configure(config):
    """Choose the seed of the run, and a place for temporary files."""
    seeds.choose_run_seed()
    _keep_files_in_memory()


def pytest_report_header():
    kind = 'everything' if seeds.is_exhaustive() else 'a sample'
    lines = [
        f'{seeds.RUN_SEED}={os.environ[seeds.RUN_SEED]}, trying {kind} of '
        'crash points and random orders'
    ]
    if os.environ.get(LIMIT):
        lines.append(
            f'{LIMIT}={os.environ[LIMIT]}, beginning at '
            f'{SLICE}={os.environ.get(SLICE, "0")}'
        )
    return lines


def pytest_collection_modifyitems(items):
    """Begin at a slice, so that limited runs cover all over time.

    The slice is a hexadecimal number such as a commit id; each begins at
    another test of the same order.
    """
    first = int(os.environ.get(SLICE) or '0', 16) % max(1, len(items))
    items[:] = items[first:] + items[:first]


def pytest_runtest_setup(item):
    """Leave out the tests that a time limit has no room for."""
    minutes = os.environ.get(LIMIT)
    if minutes and time.monotonic() - _START > 60 * float(minutes):
        pytest.skip(f'the {minutes} minutes of this run are over')


def _keep_files_in_memory():
    """Keep temporary files in memory if there is enough space.

    SQLite waits for the disk at every commit, and most tests start a
    whole service on its own database.
    """
    if (
        os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free >= REQUIRED_SPACE
    ):
        os.environ.setdefault('PYTEST_DEBUG_TEMPROOT', str(MEMORY))
