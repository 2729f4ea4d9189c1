"""`status upgrade-check`, `db sync` and the start beside other releases."""

from alembic import script
import pytest
import sqlalchemy as sa

from manila_lite import release
from manila_lite.db import schema
from manila_lite.db.models import services
from manila_lite.db.queries.services import incarnations
from manila_lite.db.queries.services.releases import Release
from manila_lite.db.session import Database
from manila_lite.work import table
from tests.functional.cmd.test_manage import upgrade_checked, verdicts
from tests.support import databases
from tests.support.manage_command import columns, manage
from tests.support.processes import Command

HERE = release.NUMBER
INCARNATION = services.ServiceIncarnation.__table__
WORK_IS_KNOWN = 'provisioning.create_share_instance'


def register(db, number=HERE, *, schema_version=schema.HEAD, host='node@a'):
    db.write(
        incarnations.register,
        host=host,
        binary='manila-share',
        topic='manila-share',
        zone='nova',
        incarnation=f'{host} {number}',
        down_time=60.0,
        enabled=True,
        release=Release(number, f'0.{number}', schema_version),
    )


def submit(db, kind=WORK_IS_KNOWN, **values):
    return db.write(
        lambda session: table.submit(
            session,
            {},
            kind=kind,
            topic='manila-share',
            queue='node@a',
            resource='share_instance',
            resource_id=session.new_id(),
            args={},
            **values,
        )
    )


def checked(state, name, code):
    """Return the verdict on one thing, and all that is printed."""
    printed = upgrade_checked('--state-dir', state, code=code)
    return verdicts(printed)[name], ' '.join(printed.replace('|', ' ').split())


@pytest.mark.parametrize('number', [HERE - 1, HERE + 1])
def test_services_of_the_next_releases_are_a_warning(state, db, number):
    register(db)
    register(db, number, host='node@b')
    verdict, text = checked(state, 'Releases of live services', 1)
    assert verdict == 'Warning'
    assert f'manila-share on node@b ran as release {number}' in text
    assert 'node@a' not in text


def test_services_that_are_too_far_away_are_a_failure(state, db):
    register(db, HERE + 2)
    verdict, text = checked(state, 'Releases of live services', 2)
    assert verdict == 'Failure'
    assert f'node@a ran as release {HERE + 2}' in text


def test_the_releases_of_processes_are_shown(state, db):
    for number in (HERE, HERE - 1):
        register(db, number)
    _, row = columns(manage('service', 'list', '--state-dir', state))
    assert f'up {HERE - 1}, {HERE} ' in ' '.join(row)
    described = manage('service', 'describe', 'node@a', '--state-dir', state)
    assert f'0.{HERE - 1}' in described


def test_work_of_unknown_kinds_is_a_warning(state, db):
    submit(db)
    submit(db, 'gilding.gild')
    verdict, text = checked(state, 'Accepted work', 1)
    assert verdict == 'Warning'
    assert '1 of kind gilding.gild' in text
    assert WORK_IS_KNOWN not in text


def test_work_that_waits_for_an_upgrade_is_a_warning(state, db):
    submit(db, needs_release=HERE)
    register(db, HERE - 1)
    verdict, text = checked(state, 'Accepted work', 1)
    assert verdict == 'Warning'
    assert f'on node@a wait until a process there has release {HERE}' in text
    register(db, HERE)
    assert checked(state, 'Accepted work', 1)[0] == 'Success'


def stamp(db, version, oldest):
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE alembic_version SET version_num = '{version}'"
        )
        connection.exec_driver_sql(f"UPDATE schema_served SET oldest = '{oldest}'")


def test_newer_schema_that_serves_this_release_is_a_warning(state, db):
    stamp(db, '9999', schema.HEAD)
    verdict, text = checked(state, 'Database schema', 1)
    assert verdict == 'Warning'
    assert 'schema 9999 of a newer release' in text


@pytest.fixture
def behind(tmp_path):
    """A state directory with the schema of the first release, and it."""
    db = Database(f'sqlite:///{tmp_path}/manila_lite.sqlite')
    db.write(schema.migrate, schema.FIRST_RELEASED)
    yield str(tmp_path), db
    db.dispose()


def register_first(db):
    """Register a process as the first release does."""
    with db.engine.begin() as connection:
        for statement in (
            "INSERT INTO availability_zones VALUES ('z', 'nova', "
            "'2026-01-01 00:00:00', NULL)",
            'INSERT INTO services (id, host, binary, topic, '
            'availability_zone_id, incarnation, heartbeat_at, disabled, '
            "ensuring, created_at) VALUES (1, 'node@a', 'manila-share', "
            "'manila-share', 'z', 'i', 0, 0, 0, '2026-01-01 00:00:00')",
            'INSERT INTO service_incarnations (service_id, incarnation, '
            'started_at, heartbeat_at) VALUES '
            "(1, 'i', 0, unixepoch('now'))",
        ):
            connection.exec_driver_sql(statement)


def test_before_the_schema_is_migrated_it_says_how_far_it_is_behind(behind):
    state, db = behind
    register_first(db)
    verdict, text = checked(state, 'Database schema', 2)
    assert verdict == 'Failure'
    directory = script.ScriptDirectory.from_config(schema.configuration())
    steps = len(list(directory.iterate_revisions(schema.HEAD, schema.FIRST_RELEASED)))
    behind_by = f'{steps} migration{"s" if steps > 1 else ""} behind'
    assert f'schema {schema.FIRST_RELEASED}, {behind_by}' in text
    assert 'run "manila-lite-manage db sync"' in text
    assert f'manila-share on node@a ran as release {release.FIRST}' in text


def test_sync_serves_the_first_release_which_is_live(behind):
    """Its schema is expanded only."""
    state, db = behind
    register_first(db)
    manage('db', 'sync', '--state-dir', state)
    assert schema.version(db) == schema.HEAD


def test_sync_does_not_contract_the_schema_beside_older_processes(behind):
    state, db = behind
    stamp(db, schema.FIRST_RELEASED, '0001')
    db.write(schema.migrate, 'head')
    stamp(db, schema.FIRST_RELEASED, '0001')
    register(db, schema_version='0008')
    output = manage('db', 'sync', '--state-dir', state, code=1)
    assert f'manila-share on node@a ran as release {HERE}' in output
    assert schema.version(db) == schema.FIRST_RELEASED
    assert checked(state, 'Contraction of the schema', 2)[0] == 'Failure'
    db.write(lambda session: session.run(sa.delete(INCARNATION)))
    assert checked(state, 'Contraction of the schema', 2)[0] == 'Success'


PROGRAMS = ('api', 'scheduler', 'share', 'data')


@pytest.mark.parametrize('program', PROGRAMS)
def test_a_process_does_not_start_beside_a_release_too_far_away(program, tmp_path):
    with databases.temporary_database('sqlite', tmp_path) as url:
        db = Database(url)
        schema.sync(db)
        register(db, HERE + 2)
        db.dispose()
        file = tmp_path / 'manila.conf'
        file.write_text(
            '[DEFAULT]\nauth_strategy = noauth\n'
            'osapi_share_listen = 127.0.0.1\nosapi_share_listen_port = 0\n'
            f'state_path = {tmp_path}\ntransport_url = memory://\n'
            f'[database]\nconnection = {url}\n'
        )
        command = Command(
            *(f'manila-lite-{program}', '--config-file', file),
            log=tmp_path / 'log',
            forked=True,
        )
        assert command.wait_for_exit() == 1
    assert command.output.splitlines()[-1] == (
        f'manila-lite-{program}: This is release {HERE}, but manila-share on '
        f'node@a ran as release {HERE + 2} within the last 60 s. Only '
        'successive releases run together: upgrade or downgrade one release '
        'at a time, or stop the others first.'
    )
