"""Arguments, versions, exit codes and errors of all commands."""

from importlib import metadata
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock

import pytest

from manila_lite.cmd import console
from tests.support import command_line, ordinary_user
from tests.support.manage_command import COMMAND, manage


@pytest.mark.parametrize(
    'command',
    [
        (),
        ('fly',),
        ('work',),
        ('recovery', 'run', 'share_instance'),
        ('quota', 'show'),
        ('quota', 'set', 'red'),
        ('quota', 'set', 'red', '--shares', 'many'),
        ('quota', 'show', 'red', '--user', 'u', '--share-type', 't'),
        ('user', 'add', 'ann'),
        ('service', 'describe'),
    ],
)
def test_usage_errors_have_exit_code_2(state, command):
    output = manage('--state-dir', state, *command, code=2)
    assert output.startswith('usage: manila-lite-manage')


PROGRAMS = ('', '-api', '-scheduler', '-share', '-manage')


@pytest.mark.parametrize('name', [f'manila-lite{end}' for end in PROGRAMS])
def test_every_command_knows_its_version(name):
    (point,) = metadata.entry_points(group='console_scripts', name=name)
    ended = command_line.run(
        lambda argv: run_as(point.load(), name, *argv), ['--version']
    )
    assert (ended.code, ended.out) == (0, f'{name} {metadata.version("manila_lite")}\n')


def run_as(main, name, *argv):
    with unittest.mock.patch.object(sys, 'argv', [name, *argv]):
        main()


def test_reader_of_the_output_may_stop_reading(state):
    with subprocess.Popen(
        [*COMMAND, 'quota', 'show', '--default', '--state-dir', state],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b''
        assert process.wait(60) == 0


def test_columns_are_aligned_also_with_wide_characters(capsys):
    console.print_table(
        ('id', 'name', 'note'), [('a', '日本', None), ('bcd', 'x\ny', '')]
    )
    assert capsys.readouterr().out.splitlines() == [
        'id   name  note',
        'a    日本  -',
        'bcd  x y',
    ]


def test_state_directory_of_make_run_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = manage('work', 'list', code=1)
    assert '--state-dir' in output
    assert '"make run"' in output
    assert '--state-dir state' not in output
    manage('db', 'sync', '--state-dir', 'state')
    output = manage('work', 'list', code=1)
    assert '"--state-dir state" for the one in ./state' in output


@pytest.fixture
def machine():
    """The configuration of a machine, with a secret that only root can read."""
    ordinary_user.require()
    # Where other users can go, unlike in the directories of pytest.
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        home.chmod(0o755)
        for folder in ('state', 'log'):
            (home / folder).mkdir()
            os.chown(home / folder, ordinary_user.USER, ordinary_user.USER)
        etc = home / '.manila_lite'
        etc.mkdir()
        (etc / 'manila_lite.conf').write_text(
            f'[DEFAULT]\nstate_path = {home}/state\nlog_dir = {home}/log\n'
        )
        secrets = etc / 'manila-lite-manage.conf'
        secrets.write_text(
            f'[database]\nconnection = sqlite:///{home}/state/db\nno_option = 1\n'
        )
        secrets.chmod(0o600)
        yield home


def as_in(home, *command, prefix=()):
    return subprocess.run(
        [*prefix, *COMMAND, *command],
        capture_output=True,
        text=True,
        env=os.environ | {'HOME': str(home), 'PYTHONDONTWRITEBYTECODE': '1'},
    )


def test_root_reads_secrets_and_then_acts_as_the_owner_of_the_state(machine):
    ended = as_in(machine, 'db', 'sync')
    assert ended.returncode == 0, ended.stderr
    written = [*(machine / 'state').iterdir(), *(machine / 'log').iterdir()]
    assert len(written) >= 2
    assert {path.stat().st_uid for path in written} == {ordinary_user.USER}


SETTINGS = """
from manila_lite.cmd import known_options, start
conf = start.configure('manila-lite-manage', as_owner=True)
for setting in known_options.settings(conf):
    print(setting.name)
"""


def test_what_only_root_can_read_is_checked_when_it_acts_as_the_owner(machine):
    ended = subprocess.run(
        [sys.executable, '-c', SETTINGS],
        capture_output=True,
        text=True,
        env=os.environ | {'HOME': str(machine)},
    )
    assert ended.stdout.split() == [
        *('state_path', 'log_dir', 'connection', 'no_option')
    ], ended.stderr


def test_user_of_the_services_cannot_read_the_secrets_of_root(machine):
    user = str(ordinary_user.USER)
    ended = as_in(
        *(machine, 'db', 'version'),
        prefix=('setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups'),
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert 'manila-lite-manage.conf' in line
    assert 'sqlite' not in line
