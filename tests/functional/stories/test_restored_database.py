"""The database is restored from a backup, but back ends are not."""

import pathlib
import shlex
import shutil
import subprocess

import pytest
import sqlalchemy as sa

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import databases, requirements
from tests.support.cli import Cli
from tests.support.installation import SEPARATE
from tests.support.processes import wait_until

pytestmark = suites.failures

# As "Backup and restore" shows them, and the server of the tests.
DUMP = {
    'mysql': 'mariadb-dump --single-transaction',
    'postgresql': 'pg_dump --format=custom',
}
EMPTY = {
    'mysql': [
        "mariadb --execute 'DROP DATABASE {0}; "
        "CREATE DATABASE {0} CHARACTER SET utf8mb4'"
    ],
    'postgresql': ['dropdb', 'createdb'],
}
RESTORE = {'mysql': 'mariadb', 'postgresql': 'pg_restore --dbname'}


def run(command, url, stdin=None):
    """Run a command of the database with its name; return its output."""
    url = sa.make_url(url)
    program, *words = shlex.split(command.format(url.database))
    if shutil.which(program) is None:
        requirements.missing(f'{program} is not installed')
    user = '--user' if program.startswith('mariadb') else '--username'
    ended = subprocess.run(
        [
            program,
            f'--host={url.host}',
            f'{user}={url.username}',
            *([f'--port={url.port}'] if url.port else []),
            *words,
            url.database,
        ],
        input=stdin,
        capture_output=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(params=DUMP)
def kind(request):
    return request.param


@pytest.fixture
def installation(kind, tmp_path):
    with (
        databases.temporary_database(kind, tmp_path) as url,
        new_installation(
            tmp_path / 'installation',
            kind=SEPARATE,
            database_url=url,
            options='default_share_type = files',
            backends={
                'local': {
                    'share_driver': 'local',
                    'local_root': tmp_path / 'root',
                    'local_capacity_gb': 100,
                    'max_over_subscription_ratio': 1,
                }
            },
        ) as found,
    ):
        (tmp_path / 'root').mkdir()
        yield found.start()


def statuses(openstack):
    return {
        share['Name']: (share['Status'], share['Size'])
        for share in openstack('share list')
    }


def test_what_a_restored_database_and_back_ends_disagree_about(
    installation, kind, tmp_path
):
    openstack = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
    openstack('share type create', 'files', 'false')
    for name in ('deleted', 'extended', 'kept'):
        openstack('share create', 'NFS', 1, '--name', name, '--wait')
    installation.kill('share')
    openstack('share create', 'NFS', 1, '--name', 'requested')
    dump = run(DUMP[kind], installation.database_url)

    # What the backup does not know.
    installation.start('share')
    wait_until(
        lambda: statuses(openstack)['requested'][0] == 'available',
        'the share that was requested is there',
    )
    openstack('share delete', 'deleted', '--wait')
    openstack('share resize', 'extended', 2, '--wait')
    openstack('share create', 'NFS', 1, '--name', 'unknown', '--wait')
    (location,) = openstack('share export location list', 'unknown')
    pathlib.Path(location['Path'], 'file').touch()
    installation.stop()

    for command in EMPTY[kind]:
        run(command, installation.database_url)
    run(RESTORE[kind], installation.database_url, dump)
    installation.start()
    host = installation.service_host('local')
    # A back end may do so at its start.
    wait_until(
        lambda: not openstack('share service list', '--host', host)[0]['Ensuring'],
        'it is not ensuring shares',
    )
    openstack('share service ensure shares', host)
    expected = {
        'deleted': ('error', 1),
        'extended': ('available', 1),
        'kept': ('available', 1),
        'requested': ('available', 1),
    }
    wait_until(lambda: statuses(openstack) == expected, 'all was compared')
    wait_until(lambda: not installation.in_flight(), 'nothing is in flight')

    openstack('share delete', 'deleted', '--force', '--wait')
    openstack('share resize', 'extended', 2, '--wait')
    # Its own record still claims the directory, so it gets a copy.
    rescued = tmp_path / 'root' / 'rescued'
    shutil.copytree(location['Path'], rescued)
    (pool,) = openstack('share pool list')
    openstack(
        *('share adopt', pool['Name'], 'NFS', rescued), *('--name', 'unknown', '--wait')
    )
    assert statuses(openstack) == {
        'extended': ('available', 2),
        'kept': ('available', 1),
        'requested': ('available', 1),
        'unknown': ('available', 1),
    }
    assert (rescued / 'file').exists()
