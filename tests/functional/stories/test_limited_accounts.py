"""Services whose database accounts can only do what the services need."""

import pytest
import sqlalchemy as sa

from manila_lite.db import grants, models, schema
from manila_lite.db.session import Database
from tests.functional.stories import suites
from tests.support import accounts, databases
from tests.support.processes import wait_until

SERVICES = {
    'api': grants.CONTROLLER,
    'scheduler': grants.CONTROLLER,
    'share': grants.SHARE,
    'data': grants.DATA,
}


@pytest.fixture(params=sorted(databases.SERVER_KINDS))
def url(request, tmp_path):
    with databases.temporary_database(request.param, tmp_path) as found:
        db = Database(found)
        schema.sync(db)
        db.dispose()
        yield found


@pytest.fixture
def limited(url):
    """The URL of each service; its account has no other rights."""
    with accounts.limited(url) as urls:
        yield urls


def start(installation, limited):
    text = installation.conf.read_text()
    for name, service in SERVICES.items():
        installation.conf.write_text(
            text.replace(installation.database_url, limited[service])
        )
        installation.start(name)


def migrate(admin, share_id, host, **options):
    wanted = {
        'host': host,
        'writable': False,
        'nondisruptive': False,
        'preserve_metadata': False,
        'preserve_snapshots': False,
        **options,
    }
    admin.act(share_id, 'migration_start', wanted)
    done = 'data_copying_completed', 'migration_driver_phase1_done'
    wait_until(
        lambda: admin.show(share_id)['task_state'] in done, 'the first phase is done'
    )
    admin.act(share_id, 'migration_complete', None)
    wait_until(
        lambda: admin.show(share_id)['task_state'] == 'migration_success', 'migrated'
    )


@suites.operation
def test_shares_live_and_move(install, url, limited):
    """Nothing is refused, and nothing is only tried again."""
    found = install(
        kind=tuple(SERVICES),
        database_url=url,
        backends={'alpha': {}, 'beta': {}},
        options='default_share_type = default\n'
        'migration_driver_continue_update_interval = 1\n',
    )
    start(found, limited)
    user, admin = found.rest(), found.rest('admin')
    user.make_default_type(
        snapshot_support='True',
        create_share_from_snapshot_support='True',
        revert_to_snapshot_support='True',
        mount_snapshot_support='True',
    )
    share = user.create_available(metadata={'a': 'b'})
    rule = user.act(
        share['id'],
        'allow_access',
        {'access_type': 'ip', 'access_to': '192.0.2.1'},
        expect=200,
    )['access']
    user.act(share['id'], 'extend', {'new_size': 2})
    user.wait_at_rest(share['id'])
    snapshot = user.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share['id']}}, expect=202
    )['snapshot']
    wait_until(
        lambda: (
            user.get(f'/snapshots/{snapshot["id"]}')['snapshot']['status']
            == 'available'
        ),
        'the snapshot is available',
    )
    copy = user.create_available(snapshot_id=snapshot['id'], size=2)
    user.act(share['id'], 'revert', {'snapshot_id': snapshot['id']})
    wait_until(lambda: not found.pending_work(), 'no work left')
    user.act(share['id'], 'deny_access', {'access_id': rule['id']})
    user.request('DELETE', f'/snapshots/{snapshot["id"]}', expect=202)
    wait_until(lambda: not found.pending_work(), 'no work left')
    (pool,) = {f'{found.service_host(name)}#pool' for name in ('alpha', 'beta')} - {
        admin.show(share['id'])['host']
    }
    migrate(admin, share['id'], pool)
    (back,) = {f'{found.service_host(name)}#pool' for name in ('alpha', 'beta')} - {
        pool
    }
    # The data service copies.
    migrate(admin, share['id'], back, force_host_assisted_migration=True)
    for one in (share, copy):
        user.delete(one['id'])
        user.wait_gone(one['id'])
    wait_until(lambda: not found.pending_work(), 'no work left')
    assert found.problems() == []
    found.stop()
    for name, text in found.logs():
        for word in ('denied', 'ERROR'):
            assert word not in text, name


REFUSED = {'mysql': 'command denied', 'postgresql': 'permission denied|must be owner'}
FORBIDDEN = [
    'SELECT * FROM share_group_types',
    'SELECT * FROM share_network_subnet_metadata',
    'UPDATE quotas SET hard_limit = -1',
    "INSERT INTO quotas VALUES ('p', 'shares', -1)",
    "UPDATE share_types SET name = 'x'",
    'DELETE FROM share_type_extra_specs',
    'DELETE FROM shares',
    'UPDATE transitions SET made_by = NULL',
    'DELETE FROM messages',
    'DROP TABLE work',
    'ALTER TABLE work ADD COLUMN x int',
    'CREATE TABLE x (id int)',
    'CREATE INDEX x ON work (attempt)',
    "UPDATE alembic_version SET version_num = '0'",
]
ALLOWED_TO = {
    'SELECT * FROM share_network_subnet_metadata': {grants.SHARE},
    'DELETE FROM shares': {grants.SHARE},
}


@pytest.mark.parametrize('service', [grants.SHARE, grants.DATA])
def test_nothing_else_is_allowed(limited, service):
    engine = sa.create_engine(limited[service], poolclass=sa.pool.NullPool)
    for statement in FORBIDDEN:
        if service in ALLOWED_TO.get(statement, ()):
            run(engine, statement)
            continue
        with pytest.raises(sa.exc.DBAPIError, match=REFUSED[engine.dialect.name]):
            run(engine, statement)


def run(engine, statement):
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_controller_changes_rows_but_no_schema(limited):
    engine = sa.create_engine(limited[grants.CONTROLLER], poolclass=sa.pool.NullPool)
    for name in models.metadata.tables:
        run(engine, f'DELETE FROM {name} WHERE 1 = 0')
    for statement in ('DROP TABLE work', 'CREATE TABLE x (id int)'):
        with pytest.raises(sa.exc.DBAPIError, match=REFUSED[engine.dialect.name]):
            run(engine, statement)


def test_rights_of_an_earlier_release_are_taken(url, limited):
    """Of a service with another account before, for example."""
    parsed = sa.make_url(limited[grants.SHARE])
    engine = sa.create_engine(parsed, poolclass=sa.pool.NullPool)
    accounts.grant(url, [grants.CONTROLLER], parsed.username)
    run(engine, 'DELETE FROM quotas')
    for _ in range(2):
        accounts.grant(url, [grants.SHARE, grants.DATA], parsed.username)
    run(engine, 'SELECT * FROM quotas')
    with pytest.raises(sa.exc.DBAPIError, match=REFUSED[engine.dialect.name]):
        run(engine, 'DELETE FROM quotas')
