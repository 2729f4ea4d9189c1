"""Fixtures of all tests, hypothesis settings, and the temporary directory."""

import os
import pathlib
import shutil

import hypothesis

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


def pytest_configure():
    """Keep temporary files in memory if there is enough space.

    SQLite waits for the disk at every commit, and most tests start a
    whole service on its own database.
    """
    if (
        os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free >= REQUIRED_SPACE
    ):
        os.environ.setdefault('PYTEST_DEBUG_TEMPROOT', str(MEMORY))
