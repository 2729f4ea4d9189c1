"""What every test may ask for, and where they keep their files."""

import os
import pathlib
import shutil

import hypothesis

from tests.support import seeds

pytest_plugins = ['tests.support.databases']

MEMORY = pathlib.Path('/dev/shm')
ROOM = 4 << 30  # bytes; a run needs far less


# An example may be slow because of what else the machine does.
hypothesis.settings.register_profile(
    'manila_lite',
    deadline=None,
    derandomize=not seeds.is_exploratory(),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('manila_lite')


def pytest_configure():
    """Keep files in memory where there is room for them.

    SQLite waits for the disk at every commit, and most tests start a
    whole service on a database of its own.
    """
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ.setdefault('PYTEST_DEBUG_TEMPROOT', str(MEMORY))
