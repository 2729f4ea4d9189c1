"""The processor time that a whole run may take, by folder.

`--budget NAME` compares with that column of tests/budget.csv and fails a run
of which nothing else has failed. Seconds are those of a machine on which the
loop below takes LOOP_SECONDS: each worker measures it now and then, beside the same
work of others as its tests, so that a slow or busy machine does not fail a run. What
our processes and those that they start spend is counted.
"""

import collections
import csv
import gc
import math
import os
import pathlib
import re
import statistics
import time

import pytest

TABLE = pathlib.Path(__file__).parents[1] / 'budget.csv'
OVERHEAD = '(collection and runner)'
LOOP_SECONDS = 0.08
LOOP_EVERY = 20.0
"""Processor seconds of a worker, of which the loop takes less than 1 %."""

MARGIN = 2.5
"""A machine that does other work at the same time has cold caches, which the loop
does not feel as much as tests do."""

_SERVERS = re.compile(r'^tests/functional/.*\[(?:mysql|postgresql)')
_ran_on_servers: list[str] = []
_spent = pytest.StashKey[collections.Counter]()
_loops = pytest.StashKey[list]()
_at = pytest.StashKey[list]()


def pytest_addoption(parser):
    parser.getgroup('budget').addoption(
        '--budget',
        metavar='NAME',
        help='fail if a whole run takes more processor time than this column '
        'of tests/budget.csv',
    )
    parser.getgroup('budget').addoption(
        '--write-budget',
        action='store_true',
        help='write what this run takes to the column instead',
    )


def pytest_configure(config):
    config.stash[_spent] = collections.Counter()
    config.stash[_loops] = []
    config.stash[_at] = [OVERHEAD, 0.0]


def processor_seconds():
    """Return what this process and all that it has started have spent."""
    return sum(os.times()[:4]) + _of_children('self')


def _of_children(pid):
    """Return what living children have spent, and what they waited for."""
    return sum(map(_of_child, _children(pid)))


def _of_child(pid):
    try:
        stat = pathlib.Path('/proc', pid, 'stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it has just ended
    ticks = stat.rpartition(') ')[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK') + _of_children(pid)


def _children(pid):
    """Yield the living children of all threads of a process."""
    for task in pathlib.Path('/proc', pid, 'task').glob('*'):
        try:
            yield from (task / 'children').read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has just ended


def calibrate():
    """Return the processor seconds of a loop like those of the service.

    Its rows are more than fit into the caches of one processor. The collector is
    off: it would pass over all that the tests of this worker have left.
    """
    gc.disable()
    try:
        began = time.process_time()
        _loop()
        return time.process_time() - began
    finally:
        gc.enable()


def _loop():
    found = {}
    for number in range(40_000):
        key = f'share-{number * 7919 % 20_000}'
        row = found.setdefault(key, {'id': key, 'sizes': []})
        row['sizes'] = [*row['sizes'][-3:], number]
        row.update(total=sum(row['sizes']), name=key.upper())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _enter(item.config, item.nodeid.partition('::')[0].rpartition('/')[0])


def _enter(config, folder):
    """Count what was spent since the last call for the folder until now."""
    before, since = config.stash[_at]
    if folder != before:
        now = _now(config)
        config.stash[_spent][before] += now - since
        config.stash[_at] = [folder, now]
        if now > (len(config.stash[_loops]) + 1) * LOOP_EVERY:
            _measure(config)


def _now(config):
    # Workers of pytest-xdist report their own part: they are not counted
    # again as children of the process that distributes the tests.
    return time.process_time() if _has_workers(config) else processor_seconds()


def _has_workers(config):
    return config.getoption('tx', None) and not hasattr(config, 'workerinput')


def _measure(config):
    """Measure the loop, whose time is counted for no folder."""
    if config.option.budget and not _has_workers(config):
        config.stash[_loops].append(calibrate())
        config.stash[_at][1] = _now(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session, exitstatus):
    config = session.config
    if not config.option.budget:
        return
    _enter(config, '')
    _measure(config)
    if hasattr(config, 'workeroutput'):
        config.workeroutput['budget'] = [
            dict(config.stash[_spent]),
            config.stash[_loops],
        ]
    elif exitstatus == pytest.ExitCode.OK:
        if config.option.write_budget:
            write(column(config), measured(config))
        elif exceeded(column(config), measured(config)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add up what the workers of pytest-xdist report at their end."""
    spent, loops = getattr(node, 'workeroutput', {}).get('budget', ({}, []))
    node.config.stash[_spent].update(spent)
    node.config.stash[_loops].extend(loops)


def column(config):
    """Return the column for this run; servers more than double its tests."""
    name = config.option.budget
    return 'servers' if name == 'test' and _ran_on_servers else name


def pytest_runtest_logreport(report):
    if report.when == 'call' and report.passed:
        _ran_on_servers.extend(_SERVERS.findall(report.nodeid))


def measured(config):
    """Return the scaled seconds by row of the table."""
    scale = LOOP_SECONDS / statistics.median(config.stash[_loops])
    rows = collections.Counter()
    for folder, seconds in config.stash[_spent].items():
        rows[row_of(folder)] += seconds * scale
    return rows


def row_of(folder):
    """Return the row of the table that a folder belongs to."""
    parts = folder.split('/')
    for end in range(len(parts), 0, -1):
        row = '/'.join(parts[:end])
        if row in budgets():
            return row
    return OVERHEAD


def budgets():
    """Return the rows of the table by folder."""
    with TABLE.open(newline='') as table:
        return {row['folder']: row for row in csv.DictReader(table)}


def exceeded(name, spent):
    """Return the rows that took more than their budget and the margin."""
    return {
        folder: seconds
        for folder, seconds in spent.items()
        if (budget := budgets()[folder][name]) and seconds > float(budget) * MARGIN
    }


def write(name, spent):
    """Replace a column of the table."""
    rows = budgets()
    for folder, row in rows.items():
        row[name] = str(math.ceil(spent[folder]) or '')
    with TABLE.open('w', newline='') as table:
        fields = list(next(iter(rows.values())))
        writer = csv.DictWriter(table, fields, lineterminator='\n')
        writer.writeheader()
        writer.writerows(rows.values())


def pytest_terminal_summary(terminalreporter, config):
    if not config.option.budget or not config.stash[_loops]:
        return
    name, spent = column(config), measured(config)
    loop = statistics.median(config.stash[_loops])
    terminalreporter.section('processor seconds')
    terminalreporter.line(
        f'of a machine with a loop of {LOOP_SECONDS:g} s, here {loop:.3f} s'
    )
    over = exceeded(name, spent)
    for folder, seconds in sorted(spent.items()):
        budget = budgets()[folder][name] or '-'
        note = ' ABOVE THE BUDGET' if folder in over else ''
        terminalreporter.line(f'{seconds:7.1f} of {budget:>4} {folder}{note}')
    terminalreporter.line(f'{sum(spent.values()):7.1f} in all')
