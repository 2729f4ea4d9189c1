"""What `make exhaust` selects: every case of all enumerations, for a time.

With a time limit the tests begin at one that the seed selects, and continue
from the first one after the last, so that runs of different commits cover
all of them. Tests that are left out count neither as passed nor as skipped.
"""

import time

import hypothesis
import pytest

from tests.support import sampling

MARKER = sampling.enumeration.name

_deadline = pytest.StashKey[float]()
_count = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser):
    group = parser.getgroup('enumerations')
    group.addoption(
        '--exhaust',
        action='store_true',
        help='run only enumerations, and all of their cases',
    )
    group.addoption(
        '--time-limit',
        type=float,
        default=0.0,
        metavar='MINUTES',
        help='start no more enumerations after so many minutes',
    )


def pytest_configure(config):
    config.addinivalue_line(
        'markers', f'{MARKER}: tries a sample, or with --exhaust all cases'
    )
    sampling.try_every_case(config.option.exhaust)
    _configure_hypothesis(config)
    config.stash[_count] = {'selected': 0, 'left_out': 0}
    limit = config.option.time_limit
    config.stash[_deadline] = (
        time.monotonic() + 60 * limit if limit else float('inf')
    )


def _configure_hypothesis(config):
    # The plugin of hypothesis reads this after us.
    config.option.hypothesis_seed = (
        config.option.hypothesis_seed or sampling.seed()
    )
    hypothesis.settings.register_profile(
        'manila_lite',
        max_examples=sampling.examples(1000, 100),
        deadline=None,  # an example may be slow because the machine is busy
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile('manila_lite')


def pytest_report_header(config):
    tried = 'all cases' if config.option.exhaust else 'a sample'
    return f'enumerations: {tried}, {sampling.VARIABLE}={sampling.seed()}'


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if not config.option.exhaust:
        return
    enumerations = [item for item in items if _is_enumeration(item)]
    config.hook.pytest_deselected(
        items=[item for item in items if not _is_enumeration(item)]
    )
    limited = config.option.time_limit and enumerations
    start = sampling.seed() % len(enumerations) if limited else 0
    items[:] = enumerations[start:] + enumerations[:start]
    config.stash[_count]['selected'] = len(items)


def _is_enumeration(item):
    return any(
        item.get_closest_marker(name) for name in (MARKER, 'hypothesis')
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    """Leave the test out when the time is over."""
    if time.monotonic() < item.config.stash[_deadline]:
        return None
    item.config.stash[_count]['left_out'] += 1
    return True


def pytest_sessionfinish(session):
    if hasattr(session.config, 'workeroutput'):
        session.config.workeroutput['enumerations'] = session.config.stash[
            _count
        ]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add up what the workers of pytest-xdist report at their end."""
    count = node.config.stash[_count]
    reported = getattr(node, 'workeroutput', {}).get('enumerations')
    if reported:
        count['selected'] = reported['selected']
        count['left_out'] += reported['left_out']


def pytest_terminal_summary(terminalreporter, config):
    if not config.option.exhaust:
        return
    selected, left_out = config.stash[_count].values()
    tried = selected - left_out
    terminalreporter.write_line(f'enumerations: {tried} of {selected} tests')
    if left_out:
        terminalreporter.write_line(
            f'{sampling.VARIABLE}={sampling.seed() + tried} begins with those '
            'that were left out'
        )
