"""Fixtures and options of all tests."""

import gc
import os

import pytest

pytest_plugins = [
    'tests.support.budget',
    'tests.support.databases',
    'tests.support.order',
    'tests.support.reference',
    'tests.support.skips',
    'tests.support.storage',
    'tests.support.tiers',
    'tests.support.traces',
]


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
