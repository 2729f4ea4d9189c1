"""What a migration does that an older process does not survive."""

import dataclasses

import sqlalchemy as sa

Keys = frozenset[frozenset[str]]


@dataclasses.dataclass(frozen=True)
class Table:
    """What the database knows about a table."""

    columns: dict
    primary_key: tuple[str, ...]
    unique: Keys
    foreign: Keys
    checks: frozenset[str]


def tables(engine: sa.Engine) -> dict[str, Table]:
    """Read all tables of a database."""
    inspector = sa.inspect(engine)
    known = (
        inspector.get_multi_columns(),
        inspector.get_multi_pk_constraint(),
        inspector.get_multi_unique_constraints(),
        inspector.get_multi_indexes(),
        inspector.get_multi_foreign_keys(),
        inspector.get_multi_check_constraints(),
    )

    def of(key):
        columns, primary, unique, indexes, foreign, checks = (
            found.get(key) for found in known
        )
        return Table(
            {column['name']: column for column in columns},
            tuple(primary['constrained_columns']),
            frozenset(
                frozenset(one['column_names'])
                for one in (*unique, *indexes)
                if one.get('unique', True)
            ),
            frozenset(frozenset(one['constrained_columns']) for one in foreign),
            frozenset(one['sqltext'] for one in checks or ()),
        )

    return {key[1]: of(key) for key in known[0]}


def problems(before: dict[str, Table], after: dict[str, Table]) -> list[str]:
    """Return what breaks the statements of a process that knows `before`."""
    found = [f'{name} is dropped' for name in before.keys() - after.keys()]
    for name in before.keys() & after.keys():
        found += [
            f'{name}: {problem}' for problem in _of_table(before[name], after[name])
        ]
    return sorted(found)


def _of_table(before, after):
    for name, column in before.columns.items():
        if name not in after.columns:
            yield f'{name} is dropped'
        else:
            yield from _of_column(name, column, after.columns[name])
    old = before.columns.keys()
    for name in after.columns.keys() - old:
        if not _can_be_left_out(after.columns[name]):
            yield f'{name} is new and needs a value'
    if before.primary_key != after.primary_key:
        yield 'the primary key is another one'
    # Old rows have nothing in a new column, and NULLs are not equal.
    for key in after.unique - before.unique:
        if key <= old:
            yield f'{", ".join(sorted(key))} must be unique'
    for key in after.foreign - before.foreign:
        if key <= old:
            yield f'{", ".join(sorted(key))} must refer to a row'
    for text in after.checks - before.checks:
        if not any(name in text for name in after.columns.keys() - old):
            yield f'{text} is checked'


def _of_column(name, before, after):
    if before['nullable'] and not after['nullable']:
        yield f'{name} must not be null'
    if _can_be_left_out(before) and not _can_be_left_out(after):
        yield f'{name} needs a value'
    if not _holds(after['type'], before['type']):
        yield f'{name} is {after["type"]!r}, no longer {before["type"]!r}'


def _can_be_left_out(column):
    return bool(
        column['nullable']
        or column['default'] is not None
        or column.get('computed')
        or column.get('autoincrement') is True
    )


def _holds(after, before):
    """Whether a type holds all values of another one."""
    if isinstance(before, sa.String) and isinstance(after, sa.String):
        if after.length is None:
            return before.length is not None or type(after) is type(before)
        return before.length is not None and after.length >= before.length
    if isinstance(before, sa.Integer) and isinstance(after, sa.Integer):
        return _width(after) >= _width(before)
    return repr(after) == repr(before)


def _width(type_):
    # Both are kinds of Integer.
    if isinstance(type_, sa.SmallInteger):
        return 2
    return 8 if isinstance(type_, sa.BigInteger) else 4
