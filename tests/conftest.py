"""Fixtures and options of all tests."""

import contextlib
import faulthandler
import gc
import importlib
import os
import pathlib

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


_errors = pytest.StashKey[int]()


def pytest_configure(config):
    # Output is not captured yet.
    config.stash[_errors] = os.dup(2)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item, settings):
    """Let a worker that has to be ended say where its threads were.

    Those of pytest-xdist would lose what the method `thread` prints.
    """
    if settings.method != 'thread':
        return None
    print_to = item.config.stash[_errors]
    faulthandler.dump_traceback_later(settings.timeout, exit=True, file=print_to)
    item.cancel_timeout = faulthandler.cancel_dump_traceback_later
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Let each worker import its own part of the test modules first.

    In a new clone pytest rewrites the assertions of a module before it is imported
    for the first time, which takes longer than all else until the first test runs.
    Workers that import in the same order all do so with each module.
    """
    # Hardly anything that is made meanwhile can be released.
    gc.disable()
    worker = getattr(session.config, 'workerinput', None)
    if worker is None:
        return
    config = session.config
    folders = [config.invocation_params.dir / one for one in config.args]
    modules = sorted({path for one in folders for path in one.rglob('test_*.py')})
    root = pathlib.Path(__file__).parents[1]
    first = int(worker['workerid'].removeprefix('gw'))
    for path in modules[first :: worker['workercount']]:
        # What is wrong with a module, or why it is skipped, is reported later.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            parts = path.relative_to(root).with_suffix('').parts
            importlib.import_module('.'.join(parts))


def pytest_collection_finish():
    """Let the collector pass over modules and collected tests.

    There are millions of those objects, and they stay. What tests leave
    behind may hold connections: it is collected less often than by default,
    which took 4 % of the time, and more often than in a service.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000)


@pytest.fixture
def no_power_failures(monkeypatch):
    """Skip flushing, which is slow: a kill loses nothing in the kernel."""
    monkeypatch.setattr(os, 'sync', lambda: None)
    monkeypatch.setattr(os, 'fsync', lambda file: None)
