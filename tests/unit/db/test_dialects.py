"""Database time does not depend on the time zone of the server."""

import contextlib

import pytest
import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.session import Database
from tests.support import databases, mariadb_server

# Clocks in Berlin show 02:30 twice on 26 October 2025, an hour apart.
SUMMER_TIME = 1761438600.25
WINTER_TIME = 1761442200.25


@pytest.fixture(scope='module')
def berlin(tmp_path_factory):
    """A MariaDB server that runs in a time zone with summer time."""
    folder = tmp_path_factory.mktemp('berlin')
    with mariadb_server.run(folder, timezone='Europe/Berlin') as server:
        yield server


@pytest.mark.parametrize('moment', [SUMMER_TIME, WINTER_TIME])
@pytest.mark.parametrize('use', ['read', 'write'])
def test_server_with_summer_time_does_not_repeat_an_hour(berlin, moment, use):
    with contextlib.closing(_Disposed(berlin.url)) as db:
        seen = getattr(db, use)(_time_at, moment)
    assert seen == moment


def test_update_that_reads_what_it_has_set_before_is_found():
    table = sa.Table(
        'pairs', sa.MetaData(), sa.Column('one', sa.Integer), sa.Column('two')
    )
    ordered = sa.update(table).ordered_values
    swapped = {
        'one': databases.chained_columns(
            ordered((table.c.one, 1), (table.c.two, sa.func.coalesce(2, table.c.one)))
        ),
        'none': databases.chained_columns(
            ordered((table.c.two, table.c.one), (table.c.one, table.c.one + 1))
        ),
    }
    assert swapped == {'one': {'one'}, 'none': set()}


class _Disposed(Database):
    close = Database.dispose


def _time_at(session, moment):
    """Return what guards see when the server has this time."""
    session.run(sa.text(f'SET SESSION timestamp = {moment}'))
    return session.value(sa.select(db_now()))


@pytest.fixture(params=['mysql', 'postgresql'])
def local_time(request, tmp_path):
    """A Database on a server where sessions are in another time zone."""
    if request.param == 'mysql':
        url = request.getfixturevalue('berlin').url
        with contextlib.closing(_Disposed(url)) as db:
            yield db
        return
    with databases.temporary_database(request.param, tmp_path) as url:
        set_time_zone(url, 'Europe/Berlin')
        with contextlib.closing(_Disposed(url)) as db:
            yield db


def set_time_zone(url, zone):
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"ALTER DATABASE {engine.url.database} SET timezone = '{zone}'"
        )


ZONE = {
    'mysql': sa.text('SELECT @@session.time_zone'),
    'postgresql': sa.text('SHOW timezone'),
}


@pytest.mark.parametrize('use', ['read', 'write'])
def test_sessions_are_in_utc_whatever_the_server_says(local_time, use):
    zone = getattr(local_time, use)(
        lambda session: session.value(ZONE[session.dialect])
    )
    assert zone in ('+00:00', 'UTC')
