"""The tests of a module are where one guesses.

`manila_lite/a/b.py` is tested by `tests/unit/a/test_b.py`, the package
`manila_lite/a` as a whole by `tests/unit/a/test_a.py`; what tests one aspect
adds a word, `test_b_locks.py`, or is in the folder `tests/unit/a/b`. Where a
module has no such file, the table below names the place of its tests.
"""

import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent / 'manila_lite'

PROJECT = {
    'test_budget',
    'test_import_table',
    'test_layout',
    'test_private_names',
    'test_release_facts',
    'test_tiers',
}
"""Unit tests of the project, not of a package."""

NOUNS = (
    'access',
    'admin',
    'networks',
    'replicas',
    'servers',
    'shares',
    'snapshots',
    'types',
)
CONCERNS = ('access', 'networks', 'recovery', 'replication', 'servers')
PLACES = {
    'api': 'functional/api',
    'api/ui': 'functional/ui',
    'cmd': 'functional/cmd',
    'cmd/build': 'functional/stories',
    'cmd/separate': 'functional/stories/test_separate.py',
    'conf': 'unit/conf',
    'context': 'unit/policies/test_enforcer.py',
    'data/backups': 'functional/share/test_share_backups.py',
    'data/migrations': 'functional/share/migrations/test_host_assisted.py',
    'db': 'unit/db',
    'db/moves': 'functional/share',
    'db/queries/quotas': 'functional/quota',
    'db/queries/recovery': 'functional/share/recovery',
    'db/queries/services': 'functional/cmd',
    'db/queries/work': 'functional/db',
    'exception': 'unit/api/test_faults.py',
    'network': 'functional/network',
    'policies': 'unit/policies',
    'quota': 'functional/quota',
    'rpc': 'unit/rpc',
    'scheduler': 'functional/scheduler',
    'scheduler/filters': 'unit/scheduler/filters',
    'share/drivers': 'drivers',
    'share/manager': 'functional/share',
    'share/operations': 'functional/share',
    'states': 'unit/states',
    'work/cancel': 'functional/cmd/test_gone_backends.py',
    'work/execution': 'unit/work/runner',
    'work/job': 'unit/work/runner',
    'work/statements': 'unit/work/test_table.py',
    **{
        f'{part}/{noun}': f'functional/api/{noun}'
        for part in ('api/v2', 'db/queries')
        for noun in NOUNS
        if (part, noun) != ('db/queries', 'admin')
    },
    **{
        f'share/{layer}/{concern}': f'functional/share/{concern}'
        for layer in ('manager', 'operations')
        for concern in CONCERNS
        if (ROOT / 'share' / layer / concern).is_dir()
    },
}
"""Where the tests of a module or package are that has no unit test."""

MODULES = sorted(
    str(path.relative_to(ROOT).with_suffix(''))
    for path in ROOT.rglob('*.py')
    if path.name != '__init__.py'
)
UNIT_TESTS = sorted(
    str(path.relative_to(TESTS / 'unit').with_suffix(''))
    for path in (TESTS / 'unit').rglob('test_*.py')
)


def subject(unit_test):
    """Return the module or package that a unit test is named after."""
    folder, _, name = unit_test.rpartition('/')
    if folder in MODULES:
        return folder
    words = name.removeprefix('test_').split('_')
    for end in range(len(words), 0, -1):
        name = '_'.join(words[:end])
        found = f'{folder}/{name}'.lstrip('/')
        if found in MODULES or (ROOT / found / '__init__.py').exists():
            return found
        if folder.rpartition('/')[2] == name:
            return folder
    return None


def place(module):
    """Return the row of the table that says where a module is tested."""
    parts = module.split('/')
    for end in range(len(parts), 0, -1):
        prefix = '/'.join(parts[:end])
        if prefix in PLACES:
            return prefix
    return None


UNIT_TESTED = {subject(name) for name in UNIT_TESTS}


def test_unit_tests_are_named_after_their_subject():
    assert [
        name for name in UNIT_TESTS if name not in PROJECT and not subject(name)
    ] == []


def test_module_has_tests_where_one_guesses():
    assert [
        module for module in MODULES if module not in UNIT_TESTED and not place(module)
    ] == []


def test_place_of_tests_exists_and_is_needed():
    needed = {place(module) for module in MODULES if module not in UNIT_TESTED}
    assert sorted(PLACES.keys() - needed) == []
    assert [
        prefix
        for prefix, place_of in PLACES.items()
        if not (TESTS / place_of).is_file()
        and not any((TESTS / place_of).rglob('test_*.py'))
    ] == []


def test_folders_of_functional_tests_mirror_a_package_or_are_in_the_table():
    folders = {
        str(path.parent.relative_to(TESTS / 'functional'))
        for path in (TESTS / 'functional').rglob('test_*.py')
    }
    assert [
        folder
        for folder in folders
        if not (ROOT / folder).is_dir()
        and not (ROOT.parent / folder).is_dir()
        and not any(
            f'functional/{folder}/'.startswith(f'{known}/') for known in PLACES.values()
        )
    ] == []


def test_samples_are_marked_for_the_exhaustive_tier():
    """`make exhaust` selects tests by the marker."""
    for path in TESTS.rglob('test_*.py'):
        text = path.read_text()
        if re.search(r'sampling\.(sample|seeds)\(|to_try\(', text):
            assert 'sampling.enumeration' in text, path
