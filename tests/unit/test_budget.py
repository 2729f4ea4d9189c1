"""A whole run fails above the processor time of the table of budgets."""

import gc
import itertools
import os
import pathlib
import re
import subprocess
import sys
import time

from tests.support import budget
from tests.support.order import shuffled, spread

ROOT = pathlib.Path(__file__).parents[2]


class Item:
    def __init__(self, nodeid):
        self.nodeid = nodeid


def test_time_of_folders_is_counted_for_the_nearest_row():
    assert budget.row_of('tests/functional/api/shares') == ('tests/functional/api')
    assert budget.row_of('tests/unit') == 'tests/unit'
    assert budget.row_of('elsewhere') == budget.OVERHEAD


def test_only_more_than_budget_and_margin_is_exceeded(monkeypatch):
    rows = {'a': {'folder': 'a', 'test': '10'}, 'b': {'folder': 'b', 'test': ''}}
    monkeypatch.setattr(budget, 'budgets', lambda: rows)
    assert budget.exceeded('test', {'a': 24.9, 'b': 1000.0}) == {}
    assert budget.exceeded('test', {'a': 25.1}) == {'a': 25.1}


# No other test has processes here, which may end at any time.
_COUNTED = """
import subprocess, sys
from tests.support import budget
before = budget.processor_seconds()
busy = 'import time\\nwhile time.process_time() < 0.2: pass\\nprint()\\n'
with subprocess.Popen(
    [sys.executable, '-Ic', f'{busy}input()'],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
) as process:
    process.stdout.readline()
    while_running = budget.processor_seconds()
    process.communicate(b'\\n')
print(before, while_running, budget.processor_seconds())
"""


def test_time_of_processes_that_still_run_is_counted():
    done = subprocess.run(
        [sys.executable, '-c', _COUNTED],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    before, while_running, afterwards = map(float, done.stdout.split())
    assert while_running - before >= 0.15
    assert afterwards >= while_running


def test_process_that_ends_meanwhile_does_not_hide_others(monkeypatch):
    with subprocess.Popen(['true']) as process:
        ended = str(process.pid)
    own = str(os.getpid())
    monkeypatch.setattr(
        budget, '_children', lambda pid: [ended, own] if pid == 'self' else []
    )
    assert budget.processor_seconds() >= 2 * time.process_time() - 0.1


def test_what_other_tests_have_left_is_not_measured_with_the_loop():
    """The collector takes longer than the loop to pass over it."""
    passes = []
    gc.callbacks.append(lambda *found: passes.append(found))
    try:
        assert budget.calibrate() > 0
        assert not passes
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()


# What each process has spent when it has said all that it says.
_SPENT = """
import os, pathlib, time, pytest

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    path = pathlib.Path(__file__).with_name(f'spent-{os.getpid()}')
    path.write_text(str(time.process_time()))
"""


def test_workers_are_not_counted_again_by_the_process_that_distributes(tmp_path):
    test = tmp_path / 'tests' / 'test_busy.py'
    test.parent.mkdir()
    test.with_name('conftest.py').write_text(_SPENT)
    test.write_text(
        'import time\n\n\ndef test_busy():\n'
        '    end = time.process_time() + 1\n'
        '    while time.process_time() < end:\n        pass\n'
    )
    printed = subprocess.run(
        [
            *(sys.executable, '-m', 'pytest', '-n1', '--budget', 'check'),
            *('-p', 'tests.support.budget', '--rootdir', tmp_path),
            *('--basetemp', tmp_path / 'temporary', test),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    scale = budget.LOOP_SECONDS / float(re.search(r'here ([\d.]+) s', printed)[1])
    spent = float(re.search(r'([\d.]+) in all', printed)[1]) / scale
    said = [float(each.read_text()) for each in test.parent.glob('spent-*')]
    assert len(said) == 2
    # A worker takes a second, and its start.
    assert 1 <= spent < sum(said) + 0.5


def test_half_of_the_workers_begin_with_stories_and_get_all_of_a_file():
    names = [
        *(f'tests/functional/stories/test_a.py::{n}' for n in range(4)),
        *(f'tests/functional/stories/test_b.py::{n}' for n in range(3)),
        *(f'tests/unit/test_c.py::{n}' for n in range(17)),
    ]
    found = [item.nodeid for item in spread(list(map(Item, names)), 4)]
    assert sorted(found) == sorted(names)
    files = [name.partition('::')[0].rpartition('/')[2] for name in found]
    assert files[:5] == [*4 * ['test_a.py'], 'test_c.py']
    assert files[6:10] == [*3 * ['test_b.py'], 'test_c.py']


def test_order_is_random_and_that_of_its_seed():
    names = [f'tests/test_{file}.py::{n}' for file in 'abcd' for n in range(6)]
    items = list(map(Item, names))
    found = shuffled(items, 7)
    assert found == shuffled(items, 7)
    assert found != items
    assert found != shuffled(items, 8)
    assert sorted(item.nodeid for item in found) == sorted(names)
    files = [item.nodeid.partition('::')[0] for item in found]
    assert len([*itertools.groupby(files)]) == 4
