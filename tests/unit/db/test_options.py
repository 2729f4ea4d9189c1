"""The options of section [database] have the effect they promise."""

import logging
import socket

from oslo_config import cfg
from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite.cmd import start
from manila_lite.conf import ignored
from manila_lite.db import options
from tests.support import databases
from tests.support.relay import Relay


@pytest.fixture
def database(tmp_path):
    """`database(url, text)`: a database configured by a section."""
    opened = []

    def configured(url, text='', **kwargs):
        file = tmp_path / 'manila.conf'
        file.write_text(f'[database]\nconnection = {url}\n{text}')
        conf = cfg.ConfigOpts()
        options.register(conf)
        conf.register_opt(cfg.FloatOpt('transaction_retry_limit', default=1))
        conf([], default_config_files=[str(file)])
        opened.append(start.database(conf, **kwargs))
        return opened[-1]

    yield configured
    for db in opened:
        db.dispose()


@pytest.fixture
def mariadb(tmp_path):
    with databases.temporary_database('mysql', tmp_path) as url:
        yield sa.make_url(url)


def text_of(url):
    return url.render_as_string(hide_password=False)


def variable(db, name):
    return [
        work(lambda session: session.value(sa.text(f'SELECT {name}')))
        for work in (db.read, db.write)
    ]


def test_sql_mode_is_strict_without_warnings(database, mariadb, caplog):
    caplog.set_level(logging.WARNING)
    modes = variable(database(text_of(mariadb)), '@@sql_mode')
    assert all('TRADITIONAL' in mode for mode in modes)
    assert caplog.messages == []


def test_sql_mode_is_that_of_the_option(database, mariadb):
    db = database(text_of(mariadb), 'mysql_sql_mode = STRICT_ALL_TABLES\n')
    assert variable(db, '@@sql_mode') == ['STRICT_ALL_TABLES'] * 2


def test_parameters_are_added_to_the_url(database, mariadb):
    db = database(text_of(mariadb), 'connection_parameters = init_command=SET @x=5\n')
    assert variable(db, '@x') == [5, 5]
    assert variable(db, '@@character_set_client') == ['utf8mb4'] * 2


def test_start_waits_for_the_server(database, mariadb):
    with Relay('127.0.0.1', mariadb.port or 3306) as relay:
        relay.cut()
        pauses = []

        def pause(seconds):
            pauses.append(seconds)
            if len(pauses) == 2:
                relay.mend()

        url = mariadb.set(host='127.0.0.1', port=relay.port)
        db = database(text_of(url), 'retry_interval = 7\n', pause=pause)
        assert variable(db, '@@autocommit')
    assert pauses == [7, 7]


@pytest.mark.parametrize('scheme', ['mysql+pymysql', 'postgresql+psycopg2'])
def test_start_ends_after_the_last_attempt(database, scheme):
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))
        pauses = []
        db = database(
            f'{scheme}://me@127.0.0.1:{unused.getsockname()[1]}/x',
            'max_retries = 3\n',
            pause=pauses.append,
        )
        assert pauses == [10, 10, 10]
        with pytest.raises(db_exc.DBConnectionError):
            db.read(lambda session: session.value(sa.text('SELECT 1')))


def test_every_option_of_the_library_is_read_or_ignored_for_a_reason():
    from oslo_db import options as library

    assert {option.name for option in library.database_opts} == {
        *options.READ,
        *(name for section, name in ignored.OPTIONS if section == 'database'),
    }
