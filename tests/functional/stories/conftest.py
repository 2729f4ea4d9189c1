"""Whole installations of real processes, and their logs when a test fails."""

from collections.abc import Callable, Iterator
import contextlib
import itertools
import typing

import pytest

from tests.support import broker
from tests.support import databases
from tests.support.installation import Installation

LONGEST_LOG = 20_000

_alive: list[Installation] = []


@contextlib.contextmanager
def new_installation(
    *args: typing.Any, **kwargs: typing.Any
) -> Iterator[Installation]:
    """An installation; all of its processes end with the block."""
    made = Installation(*args, **kwargs)
    _alive.append(made)
    try:
        yield made
    finally:
        _alive.remove(made)
        made.close()


@pytest.fixture
def install(tmp_path) -> Iterator[Callable[..., Installation]]:
    """Makes installations, whose processes all end with the test."""
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:
        yield lambda **kwargs: stack.enter_context(
            new_installation(tmp_path / str(next(numbers)), **kwargs)
        )


@pytest.fixture(scope='session')
def broker_url() -> Iterator[str]:
    """The transport URL of a virtual host of this run's own."""
    with broker.virtual_host() as url:
        yield url


@pytest.fixture
def new_database(tmp_path) -> Iterator[Callable[[str], str]]:
    """Makes a database of a kind, without tables, for one test."""
    with contextlib.ExitStack() as stack:
        yield lambda kind: stack.enter_context(
            databases.temporary_database(kind, tmp_path)
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    for installation in _alive if report.failed else ():
        report.sections += [
            (f'log of {name}', text[-LONGEST_LOG:])
            for name, text in installation.logs()
        ]
    return report
