"""`db online_data_migrations`, and what says that rows wait for it."""

import json

import pytest
import sqlalchemy as sa

from manila_lite.cmd import data_migrations
from manila_lite.cmd.data_migrations import DataMigration
from manila_lite.db import schema
from manila_lite.db.queries.shares import encryption_keys
from tests.functional.cmd.test_manage import upgrade_checked, verdicts
from tests.support.manage_command import manage, run
from tests.support.rows import insert_instance, insert_share

NAME = 'encryption_key_uses'


def add_uncounted_shares(db, keys):
    """Add shares as release 1 does, each with a key of its own."""

    def add(session):
        for number in range(keys):
            insert_instance(
                session,
                insert_share(session, project_id='blue'),
                encryption_key_ref=f'key-{number}',
            )

    db.write(add)


def migrated(*args, code=0):
    ended = run('db', 'online_data_migrations', '--json', *args, code=code)
    return json.loads(ended.out)


@pytest.fixture
def where(installed, installed_db, configured):
    return configured(f'[database]\nconnection = {installed}\n')


def test_rows_are_migrated_until_none_is_left(where, installed_db):
    add_uncounted_shares(installed_db, 5)
    assert migrated(*where) == [{'migration': NAME, 'migrated': 5, 'left': 0}]
    assert installed_db.read(encryption_keys.count_wrong) == 0
    assert migrated(*where) == [{'migration': NAME, 'migrated': 0, 'left': 0}]


def test_maximum_leaves_rows_and_says_so(where, installed_db):
    add_uncounted_shares(installed_db, 5)
    some = ('--max-count', '3', *where)
    assert migrated(*some, code=1) == [{'migration': NAME, 'migrated': 3, 'left': 2}]
    assert migrated(*some) == [{'migration': NAME, 'migrated': 2, 'left': 0}]


@pytest.mark.parametrize('count', ['0', '-1', 'x'])
def test_maximum_that_is_not_positive_is_refused(configured, count):
    output = manage(
        'db', 'online_data_migrations', '--max-count', count, *configured(''), code=2
    )
    assert '--max-count' in output


def test_rows_that_wait_are_a_warning(state, db):
    def verdict(code):
        printed = upgrade_checked('--state-dir', state, code=code)
        return verdicts(printed)['Migrations of data'], ' '.join(
            printed.replace('|', ' ').split()
        )

    add_uncounted_shares(db, 2)
    result, text = verdict(1)
    assert result == 'Warning'
    assert f'2 of {NAME}' in text
    assert 'db online_data_migrations' in text
    migrated('--state-dir', state)
    assert verdict(0)[0] == 'Success'


def with_schema(db, revision):
    with db.engine.begin() as connection:
        connection.execute(
            sa.text('UPDATE alembic_version SET version_num = :revision'),
            {'revision': revision},
        )


def relying(required_by, waiting=3):
    return DataMigration(
        'moved_rows', 2, lambda session: waiting, lambda db, conf, most: 0, required_by
    )


@pytest.mark.parametrize(
    'required_by, waiting, is_refused',
    [
        ('0050', 3, True),
        ('0050', 0, False),
        ('0051', 3, False),  # a later release
        ('0049', 3, False),  # it has been done
        (None, 3, False),
    ],
)
def test_contraction_that_relies_on_a_migration_is_refused_while_rows_wait(
    state, db, required_by, waiting, is_refused
):
    with_schema(db, '0049')

    def check():
        db.read(
            data_migrations.check_contraction,
            head='0050',
            migrations=[relying(required_by, waiting)],
        )

    if not is_refused:
        check()
        return
    with pytest.raises(data_migrations.DataMigrationsWait, match='3 of moved_rows'):
        check()


def test_names_of_migrations_are_unique_and_their_revisions_known():
    names = [one.name for one in data_migrations.MIGRATIONS]
    assert len(set(names)) == len(names)
    assert all(
        (one.required_by or '') <= schema.HEAD for one in data_migrations.MIGRATIONS
    )
