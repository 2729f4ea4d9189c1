"""`manila-lite-manage db grants`."""

import pathlib
import subprocess

import pytest
import sqlalchemy as sa

from manila_lite.cmd.manage import main
from manila_lite.db import schema
from manila_lite.db.session import Database
from tests.support import accounts, command_line, databases, deploy_scripts
from tests.support.manage_command import manage


@pytest.mark.parametrize('kind', sorted(databases.SERVER_KINDS))
def test_client_of_the_server_runs_what_is_printed(kind, tmp_path):
    with databases.temporary_database(kind, tmp_path) as url:
        db = Database(url)
        schema.sync(db)
        db.dispose()
        parsed = sa.make_url(url)
        with accounts.made(url, ['share']) as urls:
            name = sa.make_url(urls['share']).username
            text = manage(
                *('db', 'grants', '--service', 'share', '--account', name),
                *('--dialect', kind),
            )
            where = [f'--host={parsed.host}', f'--user={parsed.username}']
            client = {
                'mysql': [deploy_scripts.tool('mariadb'), *where, parsed.database],
                'postgresql': [
                    deploy_scripts.tool('psql'),
                    *where,
                    *('-v', 'ON_ERROR_STOP=1', '--quiet', parsed.database),
                ],
            }[kind]
            for _ in range(2):
                subprocess.run(client, input=text, text=True, check=True)
            engine = sa.create_engine(urls['share'], poolclass=sa.pool.NullPool)
            with engine.connect() as connection:
                connection.exec_driver_sql('SELECT * FROM shares')
                with pytest.raises(sa.exc.DBAPIError):
                    connection.exec_driver_sql('SELECT * FROM share_group_types')


def test_dialect_is_that_of_the_configured_database(tmp_path):
    file = pathlib.Path(tmp_path, 'manila.conf')
    file.write_text('[database]\nconnection = mysql+pymysql://manila@127.0.0.1:1/x\n')
    found = manage(
        *('db', 'grants', '--service', 'share', '--service', 'data'),
        *('--account', 'manila_node', '--host', '192.0.2.%'),
        *('--config-file', str(file)),
    )
    assert "TO 'manila_node'@'192.0.2.%' //" in found


def test_dialect_is_needed_without_a_server():
    output = manage(
        *('db', 'grants', '--service', 'share', '--account', 'manila'), code=2
    )
    assert '--dialect is needed' in output


@pytest.mark.parametrize('kind', sorted(databases.SERVER_KINDS))
def test_state_of_the_installation_is_for_every_account(kind, tmp_path):
    """What only controllers may read is left out, and that is said."""
    file = tmp_path / 'manila.conf'

    def status(verb, url, code=0):
        locks = f'[coordination]\nbackend_url = file://{tmp_path}/locks\n'
        file.write_text(f'[database]\nconnection = {url}\n{locks}')
        ended = command_line.run(main, ['status', verb, '--config-file', str(file)], '')
        assert ended.code == code, ended
        return ' '.join(ended.out.replace('|', ' ').split())

    with databases.temporary_database(kind, tmp_path) as url:
        db = Database(url)
        schema.sync(db)
        db.dispose()
        with accounts.limited(url) as urls:
            for service, own in urls.items():
                limited = service == 'data'
                checked = status('upgrade-check', own)
                assert ('may not count the rows' in checked) == limited
                shown = status('inventory', own)
                assert f'database: {schema.HEAD} ' in shown
                assert ('disks: not for the account' in shown) == limited
        # Without any rights it is another matter.
        with accounts.made(url, ['data']) as urls:
            assert 'Failure' in status('upgrade-check', urls['data'], code=2)
