"""The database goes away for a moment, again and again."""

import contextlib

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception

KILL = {
    'postgresql': (
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
        'WHERE datname = current_database() AND pid <> pg_backend_pid()'),
    'mysql': (
        'SELECT id FROM information_schema.processlist '
        'WHERE db = DATABASE() AND id <> CONNECTION_ID()'),
}


def kill_connections(url):
    """End every connection to the database but this one."""
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT',
                              poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            KILL[engine.dialect.name]).scalars().all()
        for id in found if engine.dialect.name == 'mysql' else ():
            with contextlib.suppress(sa.exc.OperationalError):  # it ended
                connection.exec_driver_sql(f'KILL {id}')
    return len(found)


def asked(call, *args):
    """Ask until the database answers."""
    while True:
        try:
            return call(*args)
        except db_exc.DBConnectionError:
            continue  # what was asked may have been done, or not
        except (exception.Conflict, exception.NotFound):
            return None


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'],
                         indirect=True)
def test_services_survive_the_loss_of_every_connection(
        build_house, database_url):
    house = build_house(delay=0.01, work='lease = 1').start()
    killed = 0
    for _ in range(5):
        shares = [asked(house.create, 1) for _ in range(3)]
        killed += kill_connections(database_url)
        asked(house.ask, 'force_delete', shares[0])
        killed += kill_connections(database_url)
    assert killed > 10
    house.until(lambda: not asked(house.owed))
    assert house.problems() == []
    # Every thread is still there.
    again = [house.created(1) for _ in range(4)]
    for share in again:
        house.ask('delete', share)
    house.quiet()
    assert house.problems() == []
