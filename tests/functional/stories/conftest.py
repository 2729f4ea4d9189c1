"""Fixtures for installations of real processes; logs of failed tests."""

from collections.abc import Callable, Iterator
import contextlib
import itertools
import pathlib
import typing

import pytest

from tests.support import broker, databases
from tests.support.cli import Cli
from tests.support.installation import Installation

MAX_LOG_LENGTH = 20_000

_running: list[Installation] = []


@contextlib.contextmanager
def new_installation(*args: typing.Any, **kwargs: typing.Any) -> Iterator[Installation]:
    """Yield an installation; kill its processes at the end."""
    with running(Installation(*args, **kwargs)) as installation:
        yield installation


@contextlib.contextmanager
def running(installation: Installation) -> Iterator[Installation]:
    """Show the logs of an installation if the test fails; kill it after."""
    _running.append(installation)
    try:
        yield installation
    finally:
        _running.remove(installation)
        installation.close()


@pytest.fixture
def install(tmp_path) -> Iterator[Callable[..., Installation]]:
    """Return a function that creates installations for one test."""
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:
        yield lambda **kwargs: stack.enter_context(
            new_installation(tmp_path / str(next(numbers)), **kwargs)
        )


@contextlib.contextmanager
def local_installation(
    folder: pathlib.Path, *features: str
) -> Iterator[tuple[Installation, pathlib.Path, Cli]]:
    """An installation on real directories, their root, and a client.

    Its share type supports the features, such as `snapshot`.
    """
    root = folder / 'root'
    root.mkdir()
    with new_installation(
        folder / 'installation',
        options='default_share_type = files',
        backends={
            'local': {
                'share_driver': 'local',
                'local_root': root,
                'local_capacity_gb': 100,
                'max_over_subscription_ratio': 1,
            }
        },
    ) as installation:
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        supported = [(f'--{name}-support', 'true') for name in features]
        cli('share type create', 'files', 'false', *sum(supported, ()))
        yield installation, root, cli


@pytest.fixture(scope='session')
def broker_url() -> Iterator[str]:
    """The transport URL of a virtual host for this test run."""
    with broker.virtual_host() as url:
        yield url


@pytest.fixture
def new_database(tmp_path) -> Iterator[Callable[[str], str]]:
    """Return a function that creates an empty database for one test."""
    with contextlib.ExitStack() as stack:
        yield lambda kind: stack.enter_context(
            databases.temporary_database(kind, tmp_path)
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    for installation in _running if report.failed else ():
        report.sections += [
            (f'log of {name}', text[-MAX_LOG_LENGTH:])
            for name, text in installation.logs()
        ]
    return report
