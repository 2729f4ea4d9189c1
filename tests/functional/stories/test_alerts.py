"""The shipped alerts fire and are resolved: a real Prometheus, real processes.

It scrapes and evaluates every second. The limits of the rules are those
that are shipped, per second where something is counted in a time; only the
times are shorter.
"""

import re
import shutil
import subprocess

import pytest
import requests
import yaml

from tests.functional.cmd.test_metrics_files import ALERTS
from tests.functional.stories import suites
from tests.support import broker, requirements
from tests.support.installation import SEPARATE
from tests.support.processes import free_port, wait_until
from tests.support.relay import Relay

pytestmark = suites.alerts

LASTS = '2s'
RANGE = 20
"""Seconds in which events are counted."""

_RANGE = re.compile(r'\[(\d+)([mh])\]')
_COUNT = re.compile(r'(increase\(\w+\[(\d+)([mh])\]\)\) > )(\d+)')
_SECONDS = {'m': 60, 'h': 3600}


def shortened(rule):
    """Return a rule that fires soon, and is resolved soon."""

    def scale(found):
        head, number, unit, limit = found.groups()
        share = RANGE / (int(number) * _SECONDS[unit])
        return f'{head}{int(limit) * share:g}'

    expr = _RANGE.sub(f'[{RANGE}s]', _COUNT.sub(scale, rule['expr']))
    return {**rule, 'expr': expr} | ({'for': LASTS} if 'for' in rule else {})


class Prometheus:
    """A Prometheus that evaluates the shipped rules."""

    def __init__(self, folder, ports):
        folder.mkdir()
        (rules,) = yaml.safe_load(ALERTS.read_text())['groups']
        rules['rules'] = [shortened(rule) for rule in rules['rules']]
        (folder / 'rules.yaml').write_text(yaml.safe_dump({'groups': [rules]}))
        config = {
            'global': {
                'scrape_interval': '1s',
                'scrape_timeout': '1s',
                'evaluation_interval': '1s',
            },
            'rule_files': ['rules.yaml'],
            'scrape_configs': [
                {
                    'job_name': 'manila_lite',
                    'static_configs': [
                        {'targets': [f'127.0.0.1:{port}' for port in ports]}
                    ],
                }
            ],
        }
        (folder / 'prometheus.yaml').write_text(yaml.safe_dump(config))
        self.root = f'http://127.0.0.1:{(port := free_port())}/api/v1'
        self.log = (folder / 'prometheus.log').open('w')
        self.process = subprocess.Popen(
            [
                'prometheus',
                f'--config.file={folder}/prometheus.yaml',
                f'--storage.tsdb.path={folder}/data',
                f'--web.listen-address=127.0.0.1:{port}',
                '--log.level=warn',
            ],
            stdout=self.log,
            stderr=self.log,
        )

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def get(self, path):
        """Return what the API says; nothing while it does not answer."""
        try:
            answer = requests.get(f'{self.root}/{path}', timeout=5)
        except requests.RequestException:
            return {}
        return answer.json()['data'] if answer.ok else {}

    def wait_for_targets(self, count):
        wait_until(
            lambda: (
                [
                    target['health']
                    for target in self.get('targets').get('activeTargets', ())
                ]
                == ['up'] * count
            ),
            'all processes are scraped',
        )

    def is_firing(self, name, **labels):
        return any(
            alert['state'] == 'firing'
            and {'alertname': name, **labels}.items() <= alert['labels'].items()
            for alert in self.get('alerts').get('alerts', ())
        )

    def wait_until_firing(self, name, **labels):
        wait_until(lambda: self.is_firing(name, **labels), f'{name} is firing')

    def wait_until_resolved(self, name, **labels):
        wait_until(lambda: not self.is_firing(name, **labels), f'{name} is resolved')


@pytest.fixture
def relay():
    with Relay(*broker.address()) as relay:
        yield relay


@pytest.fixture
def root(tmp_path):
    root = tmp_path / 'disk' / 'root'
    root.mkdir(parents=True)
    return root


@pytest.fixture
def ports():
    return [free_port() for _ in range(2)]


@pytest.fixture
def service(install, broker_url, relay, root, ports):
    host, port = broker.address()
    url = broker_url.replace(f'{host}:{port}', f'127.0.0.1:{relay.port}')
    one = install(
        kind=SEPARATE,
        options=f'default_share_type = default\ntransport_url = {url}\n',
        sections='[monitoring]\napi_metrics = true\n'
        f'scheduler_port = {ports[0]}\nshare_port = {ports[1]}\n',
        backends={
            'disk': {'share_driver': 'local', 'local_root': root},
            'small': {
                'dummy_driver_capacity_gb': 10,
                'max_over_subscription_ratio': 1,
                'dummy_driver_driver_methods_delays': 'extend_share:600',
            },
        },
    ).start()
    one.rest().make_default_type()
    return one


@pytest.fixture
def prometheus(tmp_path, service, ports):
    if not shutil.which('prometheus'):
        requirements.missing('prometheus is not installed')
    one = Prometheus(tmp_path / 'prometheus', [service.port, *ports])
    try:
        one.wait_for_targets(3)
        yield one
    finally:
        one.stop()


def test_alerts_fire_and_are_resolved(service, prometheus, relay, root):
    rest = service.rest()
    small = service.service_host('small')
    hints = {'scheduler_hints': {'only_host': f'{small}#pool'}}

    # A full pool, until a share is deleted.
    full = {'name': 'ManilaLitePoolNearlyFull', 'pool': f'{small}#pool'}
    assert not prometheus.is_firing(**full)
    share = rest.create_available(size=10, **hints)['id']
    prometheus.wait_until_firing(**full)
    rest.delete(share)
    rest.wait_gone(share)
    prometheus.wait_until_resolved(**full)

    # A driver that has lost its disk, until it is mounted.
    dead = {'name': 'ManilaLiteBackendDown', 'host': service.service_host('disk')}
    assert not prometheus.is_firing(**dead)
    root.rename(root.with_name('unmounted'))
    root.mkdir()
    prometheus.wait_until_firing(**dead)
    assert not prometheus.is_firing(dead['name'], host=small)
    root.rmdir()
    root.with_name('unmounted').rename(root)
    prometheus.wait_until_resolved(**dead)

    # Work whose process has died, until another one takes it over.
    stuck = {
        'name': 'ManilaLiteWorkAbandoned',
        'kind': 'provisioning.extend_share_instance',
    }
    share = rest.create_available(size=1, **hints)['id']
    rest.act(share, 'extend', {'new_size': 2})
    wait_until(service.running_work, 'the share is being extended')
    assert not prometheus.is_firing(**stuck)
    service.kill('share')
    prometheus.wait_until_firing(**stuck)
    prometheus.wait_until_firing(dead['name'], host=small)
    service.start('share')
    prometheus.wait_until_resolved(**stuck)
    prometheus.wait_until_resolved(dead['name'], host=small)

    # A broker that is gone, until it is back.
    lost = {'name': 'ManilaLiteHintsLost'}
    prometheus.wait_until_resolved(**lost)
    relay.cut()
    for _ in range(15):
        rest.create(size=1, **hints)
    prometheus.wait_until_firing(**lost)
    relay.mend()
    prometheus.wait_until_resolved(**lost)
    wait_until(lambda: not service.pending_work(), 'all shares are created')
