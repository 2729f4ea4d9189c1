"""Statements are in db; queries read and write plain columns only."""

import ast
import pathlib
import typing

import pytest
import sqlalchemy as sa

import manila_lite
from manila_lite.db.queries.columns import columns

ROOT = pathlib.Path(manila_lite.__file__).parent
# They may know SQLAlchemy. The work table is an engine of its own.
HOMES = (
    'db/',
    'work/cancel.py',
    'work/statements.py',
    'work/table.py',
    'work/waiting.py',
)
ALLOWED = {'cmd/start.py': 'reads and builds the URL of the database'}
MOVES = 'manila_lite.db.transitions'
MODULES = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob('*.py')}
OUTSIDE = sorted(name for name in MODULES if not name.startswith(HOMES))
QUERIES = sorted(name for name in MODULES if name.startswith('db/queries/'))


def _imports(path):
    """Yield line and full name of everything that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f'{node.module}.{alias.name}'


def _imports_of(name, package):
    return [
        f'{name}:{line} imports {found}'
        for line, found in _imports(MODULES[name])
        if found == package or found.startswith(f'{package}.')
    ]


def test_only_db_knows_sqlalchemy():
    assert [
        found
        for name in OUTSIDE
        if name not in ALLOWED
        for found in _imports_of(name, 'sqlalchemy')
    ] == []


@pytest.mark.parametrize('name', ALLOWED)
def test_every_exception_is_needed(name):
    assert _imports_of(name, 'sqlalchemy')


def test_queries_make_no_moves():
    assert [
        found
        for name in QUERIES
        for moves in (MOVES, 'manila_lite.db.moves')
        for found in _imports_of(name, moves)
    ] == []


class _Named(typing.Protocol):
    id: str
    status: str


class _NamedAndSized(_Named, typing.Protocol):
    size: int


def test_columns_of_a_row_type_are_those_of_the_first_table_or_named():
    share = sa.table('share', sa.column('id'), sa.column('size'))
    instance = sa.table(
        'instance', sa.column('id'), sa.column('size'), sa.column('status')
    )
    found = columns(_NamedAndSized, share, instance, size=instance.c.size + 1)
    assert [column.key for column in found] == ['id', 'status', 'size']
    assert found[:2] == [share.c.id, instance.c.status]
    assert str(found[2]) == 'instance.size + :size_1'


def test_a_row_type_with_an_unknown_column_is_refused():
    with pytest.raises(LookupError, match='status'):
        columns(_Named, sa.table('share', sa.column('id')))
