"""What a run selects: a sample, or with --exhaust every case for a time.

Of tests that are marked as combinations or as a suite a sample is selected
here, in whole runs also of those that have many cases; enumerations choose
their own. Tests run on SQLite, and those to which
the SQL dialect matters with one of four cases on a database server, too; half of
these where a whole service runs on it.
`make exhaust` runs the cases of all of them: first one case of each test on each
database, because a test that is broken usually fails in all of its cases. The
seed selects these cases. With a time limit it begins at a test that the seed
selects, and continues from the first one after the last, so that runs of
different commits cover all of them. Tests that are left out count neither as
passed nor as skipped.
"""

import collections
import math
import random
import time

import hypothesis
import pytest

from tests.support import databases, sampling

MARKER = sampling.enumeration.name
COMBINED = sampling.combinations.name
DIALECTS = sampling.dialects.name
ON_SERVER = sampling.on_server.name
SUITE = sampling.suite.name

UNITS = 'tests/unit/'
SERVICES = ('tests/functional/api/', 'tests/functional/share/')

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
    group.addoption(
        '--one-of-each',
        action='store_true',
        help='with --exhaust, run one case of each test on each database',
    )
    group.addoption(
        '--cases',
        type=int,
        metavar='COUNT',
        help='try so many cases of a parametrised unit test at most, and half '
        'as many of any other; with --exhaust, run those that have more of them',
    )


def pytest_configure(config):
    config.addinivalue_line(
        'markers', f'{MARKER}: tries a sample, or with --exhaust all cases'
    )
    config.addinivalue_line(
        'markers',
        f'{COMBINED}(*names): tries a sample of the combinations of these '
        'parameters, or with --exhaust all of them',
    )
    config.addinivalue_line(
        'markers', f'{DIALECTS}: tries a database server in every run'
    )
    config.addinivalue_line('markers', f'{ON_SERVER}: a case on a database server')
    config.addinivalue_line(
        'markers',
        f'{SUITE}(name, most): tries so many tests of the suite, or with '
        '--exhaust all of them',
    )
    sampling.try_every_case(config.option.exhaust)
    _configure_hypothesis(config)
    config.stash[_count] = {'selected': 0, 'first': 0, 'left_out': 0}
    limit = config.option.time_limit
    config.stash[_deadline] = time.monotonic() + 60 * limit if limit else float('inf')


def _configure_hypothesis(config):
    # The plugin of hypothesis reads this after us.
    config.option.hypothesis_seed = config.option.hypothesis_seed or sampling.seed()
    hypothesis.settings.register_profile(
        'manila_lite',
        max_examples=sampling.examples(1000, 50),
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
        sample = _in_sample(items, config.option.cases or 2 * len(items))
        _select(config, items, sample.__contains__)
        if hasattr(config, 'workerinput'):
            items.sort(key=_is_short)
        return
    counts = collections.Counter(map(_test_of, items))
    most = config.option.cases or 2 * len(items)
    _select(
        config,
        items,
        lambda item: (
            _is_enumeration(item) or counts[_test_of(item)] > _most_of(item, most)
        ),
    )
    first = _one_of_each(items)
    if config.option.one_of_each:
        _select(config, items, first.__contains__)
    if config.option.time_limit:
        start = sampling.seed() % max(len(items), 1)
        items[:] = items[start:] + items[:start]
    begins_with_each = config.option.one_of_each or not config.option.time_limit
    if begins_with_each:
        items.sort(key=lambda item: item not in first)
    config.stash[_count].update(
        selected=len(items), first=len(first) if begins_with_each else 0
    )


def _one_of_each(items):
    """Return one case of each test on each database."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[_test_of(item), _server_of(item)].append(item)
    return {group[sampling.seed() % len(group)] for group in groups.values()}


def next_seed(seed, tried, first):
    """Return the seed of a run that begins with what another one left out.

    That one has tried so many tests, of which the first were one case of each.
    """
    return seed + (tried if tried <= first else tried - first)


def _select(config, items, is_wanted):
    """Deselect the others; pytest prints their number."""
    others = [item for item in items if not is_wanted(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = filter(is_wanted, items)


def _is_short(item):
    """Tell those apart that are started first.

    A story may take half a minute; if one of them were the last test, the
    other workers of pytest-xdist would wait for it.
    """
    return not item.nodeid.startswith('tests/functional/stories/')


def _is_enumeration(item):
    return _is_on_server(item) or any(
        item.get_closest_marker(name)
        for name in (MARKER, COMBINED, SUITE, 'hypothesis')
    )


def _is_on_server(item):
    """Tell whether the case needs MariaDB or PostgreSQL.

    Not so of combinations: their sample contains one of them anyway.
    """
    return not item.get_closest_marker(COMBINED) and _server_of(item) is not None


def _server_of(item):
    """Return the kind of the database server of the case, None without one."""
    params = item.callspec.params.values() if hasattr(item, 'callspec') else ()
    return next(
        (
            one
            for one in params
            if isinstance(one, str) and one in databases.SERVER_KINDS
        ),
        None,
    )


def _is_further_database(item):
    """Tell whether only `make exhaust` tries the test on this database."""
    return bool(
        _is_on_server(item)
        and item.get_closest_marker(ON_SERVER)
        and not item.get_closest_marker(DIALECTS)
    )


def _some_on_servers(items):
    """Return a quarter of the cases of each test, at least one.

    On a whole service they take several times as long as on SQLite: of those, half
    of each module is returned.
    """
    groups = collections.defaultdict(list)
    for item in items:
        groups[_test_of(item)].append(item)
    services = collections.defaultdict(list)
    for name, group in groups.items():
        rng = random.Random(f'{sampling.seed()} of {name}')
        # Tests of a module share what they have prepared on a server.
        chosen = rng.sample(_on_one_server(group), math.ceil(len(group) / 4))
        if name.startswith(SERVICES):
            services[_module_of(chosen[0])] += chosen
        else:
            yield from chosen
    for module, chosen in services.items():
        rng = random.Random(f'{sampling.seed()} of {module}')
        yield from rng.sample(chosen, math.ceil(len(chosen) / 2))


def _on_one_server(items):
    """Return the items of a test without those of one server.

    It is the same for all tests of a module.
    """
    left_out = random.Random(f'{sampling.seed()} of {_module_of(items[0])}').choice(
        sorted(databases.SERVER_KINDS)
    )
    return [
        item for item in items if left_out not in item.callspec.params.values()
    ] or items


def _test_of(item):
    return item.nodeid.partition('[')[0]


def _module_of(item):
    return item.nodeid.partition('::')[0]


def _most_of(item, most):
    """Return how many cases of a test are tried.

    Where each of them needs a service or a driver, half as many as of a unit test:
    they take ten times as long.
    """
    return most if item.nodeid.startswith(UNITS) else math.ceil(most / 2)


def _limited(items, most):
    """Yield some cases of each test that has many."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[_test_of(item)].append(item)
    for name, group in groups.items():
        tried = _most_of(group[0], most)
        if len(group) <= tried or group[0].get_closest_marker(MARKER):
            yield from group
        else:
            rng = random.Random(f'{sampling.seed()} of {name}')
            yield from rng.sample(group, tried)


def _in_sample(items, most):
    """Return the items that are not combinations, and a sample of those.

    Of a suite, those are in the sample that are tried at most; of a test
    with many cases, some of them.
    """
    others, groups = [], collections.defaultdict(list)
    suites = collections.defaultdict(list)
    on_servers = []
    for item in items:
        if _is_further_database(item):
            continue
        if mark := item.get_closest_marker(SUITE):
            suites[mark.args].append(item)
            continue
        mark = item.get_closest_marker(COMBINED)
        if mark is None:
            (on_servers if _is_on_server(item) else others).append(item)
            continue
        params = item.callspec.params
        # The combinations of one test share their other parameters.
        shared = [id(params[name]) for name in params if name not in mark.args]
        groups[_test_of(item), *shared].append(item)
    chosen = {*_limited(others, most)}
    for group in map(_on_one_server, groups.values()):
        names = group[0].get_closest_marker(COMBINED).args
        combined = [tuple(map(item.callspec.params.get, names)) for item in group]
        chosen.update(
            group[number] for number in sampling.covering(combined, group[0].nodeid)
        )
    for (_, limit), tests in suites.items():
        chosen.update(sampling.sample(tests, limit))
    chosen.update(_some_on_servers(on_servers))
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    """Leave the test out when the time is over."""
    if time.monotonic() < item.config.stash[_deadline]:
        return None
    item.config.stash[_count]['left_out'] += 1
    return True


def pytest_sessionfinish(session):
    if hasattr(session.config, 'workeroutput'):
        session.config.workeroutput['enumerations'] = session.config.stash[_count]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add up what the workers of pytest-xdist report at their end."""
    count = node.config.stash[_count]
    reported = getattr(node, 'workeroutput', {}).get('enumerations')
    if reported:
        count.update(selected=reported['selected'], first=reported['first'])
        count['left_out'] += reported['left_out']


def pytest_terminal_summary(terminalreporter, config):
    if not config.option.exhaust:
        return
    selected, first, left_out = config.stash[_count].values()
    tried = selected - left_out
    terminalreporter.write_line(f'enumerations: {tried} of {selected} tests')
    if left_out:
        terminalreporter.write_line(
            f'{sampling.VARIABLE}={next_seed(sampling.seed(), tried, first)} begins '
            'with those that were left out'
        )
