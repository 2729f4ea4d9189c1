"""`manila-lite-manage`: databases, services, work and checks."""

import json
import pathlib

import pytest
import sqlalchemy as sa
import yaml

from manila_lite import release
from manila_lite.cmd import known_options
from manila_lite.db import schema
from manila_lite.db.queries.services import incarnations, pools, services
from manila_lite.work import table
from tests.support import databases
from tests.support.manage_command import columns, manage, run
from tests.support.unserved import lose

# db


@pytest.mark.parametrize('kind', databases.KINDS)
def test_schema_is_missing_then_created_then_found(kind, tmp_path, configured):
    with databases.temporary_database(kind, tmp_path) as url:
        where = configured(f'[database]\nconnection = {url}\n')
        if kind == 'sqlite':
            sa.create_engine(url).connect().close()
        assert 'db sync' in manage('db', 'check', *where, code=3)
        assert manage('db', 'version', *where) == 'none\n'
        manage('db', 'sync', *where)
        manage('db', 'sync', *where)
        manage('db', 'check', *where)
        assert manage('db', 'version', *where) == f'{schema.HEAD}\n'
        assert columns(manage('service', 'list', *where))[1:] == []
        assert json.loads(manage('work', 'list', '--json', *where)) == []


def test_schema_of_another_release_fails_the_check(state, db):
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'ffff'")
        connection.exec_driver_sql("UPDATE schema_served SET oldest = 'fffe'")
    output = manage('db', 'check', '--state-dir', state, code=3)
    assert 'ffff' in output
    assert schema.HEAD in output


def test_sync_makes_the_state_directory_for_its_owner_only(tmp_path):
    manage('db', 'sync', '--state-dir', str(tmp_path / 'new'))
    assert (tmp_path / 'new').stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    'command',
    [('db', 'check'), ('db', 'version'), ('service', 'list'), ('work', 'list')],
)
def test_read_commands_create_no_database(tmp_path, command):
    folder = tmp_path / 'mistyped'
    output = manage(*command, '--state-dir', str(folder), code=1)
    assert output.splitlines() == [
        f'manila-lite-manage: database {folder}/manila_lite.sqlite does not exist'
    ]
    assert not folder.exists()


@pytest.mark.parametrize('command', [('service', 'list'), ('work', 'list')])
def test_lists_report_a_missing_schema(tmp_path, command):
    (tmp_path / 'manila_lite.sqlite').touch()
    output = manage(*command, '--state-dir', str(tmp_path), code=1)
    assert len(output.splitlines()) == 1
    assert 'db sync' in output


@pytest.mark.parametrize(
    'url',
    [
        'mysql+pymysql://manila:secret@127.0.0.1:1/manila',
        'postgresql+psycopg2://manila:secret@127.0.0.1:1/manila',
    ],
)
def test_unreachable_database_is_one_line(configured, url):
    where = configured(f'[database]\nconnection = {url}\n')
    output = manage('db', 'check', *where, code=1)
    assert output.startswith('manila-lite-manage: database error: ')
    assert len(output.splitlines()) == 1
    assert 'refused' in output
    assert 'secret' not in output


@pytest.mark.parametrize('command', ['check', 'version', 'sync'])
def test_file_that_is_no_database_is_one_line(tmp_path, command):
    file = tmp_path / 'manila_lite.sqlite'
    file.write_text('notes to myself\n' * 99)
    output = manage('db', command, '--state-dir', str(tmp_path), code=1)
    assert output == (
        f'manila-lite-manage: database {file}: the file is not a database; '
        'nothing was changed\n'
    )
    assert file.read_text() == 'notes to myself\n' * 99


@pytest.mark.parametrize(
    'text, reason',
    [
        ('', 'connection in section [database] is not set'),
        ('[database]\nconnection = nonsense\n', '[database]'),
        ('[database]\nconnection = oracle://me:secret@host/x\n', '[database]'),
        ('[DEFAULT]\nreport_interval = often\n', 'report_interval'),
        ('[DEFAULT\n', 'manila.conf:1'),
    ],
)
def test_broken_configuration_is_reported_clearly(configured, text, reason):
    output = manage('db', 'version', *configured(text), code=1)
    assert reason in output.splitlines()[-1]
    assert 'secret' not in output


def test_debug_log_keeps_the_connection_secret(tmp_path, configured):
    where = configured(
        f'[DEFAULT]\ndebug = true\n[database]\nconnection = sqlite:///{tmp_path}/hush\n'
    )
    ended = run('db', 'sync', *where)
    assert 'database.connection ' in ended.err
    assert 'hush' not in ended.err


def test_location_options_are_allowed_before_and_after_the_command(state):
    assert manage('--state-dir', state, 'db', 'version') == manage(
        'db', 'version', '--state-dir', state
    )


# service list, work list


FACTS = {
    'binary': 'manila-share',
    'topic': 't',
    'zone': 'nova',
    'incarnation': 'i',
    'down_time': 60.0,
    'enabled': True,
}


def register(db, host, **values):
    db.write(incarnations.register, host=host, **FACTS | values)


def test_services_are_listed_with_their_problems(state, db):
    register(db, 'well@a')
    register(db, 'ill@a', health='its disk\nis gone')
    register(db, 'mute@a', warning='The message broker refuses it.')
    register(db, 'dead@a', zone='far')
    register(db, 'off@a', enabled=False)
    db.write(services.set_disabled, 'off@a', 'manila-share', True, 'moving')
    lose(db, 'dead@a')
    head, *rows = columns(manage('service', 'list', '--state-dir', state))
    assert head == [
        'binary',
        'host',
        'zone',
        'status',
        'state',
        'release',
        'updated_at',
        'problem',
    ]
    assert {row[5] for row in rows} == {str(release.NUMBER)}
    assert [row[1:5] + row[8:] for row in rows] == [
        ['well@a', 'nova', 'enabled', 'up', '-'],
        ['ill@a', 'nova', 'enabled', 'down', 'its', 'disk', 'is', 'gone'],
        [
            *('mute@a', 'nova', 'enabled', 'up'),
            *('The', 'message', 'broker', 'refuses', 'it.'),
        ],
        ['dead@a', 'far', 'enabled', 'down', '-'],
        ['off@a', 'nova', 'disabled', 'up', 'moving'],
    ]


@pytest.mark.facts('add-format-output-to-manila-manage')
@pytest.mark.parametrize(
    'option, read', [('--json', json.loads), ('--yaml', yaml.safe_load)]
)
def test_services_are_listed_for_programs(state, db, option, read):
    assert read(manage('service', 'list', option, '--state-dir', state)) == []
    register(db, 'well@a')
    register(db, 'ill@a', health='its disk\nis gone: "x" #1')
    well, ill = read(manage('service', 'list', option, '--state-dir', state))
    assert well == {
        'binary': 'manila-share',
        'host': 'well@a',
        'zone': 'nova',
        'status': 'enabled',
        'state': 'up',
        'release': str(release.NUMBER),
        'updated_at': well['updated_at'],
        'problem': None,
    }
    assert ill['problem'] == 'its disk\nis gone: "x" #1'


def test_service_is_described(state, db):
    register(db, 'node@a', health='its disk is gone')
    db.write(incarnations.register, host='node@a', **FACTS | {'incarnation': 'second'})
    pool = pools.PoolReport('node@a#gold', {}, 100.0, 60.0)
    db.write(pools.save_report, 'node@a', [pool], {})
    for resource_id in ('one', 'two'):
        db.write(submit, resource_id, queue='node@a')
    where = ('--state-dir', state)
    printed = manage('service', 'describe', 'node@a', *where)
    for text in ('host: node@a', 'state: up', 'node@a#gold', 'second'):
        assert text in printed
    found = json.loads(manage('service', 'describe', 'node@a', '--json', *where))
    assert found['work'] == [
        {'kind': 'provisioning.create', 'state': 'queued', 'count': 2}
    ]
    assert [one['problem'] for one in found['processes']] == ['its disk is gone', None]
    assert found['pools'][0]['free_gb'] == 60.0
    output = manage('service', 'describe', 'node@b', *where, code=1)
    assert 'node@b' in output


def submit(session, resource_id, queue='q'):
    return table.submit(
        session,
        {'request_id': 'req-1'},
        kind='provisioning.create',
        topic='t',
        queue=queue,
        resource='share_instance',
        resource_id=resource_id,
        args={},
    )


def test_unfinished_work_is_listed_with_its_holder(state, db):
    held, waiting = (db.write(submit, name) for name in ('one', 'two'))
    db.write(table.claim, held, ['q'], 'me@here', 60.0)
    db.write(
        lambda session: session.run(
            sa.update(table.WORK)
            .where(table.WORK.c.id == waiting)
            .values(
                error='the disk\nis full',
                created_at=session.now.replace(year=session.now.year - 1),
            )
        )
    )
    found = json.loads(manage('work', 'list', '--json', '--state-dir', state))
    assert [work.pop('age') > 86400 for work in found] == [True, False]
    assert found == [
        {
            'id': waiting,
            'kind': 'provisioning.create',
            'resource_id': 'two',
            'resource': 'share_instance',
            'state': 'queued',
            'owner': None,
            'attempt': 0,
            'needs_release': None,
            'error': 'the disk\nis full',
        },
        {
            'id': held,
            'kind': 'provisioning.create',
            'resource_id': 'one',
            'resource': 'share_instance',
            'state': 'running',
            'owner': 'me@here',
            'attempt': 1,
            'needs_release': None,
            'error': None,
        },
    ]
    head, first, second = columns(manage('work', 'list', '--state-dir', state))
    assert head == [
        'id',
        'kind',
        'resource',
        'resource_id',
        'state',
        'owner',
        'age',
        'attempt',
        'needs_release',
        'error',
    ]
    assert first[:6] == [
        waiting,
        'provisioning.create',
        'share_instance',
        'two',
        'queued',
        '-',
    ]
    assert first[-4:] == ['the', 'disk', 'is', 'full']
    assert second[5] == 'me@here'


# status upgrade-check


def verdicts(printed):
    words = [line.strip('| ') for line in printed.splitlines()]
    names = [word[7:] for word in words if word.startswith('Check: ')]
    results = [word[8:] for word in words if word.startswith('Result: ')]
    return dict(zip(names, results, strict=True))


def upgrade_checked(*where, code):
    return run('status', 'upgrade-check', *where, code=code).out


def test_upgrade_check_finds_nothing_wrong(state):
    printed = upgrade_checked('--state-dir', state, code=0)
    assert verdicts(printed) == dict.fromkeys(
        (
            'Configuration',
            'Database schema',
            'Contraction of the schema',
            'Migrations of data',
            'Releases of live services',
            'Accepted work',
            'Drivers',
            'Filters and weighers',
            'Lock service',
            'Token cache',
            'Unknown options',
            'Deprecated options',
            'Ignored options',
        ),
        'Success',
    )
    assert len({len(line) for line in printed.splitlines()}) == 1


def test_upgrade_check_warns_of_old_names(state, configured):
    where = configured('[DEFAULT]\nquota_shares = 7\n')
    printed = upgrade_checked('--state-dir', state, *where, code=1)
    assert verdicts(printed)['Deprecated options'] == 'Warning'
    output = ' '.join(printed.replace('|', ' ').split())  # lines are folded
    assert '[DEFAULT] quota_shares is now' in output


@pytest.mark.parametrize(
    'text, check',
    [
        (
            'enabled_share_backends = a\n[a]\nshare_driver = nothing.At.All\n'
            'driver_handles_share_servers = false\n',
            'Drivers',
        ),
        ('enabled_share_backends = a\n', 'Drivers'),
        ('scheduler_default_filters = NoFilter\n', 'Filters and weighers'),
        ('[database]\nconnection = sqlite:////nowhere/x\n', 'Database schema'),
        ('report_interval = often\n', 'Configuration'),
    ],
)
def test_upgrade_check_fails_before_a_service_would(state, configured, text, check):
    where = configured(f'[DEFAULT]\n{text}')
    printed = upgrade_checked('--state-dir', state, *where, code=2)
    assert verdicts(printed)[check] == 'Failure'


def test_upgrade_check_fails_without_a_schema(tmp_path):
    (tmp_path / 'manila_lite.sqlite').touch()
    printed = upgrade_checked('--state-dir', str(tmp_path), code=2)
    assert verdicts(printed)['Database schema'] == 'Failure'


def test_upgrade_check_knows_the_options_of_the_sample_file():
    root = pathlib.Path(known_options.__file__).parents[2]
    lines = (root / 'etc/manila_lite/config-generator.conf').read_text()
    assert set(known_options.LIBRARIES) == {
        line.partition('=')[2].strip()
        for line in lines.splitlines()
        if line.startswith('namespace')
    }


# api


def test_description_is_printed_for_the_version(state):
    for arguments, version in ((('--version', '2.9'), '2.9'), ((), '2.99')):
        found = json.loads(
            manage('api', 'description', *arguments, '--state-dir', state)
        )
        assert found['openapi'].startswith('3.1.')
        assert found['info']['version'] == version


def test_description_of_an_unknown_version_is_refused(state):
    output = manage(
        'api', 'description', '--version', '2.100', '--state-dir', state, code=1
    )
    assert '2.99' in output
