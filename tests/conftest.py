"""Fixtures and options of all tests, and the temporary directory."""

import gc
import os
import pathlib
import shutil

import pytest

pytest_plugins = [
    'tests.support.databases',
    'tests.support.storage',
    'tests.support.tiers',
]

MEMORY = pathlib.Path('/dev/shm')
REQUIRED_SPACE = 4 << 30  # bytes; a test run needs far less


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


def pytest_collection_finish():
    """Let the collector pass over modules and collected tests.

    There are millions of those objects, and they stay. Others are collected
    as often as by default: what tests leave behind may hold connections.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_power_failures(monkeypatch):
    """Skip flushing, which is slow: a kill loses nothing in the kernel."""
    monkeypatch.setattr(os, 'sync', lambda: None)
    monkeypatch.setattr(os, 'fsync', lambda file: None)
