"""Fixtures and options of all tests."""

import gc
import os

import pytest

pytest_plugins = [
    'tests.support.budget',
    'tests.support.ceph',
    'tests.support.databases',
    'tests.support.nfs_gateways',
    'tests.support.order',
    'tests.support.reference',
    'tests.support.skips',
    'tests.support.storage',
    'tests.support.tiers',
    'tests.support.traces',
]


def pytest_collection_finish():
    """Let the collector pass over modules and collected tests.

    There are millions of those objects, and they stay. What tests leave
    behind may hold connections: it is collected less often than by default,
    which took 4 % of the time, and more often than in a service.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.fixture
def no_power_failures(monkeypatch):
    """Skip flushing, which is slow: a kill loses nothing in the kernel."""
    monkeypatch.setattr(os, 'sync', lambda: None)
    monkeypatch.setattr(os, 'fsync', lambda file: None)
