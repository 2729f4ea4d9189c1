"""Backups of deploy, and controllers that are restored from them."""

import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest
import sqlalchemy as sa

from manila_lite.db import engines, schema
from manila_lite.db.session import Database
from tests.support import deploy_scripts, mariadb_server, postgresql_server, sampling
from tests.support.installation import Installation
from tests.support.processes import BINARIES

pytestmark = sampling.suite('backups that deploy makes', 3)

# Appended to the functions of deploy: files of the test, no packages, and servers
# that run already.
ELSEWHERE = """
ETC=$FOLDER/etc STATE=$FOLDER/state UNITS=$FOLDER/units
SECRETS=$ETC/secrets NODE_SECRETS=$ETC/node-secrets ROLES=$ETC/roles
CONF=$ETC/manila_lite.conf SERVERS=$ETC/servers STARTED=$ETC/started
BACK_UP=$ETC/back-up BACKUP_SETTINGS=$ETC/backup-settings
CREDENTIALS=$ETC/credentials MANAGE_CONF=$ETC/manila-lite-manage.conf
TOKEN_KEY_FILE=$ETC/token_key KEYSTONE_ETC=$FOLDER/keystone
CACERT=$ETC/cacert.pem TLS=$FOLDER/tls VENV=$FOLDER/venv
export SETTINGS=$BACKUP_SETTINGS
PATH=$FOLDER/bin:$PATH
systemctl() {
    echo "systemctl $*" >> "$FOLDER/systemctl"
}
install_packages() {
    :
}
put_directory() {
    mkdir -p -m "$2" "$3"
}
add_keystone_user() {
    :
}
add_user() {
    put_directory root:root 750 "$ETC"
    put_directory root:root 750 "$STATE"
}
set_up_servers() {
    "make_${DATABASE}_account" manila "$DATABASE_PASSWORD"
}
manage_schema() {
    "$BIN/manila-lite-manage" db "$1" --config-file "$CONF"
}
"""
PREPARE = """
set -euo pipefail
source "$DEPLOY/lib/all.sh"
umask 077
read_variables
add_user
read_secrets > /dev/null
use_servers
use_identity
set_up_servers > /dev/null
set_up_backups > /dev/null
"""


class Controller:
    """A first controller whose files are in a folder of the test."""

    def __init__(self, folder, kind, env):
        self.folder = folder
        self.kind = kind
        self.etc = folder / 'etc'
        self.backups = folder / 'backups'
        self.local_conf = folder / 'local.conf'
        self.deploy = folder / 'sources/deploy'
        shutil.copytree(deploy_scripts.DEPLOY, self.deploy)
        (folder / 'sources/manila_lite').symlink_to(deploy_scripts.ROOT / 'manila_lite')
        with (self.deploy / 'lib/all.sh').open('a') as file:
            file.write(ELSEWHERE)
        # What comes last is tested by itself.
        (self.deploy / 'controller').write_text('#!/bin/sh\necho deploy/controller\n')
        for name in ('bin', 'units', 'etc', 'state', 'tmp'):
            (folder / name).mkdir()
        self.env = {
            'FOLDER': str(folder),
            'DEPLOY': str(self.deploy),
            'LOCAL_CONF': str(self.local_conf),
            'BIN': str(BINARIES),
            'TMPDIR': str(folder / 'tmp'),
            **env,
        }
        self.variables = (
            f'DATABASE={kind}\nNODE_NAME=node\nBACKUP_DIRECTORY={self.backups}\n'
        )
        (self.etc / 'secrets').write_text('DATABASE_PASSWORD=word\n')
        (self.etc / 'secrets').chmod(0o600)
        (folder / 'state/users').write_text('ann\n')
        self.run('')

    @property
    def url(self):
        driver = {'mariadb': 'mysql+pymysql', 'postgresql': 'postgresql+psycopg2'}
        port = self.env['DATABASE_PORT']
        return f'{driver[self.kind]}://manila:word@127.0.0.1:{port}/manila'

    def run(self, lines):
        self.local_conf.write_text(self.variables)
        return deploy_scripts.run('bash', '-c', PREPARE + lines, **self.env)

    def back_up(self, kind='daily'):
        """Run the installed program, as systemd does."""
        return pathlib.Path(
            deploy_scripts.run(
                *(self.etc / 'back-up', kind),
                **self.env,
                SETTINGS=str(self.etc / 'backup-settings'),
                PATH=f'{self.folder}/bin:{deploy_scripts.PATH}',
            ).strip()
        )

    def restore(self, file, *options):
        return deploy_scripts.run(self.deploy / 'restore', *options, file, **self.env)

    def names(self):
        """Return what is where backups are, but for the lock."""
        found = {path.name for path in self.backups.iterdir()}
        return sorted(found - {'.lock'})

    def execute(self, statement):
        engine = sa.create_engine(
            engines.with_driver(self.url),
            poolclass=sa.pool.NullPool,
            isolation_level='AUTOCOMMIT',
        )
        with engine.connect() as connection:
            found = connection.exec_driver_sql(statement)
            return found.all() if found.returns_rows else None

    def drop_database(self):
        statement = 'DROP DATABASE manila;'
        self.run(
            f'administer_{self.kind} "" <<< "{statement}"'.replace(
                'administer_postgresql ""', 'administer_postgresql postgres'
            )
        )

    def schema(self):
        """Return tables, columns, keys and indexes, as the server prints them."""
        if self.kind == 'mariadb':
            return self.run('mariadb-dump --no-data --skip-comments manila')
        text = self.run(
            'runuser -u postgres -- pg_dump --schema-only --no-privileges manila'
        )
        return re.sub(r'^\\(un)?restrict .*', '', text, flags=re.M)


@pytest.fixture(scope='module')
def postgresql():
    with postgresql_server.run(
        '--auth-local=peer', '--auth-host=scram-sha-256'
    ) as server:
        yield {
            'PGPORT': str(server.port),
            'PGHOST': server.folder,
            'DATABASE_PORT': str(server.port),
        }


@pytest.fixture(scope='module')
def mariadb(tmp_path_factory):
    deploy_scripts.require_root()
    folder = tmp_path_factory.mktemp('server')
    with mariadb_server.run(folder) as found:
        found.execute(f"DROP USER {mariadb_server.USER}@'127.0.0.1'")
        home = folder / 'home'
        home.mkdir()
        (home / '.my.cnf').write_text(
            f'[client]\nsocket = {folder}/socket\nport = {found.port}\n'
        )
        yield {'HOME': str(home), 'DATABASE_PORT': str(found.port)}


@pytest.fixture(params=['mariadb', 'postgresql'])
def controller(request, tmp_path):
    env = request.getfixturevalue(request.param)
    found = Controller(tmp_path, request.param, env)
    yield found
    found.drop_database()


@pytest.fixture
def migrated(controller):
    database = Database(engines.with_driver(controller.url))
    schema.sync(database)
    database.dispose()
    return controller


def test_destroyed_controller_answers_with_the_same_rows(controller):
    cloud = Installation(controller.folder / 'cloud', database_url=controller.url)
    try:
        cloud.start()
        rest = cloud.rest()
        rest.make_default_type()
        rest.create_available(name='präzise', share_type='default')
        before = rest.request('GET', '/shares/detail')['shares']
        cloud.stop()
        tables = controller.schema()
        file = controller.back_up()
        assert controller.names() == [file.name]
        assert file.stat().st_mode & 0o777 == 0o600
        secrets = (controller.etc / 'secrets').read_text()
        local_conf = controller.local_conf.read_text()

        controller.drop_database()
        for path in (controller.etc, controller.folder / 'state'):
            shutil.rmtree(path)
        controller.local_conf.unlink()
        printed = controller.restore(file).splitlines()
        assert 'restored the database manila' in printed
        assert printed[-1] == 'deploy/controller'
        assert (controller.etc / 'secrets').read_text() == secrets
        assert (controller.etc / 'secrets').stat().st_mode & 0o777 == 0o600
        assert (controller.folder / 'state/users').read_text() == 'ann\n'
        assert controller.local_conf.read_text() == local_conf
        assert controller.schema() == tables

        cloud.start()
        assert rest.request('GET', '/shares/detail')['shares'] == before
        rest.request('DELETE', f'/shares/{before[0]["id"]}', expect=202)
        cloud.stop()
    finally:
        cloud.close()


@pytest.fixture
def keystone(migrated):
    """Return the rows that the account of Keystone finds in its database."""
    migrated.variables += 'AUTH=keystone\n'
    keys = migrated.folder / 'keystone/fernet-keys'
    keys.mkdir(parents=True)
    (keys / '0').write_text('first')
    role = 'SET ROLE keystone;' if migrated.kind == 'postgresql' else ''
    migrated.run(f"""
make_{migrated.kind}_account keystone "$KEYSTONE_DATABASE_PASSWORD" > /dev/null
administer_{migrated.kind} keystone <<< "{role}
CREATE TABLE alembic_version (version_num varchar(32));
CREATE TABLE project (id varchar(32));
INSERT INTO project VALUES ('project-1')"
""")
    secrets = (migrated.etc / 'secrets').read_text()
    (password,) = re.findall('^KEYSTONE_DATABASE_PASSWORD=(.*)', secrets, re.M)
    url = sa.make_url(engines.with_driver(migrated.url)).set(
        username='keystone', password=password, database='keystone'
    )

    def rows():
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with engine.begin() as connection:
            connection.exec_driver_sql('UPDATE project SET id = id')
            return connection.exec_driver_sql('SELECT id FROM project').all()

    yield rows
    migrated.run('purge_account keystone > /dev/null')


def test_keystone_is_restored_with_its_keys(migrated, keystone):
    assert keystone() == [('project-1',)]
    file = migrated.back_up()
    migrated.run('purge_account keystone')
    migrated.drop_database()
    shutil.rmtree(migrated.folder / 'keystone')
    assert 'restored the database keystone' in migrated.restore(file).splitlines()
    assert keystone() == [('project-1',)]
    key = migrated.folder / 'keystone/fernet-keys/0'
    assert key.read_text() == 'first'


def test_restore_keeps_a_backup_of_what_it_replaces(migrated):
    file = migrated.back_up()
    migrated.execute("UPDATE alembic_version SET version_num = '0001'")
    secrets = migrated.etc / 'secrets'
    secrets.write_text(secrets.read_text() + '# newer\n')
    printed = migrated.restore(file)
    assert f'Kept {secrets}, which differs from that of the backup.' in printed
    assert secrets.read_text().endswith('# newer\n')
    assert migrated.execute('SELECT version_num FROM alembic_version') == [
        (schema.HEAD,)
    ]
    (replaced,) = migrated.backups.glob('before-restore-*')
    migrated.restore(replaced, '--force')
    assert migrated.execute('SELECT version_num FROM alembic_version') == [('0001',)]
    # Nothing is left of it.
    assert not [*(migrated.folder / 'tmp').iterdir()]


def truncate(file):
    with file.open('r+b') as opened:
        opened.truncate(file.stat().st_size * 2 // 3)


def truncate_at_member(file):
    """A whole archive, without its last files."""
    with tarfile.open(file) as archive:
        size = archive.getmember('files.tar').offset
    with file.open('r+b') as opened:
        opened.truncate(size)
        opened.seek(0, 2)
        opened.write(bytes(1024))


def flip(file):
    with tarfile.open(file) as archive:
        at = archive.getmember('manila.dump').offset_data + 100
    with file.open('r+b') as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))


def replace_by_foreign(file):
    with tarfile.open(file, 'w') as archive:
        archive.add(__file__, 'etc/passwd')


def change_manifest(old, new):
    def change(file):
        text = file.read_bytes()
        assert old in text[:2048]
        file.write_bytes(text.replace(old, new, 1))

    return change


REFUSED = {
    'truncated': (truncate, 'no backup, or only the beginning'),
    'without its end': (truncate_at_member, 'has changed since it was written'),
    'changed': (flip, 'has changed since it was written'),
    'foreign': (replace_by_foreign, 'is not a backup of manila_lite'),
    'empty': (lambda file: file.write_bytes(b''), 'is no backup'),
    'another node': (
        change_manifest(b'NODE=node\n', b'NODE=edon\n'),
        'is a backup of edon; NODE_NAME is node',
    ),
    'another server': (
        lambda file: None,
        'is a backup of (mariadb|postgresql); DATABASE is',
    ),
    'a newer schema': (
        change_manifest(f'={schema.HEAD}\n'.encode(), b'=9999\n'),
        'has schema 9999, which is newer',
    ),
}


def test_what_is_no_backup_of_this_controller_is_refused(migrated):
    """Before anything is changed."""
    backup = migrated.back_up()
    users = migrated.folder / 'state/users'
    users.unlink()
    (migrated.folder / 'systemctl').unlink()
    other = {'mariadb': 'postgresql', 'postgresql': 'mariadb'}[migrated.kind]
    for fault, (spoil, reason) in REFUSED.items():
        file = pathlib.Path(shutil.copy(backup, migrated.folder / 'spoiled.tar'))
        spoil(file)
        variables = migrated.variables
        if fault == 'another server':
            variables = variables.replace(migrated.kind, other)
        migrated.local_conf.write_text(variables)
        with pytest.raises(AssertionError, match=reason):
            migrated.restore(file)
        assert not users.exists()
    assert migrated.execute('SELECT version_num FROM alembic_version')
    assert not (migrated.folder / 'systemctl').exists()
    assert migrated.names() == [backup.name]
    assert not [*(migrated.folder / 'tmp').iterdir()]


def test_services_go_on_during_a_backup(migrated):
    """It has what was committed, and waits for no transaction."""
    engine = sa.create_engine(
        engines.with_driver(migrated.url), poolclass=sa.pool.NullPool
    )
    with engine.connect() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
        file = migrated.back_up()
        connection.commit()
    migrated.restore(file)
    assert migrated.execute('SELECT version_num FROM alembic_version') == [
        (schema.HEAD,)
    ]


def break_dump(controller):
    """Let the server's program fail after a part of the dump."""
    name = {'mariadb': 'mariadb-dump', 'postgresql': 'pg_dump'}[controller.kind]
    path = controller.folder / 'bin' / name
    path.write_text('#!/bin/sh\nhead -c 1000 /dev/urandom\nexit 2\n')
    path.chmod(0o755)
    if controller.kind == 'postgresql':
        # Of Debian: it does not look for programs where we do.
        runuser = controller.folder / 'bin/runuser'
        runuser.write_text(
            '#!/bin/sh\nif [ "$4" = pg_dump ]; then\n'
            f'    exec {path}\nfi\nexec /usr/sbin/runuser "$@"\n'
        )
        runuser.chmod(0o755)
    return path


def test_backup_that_fails_is_not_there(migrated):
    migrated.back_up()
    before = migrated.names()
    # What a kill has left.
    (migrated.backups / '.new').mkdir()
    (migrated.backups / '.new/manila.dump').touch()
    programs = break_dump(migrated).parent
    with pytest.raises(AssertionError):
        migrated.back_up()
    assert migrated.names() == before
    shutil.rmtree(programs)
    migrated.back_up('before-restore')
    assert len(migrated.names()) == len(before) + 1


def test_newest_backups_of_a_kind_are_kept(migrated):
    migrated.variables += 'BACKUPS_KEPT=2\n'
    migrated.run('')
    for kind in ('daily', 'before-migration'):
        for day in (1, 2, 3):
            (migrated.backups / f'{kind}-2020010{day}T000000Z.tar').touch()
    (migrated.backups / 'daily-of-the-operator').touch()
    file = migrated.back_up()
    assert migrated.names() == [
        *(f'before-migration-2020010{day}T000000Z.tar' for day in (1, 2, 3)),
        'daily-20200103T000000Z.tar',
        file.name,
        'daily-of-the-operator',
    ]


@pytest.fixture
def older(controller):
    """A controller with the schema of the previous release."""
    (controller.etc / 'manila_lite.conf').write_text(
        f'[database]\nconnection = {controller.url}\n'
    )
    controller.database = Database(engines.with_driver(controller.url))
    controller.database.write(schema.migrate, schema.LAST_RELEASED)
    yield controller
    controller.database.dispose()


def test_migration_waits_for_a_backup(older):
    programs = break_dump(older).parent
    with pytest.raises(AssertionError, match='nothing is migrated'):
        older.run('sync_schema')
    assert schema.version(older.database) == schema.LAST_RELEASED
    shutil.rmtree(programs)
    printed = older.run('sync_schema')
    (name,) = older.names()
    assert printed.splitlines()[0] == f'wrote {older.backups}/{name}'
    assert name.startswith('before-migration-')
    assert schema.version(older.database) == schema.HEAD


def test_migration_of_a_named_database_waits_for_the_backup_command(older):
    lines = 'OWN_DATABASE=no; sync_schema'
    older.variables += "BACKUP_COMMAND='echo saved >> $FOLDER/saved; false'\n"
    with pytest.raises(AssertionError, match='BACKUP_COMMAND has failed, so nothing'):
        older.run(lines)
    assert schema.version(older.database) == schema.LAST_RELEASED
    older.variables += "BACKUP_COMMAND='echo again >> $FOLDER/saved'\n"
    made = ['made a backup by BACKUP_COMMAND', 'migrated the database']
    assert older.run(f'CHECK=yes; {lines}').splitlines() == made
    assert older.run(lines).splitlines()[0] == made[0]
    assert (older.folder / 'saved').read_text().splitlines() == ['saved', 'again']
    assert schema.version(older.database) == schema.HEAD


def test_check_reports_backup_and_migration(older):
    assert older.run('CHECK=yes; sync_schema').splitlines() == [
        'wrote a backup before-migration',
        'migrated the database',
    ]
    assert older.names() == []
    assert schema.version(older.database) == schema.LAST_RELEASED
    older.run('sync_schema')
    assert older.run('CHECK=yes; sync_schema; report_changes') == 'Nothing to change.\n'


def test_first_schema_needs_no_backup(controller):
    (controller.etc / 'manila_lite.conf').write_text(
        f'[database]\nconnection = {controller.url}\n'
    )
    assert 'migrated the database' in controller.run('sync_schema')
    assert controller.names() == []


def test_another_controller_does_not_migrate(older):
    with pytest.raises(AssertionError, match='run deploy/controller on 127.0.0.1'):
        older.run('NODE_IP=127.0.0.2; sync_schema')
    assert schema.version(older.database) == schema.LAST_RELEASED


def test_units_are_valid(migrated):
    units = [*(migrated.folder / 'units').iterdir()]
    assert {path.name for path in units} == {
        'manila-lite-backup.service',
        'manila-lite-backup.timer',
    }
    ended = subprocess.run(
        [deploy_scripts.tool('systemd-analyze'), 'verify', '--man=no', *units],
        capture_output=True,
        text=True,
    )
    assert ended.stderr == ''
