"""Whole installations of real processes, and their logs when a test fails."""

from collections.abc import Callable, Iterator
import contextlib
import typing

import pytest

from tests.support import broker
from tests.support import databases
from tests.support.installation import Installation

LONGEST_LOG = 20_000

_made: dict[str, list[Installation]] = {}


@pytest.fixture
def install(request, tmp_path) -> Iterator[Callable[..., Installation]]:
    """Makes installations, whose processes all end with the test."""
    made = _made.setdefault(request.node.nodeid, [])

    def make(**kwargs: typing.Any) -> Installation:
        made.append(Installation(tmp_path / str(len(made)), **kwargs))
        return made[-1]

    yield make
    for installation in made:
        installation.close()


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
            databases.created(kind, tmp_path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    for installation in _made.get(item.nodeid, ()) if report.failed else ():
        report.sections += [
            (f'log of {name}', text[-LONGEST_LOG:])
            for name, text in installation.logs()]
    return report
