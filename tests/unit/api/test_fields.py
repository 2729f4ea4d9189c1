"""Views show the fields of a version and role."""

import collections
import datetime
import types

import pytest
import sqlalchemy

from manila_lite.api import fields as f
from manila_lite.api.fields import Field

TIME = datetime.datetime(2026, 8, 1, 12, 30)
COLUMNS = ('id', 'display_name', 'status', 'host', 'created_at')
Row = collections.namedtuple('Row', COLUMNS)
ROW = Row('a1', 'parts', 'syncing', 'h@b#p', TIME)

VIEW = f.fields(
    Field('id'),
    Field('name', f.attr('display_name')),
    Field('status', f.fn(lambda row: row.status.upper()), until='2.10'),
    Field('status', f.fn(str.title, 'status'), since='2.11', until='2.19'),
    Field('status', since='2.20'),
    Field('created_at'),
    Field('born', f.time_attr('created_at'), since='2.98'),
    Field('kind', f.const('widget'), since='2.30'),
    Field('place', f.extra('place'), since='2.40'),
    Field('metadata', f.child('metadata'), since='2.41'),
    Field('paths', f.child('paths', []), since='2.42'),
    Field('both', f.fn2(lambda row, more: (row.id, more['place'])), since='2.43'),
    Field('links', f.LINKS, since='2.44'),
    Field('host', admin_only=True),
)
MORE = {
    'place': 'attic',
    'metadata': {'a1': {'k': 'v'}},
    'paths': {},
    'links': lambda id: [f'link to {id}'],
}


def one(minor, admin=False, row=ROW):
    return VIEW.function(minor, admin)(row, MORE)


def sql_row(row=ROW):
    """Return the same row as the result of a query."""
    engine = sqlalchemy.create_engine('sqlite://')
    columns = [
        sqlalchemy.literal(value).label(name)
        for name, value in zip(COLUMNS, row, strict=True)
    ]
    with engine.connect() as connection:
        return connection.execute(sqlalchemy.select(*columns)).one()


ROWS = pytest.mark.parametrize(
    'row',
    [ROW, types.SimpleNamespace(**ROW._asdict()), sql_row()],
    ids=['named tuple', 'object', 'query row'],
)


@ROWS
def test_first_version_shows_the_first_fields(row):
    assert one(0, row=row) == {
        'id': 'a1',
        'name': 'parts',
        'status': 'SYNCING',
        'created_at': '2026-08-01T12:30:00.000000',
    }


@ROWS
def test_last_version_shows_all_fields(row):
    assert one(99, admin=True, row=row) == {
        'id': 'a1',
        'name': 'parts',
        'status': 'syncing',
        'created_at': '2026-08-01T12:30:00.000000',
        'born': '2026-08-01T12:30:00.000000',
        'kind': 'widget',
        'place': 'attic',
        'metadata': {'k': 'v'},
        'paths': [],
        'both': ('a1', 'attic'),
        'links': ['link to a1'],
        'host': 'h@b#p',
    }


@pytest.mark.parametrize(
    'minor, status',
    [
        (0, 'SYNCING'),
        (10, 'SYNCING'),
        (11, 'Syncing'),
        (19, 'Syncing'),
        (20, 'syncing'),
        (99, 'syncing'),
    ],
)
def test_value_follows_the_version(minor, status):
    assert one(minor)['status'] == status


@pytest.mark.parametrize('minor', [0, 50, 99])
def test_visible_fields_match_the_generated_function(minor):
    for admin in (False, True):
        names = [field.name for field in VIEW.visible_fields(minor, admin)]
        assert list(one(minor, admin)) == names
        assert ('host' in names) == admin


@ROWS
@pytest.mark.parametrize('count', [0, 1, 3])
def test_many_equals_one_per_row(row, count):
    assert VIEW.many(99)([row] * count, MORE) == [one(99, row=row)] * count


def test_view_accepts_rows_with_other_column_orders():
    reverse = collections.namedtuple('Reverse', COLUMNS[::-1])(*ROW[::-1])
    assert one(5, row=ROW) == one(5, row=reverse) == one(5, row=ROW)


def test_missing_column_is_an_error():
    with pytest.raises(LookupError, match='column display_name'):
        one(0, row=collections.namedtuple('Poor', 'id')('a1'))


@pytest.mark.parametrize(
    'value, text',
    [
        (None, None),
        (TIME, '2026-08-01T12:30:00.000000'),
        (TIME.replace(microsecond=5), '2026-08-01T12:30:00.000005'),
        ('2026-08-01 12:30:00.000005', '2026-08-01T12:30:00.000005'),
        ('2026-08-01 12:30:00', '2026-08-01T12:30:00.000000'),
        ('2026-08-01T12:30:00.5', '2026-08-01T12:30:00.500000'),
    ],
)
def test_time_is_written_with_microseconds(value, text):
    assert f.timestamp(value) == text


@pytest.mark.parametrize(
    'windows',
    [
        [(None, None), (None, None)],
        [(None, '2.8'), ('2.8', None)],
        [('2.5', '2.9'), ('2.1', '2.99')],
    ],
)
def test_overlapping_fields_of_one_name_are_refused(windows):
    with pytest.raises(ValueError, match='field x has two values'):
        f.fields(*[Field('x', since=since, until=until) for since, until in windows])


def test_attribute_must_be_a_name():
    with pytest.raises(ValueError, match='not an attribute name'):
        f.attr('id, secrets')


def test_view_can_hold_the_rows_of_another():
    summary = f.fields(Field('id'))
    detail = f.fields(*summary.rows, Field('status'))
    assert detail.function(0)(ROW) == {'id': 'a1', 'status': 'syncing'}
