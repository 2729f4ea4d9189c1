"""The accounts that deploy makes in real database servers."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import uuid

import pytest
import sqlalchemy as sa

from tests.support import deploy_scripts
from tests.support import requirements
from tests.support.processes import BINARIES
from tests.support.processes import free_port

PASSWORDS = ["""a b;c$d"e'f%g@h#""", r'\':\\', 'plain']
PROGRAMS = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'))
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
    deploy_scripts.require_root()
    if not PROGRAMS:
        requirements.missing('PostgreSQL is not installed')
    port = free_port()
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
        shutil.chown(folder, 'postgres', 'postgres')

        def as_postgres(program, *arguments):
            subprocess.run(
                [
                    *('runuser', '-u', 'postgres', '--'),
                    *(PROGRAMS[-1] / program, '-D', f'{folder}/data'),
                    *arguments,
                ],
                check=True,
                cwd='/',
                stdout=subprocess.DEVNULL,
            )

        as_postgres(
            *('initdb', '--no-sync', '--auth-local=peer'),
            '--auth-host=scram-sha-256',
        )
        settings = f'-p {port} -k {folder} -h 127.0.0.1 -c fsync=off'
        as_postgres(
            *('pg_ctl', '-w', '-l', f'{folder}/log', '-o', settings, 'start')
        )
        try:
            yield {'PGPORT': str(port), 'PGHOST': folder}
        finally:
            as_postgres('pg_ctl', '-w', '-m', 'immediate', 'stop')


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
def test_services_sign_in_to_postgresql(
    postgresql, tmp_path, monkeypatch, password
):
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
        [
            *(BINARIES / 'manila-lite-manage', 'db', 'sync'),
            *('--config-file', file),
        ],
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
    found = subprocess.run(
        [mariadb], input='SELECT 1', text=True, capture_output=True
    )
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
