"""A status is spelled in its state table and nowhere else."""

import ast
import importlib
import pathlib
import pkgutil

import pytest

import manila_lite
from manila_lite import states

ROOT = pathlib.Path(manila_lite.__file__).parent
CLASSES = {
    'GroupSnapshotStatus',
    'GroupStatus',
    'InstanceStatus',
    'NetworkStatus',
    'ReplicaState',
    'RuleState',
    'RulesStatus',
    'ServerStatus',
    'SnapshotStatus',
    'TaskState',
    'TransferStatus',
}
# Migrations are history, and drivers know only the words of their contract.
ELSEWHERE = ('states', 'db/migrations', 'share/drivers')
# Words that happen to be spelled like a status.
ALLOWED = {
    'api/identity/api.py': {'error': 'the key of the text of a fault'},
    'api/v2/admin/services.py': {'ensuring': 'a field and a filter'},
    'api/v2/types/access.py': {'none': 'a value of a query parameter'},
    'cmd/manage.py': {
        'error': 'a column of a listing',
        'none': 'the schema version of an empty database',
    },
    'rpc/rabbit.py': {'pending': 'a method of sockets with TLS'},
    'rpc/contract.py': {'error': 'the name of a parameter'},
    'work/driver_calls.py': {'error': 'a column'},
    'plugins.py': {'none': 'an empty list in an error message'},
}


def _tables():
    for found in pkgutil.iter_modules(states.__path__):
        module = importlib.import_module(f'{states.__name__}.{found.name}')
        for name, value in vars(module).items():
            if name in CLASSES and isinstance(value, type):
                yield value


WORDS = {
    str(word)
    for table in _tables()
    for name, word in vars(table).items()
    if name.isupper() and isinstance(word, str)
}
MODULES = sorted(
    path
    for path in ROOT.rglob('*.py')
    if not path.relative_to(ROOT).as_posix().startswith(ELSEWHERE)
)


def _literals(source):
    """Yield line and value of the string literals that are a status."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in WORDS:
            yield node.lineno, node.value


def test_all_status_classes_are_found():
    assert {table.__name__ for table in _tables()} == CLASSES


def _spelled(path):
    name = path.relative_to(ROOT).as_posix()
    allowed = ALLOWED.get(name, {})
    return [
        f'{name}:{line}: {word!r}'
        for line, word in _literals(path.read_text(encoding='utf-8'))
        if word not in allowed
    ]


def test_a_status_is_not_spelled_outside_its_table():
    assert [found for path in MODULES for found in _spelled(path)] == []


@pytest.mark.parametrize('name', ALLOWED)
def test_every_exception_is_needed(name):
    source = (ROOT / name).read_text(encoding='utf-8')
    assert {word for _, word in _literals(source)} == ALLOWED[name].keys()


def test_a_literal_is_found_in_any_place():
    assert list(_literals("x = row.status in ('error', 'fine')\n")) == [(1, 'error')]
