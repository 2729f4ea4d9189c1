"""`manila-lite-manage user`: in this process, or at a terminal."""

import contextlib
import dataclasses
import functools
import os
import pty
import sys

import pytest

from manila_lite.api.auth import users
from tests.support.manage_command import columns, manage
from tests.support.processes import Command

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
    'reader',
    '--state-dir',
)


def test_added_user_can_sign_in_until_removed(tmp_path):
    state = str(tmp_path / 'new')
    manage(*ANN, state, stdin='open sesame\n')
    ann = users.read(f'{state}/users')['ann']
    assert users.verify_password(ann, b'open sesame')
    assert columns(manage('user', 'list', '--state-dir', state)) == [
        ['name', 'user_id', 'project_id', 'roles'],
        ['ann', 'u1', 'p1', 'member,reader'],
    ]
    manage('user', 'remove', 'ann', '--state-dir', state)
    assert users.read(f'{state}/users') == {}
    assert 'ann' in manage('user', 'remove', 'ann', '--state-dir', state, code=1)


def test_role_that_no_policy_mentions_is_refused(tmp_path, configured):
    state = str(tmp_path)
    wrong = [word.replace('reader', 'Auditor') for word in ANN]
    output = manage(*wrong, state, stdin='x\n', code=1)
    assert 'no policy rule knows the role auditor' in output
    assert not (tmp_path / 'users').exists()
    policy = tmp_path / 'policy.yaml'
    policy.write_text('"share:get": "role:reader or not role:auditor"\n')
    where = configured(f'[oslo_policy]\npolicy_file = {policy}\n')
    manage(*wrong, state, *where, stdin='x\n')
    assert users.read(f'{state}/users')['ann'].roles == ('member', 'auditor')


def test_password_is_replaced_and_nothing_else(tmp_path):
    state = str(tmp_path)
    manage(*ANN, state, stdin='old\n')
    path = tmp_path / 'users'
    path.write_text(f'# those of team red\n{path.read_text()}')
    before = users.read(str(path))['ann']
    passwd = ('user', 'passwd', '--state-dir', state)
    assert 'bob' in manage(*passwd, 'bob', stdin='new\n', code=1)
    assert 'password' in manage(*passwd, 'ann', stdin='', code=1)
    assert users.read(str(path))['ann'] == before
    manage(*passwd, 'ann', stdin='new\n')
    after = users.read(str(path))['ann']
    assert users.verify_password(after, b'new')
    assert not users.verify_password(after, b'old')
    assert dataclasses.replace(after, hash=before.hash) == before
    assert path.read_text().startswith('# those of team red\n')


def test_users_go_into_the_configured_file(tmp_path, configured):
    path = tmp_path / 'elsewhere' / 'people'
    manage(*ANN[:-1], *configured(f'[http_basic]\nusers_file = {path}\n'), stdin='x\n')
    assert list(users.read(str(path))) == ['ann']


def test_unusable_users_are_refused(tmp_path):
    state = str(tmp_path)
    assert 'password' in manage(*ANN, state, stdin='', code=1)
    manage(*ANN, state, stdin='x\n')
    assert 'exists' in manage(*ANN, state, stdin='y\n', code=1)
    assert users.verify_password(users.read(f'{state}/users')['ann'], b'x')


def take_input_from(terminal):
    """Make it the input, but not what the process is controlled by."""
    os.setsid()
    os.dup2(os.open(terminal, os.O_RDWR | os.O_NOCTTY), 0)
    sys.stdin = os.fdopen(0, closefd=False)


@contextlib.contextmanager
def at_a_terminal(*args, log):
    """Run the command with a terminal as its input; yield both."""
    terminal, child_end = pty.openpty()
    command = Command(
        *('manila-lite-manage', *args),
        log=log,
        forked=True,
        enter=functools.partial(take_input_from, os.ttyname(child_end)),
    )
    try:
        yield command, terminal
    finally:
        command.kill()
        os.close(child_end)
        os.close(terminal)


def answer(command, terminal, question, text):
    # Input typed before the prompt is discarded.
    command.wait_for(lambda: command.output.endswith(question), question)
    os.write(terminal, text)


@pytest.mark.parametrize('again, code', [(b'one\n', 0), (b'two\n', 1)])
def test_password_is_prompted_twice_and_never_shown(tmp_path, again, code):
    log = tmp_path / 'log'
    with at_a_terminal(*ANN, tmp_path, log=log) as (command, terminal):
        answer(command, terminal, 'Password of ann: ', b'one\n')
        answer(command, terminal, 'Repeat the password: ', again)
        assert command.wait_for_exit() == code
    assert 'one' not in command.output
    assert ('differ' in command.output) == bool(code)
    assert (tmp_path / 'users').exists() == (code == 0)
