"""Replicas between two share services, on MariaDB and RabbitMQ.

Each service has a configuration file with the sections of both back ends,
and runs one. One is killed in the middle of a promotion.
"""

import pytest

from manila_lite import conf as options
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.dummy import driver as dummy
from tests.functional.stories import suites
from tests.support.installation import SEPARATE
from tests.support.processes import Command, wait_until

pytestmark = suites.several_backends

NAMES = ('alpha', 'beta')
# No periodic updates: replicas change by request only.
OPTIONS = (
    'replica_state_update_interval = 3600\nstartup_reconciliation_wait_seconds = 0\n'
)
ONE_STEP = {'dummy_driver_replica_steps': 1}
"""A new replica is out of sync until the next update."""

STUCK = 'dummy_driver_hang_methods = promote_replica'


class Services:
    """The processes of two share services, and the API for users."""

    def __init__(self, installation):
        self.installation = installation
        self.rest = installation.rest('admin')
        self.hosts = {'alpha': installation.host, 'beta': f'{installation.host}-other'}
        self.running = {}
        self.starts = 0
        text = installation.conf.read_text()
        self.texts = {
            name: text.replace(
                f'enabled_share_backends = {",".join(NAMES)}',
                f'enabled_share_backends = {name}',
            ).replace(f'host = {installation.host}\n', f'host = {host}\n')
            for name, host in self.hosts.items()
        }

    def start(self, name, *, stuck=False):
        """Start a share service; if `stuck`, promotions never end."""
        path = self.installation.conf.with_name(f'{name}.conf')
        path.write_text(
            self.texts[name].replace(f'[{name}]\n', f'[{name}]\n{STUCK}\n')
            if stuck
            else self.texts[name]
        )
        self.starts += 1
        self.running[name] = Command(
            'manila-lite-share',
            '--config-file',
            path,
            log=self.installation.folder / f'{self.starts}-{name}.log',
            forked=True,
        )

    def wait_until_up(self):
        for name, command in self.running.items():
            words = f'Back end {self.hosts[name]}@{name} is up'
            command.wait_for(
                lambda command=command, words=words: words in command.output, words
            )

    def kill(self, name):
        self.running.pop(name).kill()

    def close(self):
        for name in list(self.running):
            self.kill(name)

    def driver(self, name):
        """Return a driver, to write and read the contents of shares."""
        return dummy.DummyDriver(
            configuration=Configuration(
                options.new(files=[str(self.installation.conf)]), name
            )
        )

    # Requests of users

    def host(self, name):
        return f'{self.hosts[name]}@{name}#pool'

    def share(self):
        self.rest.request(
            'POST',
            '/types',
            {
                'share_type': {
                    'name': 'replicated',
                    'extra_specs': {
                        'driver_handles_share_servers': 'False',
                        'snapshot_support': 'True',
                        'replication_type': 'readable',
                    },
                }
            },
        )
        return self.rest.create_available(
            share_type='replicated', scheduler_hints={'only_host': self.host('alpha')}
        )['id']

    def replicas(self, share_id):
        """Return the replicas of a share by back end name."""
        return {
            one['host'].partition('@')[2].partition('#')[0]: one
            for one in self.rest.get(f'/share-replicas/detail?share_id={share_id}')[
                'share_replicas'
            ]
            if one['host']
        }

    def states(self, share_id):
        return {
            name: (one['status'], one['replica_state'])
            for name, one in self.replicas(share_id).items()
        }

    def wait_for_states(self, share_id, **states):
        """Wait until the replicas are available, in these states."""
        wanted = {name: ('available', state) for name, state in states.items()}
        wait_until(lambda: self.states(share_id) == wanted, wanted)

    def act(self, replica, action):
        self.rest.request(
            'POST',
            f'/share-replicas/{replica["id"]}/action',
            {action: None},
            expect=202,
        )

    def replicate(self, share_id, name):
        self.rest.request(
            'POST',
            '/share-replicas',
            {
                'share_replica': {
                    'share_id': share_id,
                    'scheduler_hints': {'only_host': self.host(name)},
                }
            },
            expect=202,
        )

    def snapshot_status(self, snapshot_id):
        return self.rest.get(f'/snapshots/{snapshot_id}')['snapshot']['status']

    def wait_idle(self):
        wait_until(lambda: not self.installation.pending_work(), 'no work is pending')


@pytest.fixture
def services(install, new_database, broker_url):
    installation = install(
        kind=SEPARATE,
        database_url=new_database('mysql'),
        backends={
            name: {
                'replication_domain': 'domain',
                'dummy_driver_replication_type': 'readable',
                **ONE_STEP,
            }
            for name in NAMES
        },
        options=f'{OPTIONS}transport_url = {broker_url}',
    )
    services = Services(installation)
    try:
        for name in NAMES:
            services.start(name)
        installation.start('api', 'scheduler')
        services.wait_until_up()
        yield services
    finally:
        services.close()


def test_share_fails_over_between_services_and_survives_a_kill(services):
    share_id = services.share()
    first = services.replicas(share_id)['alpha']['id']
    services.driver('alpha').write(first, 'one')

    services.replicate(share_id, 'beta')
    services.wait_for_states(share_id, alpha='active', beta='out_of_sync')
    replica = services.replicas(share_id)['beta']
    services.act(replica, 'resync')
    services.wait_for_states(share_id, alpha='active', beta='in_sync')
    assert services.driver('beta').read(replica['id']) == 'one'

    snapshot = services.rest.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share_id}}, expect=202
    )['snapshot']['id']
    services.wait_idle()
    assert services.snapshot_status(snapshot) == 'creating'  # not on beta
    services.act(replica, 'resync')
    wait_until(
        lambda: services.snapshot_status(snapshot) == 'available',
        'the snapshot is on both',
    )

    services.act(replica, 'promote')
    services.wait_for_states(share_id, alpha='out_of_sync', beta='active')
    services.driver('beta').write(replica['id'], 'two')
    services.act(services.replicas(share_id)['alpha'], 'resync')
    services.wait_for_states(share_id, alpha='in_sync', beta='active')
    assert services.driver('alpha').read(first) == 'two'

    services.kill('alpha')
    services.start('alpha', stuck=True)
    services.wait_until_up()
    services.act(services.replicas(share_id)['alpha'], 'promote')
    wait_until(services.installation.running_work, 'the promotion is running')
    assert services.states(share_id)['alpha'][0] == 'replication_change'
    services.kill('alpha')
    services.start('alpha')
    services.wait_until_up()
    services.wait_for_states(share_id, alpha='active', beta='out_of_sync')
    assert services.driver('alpha').read(first) == 'two'
    services.act(services.replicas(share_id)['beta'], 'resync')
    services.wait_for_states(share_id, alpha='active', beta='in_sync')
    assert services.snapshot_status(snapshot) == 'available'

    services.rest.request('DELETE', f'/snapshots/{snapshot}', expect=202)
    services.wait_idle()
    services.act(services.replicas(share_id)['beta'], 'resync')
    wait_until(
        lambda: services.rest.get('/snapshots')['snapshots'] == [],
        'the snapshot is gone from both',
    )
    services.rest.request('DELETE', f'/share-replicas/{replica["id"]}', expect=202)
    wait_until(
        lambda: set(services.states(share_id)) == {'alpha'}, 'the replica is gone'
    )
    services.rest.delete(share_id)
    services.rest.wait_gone(share_id)
    services.wait_idle()
    for name in NAMES:
        assert services.driver(name).inventory() == {}
        assert services.driver(name).snapshot_inventory() == {}
