"""`manila-lite-manage`: in this process, or at a terminal in its own."""

import contextlib
import json
import os
import pathlib
import pty
import subprocess
import sys

import pytest
import sqlalchemy as sa

from manila_lite.api.auth import users
from manila_lite.cmd import upgrade_check
from manila_lite.cmd.manage import main
from manila_lite.db import schema
from manila_lite.db.queries.admin import services
from manila_lite.db.session import Database
from manila_lite.work import table
from tests.support import command_line
from tests.support import databases

COMMAND = [sys.executable, '-m', 'manila_lite.cmd.manage']


def run(*args, stdin='', code=0):
    """Run the command in this process, after checking the exit code."""
    ended = command_line.run(main, args, stdin)
    assert ended.code == code, ended.err
    assert 'Traceback' not in ended.err
    return ended


def manage(*args, stdin='', code=0):
    """Run the command; return its output, or its errors if there are any."""
    ended = run(*args, stdin=stdin, code=code)
    return ended.err if code else ended.out


def columns(printed):
    return [line.split() for line in printed.splitlines()]


@pytest.fixture
def state(tmp_path):
    """A state directory with a database of our schema."""
    manage('db', 'sync', '--state-dir', str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def db(state):
    database = Database(f'sqlite:///{state}/manila_lite.sqlite')
    yield database
    database.dispose()


@pytest.fixture
def configured(tmp_path):
    """`configured(text)`: arguments that name a file with this text."""

    def write(text):
        path = tmp_path / 'manila.conf'
        path.write_text(text)
        return '--config-file', str(path)

    return write


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
        connection.exec_driver_sql(
            "UPDATE alembic_version SET version_num = 'ffff'"
        )
    output = manage('db', 'check', '--state-dir', state, code=3)
    assert 'ffff' in output
    assert schema.HEAD in output


def test_sync_makes_the_state_directory_for_its_owner_only(tmp_path):
    manage('db', 'sync', '--state-dir', str(tmp_path / 'new'))
    assert (tmp_path / 'new').stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    'command',
    [
        ('db', 'check'),
        ('db', 'version'),
        ('service', 'list'),
        ('work', 'list'),
    ],
)
def test_read_commands_create_no_database(tmp_path, command):
    folder = tmp_path / 'mistyped'
    output = manage(*command, '--state-dir', str(folder), code=1)
    assert output.splitlines() == [
        f'manila-lite-manage: database {folder}/manila_lite.sqlite '
        'does not exist'
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


def test_file_that_is_no_database_is_one_line(tmp_path):
    (tmp_path / 'manila_lite.sqlite').write_text('notes to myself\n' * 99)
    output = manage('db', 'check', '--state-dir', str(tmp_path), code=1)
    assert output == (
        'manila-lite-manage: database error: file is not a database\n'
    )


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
        '[DEFAULT]\ndebug = true\n[database]\n'
        f'connection = sqlite:///{tmp_path}/secret\n'
    )
    ended = run('db', 'sync', *where)
    assert 'database.connection ' in ended.err
    assert 'secret' not in ended.err


def test_location_options_are_allowed_before_and_after_the_command(state):
    assert manage('--state-dir', state, 'db', 'version') == manage(
        'db', 'version', '--state-dir', state
    )


# service list, work list


def register(db, host, **values):
    facts = {
        'binary': 'manila-share',
        'topic': 't',
        'zone': 'nova',
        'incarnation': 'i',
        'enabled': True,
        **values,
    }
    db.write(services.register, host=host, **facts)


def test_services_are_listed_with_their_problems(state, db):
    register(db, 'well@a')
    register(db, 'ill@a', health='its disk\nis gone')
    register(db, 'dead@a', zone='far')
    register(db, 'off@a', enabled=False)
    db.write(services.set_disabled, 'off@a', 'manila-share', True, 'moving')
    db.write(
        lambda session: session.run(
            sa.update(services.SERVICE)
            .where(services.SERVICE.c.host == 'dead@a')
            .values(heartbeat_at=0.0)
        )
    )
    head, *rows = columns(manage('service', 'list', '--state-dir', state))
    assert head == [
        'binary',
        'host',
        'zone',
        'status',
        'state',
        'updated_at',
        'problem',
    ]
    assert [row[1:5] + row[7:] for row in rows] == [
        ['well@a', 'nova', 'enabled', 'up', '-'],
        ['ill@a', 'nova', 'enabled', 'down', 'its', 'disk', 'is', 'gone'],
        ['dead@a', 'far', 'enabled', 'down', '-'],
        ['off@a', 'nova', 'disabled', 'up', 'moving'],
    ]


def submit(session, resource_id):
    return table.submit(
        session,
        {'request_id': 'req-1'},
        kind='provisioning.create',
        topic='t',
        queue='q',
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


# user

ANN = (
    'user',
    'add',
    'ann',
    '--project',
    'p1',
    '--user-id',
    'u1',
    '--role',
    'Member',
    '--role',
    'auditor',
    '--state-dir',
)


def test_added_user_can_sign_in_until_removed(tmp_path):
    state = str(tmp_path / 'new')
    manage(*ANN, state, stdin='open sesame\n')
    ann = users.read(f'{state}/users')['ann']
    assert users.verify_password(ann, b'open sesame')
    assert columns(manage('user', 'list', '--state-dir', state)) == [
        ['name', 'user_id', 'project_id', 'roles'],
        ['ann', 'u1', 'p1', 'member,auditor'],
    ]
    manage('user', 'remove', 'ann', '--state-dir', state)
    assert users.read(f'{state}/users') == {}
    assert 'ann' in manage(
        'user', 'remove', 'ann', '--state-dir', state, code=1
    )


def test_users_go_into_the_configured_file(tmp_path, configured):
    path = tmp_path / 'elsewhere' / 'people'
    manage(
        *ANN[:-1],
        *configured(f'[http_basic]\nusers_file = {path}\n'),
        stdin='x\n',
    )
    assert list(users.read(str(path))) == ['ann']


def test_unusable_users_are_refused(tmp_path):
    state = str(tmp_path)
    assert 'password' in manage(*ANN, state, stdin='', code=1)
    manage(*ANN, state, stdin='x\n')
    assert 'exists' in manage(*ANN, state, stdin='y\n', code=1)
    assert users.verify_password(users.read(f'{state}/users')['ann'], b'x')


@contextlib.contextmanager
def at_a_terminal(*args):
    """Run the command with a terminal as its input; yield both."""
    terminal, child_end = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *args],
        stdin=child_end,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        os.close(child_end)
        yield process, terminal
    os.close(terminal)


def answer(process, terminal, question, text):
    # Input typed before the prompt is discarded.
    output = b''
    while not output.endswith(question):
        output += process.stderr.read(1)
    os.write(terminal, text)


@pytest.mark.parametrize('again, code', [(b'one\n', 0), (b'two\n', 1)])
def test_password_is_prompted_twice_and_never_shown(tmp_path, again, code):
    with at_a_terminal(*ANN, str(tmp_path)) as (process, terminal):
        answer(process, terminal, b'Password of ann: ', b'one\n')
        answer(process, terminal, b'Repeat the password: ', again)
        output = process.stderr.read()
        assert process.wait(timeout=60) == code
        assert b'one' not in output
        assert (b'differ' in output) == bool(code)
    assert (tmp_path / 'users').exists() == (code == 0)


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
            'Drivers',
            'Filters and weighers',
            'Deprecated options',
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
def test_upgrade_check_fails_before_a_service_would(
    state, configured, text, check
):
    where = configured(f'[DEFAULT]\n{text}')
    printed = upgrade_checked('--state-dir', state, *where, code=2)
    assert verdicts(printed)[check] == 'Failure'


def test_upgrade_check_fails_without_a_schema(tmp_path):
    (tmp_path / 'manila_lite.sqlite').touch()
    printed = upgrade_checked('--state-dir', str(tmp_path), code=2)
    assert verdicts(printed)['Database schema'] == 'Failure'


def test_upgrade_check_knows_the_options_of_the_sample_file():
    root = pathlib.Path(upgrade_check.__file__).parents[2]
    lines = (root / 'etc/manila_lite/config-generator.conf').read_text()
    assert set(upgrade_check.LIBRARIES) == {
        line.partition('=')[2].strip()
        for line in lines.splitlines()
        if line.startswith('namespace')
    }
