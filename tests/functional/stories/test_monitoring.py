"""Scheduler and share processes answer questions about themselves."""

import contextlib
import fcntl
import sqlite3

import pytest
import requests

from manila_lite.db import engines
from tests.functional.stories import suites
from tests.support import blocking_driver
from tests.support.installation import SEPARATE
from tests.support.processes import free_port, wait_until

pytestmark = suites.operation


class Monitored:
    """An installation whose scheduler and share service have such a port."""

    def __init__(self, install, broker_url, *, work='', **kwargs):
        self.ports = {name: free_port() for name in ('scheduler', 'share', 'data')}
        self.installation = install(
            kind=SEPARATE,
            options=f'default_share_type = default\ntransport_url = {broker_url}\n',
            sections=f'{work}\n[monitoring]\n'
            f'scheduler_port = {self.ports["scheduler"]}\n'
            f'data_port = {self.ports["data"]}\n'
            f'share_port = {self.ports["share"]}\n',
            **kwargs,
        )
        self.host = self.installation.service_host

    def ask(self, name, **headers):
        return requests.get(
            f'http://127.0.0.1:{self.ports[name]}/healthcheck',
            headers=headers,
            timeout=30,
        )

    def metrics(self, name):
        url = f'http://127.0.0.1:{self.ports[name]}/metrics'
        return requests.get(url, timeout=30).text

    def wait_for(self, name, code, *lines):
        """Wait for this answer to a load balancer."""

        def answers():
            answer = self.ask(name)
            found = answer.status_code, answer.text.splitlines()
            return found == (code, list(lines))

        wait_until(answers, f'{name} answers {code} {lines}')


@pytest.fixture
def monitored(install, broker_url):
    return lambda **kwargs: Monitored(install, broker_url, **kwargs)


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_each_process_answers_for_itself(monitored, concurrency):
    both = monitored(backends={'one': {}, 'two': {}}, concurrency=concurrency)
    both.installation.start('scheduler', 'data', 'share')
    common = {'database': 'OK', 'bus': 'OK', 'work': 'OK'}
    for name, more in (
        ('scheduler', {}),
        ('data', {}),
        ('share', {both.host('one'): 'OK', both.host('two'): 'OK'}),
    ):
        both.wait_for(name, 200, 'OK')
        answer = both.ask(name, Accept='application/json')
        assert answer.json() == {
            'healthy': True,
            'reasons': ['OK'],
            'checks': {**common, **more},
        }


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_scheduler_shows_the_database_and_a_share_process_itself(
    monitored, concurrency
):
    both = monitored(concurrency=concurrency)
    both.installation.start('scheduler', 'share')
    both.wait_for('share', 200, 'OK')
    host = both.host('dummy')
    up = f'service_up{{binary="manila-share",host="{host}"}} 1.0'
    assert up in both.metrics('scheduler')
    assert up not in both.metrics('share')
    assert 'backend="dummy",method="get_share_stats"' in both.metrics('share')


def test_share_process_names_each_back_end_that_has_not_started(monitored):
    both = monitored(
        backends={
            'good': {},
            'bad': {'share_driver': 'local', 'local_root': '/dev/null/shares'},
        }
    )
    both.installation.start('share', wait=False)
    both.wait_for('share', 503, f'{both.host("bad")}: is not up, see "service list"')


def test_share_process_tells_that_a_driver_hangs(monitored):
    both = monitored(
        work='driver_hang_time = 1\nworkers_per_backend = 1',
        backends={'slow': {'share_driver': blocking_driver.NAME}},
    )
    installation = both.installation.start()
    user = installation.rest()
    user.make_default_type()
    folder = installation.dummy_state_dir('slow')
    with blocking_driver.lock_file(folder).open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        share = user.create()
        both.wait_for(
            'share', 503, f'{both.host("slow")}: is not up, see "service list"'
        )
    both.wait_for('share', 200, 'OK')
    assert user.wait_at_rest(share['id'])['status'] == 'available'


def test_processes_tell_that_the_database_cannot_be_written(monitored):
    both = monitored()
    both.installation.start('scheduler', 'data', 'share')
    path = both.installation.database_url.removeprefix('sqlite:///')
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute('BEGIN IMMEDIATE')
        for name in both.ports:
            # The check itself waits for the lock.
            answer = both.ask(name)
            assert answer.status_code == 503
            assert 'database: does not answer' in answer.text.splitlines()
            assert answer.elapsed.total_seconds() < engines.LOCK_TIMEOUT / 2
        other.execute('ROLLBACK')
    for name in both.ports:
        both.wait_for(name, 200, 'OK')
