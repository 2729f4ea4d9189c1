"""Start, refused starts, faults while running, and stop."""

import contextlib
import os
import pathlib
import signal
import socket
import sqlite3

import pytest
import requests
import sqlalchemy as sa

from tests.functional.stories import suites
from tests.support.installation import SEPARATE
from tests.support.processes import Command, free_port, wait_until
from tests.support.relay import Relay

pytestmark = suites.failures

OPTIONS = 'default_share_type = default\n'
TOLERANCE = 5.0
"""Seconds of delay tolerated on a loaded machine."""


# Refused starts


class Attempt:
    """Runs commands that are expected to refuse to start."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.conf = folder / 'manila.conf'

    def refused(self, name: str, *args: object, conf: str = '') -> str:
        """Run a command; return the only line it prints, with exit code 1."""
        self.conf.write_text(f'[DEFAULT]\nstate_path = {self.folder}\n{conf}')
        log = self.folder / f'{name}.log'
        command = Command(name, *args, log=log, forked=True)
        try:
            assert command.wait_for_exit() == 1, command.output
        finally:
            command.kill()
        assert 'Traceback' not in command.output
        *_, line = command.output.splitlines()
        assert line.startswith(f'{name}: '), command.output
        print(line)
        return line


@pytest.fixture
def attempt(tmp_path):
    return Attempt(tmp_path)


BACKEND = """
enabled_share_backends = one
auth_strategy = noauth
[one]
share_driver = {driver}
driver_handles_share_servers = false
"""


@pytest.mark.parametrize(
    'conf, text',
    [
        (BACKEND.format(driver='nothing'), 'share_driver "nothing"'),
        (BACKEND.format(driver='not.there.Driver'), 'not.there'),
        ('report_interval = often\n', 'report_interval in section [DEFAULT]'),
        ('[database]\nmax_retries = x\n', 'in section [database]'),
        ('debug = perhaps\n', 'debug in section [DEFAULT]'),
        (
            BACKEND.format(driver='dummy').replace('false', 'true')
            + 'standalone_network_plugin_network_type = round\n',
            'standalone_network_plugin_network_type in section [one]',
        ),
        ('enabled_share_backends =\n', 'enabled_share_backends'),
        ('transport_url = pigeon://here\n', 'transport_url'),
        (BACKEND.format(driver='dummy') + 'dummy_driver_fail_methods = fly:1\n', 'fly'),
    ],
)
def test_broken_configuration_is_reported_in_one_line(attempt, conf, text):
    line = attempt.refused(
        'manila-lite',
        'serve',
        '--config-file',
        attempt.conf,
        '--state-dir',
        attempt.folder,
        '--port',
        free_port(),
        conf=conf,
    )
    assert text in line
    assert 'Location' not in line
    assert 'literal' not in line


def test_a_database_of_another_program_is_refused_and_not_changed(attempt):
    file = attempt.folder / 'manila_lite.sqlite'
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute('CREATE TABLE songs (title TEXT)')
    before = file.read_bytes()
    line = attempt.refused('manila-lite', 'serve', '--state-dir', attempt.folder)
    assert 'belongs to another program; its tables are songs' in line
    assert file.read_bytes() == before
    assert [*attempt.folder.glob('manila_lite.sqlite*')] == [file]


def test_noauth_beyond_loopback_is_refused(attempt):
    line = attempt.refused(
        'manila-lite', 'serve', '--host', '0.0.0.0', '--state-dir', attempt.folder
    )
    assert 'noauth' in line
    assert 'administrator' in line


def test_noauth_beyond_loopback_is_refused_by_the_api(attempt):
    assert 'not a loopback' in attempt.refused(
        'manila-lite-api',
        '--config-file',
        attempt.conf,
        conf='auth_strategy = noauth\nosapi_share_listen = 0.0.0.0\n',
    )


@pytest.mark.parametrize('name', SEPARATE)
def test_services_require_the_schema(attempt, name):
    line = attempt.refused(
        f'manila-lite-{name}',
        '--config-file',
        attempt.conf,
        conf='osapi_share_listen = 127.0.0.1\n'
        f'{BACKEND.format(driver="dummy")}[database]\n'
        f'connection = sqlite:///{attempt.folder}/empty.sqlite\n',
    )
    assert 'db sync' in line


def test_port_that_is_taken_is_named(attempt):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        line = attempt.refused(
            'manila-lite',
            'serve',
            '--port',
            port,
            '--state-dir',
            attempt.folder / 'state',
        )
    assert f'127.0.0.1 port {port}' in line


def test_second_server_of_a_state_directory_is_refused(install, attempt):
    installation = install().start()
    line = attempt.refused(
        'manila-lite',
        'serve',
        '--port',
        free_port(),
        '--state-dir',
        installation.folder / 'state',
    )
    assert 'another process serves from' in line
    assert installation.rest().get('/shares') == {'shares': []}


# Starting


def test_serve_is_ready_from_nothing(tmp_path):
    """It takes a second or two, of the processor: the rest is waiting."""
    port = free_port()
    began = os.times()
    command = Command(
        'manila-lite',
        'serve',
        '--state-dir',
        tmp_path / 'new',
        '--port',
        port,
        log=tmp_path / 'log',
    )
    try:
        command.wait_for(
            lambda: f'http://127.0.0.1:{port}/v2' in command.output, 'prints its URL'
        )
        command.wait_for(
            lambda: 'share create NFS 1 --name first' in command.output,
            'prints what to try',
        )
        command.stop()
    finally:
        command.kill()
    ended = os.times()
    used = sum(ended[2:4]) - sum(began[2:4])
    print(f'it used {used:.2f} s')
    assert used < 5


MANILA_OPTIONS = """
share_name_template = manila-share-%s
rootwrap_config = /etc/manila/rootwrap.conf
api_paste_config = /etc/manila/api-paste.ini
default_share_type = default
osapi_share_workers = 1
quota_shares = 7
quota_gigabytes = 300
scheduler_default_filters = CapacityFilter,CapabilitiesFilter
storage_availability_zone = zone-7
wsgi_keep_alive = False
"""
MANILA_SECTIONS = """
[neutron]
url = http://127.0.0.1:9696
auth_type = password
[oslo_messaging_notifications]
driver = noop
[oslo_policy]
policy_file = policy.yaml
"""


STANDALONE = 'manila.network.standalone_network_plugin.StandaloneNetworkPlugin'


def test_configuration_of_manila_is_accepted_unchanged(install):
    driver = 'manila.tests.share.drivers.dummy.DummyDriver'
    installation = install(
        options=MANILA_OPTIONS,
        sections=MANILA_SECTIONS,
        backends={
            'london': {
                'share_driver': driver,
                'share_backend_name': 'GOLD',
                'backend_availability_zone': 'zone-8',
            },
            'paris': {
                'share_driver': driver,
                'driver_handles_share_servers': 'True',
                'network_api_class': STANDALONE,
                'standalone_network_plugin_gateway': '10.0.0.1',
                'standalone_network_plugin_mask': '24',
                'service_instance_user': 'manila',
            },
        },
    ).start()
    user = installation.rest()
    user.make_default_type()
    assert {
        (one['host'], one['zone'], one['state'])
        for one in user.get('/services?binary=manila-share')['services']
    } == {
        (installation.service_host('london'), 'zone-8', 'up'),
        (installation.service_host('paris'), 'zone-7', 'up'),
    }
    pools = user.get('/scheduler-stats/pools/detail')['pools']
    assert {
        (
            one['backend'],
            one['capabilities']['share_backend_name'],
            one['capabilities']['driver_handles_share_servers'],
        )
        for one in pools
    } == {('london', 'GOLD', False), ('paris', 'paris', True)}
    quota = user.get('/quota-sets/project')['quota_set']
    assert (quota['shares'], quota['gigabytes']) == (7, 300)
    assert user.create_available()['host'].startswith(
        installation.service_host('london')
    )


def test_misspelt_option_is_warned_of_at_start(install):
    installation = install(
        options=f'{OPTIONS}report_intervall = 9\nrootwrap_config = x\n',
        sections='[scheduler]\ndelay = 1\n',
        backends={'dummy': {'dummy_driver_pool': 'gold'}},
    ).start()
    output = installation.running['serve'].output
    for text in (
        '[DEFAULT] report_intervall is unknown; did you mean report_interval?',
        'section [scheduler] is unknown',
        '[dummy] dummy_driver_pool is unknown; did you mean dummy_driver',
        'says why: [DEFAULT] rootwrap_config',
    ):
        assert text in output
    assert output.count(' is unknown') == 3


def test_start_with_a_configuration_does_not_advise_what_may_fail(install):
    """Its back ends may serve another protocol, and have no share type."""
    installation = install().start()
    command = installation.running['serve']
    command.wait_for(
        lambda: 'openstack share type list' in command.output, 'prints what to try'
    )
    assert f'OS_AUTH_URL={installation.root}/v3' in command.output
    assert 'share create' not in command.output


@pytest.mark.parametrize('name', SEPARATE)
def test_service_that_waits_for_its_database_can_be_stopped(tmp_path, name):
    conf = tmp_path / 'manila.conf'
    conf.write_text(
        f'[DEFAULT]\nstate_path = {tmp_path}\n'
        'osapi_share_listen = 127.0.0.1\n[database]\n'
        'connection = mysql+pymysql://me@127.0.0.1:1/x\n'
    )
    command = Command(
        f'manila-lite-{name}', '--config-file', conf, log=tmp_path / 'log', forked=True
    )
    try:
        command.wait_for(lambda: 'Trying again in 10 s' in command.output, 'waits')
        assert command.stop() < TOLERANCE
    finally:
        command.kill()


# Faults while running


def test_back_end_that_does_not_start_stops_no_other(install):
    wrong = install().folder / 'wrong'
    wrong.write_text('a file instead of a directory')
    installation = install(
        options=OPTIONS,
        backends={'good': {}, 'bad': {'share_driver': 'local', 'local_root': wrong}},
    )
    bad = installation.service_host('bad')
    user = installation.start(wait=False).rest()
    user.make_default_type()
    wait_until(
        lambda: states(user) == {installation.service_host('good'): 'up', bad: 'down'},
        'one of two is up',
    )
    health = installation.rest(url=installation.root)
    health_text = health.get('/healthcheck', expect=503)
    assert bad in health_text
    # The health check is readable without authentication.
    assert str(wrong) not in health_text
    assert str(wrong) in installation.manage('service', 'list')
    share = user.create_available()
    assert share['host'].startswith(installation.service_host('good'))
    wrong.unlink()
    wait_until(lambda: states(user)[bad] == 'up', 'the other is up as well')
    health.get('/healthcheck')


def states(user):
    return {
        one['host']: one['state']
        for one in user.get('/services?binary=manila-share')['services']
    }


@pytest.mark.parametrize('kind', ['mysql', 'postgresql'])
def test_services_come_back_when_the_database_does(
    install, new_database, broker_url, kind
):
    real = sa.make_url(new_database(kind))
    port = real.port or {'mysql': 3306, 'postgresql': 5432}[kind]
    with Relay(real.host, port) as relay:
        url = real.set(host='127.0.0.1', port=relay.port)
        installation = install(
            kind=SEPARATE,
            database_url=url.render_as_string(hide_password=False),
            options=f'{OPTIONS}transport_url = {broker_url}',
        ).start()
        user = installation.rest()
        health = installation.rest(url=installation.root)
        user.make_default_type()
        health.get('/healthcheck')
        relay.cut()
        assert '127.0.0.1' not in health.get('/healthcheck', expect=503)
        user.get('/shares', expect=503)
        relay.mend()
        health.get('/healthcheck')
        wait_until(lambda: set(states(user).values()) == {'up'}, 'all is up')
        wait_until(lambda: try_to_create(user), 'all connections are new')
        wait_until(lambda: installation.pending_work() == 0, 'no work is pending')
        assert installation.problems() == []
        installation.close()


def try_to_create(user):
    """Create a share; return None while lost connections are replaced."""
    with contextlib.suppress(AssertionError):
        return user.create()


# Stopping


def test_stop_waits_for_running_driver_calls_only(install):
    """Two back ends with work for several seconds each."""
    call = 1.5
    slow = {'dummy_driver_driver_methods_delays': f'create_share:{call}'}
    installation = install(options=OPTIONS, backends={'one': slow, 'two': slow}).start()
    user = installation.rest()
    user.make_default_type()
    made = [user.create()['id'] for _ in range(24)]
    wait_until(lambda: installation.running_work() == 8, 'all workers are busy')
    took = installation.running['serve'].stop()
    print(f'stopped after {took:.2f} s, calls take {call} s')
    assert took < call + 1 + TOLERANCE
    assert installation.running_work() == 0
    left = installation.pending_work()
    assert 0 < left <= len(made) - 8
    installation.start()
    for share_id in made:
        assert user.wait_at_rest(share_id)['status'] == 'available'
    assert installation.problems() == []


def test_new_process_leaves_running_calls_to_the_old_one(
    install, new_database, broker_url
):
    """The call lasts longer than the lease and the start of the process.

    Both processes have the same host.
    """
    installation = install(
        kind=SEPARATE,
        database_url=new_database('postgresql'),
        lease=0.5,
        options=f'{OPTIONS}transport_url = {broker_url}',
        backends={'dummy': {'dummy_driver_driver_methods_delays': 'create_share:8'}},
    ).start()
    user = installation.rest()
    user.make_default_type()
    share = user.create()
    wait_until(installation.running_work, 'the call is made')
    old = installation.running['share']
    old.terminate()
    installation.start('share')
    try:
        assert old.is_running
        assert user.wait_at_rest(share['id'])['status'] == 'available'
        assert old.wait_for_exit() == 0
    finally:
        old.kill()
    assert installation.problems() == []


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_second_signal_ends_at_once(install, concurrency):
    installation = install(
        options=OPTIONS,
        concurrency=concurrency,
        backends={'dummy': {'dummy_driver_hang_methods': 'create_share'}},
    )
    user = installation.start().rest()
    user.make_default_type()
    user.create()
    wait_until(lambda: installation.running_work() == 1, 'a call hangs')
    serve = installation.running['serve']
    serve.terminate()
    serve.wait_for(lambda: 'Stopping' in serve.output, 'stops')
    serve.terminate()
    assert serve.wait_for_exit(TOLERANCE) == 128 + signal.SIGTERM


def test_an_api_drains_before_it_stops(install):
    installation = install(
        kind=SEPARATE,
        options=OPTIONS + 'transport_url = memory://\napi_drain_time = 600\n',
    ).start('api')
    health = f'{installation.root}/healthcheck'
    assert requests.get(health, timeout=60).status_code == 200
    api = installation.running['api']
    api.terminate()
    wait_until(
        lambda: 'process: is stopping' in requests.get(health, timeout=60).text,
        'the health check says so',
    )
    assert requests.get(health, timeout=60).status_code == 503
    assert installation.rest().get('/shares')['shares'] == []
    api.terminate()
    assert api.wait_for_exit() == 128 + signal.SIGTERM
