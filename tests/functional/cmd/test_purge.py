"""`manila-lite-manage db purge`: what schedulers delete, at once."""

import datetime
import json

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine, migrations, services
from manila_lite.db.queries.services import incarnations
from tests.support import sampling
from tests.support.manage_command import manage
from tests.support.rows import MIGRATION_FLAGS

JOURNAL = engine.Transition.__table__
MESSAGE = services.Message.__table__
SERVICE = services.Service.__table__
TASK = engine.ClusterTask.__table__
MIGRATION = migrations.ServerMigration.__table__
CALL = engine.DriverCall.__table__
DECISION = engine.RecoveryLogEntry.__table__

INSTANCE = {'resource': 'share_instance', 'resource_id': 'one'}
EVERY_TABLE = {
    'messages': 1,
    'recovery_log': 1,
    'driver_calls': 1,
    'share_server_migrations': 1,
    'transitions': 1,
    'services': 1,
}


@pytest.fixture
def where(installed, installed_db, configured):
    """`where(text)`: arguments that name a file with these options."""

    def write(text=''):
        return configured(f'[database]\nconnection = {installed}\n{text}')

    return write


def age(session, days):
    return session.now - datetime.timedelta(days=days)


def add_moves(session, *ages):
    session.run_many(
        sa.insert(JOURNAL),
        [
            {**INSTANCE, 'event': 'created', 'made_at': age(session, days)}
            for days in ages
        ],
    )


def add_old_rows(session, days):
    """Add a row of this age to every table that is purged, and a new move."""
    add_moves(session, days, 0)
    old = age(session, days)
    for table, columns in (
        (
            MESSAGE,
            {
                'id': session.new_id(),
                'project_id': 'p',
                'message_level': 'ERROR',
                'action_id': '001',
                'created_at': old,
                'expires_at': age(session, 0),
            },
        ),
        (DECISION, {**INSTANCE, 'action': 'retried', 'duration': 0.0, 'made_at': old}),
        (
            CALL,
            {
                **INSTANCE,
                'id': session.new_id(),
                'method': 'delete_share',
                'host': 'node@a',
                'work_id': 'work',
                'attempt': 1,
                'started_at': old,
            },
        ),
        (
            MIGRATION,
            {
                **MIGRATION_FLAGS,
                'id': session.new_id(),
                'source_server_id': 'source',
                'source_host': 'node@a',
                'destination_host': 'node@b',
                'phase': 1,
                'created_at': old,
                'ended_at': old,
            },
        ),
    ):
        session.run(sa.insert(table), **columns)


def add_service(db, days):
    db.write(
        incarnations.register,
        host='gone@a',
        binary='manila-share',
        topic='manila-share',
        zone='nova',
        incarnation='one',
        down_time=60.0,
        enabled=True,
    )
    db.write(
        lambda session: session.run(
            sa.update(SERVICE).values(
                heartbeat_at=SERVICE.c.heartbeat_at - days * 86400.0
            )
        )
    )


def purge(*args):
    return {
        row['table']: row['rows']
        for row in json.loads(manage('db', 'purge', '--json', *args))
    }


def count(db, table):
    statement = sa.select(sa.func.count()).select_from(table)
    return db.read(lambda session: session.value(statement))


@sampling.dialects
def test_every_table_is_purged_by_the_ages_of_the_options(where, installed_db):
    installed_db.write(add_old_rows, 31)
    add_service(installed_db, 31)
    options = where()
    assert purge('--dry-run', *options) == EVERY_TABLE
    assert count(installed_db, JOURNAL) == 2
    assert purge(*options) == EVERY_TABLE
    assert count(installed_db, JOURNAL) == 1
    assert set(purge(*options).values()) == {0}


@pytest.mark.facts('add-manage-db-purge')
def test_age_overrides_the_options(where, installed_db):
    installed_db.write(add_old_rows, 3)
    add_service(installed_db, 3)
    options = where('[work]\njournal_retention = 0\n[retention]\nservices = 0\n')
    assert purge('--dry-run', *options) == {
        'messages': 1,
        'recovery_log': 0,
        'driver_calls': 0,
        'share_server_migrations': 0,
    }
    assert purge('--age', '4', '--dry-run', *options) == {
        **dict.fromkeys(EVERY_TABLE, 0),
        'messages': 1,
    }
    assert purge('--age', '2', *options) == EVERY_TABLE


def test_live_service_is_not_purged(where, installed_db):
    add_service(installed_db, 0)
    assert purge('--age', '1', *where())['services'] == 0
    assert count(installed_db, SERVICE) == 1


def test_messages_are_kept_until_they_expire(where, installed_db):
    installed_db.write(add_old_rows, 9)
    installed_db.write(
        lambda session: session.run(
            sa.update(MESSAGE).values(expires_at=age(session, -1))
        )
    )
    assert purge('--age', '1', *where())['messages'] == 0


@pytest.mark.parametrize('days', ['0', '-1', '1.5', 'x'])
def test_age_that_is_no_number_of_days_is_refused(configured, days):
    output = manage('db', 'purge', '--age', days, *configured(''), code=2)
    assert '--age' in output


def test_moves_that_have_yet_to_be_sent_are_kept(where, installed_db):
    installed_db.write(add_moves, 9, 8, 7)
    options = where('[events]\nenabled = true\n')
    assert purge('--age', '1', '--dry-run', *options)['transitions'] == 0
    assert purge('--age', '1', *options)['transitions'] == 0
    sent = sa.update(JOURNAL).where(JOURNAL.c.made_at < sa.bindparam('until'))
    installed_db.write(
        lambda session: (
            session.run(sa.insert(TASK), name='events', due_at=0, position=0),
            session.run(sent.values(is_sent=True), until=age(session, 7.5)),
        )
    )
    assert purge('--age', '1', '--dry-run', *options)['transitions'] == 2
    assert purge('--age', '1', *options)['transitions'] == 2
    assert count(installed_db, JOURNAL) == 1
