"""Services of a node in processes that are forked from one."""

import contextlib
import os
import pathlib
import signal
import socket

import pytest
import requests

from tests.functional.stories import suites
from tests.support.installation import SERVICES
from tests.support.processes import Command, wait_until

pytestmark = suites.failures


@pytest.fixture
def node(install):
    found = install(
        kind=SERVICES,
        options='default_share_type = default\ntransport_url = memory://\n',
    )
    return found.start()


def processes(installation):
    """Return the process of each service, by name."""
    parent = installation.running['services'].pid
    children = pathlib.Path(f'/proc/{parent}/task/{parent}/children')
    return {
        pathlib.Path(f'/proc/{pid}/comm').read_text().strip(): int(pid)
        for pid in children.read_text().split()
    }


def test_each_service_has_a_process_and_they_share_the_work(node):
    assert set(processes(node)) == {'api 1', 'api 2', 'scheduler', 'share', 'data'}
    user = node.rest()
    user.make_default_type()
    user.create_available()
    assert {
        (one['binary'], one['state']) for one in user.get('/services')['services']
    } == {('manila-scheduler', 'up'), ('manila-share', 'up'), ('manila-data', 'up')}


def test_requests_are_answered_while_an_api_is_started_again(node):
    killed = processes(node)['api 1']
    os.kill(killed, signal.SIGKILL)

    def is_replaced():
        answer = requests.get(f'{node.root}/', timeout=10)
        assert answer.status_code == 300
        return processes(node).get('api 1', killed) != killed

    wait_until(is_replaced, 'the API is started again')


def test_nothing_listens_once_they_are_stopped(node):
    found = processes(node)
    assert node.stop()
    assert not any(pathlib.Path(f'/proc/{pid}').exists() for pid in found.values())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', node.port)).close()


def test_process_that_hangs_is_started_again(install, tmp_path, monkeypatch):
    """Each of them reports to the first one, and that to systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / 'notify'))
        systemd.settimeout(60)
        monkeypatch.setenv('NOTIFY_SOCKET', systemd.getsockname())
        monkeypatch.setenv('WATCHDOG_USEC', '4000000')
        node = install(
            kind=SERVICES,
            options='default_share_type = default\ntransport_url = memory://\n',
        ).start()
        before = processes(node)
        for name in ('share', 'api 1'):
            os.kill(before[name], signal.SIGSTOP)
        wait_until(
            lambda: (
                (now := processes(node)).keys() == before.keys()
                and all(now[name] != before[name] for name in ('share', 'api 1'))
            ),
            'both are replaced',
        )
        assert {
            name for name, pid in processes(node).items() if before[name] == pid
        } == {'api 2', 'scheduler', 'data'}
        systemd.setblocking(False)
        heard = set()
        with contextlib.suppress(BlockingIOError):
            while message := systemd.recv(100):
                heard.add(message)
        assert heard == {b'READY=1', b'WATCHDOG=1'}


def test_stop_is_not_delayed_by_services_that_are_idle(node):
    assert node.stop()['services'] < 10


def test_a_second_signal_ends_all_at_once(install):
    node = install(
        kind=SERVICES,
        options='default_share_type = default\ntransport_url = memory://\n',
        backends={'dummy': {'dummy_driver_hang_methods': 'create_share'}},
    ).start()
    user = node.rest()
    user.make_default_type()
    user.create()
    wait_until(node.running_work, 'a call hangs')
    found = processes(node)
    parent = node.running['services']
    parent.terminate()
    wait_until(lambda: set(processes(node)) == {'share'}, 'one still waits')
    parent.terminate()
    assert parent.wait_for_exit(20) == 1
    assert not any(pathlib.Path(f'/proc/{pid}').exists() for pid in found.values())


@pytest.mark.parametrize(
    'concurrency, options, text',
    [
        ('eventlet', '', 'MANILA_LITE_CONCURRENCY'),
        ('threading', 'osapi_share_listen = 192.0.2.1', 'noauth'),
    ],
)
def test_refused_start_is_one_line(install, concurrency, options, text):
    installation = install(kind=SERVICES, options=options)
    configured = installation.conf.read_text()
    if options:
        installation.conf.write_text(
            configured.replace('osapi_share_listen = 127.0.0.1', options)
        )
    command = Command(
        'manila-lite',
        'services',
        *('--config-file', installation.conf),
        log=installation.folder / 'refused.log',
        concurrency=concurrency,
    )
    try:
        assert command.wait_for_exit() == 1
    finally:
        command.kill()
    *_, line = command.output.splitlines()
    assert line.startswith('manila-lite: ')
    assert text in line


def test_misspelt_option_is_reported_once_and_by_the_back_ends(install):
    node = install(
        kind=SERVICES,
        options='default_share_type = default\ntransport_url = memory://\n'
        'default_share_tpye = default\n',
    ).start()
    found = node.running['services'].output.count('default_share_tpye')
    assert found == 2
    assert node.stop()
