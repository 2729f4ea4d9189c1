"""The accounts that deploy makes in real database servers."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import uuid

import pytest
import sqlalchemy as sa

from manila_lite.db import engines
from tests.support import (
    deploy_scripts,
    mariadb_server,
    postgresql_server,
    requirements,
    sampling,
)
from tests.support.processes import BINARIES

PASSWORDS = ["""a b;c$d"e'f%g@h#""", r'\':\\', 'plain']
# Notes what every user of the machine could see in the list of processes.
PSQL = """#!/bin/sh
echo "$@" >> {folder}/arguments
exec {psql} "$@"
"""


def account_lines(kind, name, password):
    return f"""
make_{kind}_account {name} {shlex.quote(password)}
make_{kind}_account {name} {shlex.quote(password)}
make_{kind}_account {name} other
make_{kind}_account {name} {shlex.quote(password)}
report_changes
"""


def printed(kind, name):
    return f'made the account {name} in {kind}\n' * 3 + 'Changes: 3.\n'


@pytest.fixture(scope='module')
def postgresql():
    """Return the environment in which psql reaches a server with passwords."""
    with postgresql_server.run(
        '--auth-local=peer', '--auth-host=scram-sha-256'
    ) as server:
        yield {'PGPORT': str(server.port), 'PGHOST': server.folder}


@pytest.mark.parametrize('password', PASSWORDS)
def test_account_in_postgresql_is_made_once(postgresql, tmp_path, password):
    name = f'test_{uuid.uuid4().hex[:8]}'
    psql = shutil.which('psql', path=deploy_scripts.PATH)
    programs = tmp_path / 'bin'
    programs.mkdir()
    (programs / 'psql').write_text(PSQL.format(folder=tmp_path, psql=psql))
    (programs / 'psql').chmod(0o755)
    made = deploy_scripts.shell(
        f'PATH={programs}:$PATH' + account_lines('postgresql', name, password),
        '',
        tmp_path,
        **postgresql,
    )
    assert made == printed('PostgreSQL', name)
    assert password not in (tmp_path / 'arguments').read_text()


@pytest.mark.parametrize('password', PASSWORDS[:2])
def test_services_sign_in_to_postgresql(postgresql, tmp_path, monkeypatch, password):
    """With the URL in their configuration."""
    prepare = f"""
set -euo pipefail
source "$DEPLOY/lib/all.sh"
read_variables
DATABASE_PASSWORD={shlex.quote(password)} BROKER_PASSWORD=b LOCKS_PASSWORD=c
use_servers
use_identity
"""
    file = tmp_path / 'manila_lite.conf'
    file.write_text(
        deploy_scripts.shell(
            'make_postgresql_account manila "$DATABASE_PASSWORD" > /dev/null\n'
            'service_conf',
            'DATABASE=postgresql',
            tmp_path,
            prepare,
            **postgresql,
        )
    )
    monkeypatch.setenv('PGPORT', postgresql['PGPORT'])
    url = deploy_scripts.option(file, 'connection', 'database')
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        assert connection.execute(sa.text('SELECT 1')).scalar() == 1
    # Migrations read it once more.
    file.write_text(re.sub('^log_dir.*', '', file.read_text(), flags=re.M))
    migrated = subprocess.run(
        [*(BINARIES / 'manila-lite-manage', 'db', 'sync'), *('--config-file', file)],
        check=False,
    )
    assert migrated.returncode == 0


@contextlib.contextmanager
def mariadb_account():
    """Yield the name of an account, which does not exist before or after."""
    name = f'test_{uuid.uuid4().hex[:8]}'
    statements = f"""
DROP DATABASE IF EXISTS {name};
DROP USER IF EXISTS {name}@'%';
"""
    mariadb = deploy_scripts.tool('mariadb')
    found = subprocess.run([mariadb], input='SELECT 1', text=True, capture_output=True)
    if os.geteuid() or found.returncode:
        requirements.missing(f'no administrator of MariaDB: {found.stderr}')
    try:
        yield name
    finally:
        subprocess.run([mariadb], input=statements, text=True, check=True)


@pytest.mark.parametrize('password', PASSWORDS)
def test_account_in_mariadb_is_made_once(tmp_path, password):
    with mariadb_account() as name:
        made = deploy_scripts.shell(
            account_lines('mariadb', name, password), '', tmp_path
        )
        assert made == printed('MariaDB', name)


def check_makes_none(kind, name, folder, **env):
    lines = f"""
CHECK=yes
make_{kind}_account {name} word
make_{kind}_login {name} word
report_changes
CHECK=no
{kind}_answers {name} word || echo none
"""
    made, again, changes, none = deploy_scripts.shell(
        lines, '', folder, **env
    ).splitlines()
    assert made == again
    assert made.startswith(f'made the account {name} in ')
    assert changes == 'Changes: 2. None of them was made.'
    assert none == 'none'


def test_check_makes_no_account_in_mariadb(tmp_path):
    with mariadb_account() as name:
        check_makes_none('mariadb', name, tmp_path)


def test_check_makes_no_account_in_postgresql(postgresql, tmp_path):
    name = f'test_{uuid.uuid4().hex[:8]}'
    check_makes_none('postgresql', name, tmp_path, **postgresql)


SET_UP = """
manage() {{
    "$BIN/manila-lite-manage" "$@" --config-file "$CONF"
}}
CONF=$FOLDER/manage.conf
make_{kind}_account manila "$DATABASE_PASSWORD"
make_{kind}_login manila_controller "$CONTROLLER_DATABASE_PASSWORD"
make_{kind}_login manila_node "$NODE_DATABASE_PASSWORD"
printf '[database]\\nconnection = %s\\n' \\
    "$(quote_option "${{MIGRATION_DATABASE_URL/@127.0.0.1/@127.0.0.1$PORT}}")" \\
    > "$CONF"
manage db sync > /dev/null
grant_rights
report_changes
"""
PREPARE = """
set -euo pipefail
source "$DEPLOY/lib/all.sh"
ETC=$FOLDER
SECRETS=$FOLDER/{secrets}
read_variables
source "$SECRETS"
use_servers
use_identity
"""
SECRETS = {
    'secrets': """
DATABASE_PASSWORD=first
BROKER_PASSWORD=second
LOCKS_PASSWORD=third
CONTROLLER_DATABASE_PASSWORD='f o%u$r'
NODE_DATABASE_PASSWORD='f i%v$e'
NODE_BROKER_PASSWORD=sixth
""",
    'node-secrets': """
NODE_DATABASE_PASSWORD='f i%v$e'
NODE_BROKER_PASSWORD=sixth
LOCKS_PASSWORD=third
""",
}


@pytest.fixture(params=['mariadb', 'postgresql'])
def server(request, tmp_path):
    """The environment in which the clients of a server reach it."""
    deploy_scripts.require_root()
    if request.param == 'postgresql':
        yield request.getfixturevalue('postgresql') | {'DATABASE': 'postgresql'}
        return
    folder = tmp_path / 'mariadb'
    folder.mkdir()
    with mariadb_server.run(folder) as found:
        # It would be preferred to manila@'%'.
        found.execute(f"DROP USER {mariadb_server.USER}@'127.0.0.1'")
        # Files of Debian name the socket of the machine's server.
        (tmp_path / '.my.cnf').write_text(
            f'[client]\nsocket = {folder}/socket\nport = {found.port}\n'
        )
        yield {'DATABASE': 'mariadb', 'HOME': str(tmp_path), 'PORT': f':{found.port}'}


@sampling.suite('accounts of nodes', 1)
def test_node_has_an_account_of_its_own(server, tmp_path, monkeypatch):
    """Without the rights, or the passwords, of a controller."""
    kind = server['DATABASE']
    for name, text in SECRETS.items():
        (tmp_path / name).write_text(text)

    def shell(lines, secrets):
        return deploy_scripts.shell(
            lines,
            f'DATABASE={kind}\nCONTROLLERS=127.0.0.1\n',
            tmp_path,
            PREPARE.format(secrets=secrets),
            FOLDER=str(tmp_path),
            **{'BIN': str(BINARIES), 'PORT': '', **server},
        )

    first = shell(SET_UP.format(kind=kind), 'secrets')
    assert 'gave the account manila_node the rights of its services' in first
    assert shell(SET_UP.format(kind=kind), 'secrets') == 'Nothing to change.\n'
    if kind == 'postgresql':
        monkeypatch.setenv('PGPORT', server['PGPORT'])
    for secrets, role, change in (
        ('secrets', 'controller', True),
        ('secrets', 'share', False),
        ('node-secrets', 'share', False),
    ):
        file = tmp_path / f'{secrets}-{role}.conf'
        file.write_text(shell(f'TOKEN_KEY=g; secret_conf {role}', secrets))
        url = deploy_scripts.option(file, 'connection', 'database')
        url = url.replace('@127.0.0.1', f'@127.0.0.1{server.get("PORT", "")}')
        engine = sa.create_engine(engines.with_driver(url), poolclass=sa.pool.NullPool)
        with contextlib.ExitStack() as stack, engine.connect() as connection:
            connection.exec_driver_sql('SELECT * FROM shares')
            if not change:
                stack.enter_context(pytest.raises(sa.exc.DBAPIError, match='denied'))
            connection.exec_driver_sql('DELETE FROM quotas')
        with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError):
            connection.exec_driver_sql('DROP TABLE work')
        broker = deploy_scripts.option(file, 'transport_url')
        assert ('//manila_node:sixth@' in broker) == (not change)
