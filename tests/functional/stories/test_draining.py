"""What each process does when it is to stop, or is disabled.

Leases are longer than the tests: work that another process continues was
handed on.
"""

import contextlib
import fcntl
import json
import pathlib
import shlex
import signal
import subprocess
import sys

import pytest
import requests

from manila_lite.work import table
from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import blocking_driver, entry_points, waiting_backups
from tests.support.installation import SEPARATE
from tests.support.processes import Command, free_port, wait_until

pytestmark = suites.failures

ROOT = pathlib.Path(__file__).parents[3]
SHARE, SCHEDULER = 'manila-share', 'manila-scheduler'
LEASE = 900
OPTIONS = """
default_share_type = default
transport_url = memory://
"""


class Service:
    """A process of an installation with a health check of its own."""

    def __init__(self, installation, kind, number, options='', drain_time=0):
        self.installation = installation
        self.port = free_port()
        name = f'{kind}-{number}'
        extra = installation.folder / f'{name}.conf'
        extra.write_text(
            f'[DEFAULT]\n{options}\n[monitoring]\n{kind}_port = {self.port}\n'
            f'drain_time = {drain_time}\n'
        )
        self.log = installation.folder / f'{name}.log'
        installation.running[name] = self.command = Command(
            f'manila-lite-{kind}',
            *('--config-file', installation.conf, '--config-file', extra),
            log=self.log,
            forked=True,
        )
        ready = 'is up' if kind == 'share' else 'Started'
        self.command.wait_for(lambda: ready in self.command.output, ready)

    def health(self):
        """Return the status code and the check of the work."""
        answer = requests.get(
            f'http://127.0.0.1:{self.port}/healthcheck',
            headers={'Accept': 'application/json'},
            timeout=60,
        )
        return answer.status_code, answer.json()['checks']['work']

    def is_stopping(self):
        return self.health() == (503, 'is stopping')

    @property
    def begun(self):
        """How many shares it has begun to create."""
        return self.command.output.count('Waiting for the lock to create')


@pytest.fixture(scope='module')
def node(tmp_path_factory):
    """An API and a scheduler; the back end has one worker per process."""
    with new_installation(
        tmp_path_factory.mktemp('draining') / 'node',
        kind=SEPARATE,
        options=OPTIONS,
        sections='workers_per_backend = 1',
        backends={'dummy': {'share_driver': blocking_driver.NAME}},
        lease=LEASE,
    ) as found:
        found.start('api')
        found.first_scheduler = Service(found, 'scheduler', 1)
        found.rest().make_default_type()
        yield found


@pytest.fixture
def user(node):
    return node.rest()


@contextlib.contextmanager
def calls_blocked(node):
    """No driver call returns inside the block."""
    state = node.dummy_state_dir('dummy')
    with blocking_driver.lock_file(state).open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def deploy(node, lines):
    """Run functions of deploy on this installation; return code and output."""
    prepare = f"""
set -euo pipefail
source "{ROOT}/deploy/lib/all.sh"
VENV={shlex.quote(sys.prefix)}
manage() {{
    "$VENV/bin/manila-lite-manage" "$@" --config-file {node.conf}
}}
"""
    ended = subprocess.run(
        ['bash', '-c', prepare + lines],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={'PATH': '/usr/bin:/bin', 'DEPLOY': f'{ROOT}/deploy'},
        check=False,
    )
    return ended.returncode, ended.stdout


def described(node):
    return json.loads(node.manage('service', 'describe', node.service_host(), '--json'))


def test_one_of_two_share_services_is_stopped_then_the_other(node, user):
    first = Service(node, 'share', 'a')
    second = Service(node, 'share', 'b', drain_time=600)
    with calls_blocked(node):
        shares = [user.create()['id'] for _ in range(5)]
        wait_until(lambda: first.begun and second.begun, 'both create one')
        first.command.terminate()
        wait_until(first.is_stopping, 'its health check says so')
        # The row shows the best process, which is the other one.
        assert described(node)['state'] == 'up'
        assert first.command.is_running
    assert first.command.wait_for_exit() == 0
    for share in shares:
        assert user.wait_at_rest(share)['status'] == 'available'
    assert (first.begun, second.begun) == (1, 4)

    # The first controller has the servers of this back end.
    host = node.service_host()
    lines = f'SERVERS={node.folder}; OWN_DATABASE=yes'
    code, output = deploy(node, f'{lines}; NODE_NAME=other refuse_served "stop it"')
    assert f'on {node.host} uses the servers of this node' in output
    assert 'stop it first, or give --force' in output
    assert code == 1
    lines += f'; NODE_NAME={node.host}; refuse_served "stop it"'
    assert deploy(node, lines) == (0, '')

    # So its machine may be removed, and the back end remains.
    assert deploy(node, f'refuse_used {node.host} 0') == (0, '')
    code, output = deploy(node, f'remove_rows {node.host} --cancel-work')
    assert f'Kept {SHARE} on {host}: another machine serves it.' in output
    assert code == 0
    code, output = deploy(node, f'refuse_used {node.host} 1')
    size = sum(share['size'] for share in user.get('/shares/detail')['shares'])
    assert (code, f'{host} has shares of {size} GiB' in output) == (1, True)

    # The last one has no work, but shows for a while that it stops.
    second.command.terminate()
    wait_until(second.is_stopping, 'its health check says so')
    wait_until(
        lambda: described(node)['problem'] == 'It was stopped.', 'it is down at once'
    )
    second.command.terminate()
    assert second.command.wait_for_exit() == 128 + signal.SIGTERM

    # Without another one, work is parked, and shown.
    user.act(
        shares[0],
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1', 'access_level': 'rw'},
        expect=200,
    )
    (parked,) = described(node)['work']
    assert (parked['state'], parked['count']) == ('queued', 1)
    third = Service(node, 'share', 'c')
    wait_until(lambda: not node.pending_work(), 'it is carried out')
    assert third.command.stop() < LEASE
    assert not node.problems()


def test_a_call_that_does_not_end_in_time_is_left_to_its_lease(node, user):
    stuck = Service(node, 'share', 'd', 'graceful_shutdown_timeout = 1')
    with calls_blocked(node):
        share = user.create()['id']
        wait_until(lambda: stuck.begun, 'the driver is called')
        stuck.command.terminate()
        wait_until(
            lambda: described(node)['problem'] == 'It is stopping.',
            'the service is down while it stops',
        )
        assert stuck.command.wait_for_exit() == 0
    assert (
        'has not ended in time; it is taken over when its lease is over, in '
        f'{LEASE} s at the latest' in stuck.command.output
    )
    (left,) = node.db.read(table.list_work)
    assert (left.state, left.lease_left > 0) == ('running', True)

    # A process on the same machine knows that it is dead, and that the back
    # end had not begun.
    again = Service(node, 'share', 'e', 'graceful_shutdown_timeout = 0')
    assert user.wait_at_rest(share)['status'] == 'available'
    with calls_blocked(node):
        user.create()
        wait_until(lambda: again.begun, 'the driver is called')
        again.command.terminate()
        wait_until(again.is_stopping, 'it waits without a limit')
        again.command.terminate()
        assert again.command.wait_for_exit() == 128 + signal.SIGTERM
    last = Service(node, 'share', 'f')
    wait_until(lambda: not node.pending_work(), 'it is taken over')
    last.command.stop()


def test_a_disabled_scheduler_leaves_work_to_the_other(node, user):
    share = Service(node, 'share', 'g')
    first = node.first_scheduler
    second = Service(node, 'scheduler', 2, 'host = second')

    def able(verb, host):
        user.request('PUT', f'/services/{verb}', {'binary': SCHEDULER, 'host': host})

    able('disable', node.host)
    wait_until(lambda: first.health() == (503, 'is disabled'), 'it claims nothing')
    placed = first.command.output.count('Finished placement')
    for made in [user.create()['id'] for _ in range(3)]:
        assert user.wait_at_rest(made)['status'] == 'available'
    assert first.command.output.count('Finished placement') == placed

    able('disable', 'second')
    wait_until(lambda: second.health() == (503, 'is disabled'), 'it claims nothing')
    parked = user.create()['id']
    checks = requests.get(
        f'{node.root}/healthcheck', headers={'Accept': 'application/json'}, timeout=60
    ).json()['checks']
    assert checks['scheduler'] == 'none is enabled, see "service list"'
    (work,) = json.loads(node.manage('work', 'list', '--json'))
    assert (work['state'], work['attempt']) == ('queued', 0)
    able('enable', node.host)
    assert user.wait_at_rest(parked)['status'] == 'available'
    assert first.health() == (200, 'OK')
    second.command.stop()
    share.command.stop()
    assert 'It was stopped.' in node.manage('service', 'list')


def test_a_copy_is_handed_on_when_the_time_is_up(install, tmp_path, monkeypatch):
    """All services are in one process, which is started again."""
    entry_points.install(
        monkeypatch,
        tmp_path,
        f"""
        [manila_lite.data.backups]
        waiting = {waiting_backups.NAME}
        """,
    )
    monkeypatch.setenv('PYTHONPATH', f'{ROOT}:{tmp_path}')
    backups, root = tmp_path / 'backups', tmp_path / 'root'
    backups.mkdir()
    root.mkdir()
    waiting_backups.wait_file(backups).touch()
    installation = install(
        forked=False,
        options='default_share_type = default\n'
        'graceful_shutdown_timeout = 2\n'
        'backup_driver = waiting\n'
        f'backup_folder = {backups}\n',
        backends={'local': {'share_driver': 'local', 'local_root': root}},
        lease=LEASE,
    ).start()
    user = installation.rest()
    user.make_default_type()
    share = user.create_available()['id']
    backup = user.request(
        'POST',
        '/share-backups',
        {'share_backup': {'share_id': share}},
        expect=202,
        X_OpenStack_Manila_API_Experimental='true',
    )['share_backup']['id']
    wait_until(waiting_backups.begun_file(backups).exists, 'it is copied')
    installation.stop()
    (left,) = installation.db.read(table.list_work)
    assert (left.state, left.attempt) == ('queued', 0)
    waiting_backups.wait_file(backups).unlink()
    installation.start()
    wait_until(lambda: not installation.pending_work(), 'it is complete')
    assert list(backups.glob(f'{backup}.*'))
