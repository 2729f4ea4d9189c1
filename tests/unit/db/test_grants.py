import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import grants, models, schema
from tests.support import granted

LIMITED = (grants.SHARE, grants.DATA)
SHARE = models.metadata.tables['shares']
WORK = models.metadata.tables['work']


def test_each_table_is_that_of_a_model_and_stands_once():
    names = [row[0] for row in grants._TABLE]
    assert len(set(names)) == len(names)
    assert set(names) <= set(models.metadata.tables)


@pytest.mark.parametrize('service', grants.SERVICES)
def test_rights_are_known_letters(service):
    for table, letters in grants.rights(service).items():
        assert len(set(letters)) == len(letters), table
        assert set(letters) <= {*grants.VERBS, grants.LOCK}, table
        # What is changed or locked is found by its columns.
        assert 'S' in letters, table


@pytest.mark.parametrize('service', grants.SERVICES)
def test_the_schema_is_only_read(service):
    rights = grants.rights(service)
    assert {rights[name] for name in schema.VERSION_TABLES} == {'S'}


@pytest.mark.parametrize('service', LIMITED)
def test_what_administrators_set_is_not_changed_beside_storage(service):
    for name, letters in grants.rights(service).items():
        if 'quotas' in name or 'type' in name or name == 'security_services':
            assert letters == 'S', name


@pytest.mark.parametrize('dialect', ['mysql', 'postgresql'])
def test_several_services_of_one_account_have_all_their_rights(dialect):
    both = grants.merged(LIMITED)
    for service in LIMITED:
        for table, letters in grants.rights(service).items():
            assert set(letters) <= set(both[table])
    found = grants.statements(dialect, LIMITED, 'manila_node')
    assert all('DROP' not in line and 'ALTER' not in line for line in found)


@pytest.mark.parametrize('name', ["x'@'%", 'x y', '', 'a"b', 'a`b', 'a;b'])
@pytest.mark.parametrize('dialect', ['mysql', 'postgresql'])
def test_names_that_would_be_sql_are_refused(dialect, name):
    with pytest.raises(exception.InvalidInput):
        grants.statements(dialect, [grants.SHARE], name)
    with pytest.raises(exception.InvalidInput):
        grants.statements(dialect, [grants.SHARE], 'manila', name)


@pytest.mark.parametrize(
    'statement, needs',
    [
        (sa.select(WORK.c.id), {('work', 'select')}),
        (sa.insert(WORK), {('work', 'insert')}),
        (
            sa.insert(WORK).from_select(['id'], sa.select(SHARE.c.id)),
            {('work', 'insert'), ('shares', 'select')},
        ),
        (sa.update(WORK), {('work', 'update'), ('work', 'select')}),
        (
            sa.delete(WORK).where(sa.exists().where(SHARE.c.id == WORK.c.id)),
            {('work', 'delete'), ('work', 'select'), ('shares', 'select')},
        ),
        (
            sa.select(WORK).join(SHARE, SHARE.c.id == WORK.c.id).with_for_update(),
            {
                ('work', 'select'),
                ('work', 'lock'),
                ('shares', 'select'),
                ('shares', 'lock'),
            },
        ),
        (
            sa.select(WORK, SHARE.c.id).with_for_update(of=WORK),
            {('work', 'select'), ('work', 'lock'), ('shares', 'select')},
        ),
    ],
)
def test_needs_of_statements_are_found(statement, needs):
    """As the cloud of the tests does, which checks all statements of services."""
    assert set(granted.needs(statement)) - {('work', 'select')} == needs - {
        ('work', 'select')
    }
